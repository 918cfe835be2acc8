// A tool without a description.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: description: expected a string that tells a model what the tool does
// change: name: 'add', --> name: 'add', description: 'Add two numbers.',
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
