// inputSchema for parameters.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: write parameters
// change: inputSchema: --> parameters:
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    inputSchema: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
