// The output as a type.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: must be an object {schema, render}
// change: output: 'number' --> output: { schema: { type: 'number' } }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    output: 'number',
    execute: ({ a, b }) => a + b,
  }))
} }
