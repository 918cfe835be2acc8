// What defineTool made is returned.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_PLUGIN
// says: apply(ctx) { harness.registerTool(ctx, harness.defineTool({…})) }
// change: return harness.defineTool({ --> return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({
// change: a + b, }) --> a + b, })) } }
return harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, })
