// A response as the value.
// call: t
// answer: pong
// refused: NOT_JSON
// says: what its text() or json() answers
// change: execute: () => ctx.http.fetch('http://api.test') --> execute: async () => (await ctx.http.fetch('http://api.test')).text()
return { name: 'mine', inject: ['tools', 'http'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Ask the server.', parameters: {},
    execute: () => ctx.http.fetch('http://api.test'),
  }))
} }
