// The value breaks the declared schema.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_TOOL_OUTPUT
// says: expected string
// change: { type: 'string' } --> { type: 'number' }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    output: { schema: { type: 'string' } },
    execute: ({ a, b }) => a + b,
  }))
} }
