// A JSON Schema with $schema.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: $schema: is not supported for type object; remove it
// change: $schema: 'http://json-schema.org/draft-07/schema#',  -->
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
    execute: ({ a, b }) => a + b,
  }))
} }
