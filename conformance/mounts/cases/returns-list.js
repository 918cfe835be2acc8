// A list of plugins is returned.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_PLUGIN
// says: which is not a plugin. Return a function
// change: return [{ --> return {
// change: } }] --> } }
return [{ inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
} }]
