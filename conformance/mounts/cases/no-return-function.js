// Only a function apply is declared.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_PLUGIN
// says: Return a function (ctx, config) => {…}, or an object { name, inject: ['tools'], apply
// change: // that is all --> return { inject, apply }
const inject = ['tools']
function apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
}
// that is all
