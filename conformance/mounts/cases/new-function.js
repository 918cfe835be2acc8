// Code made of a string.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: SCRIPT_ERROR
// says: write the code in the plugin itself
// change: new Function('a', 'b', 'return a + b')(a, b) --> a + b
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => new Function('a', 'b', 'return a + b')(a, b),
  }))
} }
