// Interfaces, generics, enums and casts.
// call: add {"a": 1, "b": 2}
// answer: 3
interface Args { readonly a: number; b?: unknown }
enum Mode { Plain = 'plain' }
const sum = <T extends number>(list: T[], mode?: Mode): number => list.reduce((x, y) => x + y, 0 as number)
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: (args: Args) => sum<number>([args.a, args.b as number], Mode.Plain)!,
  }))
} }
