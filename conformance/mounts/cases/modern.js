// The newest syntax.
// call: add {"a": 1, "b": 2}
// answer: 3
class Box { #v; static made = 0; static { Box.made ||= 1 } constructor(v) { this.#v = v } get v() { return this.#v?.at?.(-1) ?? 0 } }
return { name: 'mine', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add',
    description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    execute: ({ a, b }) => { let n = null; n ??= new Box([a, b].toSorted()).v; return Object.groupBy([a, b], (x) => typeof x).number.reduce((x, y) => x + y) + n - n + (2 ** 0) - 1_0 / 10 },
  }))
} }
