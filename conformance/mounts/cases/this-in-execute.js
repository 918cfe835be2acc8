// execute uses other members of its definition by this.
// call: add {"a": 1, "b": 2}
// answer: 3
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: function ({ a, b }) { return this.plus(a, b) },
    plus: (a, b) => a + b,
  }))
} }
