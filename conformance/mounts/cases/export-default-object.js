// An ES module with a default export instead of a returned plugin.
// call: add {"a": 1, "b": 2}
// answer: 3
export default { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
