// The items of a list as a type.
// call: t {"list": [1, 2, 3]}
// answer: 3
// refused: UNSUPPORTED_SCHEMA
// says: items: must be a schema object such as {type: "string"}
// change: items: 'number' --> items: { type: 'number' }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Add.', parameters: { list: { type: 'array', items: 'number' } },
    execute: ({ list }) => list.length,
  }))
} }
