// A type where a parameter object belongs.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: must be a property object such as {type: "string"}
// change: a: 'number' --> a: { type: 'number' }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: 'number', b: { type: 'number' } },
    execute: ({ a, b }) => a + b,
  }))
} }
