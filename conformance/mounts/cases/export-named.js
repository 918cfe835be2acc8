// An ES module with named exports.
// call: add {"a": 1, "b": 2}
// answer: 3
export const name = 'mine'
export const inject = ['tools']
export function apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
}
