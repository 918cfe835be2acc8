// A class, constructed with ctx.
// call: add {"a": 1, "b": 2}
// answer: 3
return class Mine {
  static name = 'mine'
  static inject = ['tools']
  constructor(ctx) {
    harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
  }
}
