// The parameters as a list.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: must be a parameter spec object such as {city: {type: 'string', required: true}}, got a list
// change: [{ name: 'a', type: 'number' }, { name: 'b', type: 'number' }] --> { a: { type: 'number' }, b: { type: 'number' } }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: [{ name: 'a', type: 'number' }, { name: 'b', type: 'number' }],
    execute: ({ a, b }) => a + b,
  }))
} }
