// A promise in the value.
// call: add {"a": 1, "b": 2}
// answer: {"sum":3}
// refused: INVALID_TOOL_OUTPUT
// says: await it first
// change: ({ a, b }) => --> async ({ a, b }) =>
// change: sum: Promise --> sum: await Promise
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => ({ sum: Promise.resolve(a + b) }),
  }))
} }
