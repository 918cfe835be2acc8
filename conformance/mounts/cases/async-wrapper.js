// The plugin is made by an async function that is called.
// call: add {"a": 1, "b": 2}
// answer: 3
return (async () => {
  return { name: 'mine', inject: ['tools'], apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'add',
      description: 'Add two numbers.',
      parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
      execute: ({ a, b }) => a + b,
    }))
  } }
})()
