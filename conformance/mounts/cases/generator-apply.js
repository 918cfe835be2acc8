// An apply that yields its disposers.
// call: add {"a": 1, "b": 2}
// answer: 3
return { inject: ['tools'], *apply(ctx) {
  yield harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
} }
