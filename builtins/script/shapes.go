package script

// shapes are the types of the table, sorted by name.
var shapes = []Shape{
	{"Agent", "interface Agent { id: string; status: 'idle' | 'running' }"},
	{"ContentBlock", `type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'image'; attachment: { hash: string; mediaType: string; size?: number; name?: string } }
  | { type: 'tool-call'; id: string; name: string; arguments: string }
  | { type: 'tool-result'; toolCallId: string; content: ContentBlock[]; isError?: boolean }`},
	{"Decision", "type Decision = { kind: 'allow' } | { kind: 'deny'; reason: string } | { kind: 'ask'; reason?: string }"},
	{"Disposer", "type Disposer = () => Promise<boolean> // takes effect at once; the promise settles when nothing of it runs any more"},
	{"Failure", "interface Failure { message: string; code: string; status?: number; providerRetryAfterMs?: number; requestId?: string }"},
	{"Fiber", `interface Fiber extends PromiseLike<void> { // awaiting it waits until the child has started, or waits for a service
  id: number
  name: string
  state(): 'pending' | 'loading' | 'active' | 'failed' | 'disposed' | 'unloading'
  dispose(): Promise<void>
}`},
	{"FiberInfo", "interface FiberInfo { id: number; name: string; state: string; entry?: string }"},
	{"FileInfo", "interface FileInfo { name: string; type: 'file' | 'folder' | 'other'; size: number /* bytes */; modified: string /* ISO 8601 */ }"},
	{"FinishReason", "type FinishReason = { kind: 'stop' | 'tool-calls' | 'max-tokens' } | { kind: 'aborted' | 'error'; failure: Failure }"},
	{"GenerateOptions", `interface GenerateOptions {
  provider: string
  model: string
  messages: Message[]
  system?: string
  tools?: ToolSchema[]
  reasoningEffort?: string
  temperature?: number
  maxTokens?: number
  stop?: string[]
  sessionId?: string
  purpose?: 'compaction' | 'session-title'
  signal?: AbortSignal
}`},
	{"LlmAdapter", `interface LlmAdapter {
  stream(options: GenerateOptions): AsyncIterable<StreamChunk>
  providerInfo?(route: string): ProviderInfo | Promise<ProviderInfo>
  listModels?(route: string): ModelInfo[] | Promise<ModelInfo[]>
  resolveModel?(route: string, model: string): ModelInfo | Promise<ModelInfo>
}`},
	{"LlmCallConfig", "interface LlmCallConfig { provider: string; model: string; reasoningEffort?: string; temperature?: number; maxTokens?: number; stop?: string[] }"},
	{"Log", `interface Log {
  error(...values: any[]): void
  warn(...values: any[]): void
  info(...values: any[]): void
  debug(...values: any[]): void
}`},
	{"MemoryHit", "interface MemoryHit { item: MemoryItem; score: number /* 0 to 1 */ }"},
	{"MemoryItem", `interface MemoryItem {
  scope: MemoryScope
  key: string
  kind?: 'fact' | 'conversation' | 'procedure' | string
  text: string
  metadata?: { [name: string]: any }
  expires?: string // ISO 8601
}`},
	{"MemoryQuery", `interface MemoryQuery {
  scope: MemoryScope
  text?: string // ranks by relevance; without it the newest come first
  prefix?: string // of the key
  kinds?: string[]
  where?: { [name: string]: any } // metadata that must be equal
  minScore?: number
  limit?: number // 10 if left out
}`},
	{"MemoryScope", "interface MemoryScope { user: string; agent?: string; session?: string }"},
	{"Message", "interface Message { id: string; role: 'system' | 'user' | 'assistant'; content: ContentBlock[]; source: { kind: string; [name: string]: any } }"},
	{"ModelInfo", `interface ModelInfo {
  provider?: string
  id: string
  name?: string
  contextWindow?: number // tokens
  maxTokens?: number // output tokens
  inputModalities?: string[]
  reasoning?: { efforts: { id: string; name: string }[]; default?: string }
}`},
	{"Parameters", `interface Parameters { // an open object; the same as JSON Schema {type: 'object', properties, required} is taken too
  [name: string]: { type: 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object' | 'json'; required?: true; description?: string; [keyword: string]: any }
}`},
	{"Plugin", `type Plugin = ((ctx: Context, config: any) => any) | {
  name?: string
  inject?: string[] | { [service: string]: any }
  provide?: string[]
  Config?: Schema
  apply(ctx: Context, config: any): any // may answer a disposer, a promise or an iterable of disposers
}`},
	{"ProviderInfo", "interface ProviderInfo { id: string; name: string }"},
	{"RetryPolicy", "interface RetryPolicy { mode: 'normal' | 'always'; maxRetries?: number; retryableCodes?: string[]; backoff: { initialDelayMs: number; maxDelayMs: number; jitterRatio: number } }"},
	{"SessionEvent", "interface SessionEvent { seq: number; type: string; time: number /* ms since 1970 */; data: any }"},
	{"SessionInfo", "interface SessionInfo { id: string; createdAt: number /* ms since 1970 */; cwd?: string; parentSession?: string }"},
	{"StreamChunk", `type StreamChunk =
  | { type: 'block-start'; index: number; blockType: 'text' | 'reasoning' | 'tool-call' }
  | { type: 'text-delta' | 'reasoning-delta'; index: number; text: string }
  | { type: 'tool-call-delta'; index: number; id: string; name?: string; argumentsDelta: string }
  | { type: 'block-end'; index: number; block: ContentBlock }
  | { type: 'usage'; usage: TokenUsage }
  | { type: 'finish'; reason: FinishReason }`},
	{"TokenUsage", "interface TokenUsage { inputTokens: number; outputTokens: number; cacheReadTokens?: number; cacheWriteTokens?: number; reasoningTokens?: number }"},
	{"ToolCall", "interface ToolCall { name: string; arguments?: any; signal?: AbortSignal }"},
	{"ToolDefinition", `interface ToolDefinition {
  name: string // 1 to 64 letters, digits, '_' or '-'
  description: string
  parameters?: Parameters
  output?: { schema?: any; render?(args: any, value: any): ContentBlock[] } // without it the value is shown as text or JSON
  execute(args: any, exec: ToolExec): any // answers a JSON value, or a promise of one
  finalizeContent?(exec: ToolExec, result: ToolResult): ContentBlock[] | undefined
  timeoutMs?: number
  isConcurrencySafe?: boolean | ((args: any) => boolean)
}`},
	{"ToolExec", `interface ToolExec {
  callId: string
  rootCallId: string
  name: string
  arguments: any
  agent: string // the calling agent's id, '' if none
  signal: AbortSignal
  deferContext(message: Message): void // a tool's body: tell the agent in its next step
  concludeTurn(): void // a tool's body: end the turn after this step
}`},
	{"ToolResult", `interface ToolResult {
  isError: boolean
  value?: any
  content: ContentBlock[]
  error?: { message: string; code?: string }
  additionalContexts?: Message[]
  concludesTurn?: boolean
}`},
	{"ToolSchema", "interface ToolSchema { name: string; description: string; parameters: any /* JSON Schema */ }"},
	{"Verdict", `type Verdict =
  | { kind: 'accept'; content?: ContentBlock[]; value?: any; additionalContexts?: Message[] }
  | { kind: 'block'; feedback: string; additionalContexts?: Message[] }`},
}
