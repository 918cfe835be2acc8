// A method of Node under the fs service.
// call: t
// answer: milk
// refused: NOT_EXPOSED
// says: it has readText
// change: readFile('notes.txt', 'utf8') --> readText('notes.txt')
return { name: 'mine', inject: ['tools', 'fs'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Read the notes.', parameters: {},
    execute: () => ctx.fs.readFile('notes.txt', 'utf8'),
  }))
} }
