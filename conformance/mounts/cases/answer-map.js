// A Map as the value.
// call: add {"a": 1, "b": 2}
// answer: {"sum":3}
// refused: INVALID_TOOL_OUTPUT
// says: use Object.fromEntries(map)
// change: new Map([["sum", a + b]]) --> Object.fromEntries(new Map([["sum", a + b]]))
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => new Map([["sum", a + b]]),
  }))
} }
