// A BigInt as the value.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_TOOL_OUTPUT
// says: use a number up to 2^53, or a string
// change: BigInt(a + b) --> Number(BigInt(a + b))
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => BigInt(a + b),
  }))
} }
