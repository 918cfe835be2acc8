package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"pgregory.net/rapid"
)

type object = map[string]any
type list = []any

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustParse(t testing.TB, text string) *config.File {
	t.Helper()
	f, err := config.Parse("cordis.yml", []byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return f
}

func entry(t testing.TB, f *config.File, id string) *config.Entry {
	t.Helper()
	for e := range f.All() {
		if e.ID == id {
			return e
		}
	}
	t.Fatalf("no entry %s", id)
	return nil
}

// The cases from the field that a file is the input of. An error is given as
// the begin of its text.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		file, err string
		check     func(t *testing.T, f *config.File)
	}{
		{"yml-01.yml", "yml-01.yml:2:1: a tab character", nil},
		{"yml-02.yml", "", func(t *testing.T, f *config.File) {
			e := f.Entries[0]
			if e.ID != "a" || e.Name != "./plugins/a.js" || !reflect.DeepEqual(e.Config, object{"text": "ok"}) {
				t.Errorf("%+v", e)
			}
			if got := e.Pos("config", "text"); got.Line != 4 || got.Col != 11 {
				t.Errorf("text stands at %s", got)
			}
		}},
		{"yml-03.yml", `yml-03.yml:6:5: the key "model" stands twice in one mapping, first in line 4`, nil},
		{"yml-04.yml", "", func(t *testing.T, f *config.File) {
			both := entry(t, f, "both").Config.(object)
			if want := (object{"model": "m2", "limit": 3.0, "tags": list{"x"}, "retry": 2.0}); !reflect.DeepEqual(both, want) {
				t.Errorf("got %v, want %v", both, want)
			}
			both["tags"].(list)[0] = "changed"
			if base := entry(t, f, "base").Config.(object); base["tags"].(list)[0] != "x" {
				t.Errorf("changing a merged value changed its source: %v", base)
			}
		}},
		{"yml-05.yml", "yml-05.yml:1:1: expected a list of entries", nil},
		{"yml-08.yml", "", func(t *testing.T, f *config.File) {
			e := entry(t, f, "no")
			want := object{"country": "NO", "on": "push", "answer": "yes", "flag": true, "none": nil, "version": 1.1}
			if e.Disabled != false || !reflect.DeepEqual(e.Config, want) {
				t.Errorf("%v %v", e.Disabled, e.Config)
			}
		}},
		{"yml-10.yml", "", func(t *testing.T, f *config.File) {
			if !f.Empty || len(f.Entries) != 0 {
				t.Errorf("%+v", f)
			}
		}},
		{"cor-05.yml", "", func(t *testing.T, f *config.File) {
			var ids []string
			for e := range f.All() {
				ids = append(ids, e.ID)
			}
			if want := []string{"good-one", "not-there", "no-code", "syntax", "same-id", "good-two"}; !slices.Equal(ids, want) {
				t.Errorf("got %v", ids)
			}
			if e := entry(t, f, "same-id"); e.Name != "./plugins/good.js" {
				t.Errorf("the second one stayed: %s", e.Name)
			}
			if want := `cor-05.yml:11:7: second entry with the id "same-id"; the first stands at cor-05.yml:9:7 and stays`; len(f.Faults) != 1 || f.Faults.Error() != want || f.Faults[0].Entry != "same-id" {
				t.Errorf("got %v", f.Faults)
			}
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, err := config.Parse(c.file, read(t, c.file))
			if c.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				c.check(t, f)
				return
			}
			if f != nil || !errors.Is(err, seams.InvalidConfig) || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("got %v, %v; want %s", f, err, c.err)
			}
		})
	}
}

// What is wrong, and where. Each want is line:col and a part of the message.
func TestFaults(t *testing.T) {
	inConfig := func(lines string) string { return "- name: x\n  config:\n    " + lines }
	for _, c := range []struct {
		text  string
		wants []string
	}{
		// yml-10: other shapes than a list
		{"id: a\n", []string{"1:1 expected a list of entries (`- name: ./plugin.js`), got a mapping"}},
		{"null\n", []string{"1:1 got nothing"}},
		{"# c\ntext\n", []string{"2:1 got text"}},
		{"- just\n-\n- [a]\n", []string{"1:3 expected an entry with a name (`- name: ./plugin.js`), got text", "2:2 got nothing", "3:3 got a list"}},
		{"- name: b\n  config: none\n", []string{"2:11 expected a mapping of settings, got text"}},
		{"- name: b\n  config: [a]\n", []string{"2:11 expected a mapping of settings, got a list; a list of entries needs `group: true`"}},
		{"- name: b\n- id: c\n", []string{"2:3 the entry has no name"}},
		// entry fields
		{"- name: x\n  nmae: y\n  model: m\n", []string{`2:3 unknown field "nmae", did you mean "name"?`, `3:3 unknown field "model": settings of the plugin stand under config`}},
		{"- name:\n  id: [a]\n", []string{"1:8 expected text, got nothing", "2:7 expected text, got a list"}},
		{"- id: default:x\n  name: x\n", []string{`1:7 the id "default:x": ids that begin with "default:" are those of entries that no file writes; choose another`}},
		{"- name: ''\n- name: !!js x\n- name: {{ x }}\n", []string{"1:9 got nothing", "2:9 got an expression", "3:9 got a mapping; a text that begins with { must be quoted, as in '{{ x }}'"}},
		{"- name: x\n  disabled: \"false\"\n  group: 3\n", []string{"2:13 expected true or false without quotes, got text", "3:10 got a number"}},
		{"- name: x\n  group: !!js true\n  disabled: !!js\n", []string{"2:10 expected true or false without quotes, got an expression", "3:13 !!js needs an expression"}},
		{"- group: true\n  config: 4\n- name: cordis:group\n  config: {}\n", []string{"2:11 the config of a group is a list of entries, got a number", "4:11 got a mapping"}},
		{"- group: true\n  config:\n  - x\n  - name: y\n    configs: {}\n", []string{"3:5 expected an entry", `5:5 did you mean "config"?`}},
		{"- name: x\n  inject: [a, a, {b: c}]\n", []string{`2:15 "a" stands twice`, "2:18 expected text, got a mapping"}},
		{"- name: x\n  inject: {a: false, b: c}\n  intercept: [a]\n", []string{"2:15 got false", `2:25 expected a mapping of settings for "b", got text`, "3:14 expected a mapping, got a list"}},
		{"- name: x\n  isolate: {a: false, b: 3, c: [], d: ''}\n", []string{`2:16 a realm of its own) or the name of a realm for "a"`, `2:26 "b"`, `2:32 "c"`, `2:39 "d"`}},
		// L-57: an empty expression
		{inConfig("a: !!js\n    b: !!js ' '\n    c: !!js {d: 1}\n"), []string{"3:8 !!js needs an expression", "4:8 !!js needs", "5:8 !!js takes an expression, got a mapping"}},
		// values
		{inConfig("a: !foo 3\n    b: !!binary aGk=\n    c: !!set {d}\n    e: !!int x\n"), []string{"3:8 the tag !foo is not supported; for an expression write !!js", "4:8 the tag !!binary", "5:8 the tag !!set", "6:8 does not fit its tag !!int"}},
		{inConfig("a: 0123\n    b: 12345678901234567890\n    c: .nan\n    d: 9007199254740993\n    e: -.inf\n"), []string{"3:8 leading zero", "4:8 kept exactly", "5:8 kept exactly", "6:8 kept exactly", "7:8 kept exactly"}},
		{inConfig("? [a]\n    : b\n    !!js x: y\n    ?\n    : z\n    k: {{ x }}\n"), []string{"3:7 expected a key, got a list", "5:5 a key cannot be an expression", "6:6 expected a key before the colon", "8:9 expected a key, got a mapping; a text that begins with { must be quoted"}},
		// an alias repeats a value, not its faults
		{inConfig("a: &x [0123]\n    b: *x\n"), []string{"3:12 leading zero"}},
		// yml-03, yml-04
		{"- name: x\n  name: y\n", []string{`2:3 the key "name" stands twice in one mapping, first in line 1`}},
		{inConfig("1: a\n    '1': b\n"), []string{`4:5 the key "1" stands twice in one mapping, first in line 3`}},
		{inConfig("<<: {a: 1}\n    <<: {b: 2}\n"), []string{"4:5 a second << in one mapping, the first stands in line 3"}},
		{inConfig("<<: [3, {a: 1}]\n"), []string{"3:10 << takes a mapping or a list of mappings, got a number"}},
		{"- name: x\n  config: &a {b: *a}\n", []string{`2:18 the anchor "a" contains itself`}},
		{"- name: x\n  config: &a {<<: *a}\n", []string{`2:19 the anchor "a" contains itself`}},
		{"- &a\n  name: x\n  group: true\n  config: [*a]\n", []string{`4:12 the anchor "a" contains itself`}},
		{"&a [*a]\n", []string{`1:5 the anchor "a" contains itself`}},
		// one document
		{"- name: x\n---\n- name: y\n", []string{"2:1 a second document"}},
		// text
		{"- name: a\x00", []string{"1:10 U+0000"}},
		{"- name: ü\n- name: ü\xff", []string{"2:10 not UTF-8"}},
		{"\xff\xfe-\x00", []string{"1:1 UTF-16"}},
		{"---\n\ufeff- name: a\n", []string{"2:1 byte-order mark"}},
		// yml-01 and kindred slips
		{"- name: x\n  config:\n  \ta: 1\n", []string{"3:3 a tab character in the indentation"}},
		{"\t- name: x", []string{"1:1 a tab character in the indentation"}},
		{"- name: @scope/pkg\n", []string{"1:9 a text that begins with @ must be quoted"}},
		{"- id: a\n  name: *foo\n", []string{"2:9 no anchor &foo stands before this alias; a text that begins with * must be quoted"}},
		{inConfig("a: %x\n"), []string{"3:8 a text that begins with % must be quoted"}},
		{inConfig("a: `x`\n"), []string{"3:8 a text that begins with ` must be quoted"}},
		{inConfig("a: {{ x }} y\n"), []string{"3:8 a text that begins with { must be quoted"}},
		{inConfig("a: b: c\n"), []string{"3:5 a colon and a space"}},
		{inConfig("a: !!js x ? y : z\n"), []string{"3:5 an expression with a colon must be quoted"}},
		{inConfig("a: 1\n     b: 2\n- name: y\n"), []string{"4:6 is the indentation right?"}},
		{"- name: x\n config: {}\n- name: y\n", []string{"2:2 is the indentation right?"}},
		{"# c\n- name: x\n  config: {a: 1,\n    b: 2}\n- name: y\n  config: {a: [1}\n- name: z\n", []string{"6:11 is a bracket not closed"}},
		{"- name: x\n  config: {a: 1,\n    b: 2,\n    c: 3,\n    d: 4,\n    e: 5}\n  disabled: true\n id: x\n", []string{"8:2 is the indentation right?"}},
		{"- name: x\n- name: 'y\n- name: z\n", []string{"2:9 is the quote closed"}},
		{"- name: \"a\" b\n", []string{"1:9 is the quote closed, and is nothing behind it?"}},
	} {
		f, err := config.Parse("f.yml", []byte(c.text))
		var faults config.Faults
		if errors.As(err, &faults); f != nil || !errors.Is(err, seams.InvalidConfig) || len(faults) != len(c.wants) {
			t.Errorf("%q: got %v; want %q", c.text, err, c.wants)
			continue
		}
		for i, want := range c.wants {
			at, msg, _ := strings.Cut(want, " ")
			if got := faults[i].String(); !strings.HasPrefix(got, "f.yml:"+at+": ") || !strings.Contains(got, msg) {
				t.Errorf("%q: got %s; want %s", c.text, got, want)
			}
		}
	}
}

func TestScalars(t *testing.T) {
	f := mustParse(t, `- name: x
  config: {a: 0x1F, b: 0o17, c: 1_000, d: 1e3, e: -0.0, f: 2024-01-02, g: !!str 5, h: True, i: ~, j: , k: +7, l: .5, m: 0,
    n: 1:30, o: "a\tb", p: "", q: 1.10, r: 9007199254740994, s: on, t: <<, u: -0, "v w": x, 8: y, true: z}
`)
	want := object{"a": 31.0, "b": 15.0, "c": 1000.0, "d": 1000.0, "e": 0.0, "f": "2024-01-02", "g": "5", "h": true, "i": nil, "j": nil, "k": 7.0,
		"l": 0.5, "m": 0.0, "n": "1:30", "o": "a\tb", "p": "", "q": 1.1, "r": 9007199254740994.0, "s": "on", "t": "<<", "u": 0.0, "v w": "x", "8": "y", "true": "z"}
	if got := f.Entries[0].Config; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "# c\n", "---\n", "\ufeff", "---\n# c\n"} {
		if f := mustParse(t, text); !f.Empty || f.Entries != nil {
			t.Errorf("%q: %+v", text, f)
		}
	}
	// A list without entries is content: everything is meant to go.
	for _, text := range []string{"[]", "--- []\n"} {
		if f := mustParse(t, text); f.Empty {
			t.Errorf("%q: %+v", text, f)
		}
	}
}

const whole = `
- id: my-llm
  name: './src/my-llm-adapter.ts'
  config:
    apiKey: !!js process.env.MY_API_KEY
    models:
      - my-model-v1
      - my-model-v2

- id: agent-loop
  name: '@deepseek-ai/dsh-agent-loop'
  config:
    agents:
      - id: main
        provider: my-llm
    model: my-model-v1
    workspaceContext: false
- id: outer
  group: on
  disabled: !!js process.env.OFF === '1'
  isolate: {db: true, cache: shared}
  intercept: {logger: {level: 3}}
  config:
  - name: ./inner.js
    inject: [db, cache]
  - id: 0123
    name: cordis:group
    disabled: yes
    config:
    - name: ./leaf.js
      inject: {db: {a: 1}, cache: , http: true}
`

func TestEntries(t *testing.T) {
	f := mustParse(t, whole)
	if len(f.Entries) != 3 || f.Faults != nil {
		t.Fatalf("%+v", f)
	}
	llm, loop, outer := f.Entries[0], f.Entries[1], f.Entries[2]
	key, ok := llm.Config.(object)["apiKey"].(config.Expr)
	if !ok || key.Source != "process.env.MY_API_KEY" || key.Pos.String() != "cordis.yml:5:13" {
		t.Errorf("%#v", llm.Config)
	}
	if want := (object{"agents": list{object{"id": "main", "provider": "my-llm"}}, "model": "my-model-v1", "workspaceContext": false}); !reflect.DeepEqual(loop.Config, want) {
		t.Errorf("%v", loop.Config)
	}
	if !outer.Group || outer.Config != nil || outer.Disabled.(config.Expr).Source != "process.env.OFF === '1'" ||
		!maps.Equal(outer.Isolate, map[string]string{"db": "", "cache": "shared"}) || !reflect.DeepEqual(outer.Intercept, object{"logger": object{"level": 3.0}}) {
		t.Errorf("%+v", outer)
	}
	inner, group := outer.Entries[0], outer.Entries[1]
	if len(inner.ID) != 8 || inner.Parent != outer || !reflect.DeepEqual(inner.Inject, object{"db": nil, "cache": nil}) {
		t.Errorf("%+v", inner)
	}
	if group.ID != "0123" || !group.Group || group.Disabled != true {
		t.Errorf("%+v", group)
	}
	if leaf := group.Entries[0]; !reflect.DeepEqual(leaf.Inject, object{"db": object{"a": 1.0}, "cache": nil, "http": nil}) || leaf.Disabled != false {
		t.Errorf("%+v", leaf)
	}
}

func TestPos(t *testing.T) {
	f := mustParse(t, whole+`- name: merged
  config: &m
    <<: {from: merge}
    a: [x, {b: 1}]
- name: alias
  config: {c: *m}
`)
	at := func(id string) *config.Entry { return entry(t, f, id) }
	merged, alias := f.Entries[3], f.Entries[4]
	for _, c := range []struct {
		e    *config.Entry
		path []any
		want string
	}{
		{at("my-llm"), nil, "2:3"},
		{at("my-llm"), []any{"name"}, "3:9"},
		{at("my-llm"), []any{"config", "models", 1}, "8:9"},
		{at("my-llm"), []any{"config", "models", 7}, "7:7"}, // not there: the list
		{at("my-llm"), []any{"disabled"}, "2:3"},
		{at("agent-loop"), []any{"config", "agents", 0, "provider"}, "15:19"},
		{at("0123"), []any{"id"}, "26:9"},
		{merged, []any{"config", "from"}, "34:16"},
		{merged, []any{"config", "a", 1, "b"}, "35:16"},
		{alias, []any{"config", "c", "from"}, "34:16"},
		{alias, []any{"config", "c", "a", 0}, "35:9"},
		{alias, []any{"config", 3, "a"}, "37:11"},
	} {
		if got := c.e.Pos(c.path...).String(); got != "cordis.yml:"+c.want {
			t.Errorf("%s %v stands at %s, want %s", c.e.Name, c.path, got, c.want)
		}
	}
}

func TestLocate(t *testing.T) {
	f := mustParse(t, `- id: a
  name: x
  config:
    limit: many
    retrys: 1
    agents:
      - {provider: p, id: 3}
- id: b
  name: x
`)
	s := schema.Object(schema.Fields{
		"limit": schema.Number(), "retries": schema.Number(), "key": schema.String().Required(),
		"agents": schema.Array(schema.Object(schema.Fields{"id": schema.String(), "provider": schema.String(), "model": schema.String().Required()})),
	})
	a, b := entry(t, f, "a"), entry(t, f, "b")
	_, err := s.Resolve(a.Config)
	got := a.Locate(err)
	want := `cordis.yml:3:3: config.key: is required
cordis.yml:4:12: config.limit: expected number, got string
cordis.yml:5:5: config.retrys: unknown key, did you mean "retries"?
cordis.yml:7:9: config.agents[0].model: is required
cordis.yml:7:27: config.agents[0].id: expected string, got number; quote it if it is meant as text`
	if got.Error() != want || got[0].Entry != "a" {
		t.Errorf("got\n%v\nwant\n%s", got, want)
	}
	_, err = s.Resolve(b.Config)
	if got := b.Locate(err).Error(); got != "cordis.yml:8:3: config.key: is required" {
		t.Error(got)
	}
	if got := b.Locate(errors.New("boom")).Error(); got != "cordis.yml:8:3: boom" {
		t.Error(got)
	}
	if got := b.Locate(nil); got != nil {
		t.Error(got)
	}
	made := &config.Entry{ID: "made"}
	if got := made.Locate(err); len(got) != 1 || got[0].Pos != (config.Pos{}) || made.Pos("config", 1) != (config.Pos{}) {
		t.Errorf("an entry that is in no file: %v", got)
	}
}

func TestInterpolate(t *testing.T) {
	f := mustParse(t, whole)
	e := f.Entries[0]
	env := object{"process.env.MY_API_KEY": "secret", "process.env.OFF === '1'": true}
	eval := func(source string) (any, error) {
		if v, ok := env[source]; ok {
			return v, nil
		}
		return nil, errors.New("not defined")
	}
	got, err := config.Interpolate(e.Config, eval)
	if want := (object{"apiKey": "secret", "models": list{"my-model-v1", "my-model-v2"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	got.(object)["models"].(list)[0] = "changed"
	if again, _ := config.Interpolate(e.Config, eval); again.(object)["models"].(list)[0] != "my-model-v1" {
		t.Error("changing a result changed the entry")
	}
	if off, err := config.Interpolate(f.Entries[2].Disabled, eval); off != true || err != nil {
		t.Errorf("%v, %v", off, err)
	}
	bad := mustParse(t, "- name: x\n  config:\n    a: [!!js one, 2]\n    b: {c: !!js two}\n    d: !!js f\n").Entries[0]
	env["f"] = func() {}
	_, err = config.Interpolate(bad.Config, eval)
	want := "cordis.yml:3:9: !!js one: not defined\ncordis.yml:4:12: !!js two: not defined\n" +
		"cordis.yml:5:8: !!js f: value: not JSON without loss: a func() [NOT_JSON] [INVALID_CONFIG]"
	if !errors.Is(err, seams.InvalidConfig) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got := bad.Locate(err); len(got) != 3 || got[1].Pos.Line != 4 {
		t.Errorf("%v", got)
	}
}

func TestBounds(t *testing.T) {
	// yml-05 as a list, so that the values are read; the guard of the library
	// does not see it, since it only expands what it decodes itself.
	var bomb strings.Builder
	bomb.WriteString("- name: x\n  config:\n    a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		a := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&bomb, "    a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(a+", ", 9)+a)
	}
	merges := strings.ReplaceAll(strings.ReplaceAll(bomb.String(), "[x,x,x,x,x,x,x,x,x,x]", "{x: 1}"), "[*", "{<<: [*")
	merges = strings.ReplaceAll(merges, "]\n", "]}\n")
	wide := "- name: x\n  config:\n    a: &a {"
	for i := range 1000 {
		wide += fmt.Sprintf("k%d: , ", i)
	}
	wide += "}\n    b: {<<: [" + strings.Repeat("*a, ", 5000) + "*a]}\n"
	for name, c := range map[string]struct {
		text, want string
		code       seams.Code
	}{
		"wide":    {wide, "more than 100000 values", seams.InvalidConfig},
		"aliases": {bomb.String(), "more than 100000 values", seams.InvalidConfig},
		"merges":  {merges, "more than 100000 values", seams.InvalidConfig},
		"deep":    {"- name: x\n  config: {a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}", "nested deeper than 1000", seams.InvalidConfig},
		"deeper":  {strings.Repeat("[", 200_000), "exceeded max depth", seams.InvalidConfig},
		"faults":  {"- name: x\n" + strings.Repeat("  z: 1\n", 5000), "stands twice", seams.InvalidConfig},
		"size":    {strings.Repeat("#", config.MaxFile+1), "at most", seams.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := config.Parse("f.yml", []byte(c.text))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 20_000 {
				t.Errorf("%.300v", err)
			}
			if took > 5*time.Second || after.TotalAlloc-before.TotalAlloc > 400<<20 {
				t.Errorf("%v and %d MB", took, (after.TotalAlloc-before.TotalAlloc)>>20)
			}
		})
	}
}

func TestMessagesNeverShowTheValue(t *testing.T) {
	for _, text := range []string{
		"- name: x\n  config: sk-verysecret\n", "- name: x\n  config:\n    k: \"sk-verysecret\n", "- name: x\n  config:\n    k: @sk-verysecret\n",
		"- name: x\n  config:\n    k: !!int sk-verysecret\n", "- name: x\n  config:\n    k: sk-verysecret: x\n", "- name: x\n  disabled: sk-verysecret\n",
		"- sk-verysecret\n",
	} {
		if _, err := config.Parse("f.yml", []byte(text)); err == nil || strings.Contains(err.Error(), "verysecret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// anyEntries draws the text of a list of entries in block style.
func anyEntries(t *rapid.T, indent string, depth int) string {
	var b strings.Builder
	for range rapid.IntRange(0, 4).Draw(t, "entries") {
		lines := []string{"name: " + rapid.SampledFrom([]string{"x", "./y.js", "'@a/b'"}).Draw(t, "name")}
		if rapid.Bool().Draw(t, "has id") {
			lines = append(lines, "id: "+rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "id"))
		}
		if depth > 0 && rapid.IntRange(0, 3).Draw(t, "group") == 0 {
			lines = append(lines, "group: true", "config:\n"+anyEntries(t, indent+"  ", depth-1))
		} else if rapid.Bool().Draw(t, "has config") {
			lines = append(lines, "config: {a: "+strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "a"))+", b: !!js f()}")
		}
		if rapid.Bool().Draw(t, "has disabled") {
			lines = append(lines, "disabled: "+rapid.SampledFrom([]string{"true", "no", "!!js g()"}).Draw(t, "disabled"))
		}
		b.WriteString(indent + "- " + strings.Join(lines, "\n"+indent+"  ") + "\n")
	}
	if b.Len() == 0 {
		return indent + " []\n"
	}
	return b.String()
}

func TestFileLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyEntries(t, "", 2)
		f, err := config.Parse("f.yml", []byte(text))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		seen := map[string]bool{}
		for e := range f.All() {
			if seen[e.ID] || e.ID == "" {
				t.Fatalf("the id %q of %s is not good in:\n%s", e.ID, e.Pos(), text)
			}
			seen[e.ID] = true
		}
		// Where lines stand, comments and line ends change nothing (L-02).
		moved, err := config.Parse("g.yml", []byte("\ufeff# top\r\n\r\n"+strings.ReplaceAll(text, "\n", " # c\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		if was, is := write(f.Entries), write(moved.Entries); was != is {
			t.Fatalf("moved lines are changes:\n%s\n%s", was, is)
		}
		reparse(t, f)
	})
}

// Ids that are not written stay while configs change and others come and go.
func TestGeneratedIDs(t *testing.T) {
	first := mustParse(t, "- name: x\n- name: y\n- name: x\n- group: true\n  config: [{name: x}]\n")
	second := mustParse(t, "- {id: early, group: true, config: [{name: y}]}\n- name: new\n- name: y\n  disabled: true\n- name: x\n  config: {a: 1}\n- id: z\n  name: x\n- name: x\n- group: true\n  config: [{name: w}, {name: x}]\n")
	place := func(e *config.Entry) string {
		if e.Parent == nil {
			return e.Name
		}
		return e.Parent.ID + " " + e.Name
	}
	ids := map[string]string{}
	for e := range second.All() {
		ids[e.ID] = place(e)
	}
	n := 0
	for e := range first.All() {
		n++
		if was, ok := ids[e.ID]; !ok || was != place(e) {
			t.Errorf("%s %s is gone", e.Name, e.ID)
		}
	}
	if n != 5 {
		t.Errorf("%d entries", n)
	}
	x := first.Entries[0].ID
	taken := mustParse(t, "- name: x\n- name: other\n  id: "+x+"\n")
	if taken.Faults != nil || taken.Entries[0].ID == x {
		t.Errorf("a written id is generated again: %+v", taken.Faults)
	}
}

// quote writes a double-quoted scalar in ASCII.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r >= ' ' && r < 0x7f && r != '"' && r != '\\' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	return b.String() + `"`
}

// flow writes a value in flow style.
func flow(v any) string {
	switch v := v.(type) {
	case config.Expr:
		return "!!js " + quote(v.Source)
	case string:
		return quote(v)
	case float64:
		return strconv.FormatFloat(v, 'e', -1, 64)
	case list:
		var parts []string
		for _, e := range v {
			parts = append(parts, flow(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case object:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quote(k)+": "+flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// flat writes an entry without what is in a group.
func flat(e *config.Entry) string {
	parts := []string{"id: " + quote(e.ID), "disabled: " + flow(e.Disabled), "group: " + flow(e.Group)}
	if e.Name != "" {
		parts = append(parts, "name: "+quote(e.Name))
	}
	if !e.Group {
		parts = append(parts, "config: "+flow(e.Config))
	}
	isolate := object{}
	for k, v := range e.Isolate {
		if isolate[k] = v; v == "" {
			isolate[k] = true
		}
	}
	return strings.Join(append(parts, "inject: "+flow(e.Inject), "isolate: "+flow(isolate), "intercept: "+flow(e.Intercept)), ", ")
}

func write(entries []*config.Entry) string {
	var parts []string
	for _, e := range entries {
		s := flat(e)
		if e.Group {
			s += ", config: " + write(e.Entries)
		}
		parts = append(parts, "{"+s+"}")
	}
	return "[" + strings.Join(parts, ",\n") + "]"
}

// reparse checks that a file written from what was read is read as the same.
func reparse(t interface{ Fatalf(string, ...any) }, f *config.File) {
	text := write(f.Entries)
	again, err := config.Parse("again.yml", []byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
		return
	}
	if is := write(again.Entries); is != text || again.Faults != nil {
		t.Fatalf("read as other entries: %s, %v from:\n%s", is, again.Faults, text)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		f.Fatal("no cases", err)
	}
	for _, file := range files {
		f.Add(read(f, filepath.Base(file)))
	}
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := config.Parse("f.yml", data)
		if err != nil {
			var faults config.Faults
			if seams.CodeOf(err) == seams.TooLarge {
				return
			}
			if file != nil || !errors.Is(err, seams.InvalidConfig) || !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("%v, %v", file, err)
			}
			for _, fault := range faults {
				if fault.Pos.Line < 1 || fault.Pos.Col < 1 || fault.Msg == "" {
					t.Fatalf("%#v is not located", fault)
				}
			}
			return
		}
		for e := range file.All() {
			e.Pos("config", "a", 0)
		}
		if len(data) < 4096 {
			reparse(t, file)
		}
	})
}
