// The type str of another language.
// call: add {"a": "1", "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: did you mean "string"?
// change: type: 'str' --> type: 'string'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'str' }, b: { type: 'number' } },
    execute: ({ a, b }) => Number(a) + b,
  }))
} }
