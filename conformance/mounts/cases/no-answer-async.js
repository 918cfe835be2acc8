// An async execute forgets to return.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_TOOL_OUTPUT
// says: return its value from execute, or return null
// change: ; sum } --> ; return sum }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: async ({ a, b }) => { const sum = await Promise.resolve(a + b); sum },
  }))
} }
