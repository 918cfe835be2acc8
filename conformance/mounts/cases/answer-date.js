// A Date as the value.
// call: t
// answer: 1970-01-01T00:00:00.000Z
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'When.', parameters: {},
    execute: () => new Date(0),
  }))
} }
