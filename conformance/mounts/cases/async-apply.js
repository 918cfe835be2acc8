// An async apply that awaits.
// call: add {"a": 1, "b": 2}
// answer: 3
return { name: 'mine', inject: ['tools'], async apply(ctx) {
  await Promise.resolve()
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
