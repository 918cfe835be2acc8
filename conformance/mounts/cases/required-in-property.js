// required in a property of a JSON Schema.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: belongs to the containing object: list this name in its required
// change: , required: true } -->  }
// change: { type: 'object', --> { type: 'object', required: ['a'],
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { type: 'object', properties: { a: { type: 'number', required: true }, b: { type: 'number' } } },
    execute: ({ a, b }) => a + b,
  }))
} }
