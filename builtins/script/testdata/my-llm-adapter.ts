import type { Context } from 'cordis'
import Schema from 'schemastery'
import { CallId, LlmAdapter, LlmError, attributionHeaders, type GenerateOptions, type StreamChunk } from '@deepseek-ai/dsh-llm'

class MyAdapter extends LlmAdapter {
  private apiKey: string

  constructor(apiKey: string) {
    super()
    this.apiKey = apiKey
  }

  async *stream(options: GenerateOptions): AsyncIterable<StreamChunk> {
    const last = options.messages[options.messages.length - 1]
    const asked = last.content.map((b) => (b.type === 'text' ? b.text : '')).join('')
    if (asked === 'throw') {
      throw new Error('it broke')
    }
    if (asked === 'refuse') {
      throw new LlmError('over quota', 'QUOTA', { status: 429, providerRetryAfterMs: 1500, requestId: 'r-1' })
    }
    if (asked === 'wait') {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      await new Promise((_, reject) => options.signal!.addEventListener('abort', () => reject(options.signal!.reason)))
    }
    if (asked === 'misspell') {
      yield { type: 'text-delta', index: 0, txt: 'x' } as any
    }
    const words = ['You said ', asked, '; I am ', Object.keys(attributionHeaders()).join()]
    try {
      yield { type: 'block-start', index: 0, blockType: 'text' }
      for await (const text of words) yield { type: 'text-delta', index: 0, text }
      yield { type: 'block-end', index: 0, block: { type: 'text', text: words.join('') } }
      if (asked !== 'talk') {
        yield { type: 'block-start', index: 1, blockType: 'tool-call' }
        yield { type: 'tool-call-delta', index: 1, id: CallId('call-123'), name: 'bash', argumentsDelta: '{"command":"ls"}' }
        yield { type: 'block-end', index: 1, block: { type: 'tool-call', id: CallId('call-123'), name: 'bash', arguments: '{"command":"ls"}' } }
      }
      yield { type: 'usage', usage: { inputTokens: 100, outputTokens: 50 } }
      yield { type: 'finish', reason: { kind: 'stop' } }
    } finally {
      console.log('left', this.apiKey.length)
    }
  }
}

export interface Config {
  apiKey: string
  models: string[]
}

export const Config: Schema<Config> = Schema.object({
  apiKey: Schema.string().required(),
  models: Schema.array(Schema.string()).required(),
})

export const name = 'my-llm-adapter'
export const inject = ['llm']

export function apply(ctx: Context, config: Config) {
  const adapter = new MyAdapter(config.apiKey)
  ctx.llm.registerAdapter(config.models, adapter)
}
