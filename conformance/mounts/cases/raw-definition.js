// A definition that was not made by defineTool.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: ctx.tools.register(harness.defineTool({
// change: register(({ --> register(harness.defineTool({
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.tools.register(({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
