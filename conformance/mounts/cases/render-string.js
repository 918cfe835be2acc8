// render answers text.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_TOOL_OUTPUT
// says: return a list of blocks such as [{ type: 'text', text: String(value) }]
// change: => String(value) --> => [{ type: 'text', text: String(value) }]
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    output: { render: (args, value) => String(value) },
    execute: ({ a, b }) => a + b,
  }))
} }
