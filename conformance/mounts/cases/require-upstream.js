// A require of a module that there is.
// call: add {"a": 1, "b": 2}
// answer: 3
const { defineTool } = require('ouro')
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} }
