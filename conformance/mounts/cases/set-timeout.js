// setTimeout as a global.
// call: t
// answer: waited
// refused: NOT_AVAILABLE
// says: inject: ['timer'], then ctx.setTimeout
// change: => setTimeout( --> => ctx.setTimeout(
// change: ['tools'] --> ['tools', 'timer']
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Wait.', parameters: {},
    execute: () => new Promise((done) => setTimeout(() => done('waited'), 1)),
  }))
} }
