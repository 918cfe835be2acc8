// A method of another library under the http service.
// call: t
// answer: pong
// refused: NOT_EXPOSED
// says: it has fetch
// change: http.get( --> http.fetch(
return { name: 'mine', inject: ['tools', 'http'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Ask the server.', parameters: {},
    execute: async () => (await ctx.http.get('http://api.test')).text(),
  }))
} }
