// Parameters in schemastery.
// call: add {"a": 1, "b": 2}
// answer: 3
// refused: INVALID_ARGUMENT
// says: must be a parameter spec object such as {city: {type: 'string', required: true}}
// change: Schema.object({ a: Schema.number() }) --> { a: { type: 'number' } }
const { Schema } = require('schemastery')
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: Schema.object({ a: Schema.number() }),
    execute: ({ a, b }) => a + b,
  }))
} }
