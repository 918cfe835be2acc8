// A closing parenthesis after the returned object.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: COMPILE_FAILED
// says: a stray closing parenthesis after the returned object
// change: } }) --> } }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => a + b,
  }))
} })
