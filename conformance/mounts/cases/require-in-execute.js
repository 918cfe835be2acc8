// A require when the tool is called.
// call: t
// answer: milk
// refused: MODULE_NOT_AVAILABLE
// says: inject the fs service: inject: ['fs'], then ctx.fs
// change: require('fs').readFileSync('notes.txt', 'utf8') --> ctx.fs.readText('notes.txt')
// change: ['tools'] --> ['tools', 'fs']
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Read the notes.', parameters: {},
    execute: () => require('fs').readFileSync('notes.txt', 'utf8'),
  }))
} }
