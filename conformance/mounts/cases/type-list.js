// A list of types.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: for several use oneOf: [{type: "number"}, {type: "null"}]
// change: type: ['number', 'null'] --> oneOf: [{ type: 'number' }, { type: 'null' }]
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: ['number', 'null'] }, b: { type: 'number' } },
    execute: ({ a, b }) => a + b,
  }))
} }
