// A tool without parameters.
// call: add
// answer: 3
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    execute: () => 3,
  }))
} }
