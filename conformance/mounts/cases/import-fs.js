// An import of fs.
// call: t
// answer: milk
// refused: MODULE_NOT_AVAILABLE
// says: inject the fs service: inject: ['fs'], then ctx.fs
// change: import fs from 'node:fs/promises' -->
// change: fs.readFile('notes.txt', 'utf8') --> ctx.fs.readText('notes.txt')
// change: ['tools'] --> ['tools', 'fs']
import fs from 'node:fs/promises'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Read the notes.', parameters: {},
    execute: () => fs.readFile('notes.txt', 'utf8'),
  }))
} }
