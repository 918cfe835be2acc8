// A bare function uses a service.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: NOT_INJECTED
// says: inject: ['tools']
// change: return (ctx) => { --> return { inject: ['tools'], apply: (ctx) => {
// change: }))\n} --> }))\n} }
return (ctx) => {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
}
