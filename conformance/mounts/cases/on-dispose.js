// Clean-up in a dispose event.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: register one with ctx.effect(() => () => {
// change: ctx.on('dispose', () =>  --> ctx.effect(() => () => 
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.on('dispose', () => console.log('bye'))
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
