// An object that does not say whether it is open.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: additionalProperties: must be explicit: true or false
// change: { type: 'object' } --> { type: 'object', additionalProperties: true }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number' }, b: { type: 'number' }, more: { type: 'object' } },
    execute: ({ a, b }) => a + b,
  }))
} }
