// The work is done in a ready event.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: apply runs when the plugin is ready, so do it there
// change: ctx.on('ready', () =>  -->
// change: }))) --> }))
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.on('ready', () => harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  })))
} }
