// An enum that is no list.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: enum: must be a list of values
// change: enum: 1 --> enum: [1]
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', enum: 1 }, b: { type: 'number' } },
    execute: ({ a, b }) => a + b,
  }))
} }
