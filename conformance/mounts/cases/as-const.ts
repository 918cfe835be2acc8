// A manifest with as const and satisfies.
// call: add {"a": 1, "b": 2}
// answer: 3
const plugin = { name: 'mine', inject: ['tools'] as const, apply(ctx: any): void {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, } satisfies object))
} }
return plugin
