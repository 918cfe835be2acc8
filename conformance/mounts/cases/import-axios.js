// An import of a library for requests.
// call: t
// answer: pong
// refused: MODULE_NOT_AVAILABLE
// says: inject: ['http'], then ctx.http.fetch
// change: import axios from 'axios' -->
// change: axios.get( --> ctx.http.fetch(
// change: ['tools'] --> ['tools', 'http']
import axios from 'axios'
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 't', description: 'Ask the server.', parameters: {},
    execute: async () => (await axios.get('http://api.test')).text(),
  }))
} }
