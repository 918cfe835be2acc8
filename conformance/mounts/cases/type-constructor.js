// A constructor for a type.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: one of string, number, integer
// change: type: Number --> type: 'number'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: Number }, b: { type: 'number' } },
    execute: ({ a, b }) => a + b,
  }))
} }
