// await in a function that is not async.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: COMPILE_FAILED
// says: "await" can only be used inside an "async" function
// change: execute: function --> execute: async function
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: function ({ a, b }) { return await Promise.resolve(a + b) },
  }))
} }
