// fetch without the http service.
// call: t
// answer: pong
// refused: NOT_AVAILABLE
// says: inject: ['http'], then ctx.http.fetch(url, init)
// change: fetch( --> ctx.http.fetch(
// change: ['tools'] --> ['tools', 'http']
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Ask the server.', parameters: {},
    execute: async () => (await fetch('http://api.test/x')).text(),
  }))
} }
