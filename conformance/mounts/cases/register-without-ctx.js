// registerTool without ctx.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: write harness.registerTool(ctx, harness.defineTool({…}))
// change: registerTool( --> registerTool(ctx, 
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
