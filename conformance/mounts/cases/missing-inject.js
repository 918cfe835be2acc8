// A service is used and not declared.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: NOT_INJECTED
// says: add it, inject: ['tools']
// change: inject: [] --> inject: ['tools']
return { name: 'mine', inject: [], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
