// A list of required names in a parameter map.
// call: add {"b": 3}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: mark the properties themselves with required: true
// change: , required: [] } -->  }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'object', additionalProperties: true, properties: {}, required: [] }, b: { type: 'number' } },
    execute: ({ a, b }) => b,
  }))
} }
