// A bound that is not supported.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: say it in the description
// change: minimum: 0 --> description: 'at least 0'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', minimum: 0 }, b: { type: 'number' } },
    execute: ({ a, b }) => a + b,
  }))
} }
