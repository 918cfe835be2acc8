// The type int of another language.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: did you mean "integer"?
// change: type: 'int' --> type: 'integer'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'int' }, b: { type: 'number' } },
    execute: ({ a, b }) => Number(a) + b,
  }))
} }
