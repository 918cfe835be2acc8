// A tool is returned instead of a plugin.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_PLUGIN
// says: apply(ctx) { harness.registerTool(ctx, harness.defineTool({…})) }
// change: return { --> return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({
// change: a + b,\n} --> a + b,\n})) } }
return {
  name: 'add',
  description: 'Add two numbers.',
  parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
  execute: ({ a, b }) => a + b,
}
