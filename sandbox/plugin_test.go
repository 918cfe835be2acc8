package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// The documented adapter of DeepSeek Harness, unchanged but for its body: it
// declares, registers and streams, and an error is reported at its own line.
func TestAdapterOfUpstream(t *testing.T) {
	l := open(t, Options{Attribution: map[string]string{"user-agent": "ouro/1"}, Facade: &Facade{Services: []Service{{Name: "llm", Methods: []Method{{Name: "registerAdapter", Args: []Kind{Data, Instance}}}}}}})
	text, err := os.ReadFile("../builtins/script/testdata/my-llm-adapter.ts")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.load("src/my-llm-adapter.ts", string(text), compile.Module)
	if err != nil {
		t.Fatal(err)
	}
	schema, _ := json.Marshal(p.Config)
	if p.Name != "my-llm-adapter" || p.Inject[0].Name != "llm" || string(schema) != `{"dict":{"apiKey":{"meta":{"required":true},"type":"string"},"models":{"inner":{"type":"string"},"meta":{"required":true},"type":"array"}},"type":"object"}` {
		t.Fatalf("%+v %s", p, schema)
	}
	h := &record{}
	if err := p.Apply(t.Context(), Activation{Host: h, Config: map[string]any{"apiKey": "k", "models": []any{"my-model-v1"}}}); err != nil {
		t.Fatal(err)
	}
	args := h.values["llm.registerAdapter"]
	a := args[1].(*Object)
	if fmt.Sprint(args[0]) != "[my-model-v1]" || !a.Has("stream") || a.Has("prepareCall") {
		t.Fatal(args, a.Methods())
	}
	options := func(text string) map[string]any {
		return map[string]any{"messages": []any{map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}}}
	}
	var got []string
	for v, err := range a.Iterate(t.Context(), "stream", options("hello")) {
		if err != nil {
			t.Fatal(err)
		}
		c := v.(map[string]any)
		got = append(got, c["type"].(string)+fmt.Sprint(c["text"]))
	}
	if s := strings.Join(got, ", "); !strings.HasPrefix(s, "block-start<nil>, text-deltaYou said , text-deltahello, text-delta; I am , text-deltauser-agent, block-end<nil>, ") || !strings.HasSuffix(s, ", finish<nil>") {
		t.Error(s)
	}
	var refused error
	for _, err := range a.Iterate(t.Context(), "stream", options("refuse")) {
		refused = err
	}
	wantError(t, refused, "QUOTA", "src/my-llm-adapter.ts:20:")
	if thrown := (*Thrown)(nil); !errors.As(refused, &thrown) || thrown.Name != "LlmError" || thrown.Data["status"] != 429.0 || strings.Contains(thrown.Stack, "ouro:") || strings.Contains(thrown.Stack, "plugin.js") {
		t.Errorf("%+v", thrown)
	}
}

func TestDeclarations(t *testing.T) {
	l := open(t, Options{})
	for text, want := range map[string]string{
		`export const apply = () => {}; export const provide = 'x'; export const exclusive = true; export const config = { type: 'object', properties: {} }`: ` [] [x] {"properties":{},"type":"object"} true`,
		`export default class Foo { static inject = ['a']; static provide = ['x', 'y']; static Config = { type: 'string' } }`:                                `Foo [a] [x y] {"type":"string"} false`,
		`export default (ctx) => {}; export const name = 'beside'; export const inject = { a: null, b: { c: 1 } }`:                                           `beside [a b] [] null false`,
		`export default (ctx) => {}`:                                                                                      ` [] [] null false`,
		`module.exports = { default: { apply() {}, name: 'inner' } }`:                                                     `inner [] [] null false`,
		`exports.apply = function () {}; exports.inject = null`:                                                           ` [] [] null false`,
		`import { Service } from '@deepseek-ai/cordis'; export default class S extends Service { static inject = ['z'] }`: `S [z] [] null false`,
	} {
		p, err := l.load("p.js", text, compile.Module)
		if err != nil {
			t.Error(text, err)
			continue
		}
		var inject []string
		for _, i := range p.Inject {
			inject = append(inject, i.Name)
		}
		config, _ := json.Marshal(p.Config)
		if got := fmt.Sprint(p.Name, " ", inject, " ", p.Provide, " ", string(config), " ", p.Exclusive); got != want {
			t.Errorf("%s\n  got  %s\n  want %s", text, got, want)
		}
	}
	for _, text := range []string{`export const x = 1`, ``, `export default 5`, `module.exports = null`, `module.exports = { apply: 1 }`} {
		_, err := l.load("p.js", text, compile.Module)
		wantError(t, err, seams.InvalidPlugin, "p.js", "Export apply(ctx, config)")
	}
}

// The declaration may be read in one realm and activated in others.
func TestOneProgramManyRealms(t *testing.T) {
	p, err := NewCompiler().Compile(compile.Source{Name: "p.js", Text: `let n = 0; exports.name = 'p'; exports.apply = (ctx) => ctx.say('n' + ++n)`})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		l := open(t, Options{Facade: effects})
		plugin, err := l.Load(t.Context(), p)
		if err != nil || plugin.Name != "p" {
			t.Fatal(plugin, err)
		}
		h := &story{}
		if err := plugin.Apply(t.Context(), Activation{Host: h}); err != nil || h.text() != "n1" {
			t.Error(err, h.text())
		}
	}
}

func TestCompilerKeeps(t *testing.T) {
	c := NewCompiler()
	folder := map[string]string{"a.js": "export const a = 1"}
	reads := 0
	src := func(name string) compile.Source {
		return compile.Source{Name: name, Text: `import { a } from './a'; export const apply = () => { throw new Error('a' + a) }`, Import: func(p string) (string, error) {
			reads++
			if text, ok := folder[p]; ok {
				return text, nil
			}
			return "", fs.ErrNotExist
		}}
	}
	build := func(name string) *Program {
		t.Helper()
		p, err := c.Compile(src(name))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one := build("x/one.js")
	if two := build("y/two.js"); two.run != one.run || two.Name() != "y/two.js" || one.Name() != "x/one.js" || strings.Join(two.script.Paths[1:], " ") != "a.js" {
		t.Error("the same content is compiled again", two.script.Paths)
	}
	folder["a.js"] = "export const a = 2"
	three := build("x/one.js")
	if three.run == one.run {
		t.Error("a changed import is not seen")
	}
	folder["a.ts"] = "export const a = 3" // is found before a.js
	if four := build("x/one.js"); four.run == three.run || four.script.Paths[1] != "a.ts" {
		t.Error("a new import is not seen")
	}
	if _, err := c.Compile(compile.Source{Name: "x/one.ts", Text: src("").Text}); err == nil {
		t.Error("compiled without its import")
	}
	for i := range maxKept + 10 {
		if _, err := c.Compile(compile.Source{Name: "n.js", Text: fmt.Sprintf("exports.n = %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.kept) != maxKept {
		t.Error(len(c.kept))
	}
}

// Two plugins of one name in one realm report their own places.
func TestPlacesOfSharedPrograms(t *testing.T) {
	c := NewCompiler()
	text := "exports.apply = () => {\n  throw new Error('here')\n}"
	for _, name := range []string{"a.js", "b.js"} {
		p, err := c.Compile(compile.Source{Name: name, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		l := open(t, Options{})
		plugin, err := l.Load(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, plugin.Apply(t.Context(), Activation{Host: &record{}}), seams.ScriptError, name+":2:")
	}
}

// An expression sees what is granted and nothing else.
func TestExpression(t *testing.T) {
	l := open(t, Options{Ambient: Ambient{Env: map[string]string{"KEY": "v"}}})
	for text, want := range map[string]any{`process.env.KEY`: "v", `process.env.NONE`: nil, ` { a: [1, process.env.KEY + '!'] }`: map[string]any{"a": []any{1.0, "v!"}}, `process.env.KEY ?? 'x' // comment`: "v"} {
		p, err := l.compiler.Compile(compile.Source{Name: "cordis.yml", Text: text, Form: compile.Expression})
		if err != nil {
			t.Fatal(text, err)
		}
		if v, err := l.Eval(t.Context(), p); fmt.Sprint(v) != fmt.Sprint(want) || err != nil {
			t.Error(text, v, err)
		}
	}
	p, err := l.compiler.Compile(compile.Source{Name: "cordis.yml", Text: "\nprocess.env.A.b", Form: compile.Expression})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Eval(t.Context(), p)
	wantError(t, err, seams.ScriptError, "TypeError", "cordis.yml:2:")
}

// Schemas validate in JavaScript too, name paths and fill defaults.
func TestSchema(t *testing.T) {
	l := open(t, Options{})
	l.want(`const S = require('schemastery'); const s = S.object({ a: S.string().default('x').pattern(/^x/), n: S.natural().max(9), l: S.array(S.union(['p', 'q', 7])), d: S.dict(S.boolean()), o: S.intersect([S.object({ k: S.const(1) }), S.object({ m: S.any() })]), t: S.tuple([S.number(), S.percent()]) });
	return [s({ n: 3, l: ['p', 7], d: { y: true }, o: { k: 1, m: [2] }, t: [1, 0.5], extra: 1 }), s({}).a, JSON.stringify(S.union([S.const('a').description('d'), Number])), S.from(String).meta.required, S(s.toJSON())({ a: 'xy' }).a, S.string().required().role('secret').toJSON()]`,
		[]any{map[string]any{"a": "x", "n": 3, "l": []any{"p", 7}, "d": map[string]any{"y": true}, "o": map[string]any{"k": 1, "m": []any{2}}, "t": []any{1, 0.5}, "extra": 1},
			"x", `{"type":"union","list":[{"type":"const","meta":{"description":"d"},"value":"a"},{"type":"number","meta":{"required":true}}]}`, true, "xy", map[string]any{"type": "string", "meta": map[string]any{"required": true, "role": "secret"}}})
	for code, part := range map[string]string{
		`S.object({ a: S.object({ b: S.array(S.number()) }) })({ a: { b: [1, 'x'] } })`: "a.b[1]: expected a number, got string",
		`S.string().required()()`: "is required", `S.natural()(1.5)`: "whole number", `S.natural()(-1)`: "at least 0", `S.union(['a', 'b'])('c')`: "alternatives", `S.string().pattern(/^a/)('b')`: "must match",
		`S.from(Symbol())`: "not a schema", `S.array(S.string())({})`: "expected a list, got object", `S.never()(1)`: "absent", `S.boolean()('true')`: "expected a boolean",
	} {
		l.fails(`const S = require('schemastery'); return `+code, seams.InvalidArgument, part)
	}
}

func TestDefineTool(t *testing.T) {
	l := open(t, Options{Facade: narrow})
	h := &record{}
	if err := l.apply(`export const inject = ['tools']
	export const apply = (ctx) => harness.registerTool(ctx, harness.defineTool({ name: 't', parameters: {}, output: { render: () => [] }, execute: () => 1 }))`, h, nil); err != nil {
		t.Fatal(err)
	}
	if h.values["tools.register"][0].(map[string]any)["name"] != "t" {
		t.Error(h.values)
	}
	//
	for code, part := range map[string]string{
		`5`: "defineTool: expected", `{}`: ".name", `{ name: 't', parameters: 5 }`: ".parameters: must be a parameter spec object", `{ name: 't', output: 5 }`: ".output: must be an object",
		`{ name: 't', output: { render: 1 } }`: ".output.render", `{ name: 't', output: { presentationMeta: 1 } }`: ".output.presentationMeta", `{ name: 't' }`: ".execute: must be a function",
	} {
		l.fails(`return harness.defineTool(`+code+`)`, seams.InvalidArgument, part)
	}
}

// A realm that is made while others run, and closed at once.
func TestManyRealmsAtOnce(t *testing.T) {
	p, err := NewCompiler().Compile(compile.Source{Name: "adder.ts", Text: benchTool})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 16)
	for range 16 {
		go func() {
			r, tool := mountTool(t, nil, p)
			for range 5 {
				if _, err := tool.Call(t.Context(), map[string]any{"a": 1, "b": 2}); err != nil {
					done <- err
					return
				}
			}
			done <- r.Close(time.Second)
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"return 1", "export default class {}", "/(?<=a)b/.test('x')", "async function* f() { yield* g() }", "a?.b ?? c", "label: for (;;) break label", "0b1n", "`a${b}`", "class A { #p = 1; static { } }", "/[\\p{L}]/u"} {
		f.Add(s)
	}
	c := NewCompiler()
	f.Fuzz(func(t *testing.T, text string) {
		_, err := c.Compile(compile.Source{Name: "f.js", Text: text, Form: compile.Body})
		switch code := seams.CodeOf(err); {
		case err == nil, code == seams.CompileFailed, code == seams.ModuleNotAvailable, code == seams.TooLarge:
		default:
			t.Fatal(err)
		}
	})
}
