// null for no parameters.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: must be a parameter spec object
// change: parameters: null --> parameters: {}
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: null,
    execute: ({ a, b }) => a + b,
  }))
} }
