// No output contract, and a value that is an object.
// call: add {"a": 1, "b": 2}
// answer: {"list":[1,2],"sum":3}
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => ({ sum: a + b, list: [a, b] }),
  }))
} }
