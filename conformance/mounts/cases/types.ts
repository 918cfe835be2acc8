// Types in the code, which is said to be JavaScript.
// call: add {"a": 1, "b": 2}
// answer: 3
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: async ({ a, b }: { a: number; b: number }): Promise<number> => a + b,
  }))
} }
