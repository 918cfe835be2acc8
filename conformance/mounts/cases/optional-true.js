// optional: true.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: what is not required is optional
// change: , optional: true -->
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number' }, b: { type: 'number', optional: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
