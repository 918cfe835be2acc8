// apply answers a value that is no disposer.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: SCRIPT_ERROR
// says: a disposer function, a promise of one, an iterable of them, or nothing
// change: return seen.push(1) --> seen.push(1)
const seen = []
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
  return seen.push(1)
} }
