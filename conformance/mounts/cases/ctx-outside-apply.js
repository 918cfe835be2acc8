// ctx is used outside of apply.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: SCRIPT_ERROR
// says: ctx is the argument of apply(ctx)
// change: harness.registerTool(ctx, --> const register = (ctx) => harness.registerTool(ctx,
// change: /* nothing */ --> register(ctx)
harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
return { inject: ['tools'], apply(ctx) { /* nothing */ } }
