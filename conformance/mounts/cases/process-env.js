// The environment of the process.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: SCRIPT_ERROR
// says: a plugin has no environment, write the value into its code
// change: process.env.PLUS --> undefined
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b + Number(process.env.PLUS ?? 0),
  }))
} }
