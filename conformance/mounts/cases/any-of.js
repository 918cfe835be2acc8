// anyOf for oneOf.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: oneOf
// change: anyOf: --> oneOf:
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { anyOf: [{ type: 'number' }, { type: 'string' }] }, b: { type: 'number' } },
    execute: ({ a, b }) => a + b,
  }))
} }
