// The value in the form of MCP.
// call: add {"a": 1, "b": 2}
// answer: {"content":[{"text":"3","type":"text"}]}
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
  }))
} }
