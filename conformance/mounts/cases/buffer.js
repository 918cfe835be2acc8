// Buffer of Node.
// call: t
// answer: aGk=
// refused: SCRIPT_ERROR
// says: use btoa and atob
// change: Buffer.from('hi').toString('base64') --> btoa('hi')
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Encode.', parameters: {},
    execute: () => Buffer.from('hi').toString('base64'),
  }))
} }
