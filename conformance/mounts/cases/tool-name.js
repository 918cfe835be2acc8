// A tool name with spaces.
// call: add_numbers {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: expected 1 to 64 letters, digits, '_' or '-'
// change: 'add numbers' --> 'add_numbers'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add numbers',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
