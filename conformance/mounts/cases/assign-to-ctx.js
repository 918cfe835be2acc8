// A value is put on ctx.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: READ_ONLY
// says: publish a value with ctx.provide("mine", value)
// change: ctx.mine = { plus } --> ctx.provide('mine', { plus })
return { name: 'mine', inject: ['tools'], apply(ctx) {
  const plus = (a, b) => a + b
  ctx.mine = { plus }
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => plus(a, b),
  }))
} }
