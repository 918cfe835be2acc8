// inject in the form with required and optional.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_PLUGIN
// says: write inject: ['tools', …]
// change: { required: ['tools'], optional: [] } --> ['tools']
return { name: 'mine', inject: { required: ['tools'], optional: [] }, apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
