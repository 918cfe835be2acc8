// defineTool as a global.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: SCRIPT_ERROR
// says: write harness.defineTool
// change: defineTool( --> harness.defineTool(
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
