package scripted

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustParse(t testing.TB, src string) *Scenario {
	t.Helper()
	s, err := Parse("s.yml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func collect(t testing.TB, a *Adapter, req llm.Request) ([]llm.Chunk, error) {
	t.Helper()
	var out []llm.Chunk
	for c, err := range llm.Checked(a.Stream(t.Context(), req)) {
		if err != nil {
			return out, err
		}
		out = append(out, c)
	}
	return out, nil
}

func reply(t testing.TB, a *Adapter, req llm.Request) llm.Content {
	t.Helper()
	chunks, err := collect(t, a, req)
	if err != nil {
		t.Fatal(err)
	}
	var asm llm.Assembler
	for _, c := range chunks {
		if err := asm.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	blocks, err := asm.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func user(texts ...string) llm.Request {
	var r llm.Request
	for _, s := range texts {
		r.Messages = append(r.Messages, llm.UserText(s))
	}
	return r
}

// after is a request that ends in the result of a call.
func after(tool, result string, failed bool) llm.Request {
	r := user("go")
	r.Messages = append(r.Messages,
		llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel}, llm.ToolCall{ID: "c1", Name: tool, Arguments: "{}"}),
		llm.NewToolResult("c1", failed, llm.Text{Text: result}))
	return r
}

func TestConditions(t *testing.T) {
	const other = "\n  - text: other"
	for _, c := range []struct {
		when string
		req  llm.Request
		want bool
	}{
		{`{user: '^go$'}`, user("stop", "go"), true},
		{`{user: '^go$'}`, user("go", "stop"), false},
		{`{tool: f}`, after("f", "x", false), true},
		{`{tool: f}`, after("g", "x", false), false},
		{`{tool: f}`, user("f"), false},
		{`{result: 'to.al'}`, after("f", "a total", false), true},
		{`{result: '.*'}`, user("x"), false},
		{`{failed: true}`, after("f", "x", true), true},
		{`{failed: true}`, after("f", "x", false), false},
		{`{failed: false}`, after("f", "x", false), true},
		{`{failed: false}`, user("x"), false},
		{`{offered: [f]}`, llm.Request{Tools: []llm.ToolSchema{{Name: "f"}}}, true},
		{`{offered: [f, g]}`, llm.Request{Tools: []llm.ToolSchema{{Name: "f"}}}, false},
		{`{missing: [g]}`, llm.Request{Tools: []llm.ToolSchema{{Name: "f"}}}, true},
		{`{missing: [f, g]}`, llm.Request{Tools: []llm.ToolSchema{{Name: "f"}}}, false},
		{`{if: result.ok}`, after("f", `{"ok": true}`, false), true},
		{`{if: result.ok}`, after("f", `{"ok": false}`, false), false},
		{`{if: result == "plain"}`, after("f", `plain`, false), true},
		{`{if: turn == 2 && step == 1}`, user("a", "b"), true},
		{`{if: turn == 1 && step == 2}`, after("f", "", false), true},
		{`{if: called("f") == 1 && len(results("f")) == 1}`, after("f", "", false), true},
		{`{if: called("f") == 0}`, user("a"), true},
		{`{user: '(?P<n>\d+)', if: number(n) > 4}`, user("take 5"), true},
		{`{user: '(?P<n>\d+)', if: number(n) > 4}`, user("take 4"), false},
	} {
		a := New(mustParse(t, "rules:\n  - when: "+c.when+"\n    text: fits"+other))
		want := "other"
		if c.want {
			want = "fits"
		}
		if got := reply(t, a, c.req).Text(); got != want {
			t.Errorf("%s: %q", c.when, got)
		}
	}
}

// A message of a plugin between a result and the request does not hide it; one
// of the user begins a new turn.
func TestWhatEndsATurn(t *testing.T) {
	a := New(mustParse(t, "rules:\n  - text: '{{tool}}/{{turn}}/{{step}}/{{called(\"f\")}}/{{user}}'"))
	req := after("f", "x", false)
	req.Messages = append(req.Messages, llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: "p"}, llm.Text{Text: "note"}))
	if got := reply(t, a, req).Text(); got != "f/1/2/1/go" {
		t.Error(got)
	}
	req.Messages = append(req.Messages, llm.UserText("next"))
	if got := reply(t, a, req).Text(); got != "/2/1/0/next" {
		t.Error(got)
	}
}

func TestExpressions(t *testing.T) {
	vars := map[string]any{
		"a":    map[string]any{"b": []any{1.0, 2.0, map[string]any{"c": "x"}}},
		"rows": []any{map[string]any{"raw": "1,200.50", "n": 1.0}, map[string]any{"raw": "3", "n": 3.0}},
		"s":    "dyn-12",
	}
	names := map[string]bool{"a": true, "rows": true, "s": true}
	for src, want := range map[string]any{
		`1 + 2 * 3 - 4 / 2`: 5.0,
		`(1 + 2) * 3 % 5`:   4.0,
		`-2 - -3`:           1.0,
		`0.1 + 0.2 == 0.3`:  true,
		`1 == 1.1`:          false,
		`"a" + 'b' == "ab"`: true,
		`"a" < "b" && 2 >= 2 && 1 <= 2 && !(1 > 2)`: true,
		`null || 0 || "" || "x"`:                    true,
		`a.b[0]`:                                    1.0,
		`a["b"][2].c`:                               "x",
		`a.z.y[7]`:                                  nil,
		`a.b == a.b`:                                true,
		`sum(rows, money(it.raw))`:                  1203.5,
		`sum(map(rows, it.n))`:                      4.0,
		`join(filter(map(rows, it.n), it > 1), "")`:  "3",
		`all(rows, it.n > 0) && any(rows, it.n > 2)`: true,
		`len(rows) + len("äö") + len(a)`:             5.0,
		`first(rows).n + last(rows).n`:               4.0,
		`first(filter(rows, false))`:                 nil,
		`map(rows, sum(rows, it.n) + it.n)[1]`:       7.0,
		`match(s, "dyn-(\d+)", 1)`:                   "12",
		`match(s, "(?P<k>\w+)-", "k")`:               "dyn",
		`match(s, "no")`:                             nil,
		`grouped(1234567.891, 2)`:                    "1,234,567.89",
		`grouped(-123, 0)`:                           "-123",
		`fixed(2, 2)`:                                "2.00",
		`contains(s, "12") && contains(a.b, 2)`:      true,
		`contains(a.b, 3)`:                           false,
		`number(" 4.5 ")`:                            4.5,
		`number("4,5")`:                              nil,
		`money("none")`:                              nil,
		`json(a.b[2])`:                               `{"c":"x"}`,
	} {
		e, err := compile(src, names)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := e(&env{vars: vars}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v (%v), want %v", src, got, err, want)
		}
	}
	for src, msg := range map[string]string{
		`1 +`: "expected a value", `foo`: `unknown name "foo"`, `foo(1)`: `unknown function`, `(1`: `expected ")"`,
		`1 2`: "unexpected", `a.1`: "expected a member", `"x`: "not closed", `len()`: "takes 1 to 1", `match(s, s)`: "must be a string",
		`match(s, "(")`: "missing closing", `it`: "unknown name", strings.Repeat("(", 200): "too deep", strings.Repeat("!", 200): "too deep", `1.2.3`: "not a number",
	} {
		if _, err := compile(src, names); err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%.20s: %v, want %s", src, err, msg)
		}
	}
	for src, msg := range map[string]string{
		`1 + "a"`: "must be numbers", `-s`: "expected a number", `1 / 0`: "division by zero", `1 % 0`: "division", `sum(s)`: "expected a list",
		`sum(rows)`: "member 0 is an object", `first(1)`: "expected a list", `join(1, "")`: "expected a list", `len(1)`: "expected a string",
		`fixed("a", 2)`: "expected a number", `rows < rows`: "must be numbers",
	} {
		e, err := compile(src, names)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if v, err := e(&env{vars: vars}); err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%s = %v, %v, want %s", src, v, err, msg)
		}
	}
}

// A written amount is read back, whatever the separators.
func TestMoney(t *testing.T) {
	for s, want := range map[string]float64{
		"1,234.50": 1234.5, "1.234,50 EUR": 1234.5, "1'234.50": 1234.5, "12 000,00": 12000, "12\u00a0000": 12000, "USD 99": 99, "1,234": 1234,
		"1.234": 1234, "0,5": 0.5, "-3.20": -3.2, "−3,20": -3.2, "1,234,567": 1234567, "Invoice 17: 20.50": 20.5, "due 20.50 in 30 days": 20.5,
		"12 345 678": 12345678, "2 10": 10, "5.": 5, "1,23,456.7": 123456.7, "€1.234.567,8": 1234567.8,
	} {
		if got, ok := money(s); !ok || got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cents := rapid.Int64Range(0, 1e11).Draw(t, "cents")
		n := float64(cents) / 100
		s := fixed(n, 2, true)
		s = rapid.SampledFrom([]func(string) string{
			func(s string) string { return s },
			func(s string) string { return strings.NewReplacer(",", ".", ".", ",").Replace(s) },
			func(s string) string { return strings.NewReplacer(",", "'").Replace(s) },
			func(s string) string { return strings.NewReplacer(",", " ", ".", ",").Replace(s) },
		}).Draw(t, "style")(s)
		if got, ok := money("EUR " + s + "."); !ok || !equal(got, n) {
			t.Fatalf("%q: %v, want %v", s, got, n)
		}
	})
}

func TestTemplates(t *testing.T) {
	a := New(mustParse(t, `
rules:
  - let: {n: 3 * 4, list: 'filter(tools, true)'}
    text: 'n={{ n }} {{"{{"}}x{{"}}"}} {{null}}'
    calls:
      - tool: f
        args: {whole: '{{n}}', in: 'a{{n}}', list: ['{{list}}', true, 2.5, null], code: "if (a < b && c > d) { x({a: {}}) }"}
`))
	c := reply(t, a, user("x"))
	if c.Text() != `n=12 {{x}} ` {
		t.Errorf("%q", c.Text())
	}
	want := `{"code":"if (a < b && c > d) { x({a: {}}) }","in":"a12","list":[[],true,2.5,null],"whole":12}`
	if got := c.ToolCalls()[0]; got.Arguments != want || got.Name != "f" {
		t.Errorf("%+v", got)
	}
}

// A fault of a file is told with its place and what was expected.
func TestFaultsHavePlaces(t *testing.T) {
	for _, c := range []struct{ src, place, says string }{
		{"", "s.yml", "empty"},
		{"rules: [", "s.yml", "yaml"},
		{"rules: []", "s.yml:1:1", "at least one rule"},
		{"rule: []", "s.yml:1:1", `unknown key "rule"`},
		{"rules:\n  - text: ''", "s.yml:2:11", "not empty"},
		{"rules:\n  - name: x", "s.yml:2:5", "expected a text"},
		{"rules:\n  - text: a\n    text: b", "s.yml:3:5", "given twice"},
		{"rules:\n  - text: a\n    when: {user: '('}", "s.yml:3:18", "missing closing"},
		{"rules:\n  - text: a\n    when: {if: 1 +}", "s.yml:3:16", "at character 4"},
		{"rules:\n  - text: a\n    when: {user: '(?P<tool>x)'}", "s.yml:3:11", "taken"},
		{"rules:\n  - text: a\n    when: {failed: maybe}", "s.yml:3:20", "true or false"},
		{"rules:\n  - text: a\n    let: {it: 1}", "s.yml:3:15", `"it"`},
		{"rules:\n  - text: a {{b}}", "s.yml:2:11", `unknown name "b"`},
		{"rules:\n  - text: a {{b", "s.yml:2:11", "not closed"},
		{"rules:\n  - calls: [{args: {}}]", "s.yml:2:13", "name of a tool"},
		{"rules:\n  - calls: [{tool: f, args: []}]", "s.yml:2:29", "mapping of arguments"},
		{"rules:\n  - calls: [{tool: f, args: {a: 2026-01-01}}]", "s.yml:2:33", "quotes"},
		{"rules:\n  - &a {text: x}\n  - *a", "s.yml:3:5", "mapping"},
		{"delayMs: -1\nrules: [{text: x}]", "s.yml:1:10", "milliseconds"},
		{"rules:\n  - calls: [{tool: f, args: {a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}}]", "s.yml:2", "nested deeper"},
	} {
		_, err := Parse("s.yml", []byte(c.src))
		if !errors.Is(err, seams.InvalidScenario) || !strings.Contains(err.Error(), c.place) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %v, want %s %s", c.src, err, c.place, c.says)
		}
	}
	if _, err := Parse("s.yml", make([]byte, maxFile+1)); !errors.Is(err, seams.TooLarge) {
		t.Errorf("a large file: %v", err)
	}
	rules := "rules:\n" + strings.Repeat("  - text: x\n", maxRules+1)
	if _, err := Parse("s.yml", []byte(rules)); !errors.Is(err, seams.InvalidScenario) {
		t.Errorf("many rules: %v", err)
	}
}

func TestFaultsWhilePlaying(t *testing.T) {
	a := New(mustParse(t, "rules:\n  - when: {user: never}\n    text: x"))
	if _, err := collect(t, a, user("hello")); !errors.Is(err, seams.NoRule) || !strings.Contains(err.Error(), "hello") {
		t.Errorf("%v", err)
	}
	a = New(mustParse(t, "rules:\n  - when: {if: '1 / 0'}\n    text: x"))
	if _, err := collect(t, a, user("x")); !errors.Is(err, seams.InvalidScenario) || !strings.Contains(err.Error(), "s.yml:2:16") {
		t.Errorf("%v", err)
	}
	a = New(mustParse(t, "rules:\n  - text: '{{null}}'"))
	if _, err := collect(t, a, user("x")); !errors.Is(err, seams.InvalidScenario) || !strings.Contains(err.Error(), "rule 1 at s.yml:2:5") {
		t.Errorf("%v", err)
	}
	l := strings.Repeat("1,", 200)
	nested := "sum(result, sum(result, sum(result, 1)))"
	a = New(mustParse(t, "rules:\n  - text: '{{"+nested+"}}'"))
	if _, err := collect(t, a, after("f", "["+l+"1]", false)); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("%v", err)
	}
	half := 0.5
	for _, c := range []llm.CallConfig{{Temperature: &half}, {MaxTokens: 5}, {Stop: []string{"x"}}, {ReasoningEffort: "high"}} {
		if _, err := collect(t, a, llm.Request{CallConfig: c}); !errors.Is(err, seams.UnsupportedOption) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The same request gets the same chunks, and ids differ within a session.
func TestDeterministic(t *testing.T) {
	a := New(mustParse(t, "rules:\n  - reasoning: hm\n    text: '{{user}}'\n    calls: [{tool: f, args: {b: 1, a: 2, c: '{{user}}'}}, {tool: g}]"))
	rapid.Check(t, func(rt *rapid.T) {
		req := user(rapid.StringMatching(`\PC{1,200}`).Draw(rt, "text"))
		one, err := collect(t, a, req)
		two, err2 := collect(t, a, req)
		if err != nil || err2 != nil || !reflect.DeepEqual(one, two) {
			rt.Fatalf("%v %v\n%v\n%v", err, err2, one, two)
		}
		c := reply(t, a, req)
		if c.Text() != req.Messages[0].Content.Text() {
			rt.Fatalf("the deltas lose text: %q", c.Text())
		}
		ids := map[string]bool{}
		for range 3 {
			c := reply(t, a, req)
			for _, call := range c.ToolCalls() {
				if ids[call.ID] {
					rt.Fatalf("the id %s comes again", call.ID)
				}
				ids[call.ID] = true
				req.Messages = append(req.Messages, llm.NewToolResult(call.ID, false))
			}
			req.Messages = append(req.Messages, llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel}, c...))
		}
	})
}

func TestDelayAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(mustParse(t, "delayMs: 100\nrules: [{text: a long enough text to be told in more than one piece of it}]"))
		begin := time.Now()
		chunks, err := collect(t, a, user("x"))
		if want := time.Duration(len(chunks)) * 100 * time.Millisecond; err != nil || time.Since(begin) != want {
			t.Fatalf("%v for %d chunks (%v)", time.Since(begin), len(chunks), err)
		}
		for stop := range len(chunks) {
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			var last error
			for _, err := range a.Stream(ctx, user("x")) {
				last = err
				if n++; n > stop {
					cancel()
				}
			}
			cancel()
			if stop < len(chunks)-1 && !errors.Is(last, seams.Aborted) {
				t.Fatalf("cancelled after %d: %v", stop, last)
			}
		}
	})
}

func TestCatalogue(t *testing.T) {
	a := New(mustParse(t, "models: [a, b]\nrules: [{text: x}]"))
	list, err := a.ListModels(t.Context(), "r")
	if err != nil || len(list) != 2 || !reflect.DeepEqual(list[1], llm.ModelInfo{Provider: "r", ID: "b", Name: "b"}) {
		t.Fatalf("%+v %v", list, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("rules:\n  - when: {if: 'a.b[1] == sum(tools, 1)'}\n    text: '{{user}}'"))
	f.Add([]byte(`{"rules":[{"calls":[{"tool":"f","args":{"x":"{{match(user, 'a')}}"}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f", data)
		if err != nil {
			if seams.CodeOf(err) != seams.InvalidScenario && seams.CodeOf(err) != seams.TooLarge {
				t.Fatal(err)
			}
			return
		}
		s.delay = 0
		for range llm.Checked(New(s).Stream(t.Context(), after("f", `{"a":[1,"2"]}`, false))) {
		}
	})
}

func ExampleParse() {
	s, err := Parse("greeter.yml", []byte(`
rules:
  - when: {user: 'my name is (?P<name>\w+)'}
    text: Hello, {{name}}!
  - text: What is your name?
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for c := range New(s).Stream(context.Background(), llm.Request{Messages: []llm.Message{llm.UserText("my name is Ada")}}) {
		if d, ok := c.(llm.TextDelta); ok {
			fmt.Print(d.Text)
		}
	}
	// Output: Hello, Ada!
}
