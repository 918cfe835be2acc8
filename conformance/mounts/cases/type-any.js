// The type any of another language.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: did you mean "json"?
// change: type: 'any' --> type: 'json'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'any' }, b: { type: 'number' } },
    execute: ({ a, b }) => Number(a) + b,
  }))
} }
