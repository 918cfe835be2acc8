// Another name for a method of a service.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: NOT_EXPOSED
// says: it has register, schemas, get, execute
// change: tools.add( --> tools.register(
return { name: 'mine', inject: ['tools'], apply(ctx) {
  ctx.tools.add(harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
