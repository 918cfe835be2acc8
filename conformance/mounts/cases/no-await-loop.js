// A loop over what was not awaited.
// call: t
// answer: notes.txt
// refused: SCRIPT_ERROR
// says: is an await missing?
// change: of ctx.fs --> of await ctx.fs
return { name: 'mine', inject: ['tools', 'fs'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'List.', parameters: {},
    execute: async () => { const out = []; for (const f of ctx.fs.list()) out.push(f.name); return out.join() },
  }))
} }
