// The logger is not declared.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: NOT_INJECTED
// says: inject: ['logger']
// change: inject: ['tools'] --> inject: ['tools', 'logger']
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.logger.info('up')
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
