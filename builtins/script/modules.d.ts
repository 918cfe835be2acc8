/** Describes a value, such as a plugin's configuration; called, it validates one and fills its defaults. */
export interface Schema<T = any> {
  (value?: any): T
  required(required?: boolean): Schema<T>
  default(value: T): Schema<T>
  description(text: string): Schema<T>
  comment(text: string): Schema<T>
  role(role: string, extra?: any): Schema<T>
  hidden(hidden?: boolean): Schema<T>
  min(value: number): Schema<T>
  max(value: number): Schema<T>
  step(value: number): Schema<T>
  pattern(pattern: RegExp): Schema<T>
}
export const Schema: {
  any(): Schema<any>
  string(): Schema<string>
  number(): Schema<number>
  natural(): Schema<number>
  boolean(): Schema<boolean>
  const<T>(value: T): Schema<T>
  array<T>(inner: Schema<T>): Schema<T[]>
  dict<T>(inner: Schema<T>): Schema<{ [key: string]: T }>
  tuple(list: any[]): Schema<any[]>
  object<T extends { [key: string]: any }>(dict: T): Schema<any>
  union(list: any[]): Schema<any>
  intersect(list: any[]): Schema<any>
}
export { Schema as z }
/** A class that provides itself: class Greeter extends Service { constructor(ctx: Context) { super(ctx, 'greeter') } } */
export abstract class Service {
  static readonly init: unique symbol
  protected readonly ctx: Context
  readonly name: string
  constructor(ctx: Context, name?: string)
}
/** What an adapter extends; stream is all it must have. */
export abstract class LlmAdapter {
  abstract stream(options: GenerateOptions): AsyncIterable<StreamChunk>
  providerInfo?(route: string): ProviderInfo | Promise<ProviderInfo>
  listModels?(route: string): ModelInfo[] | Promise<ModelInfo[]>
  resolveModel?(route: string, model: string): ModelInfo | Promise<ModelInfo>
}
/** A failure with a stable code. */
export class LlmError extends Error {
  constructor(message: string, code?: string, facts?: { status?: number; providerRetryAfterMs?: number; requestId?: string; cause?: unknown })
  readonly code: string
  readonly failure: Failure
}
export function CallId(id: string): string
/** The headers that every request to a provider carries. */
export function attributionHeaders(): { [name: string]: string }
/** Checks a tool's definition and marks it. */
export function defineTool(tool: ToolDefinition): ToolDefinition
