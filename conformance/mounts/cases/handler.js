// handler for execute.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: rename handler to execute
// change: handler: --> execute:
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    handler: ({ a, b }) => a + b,
  }))
} }
