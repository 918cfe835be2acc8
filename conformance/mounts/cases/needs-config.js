// A required configuration, which mounts are not given.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_CONFIG
// says: give each member of Config a default
// change: .required() }) --> .default(0) })
const { Schema } = require('schemastery')
return { inject: ['tools'], Config: Schema.object({ plus: Schema.number().required() }), apply(ctx, config) {
  harness.registerTool(ctx, harness.defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b + config.plus, }))
} }
