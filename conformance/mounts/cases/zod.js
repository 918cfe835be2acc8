// Parameters in zod.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: SCRIPT_ERROR
// says: describe parameters as {name: {type: 'string', required: true}}
// change: z.object({ a: z.number() }) --> { a: { type: 'number', required: true } }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: z.object({ a: z.number() }),
    execute: ({ a, b }) => a + b,
  }))
} }
