// Imports of the upstream packages, with types.
// call: add {"a": 1, "b": 2}
// answer: 3
import type { Context } from 'cordis'
import { defineTool } from '@deepseek-ai/dsh-tools'
export const name = 'mine'
export const inject = ['tools']
export function apply(ctx: Context) {
  ctx.tools.register(defineTool({ name: 'add', description: 'Add two numbers.', parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } }, execute: ({ a, b }) => a + b, }))
}
