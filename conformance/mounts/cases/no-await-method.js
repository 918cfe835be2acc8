// A method of what was not awaited.
// call: t
// answer: 4
// refused: SCRIPT_ERROR
// says: is an await missing?
// change: ctx.fs.readText('notes.txt'). --> (await ctx.fs.readText('notes.txt')).
return { name: 'mine', inject: ['tools', 'fs'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Read.', parameters: {},
    execute: async () => ctx.fs.readText('notes.txt').split('').length,
  }))
} }
