// A function with its inject as a member.
// call: add {"a": 1, "b": 2}
// answer: 3
function mine(ctx) {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
}
mine.inject = ['tools']
return mine
