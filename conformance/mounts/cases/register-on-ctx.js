// A method of ctx that there is not.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: NOT_EXPOSED
// says: write harness.registerTool(ctx, harness.defineTool({…}))
// change: ctx.registerTool( --> harness.registerTool(ctx, 
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.registerTool(harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
