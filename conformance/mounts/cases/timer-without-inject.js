// A timer of ctx without the timer service.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: NOT_INJECTED
// says: inject: ['timer']
// change: inject: ['tools'] --> inject: ['tools', 'timer']
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.setTimeout(() => {}, 10)
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
