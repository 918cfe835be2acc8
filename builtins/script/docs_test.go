package script_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"

	httpclient "github.com/ouro-run/ouro/builtins/http"
)

// What the documentation shows runs as it is shown.

// block is a fenced block of a page.
type block struct{ lang, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func page(t testing.TB, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func blocks(text string, langs ...string) (out []block) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if slices.Contains(langs, m[1]) {
			out = append(out, block{m[1], m[2]})
		}
	}
	return out
}

// examples are the blocks that are whole plugins, by the name in their first
// line; a mount's name has no extension.
func examples(t testing.TB) map[string]string {
	out := map[string]string{}
	first := regexp.MustCompile(`^// (?:file|mount): (\S+)\n`)
	for _, b := range blocks(page(t, "docs", "plugins-js.md"), "js", "ts") {
		m := first.FindStringSubmatch(b.text)
		if m == nil {
			continue // signatures
		}
		if out[m[1]] != "" {
			t.Errorf("there are two examples %s", m[1])
		}
		out[m[1]] = b.text
	}
	return out
}

// shown is a world in which all examples are files.
type shown struct {
	*world
	examples map[string]string
}

func (s shown) start(name string, config any) *cordis.Fiber {
	s.Helper()
	f, err := s.try(name, config)
	if err != nil {
		s.Fatal(err)
	}
	if f.State() != cordis.Active {
		s.Fatalf("%s is %s: %v", name, f.State(), s.c.Explain(f))
	}
	return f
}

func (s shown) try(name string, config any) (*cordis.Fiber, error) {
	s.Helper()
	var p *cordis.Plugin
	var err error
	if filepath.Ext(name) == "" {
		p, err = s.engine.Mount(s.Context(), script.Mount{ID: name, Code: s.examples[name]})
	} else {
		var src loader.Source
		src, err = s.engine.File(s.Context(), filepath.Join(s.dir, filepath.FromSlash(name)))
		p = src.Plugin
	}
	if err != nil {
		s.Fatal(err)
	}
	f, err := s.root.Plugin(p, config)
	if err != nil {
		s.Fatal(err)
	}
	return f, f.Settle(s.Context())
}

func (s shown) tool(name string, args map[string]any) *tools.Result {
	s.Helper()
	return s.tools.Execute(s.Context(), callTool(name, args))
}

func (s shown) answers(name string, args map[string]any, want any) {
	s.Helper()
	if r := s.tool(name, args); r.IsError || !equal(r.Value, want) {
		s.Errorf("%s answers %v %+v, want %v", name, r.Value, r.Error, want)
	}
}

// lines waits until the console holds the lines, among others.
func (s shown) lines(want ...string) {
	s.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		said := s.said()
		if !slices.ContainsFunc(want, func(l string) bool { return !slices.Contains(said, l) }) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("the console holds %q\nwant %q among it", said, want)
		}
	}
}

var tests = map[string]func(s shown){
	"module.js": func(s shown) {
		f := s.start("module.js", nil)
		s.answers("greet", map[string]any{"who": "Ada"}, "Hello, Ada!")
		s.dispose(f)
		if r := s.tool("greet", map[string]any{"who": "Ada"}); r.Error == nil || r.Error.Code != seams.UnknownTool {
			s.Errorf("after dispose: %+v", r)
		}
	},
	"function.js": func(s shown) {
		s.logger()
		s.start("function.js", nil)
		s.emit("count")
		s.emit("count")
		s.expect("1", "2")
	},
	"object.mjs": func(s shown) {
		s.dispose(s.start("object.mjs", nil))
		s.expect("up", "down")
	},
	"class.ts": func(s shown) {
		s.start("module.js", nil)
		s.start("class.ts", map[string]any{"prefix": "called by somebody: "})
		s.tool("greet", map[string]any{"who": "Ada"})
		s.lines("called by somebody: greet")
	},
	"service.ts": func(s shown) {
		s.start("service.ts", nil)
		if n := s.call("words", "count"); n != 2.0 {
			s.Errorf("count = %v", n)
		}
	},
	"configured.ts": func(s shown) {
		s.start("configured.ts", map[string]any{"url": "x://y"})
		s.expect("x://y 2 fast")
		if _, err := s.try("configured.ts", map[string]any{"retries": 11.0}); seams.CodeOf(err) != seams.InvalidConfig {
			s.Errorf("a wrong config: %v", err)
		}
	},
	"effects.js": func(s shown) {
		s.dispose(s.start("effects.js", nil))
		s.expect("opened", "goodbye", "first undone", "second undone", "closed")
	},
	"tools.ts": func(s shown) {
		s.start("tools.ts", nil)
		if r := s.tool("convert", map[string]any{"value": 10.0, "to": "m"}); r.Content.Text() != "3.05 m" {
			s.Errorf("convert: %+v", r)
		}
		r := s.tool("convert_all", map[string]any{"values": []any{1.0, 2.0}})
		if list, _ := r.Value.([]any); len(list) != 2 || list[1] != 0.6096 {
			s.Errorf("convert_all: %+v", r)
		}
	},
	"adapter.ts": func(s shown) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("User-Agent") == "" || !strings.Contains(string(body), "hello") {
				http.Error(w, "no", http.StatusTooManyRequests)
				return
			}
			fmt.Fprint(w, "{\"piece\":\"Hel\"}\n{\"piece\":\"lo\"}\n")
		}))
		defer srv.Close()
		s.start("adapter.ts", map[string]any{"url": srv.URL, "models": []any{"m1"}})
		s.streams("m1", "hello", "Hello")
		chunks, err := s.ask(s.Context(), "m1", "too often")
		if err != nil {
			s.Fatal(err)
		}
		if f, _ := chunks[len(chunks)-1].(llm.Finish); f.Reason.Failure == nil || f.Reason.Failure.Code != seams.RateLimit || f.Reason.Failure.Status != 429 {
			s.Errorf("a refusal is %+v", f)
		}
	},
	"listeners.js": func(s shown) {
		s.start("module.js", nil)
		s.start("listeners.js", nil)
		if r := s.tool("greet", map[string]any{"who": "Ada"}); r.Content.Text() != `greet answered "Hello, Ada!"` {
			s.Errorf("greet: %+v", r)
		}
		if r := s.tool("delete_all", nil); !r.IsError || !strings.Contains(r.Content.Text(), "not on my watch") {
			s.Errorf("delete_all: %+v", r)
		}
		s.lines("greet done", "delete_all failed")
	},
	"own-events.js": func(s shown) {
		s.start("own-events.js", nil)
		for item, want := range map[string]any{"tea": 6.0, "cake": 20.0} {
			if got := s.call("shop", "price", item); got != want {
				s.Errorf("%s costs %v, want %v", item, got, want)
			}
		}
		s.call("shop", "open")
		s.expect("open")
	},
	"store.js": func(s shown) { s.start("store.js", nil) },
	"uses-store.js": func(s shown) {
		f, err := s.try("uses-store.js", nil)
		if err != nil || f.State() != cordis.Pending {
			s.Fatalf("without its service it is %s: %v", f.State(), err)
		}
		s.start("store.js", nil)
		s.lines("3", "tea")
	},
	"parent.js": func(s shown) {
		s.start("parent.js", nil)
		s.answers("tool_1", nil, 1.0)
		if r := s.tool("tool_2", nil); r.Error == nil || r.Error.Code != seams.UnknownTool {
			s.Errorf("the disposed child's tool: %+v", r)
		}
		provide[any](s.world, seams.Key[any]{Name: "weather"}, "fine")
		s.lines("weather is there")
	},
	"ticker.js": func(s shown) {
		s.start("ticker.js", nil)
		s.lines("world", "tick", "b", "plain")
	},
	"invoice.ts": func(s shown) {
		s.write("lib/rates.json", `{"EUR": 1}`)
		s.start("invoice.ts", nil)
		s.answers("to_cents", map[string]any{"amount": "1,234.50 EUR"}, 123450.0)
	},
	"lib/money.ts": func(shown) {}, // a part of invoice.ts
	"fails.js": func(s shown) {
		_, err := s.try("fails.js", nil)
		at := 1 + strings.Count(s.examples["fails.js"][:strings.Index(s.examples["fails.js"], "I give up")], "\n")
		if seams.CodeOf(err) != "GAVE_UP" || !strings.Contains(err.Error(), fmt.Sprintf("fails.js:%d:", at)) {
			s.Errorf("it fails with %v, want GAVE_UP at line %d", err, at)
		}
		s.expect("NOT_FOUND")
	},
	"dyn-1": func(s shown) {
		f := s.start("dyn-1", nil)
		s.answers("count_words", map[string]any{"text": "to be or not"}, 4.0)
		s.dispose(f)
		s.expect("gone after 1")
	},
}

// streams asks a model and compares the reply.
func (w *world) streams(model, ask, want string) {
	w.Helper()
	chunks, err := w.ask(w.Context(), model, ask)
	if err != nil {
		w.Fatal(err)
	}
	var g llm.Grammar
	var text string
	for _, c := range chunks {
		if err := g.Accept(c); err != nil {
			w.Errorf("%+v: %v", c, err)
		}
		if d, ok := c.(llm.TextDelta); ok {
			text += d.Text
		}
	}
	if text != want {
		w.Errorf("%s says %q in %+v, want %q", model, text, chunks, want)
	}
}

func networked(t testing.TB) func(*script.Options) {
	client := httpclient.New(httpclient.Config{})
	t.Cleanup(client.Close)
	return func(o *script.Options) { o.Fetch = client.Fetch }
}

// Each example of docs/plugins-js.md does what the page says.
func TestDocsExamples(t *testing.T) {
	all := examples(t)
	for name := range tests {
		if all[name] == "" {
			t.Errorf("the page has no example %s", name)
		}
	}
	for name := range all {
		t.Run(name, func(t *testing.T) {
			if tests[name] == nil {
				t.Fatal("nothing is tested of this example")
			}
			s := shown{newWorld(t, networked(t)), all}
			for file, text := range all {
				if filepath.Ext(file) != "" {
					s.write(file, text)
				}
			}
			tests[name](s)
		})
	}
}

// The page lists the whole table: methods, verbs and events with their modes.
func TestDocsTable(t *testing.T) {
	text := page(t, "docs", "plugins-js.md")
	for _, s := range script.Services() {
		for _, m := range s.Methods {
			if !strings.Contains(text, "\n"+m.Signature+"\n") {
				t.Errorf("ctx.%s: %s is not on the page", s.Name, m.Signature)
			}
		}
	}
	for _, v := range script.Verbs() {
		if !regexp.MustCompile("(?m)^\\|.*`" + v.Name + "\\b").MatchString(text) {
			t.Errorf("ctx.%s is in no table of the page", v.Name)
		}
	}
	for _, e := range script.Events() {
		if !regexp.MustCompile("(?m)^\\|.*`" + regexp.QuoteMeta(e.Name) + "`.*\\| " + e.Mode.String() + " \\|").MatchString(text) {
			t.Errorf("%s (%s) is in no table of the page", e.Name, e.Mode)
		}
	}
	for _, m := range regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)+)`").FindAllStringSubmatch(text, -1) {
		if _, ok := seams.Explain(seams.Code(m[1])); !ok && m[1] != "SCRIPT_ERROR" {
			t.Errorf("there is no code %s", m[1])
		}
	}
}

// Links within the documentation lead somewhere.
func TestDocsLinks(t *testing.T) {
	anchor := func(text, name string) bool {
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			slug := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
			if strings.ReplaceAll(slug, " ", "-") == name {
				return true
			}
		}
		return false
	}
	for _, from := range [][]string{{"README.md"}, {"docs", "plugins-js.md"}, {"docs", "config.md"}} {
		text := page(t, from...)
		for _, m := range regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := text
			if m[1] != "" {
				to := filepath.Join(append([]string{"..", ".."}, append(slices.Clone(from[:len(from)-1]), filepath.FromSlash(m[1]))...)...)
				raw, err := os.ReadFile(to)
				if info, serr := os.Stat(to); err != nil && (serr != nil || !info.IsDir()) {
					t.Errorf("%s links to %s: %v", from, m[1], err)
				}
				target = string(raw)
			}
			if m[2] != "" && !anchor(target, m[2]) {
				t.Errorf("%s links to %s#%s, which has no such heading", from, m[1], m[2])
			}
		}
	}
}

// The compositions that the documentation shows are well-formed.
func TestDocsCompositions(t *testing.T) {
	for _, from := range [][]string{{"README.md"}, {"docs", "config.md"}, {"docs", "plugins-js.md"}} {
		for _, b := range blocks(page(t, from...), "yaml") {
			f, err := config.Parse(strings.Join(from, "/"), []byte(b.text))
			if err != nil {
				t.Errorf("%s: %v\n%s", from, err, b.text)
				continue
			}
			for _, fault := range f.Faults {
				t.Errorf("%v\n%s", fault, b.text)
			}
		}
	}
}

// The first composition of README, with its first plugin, answers.
func TestReadmeComposition(t *testing.T) {
	readme := page(t, "README.md")
	yml, js := blocks(readme, "yaml")[0].text, blocks(readme, "js")[0].text
	var tool any
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct {
				Role    string
				Content any
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer k-1" {
			t.Errorf("%s %v %v", r.URL.Path, r.Header, err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		delta, reason := `{"content":"I greeted her."}`, "stop"
		if last := req.Messages[len(req.Messages)-1]; last.Role == "tool" {
			tool = last.Content
		} else {
			delta, reason = `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"hello","arguments":"{\"who\":\"Ada\"}"}}]}`, "tool_calls"
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, reason)
	}))
	defer srv.Close()
	const address = "http://localhost:8000"
	if !strings.Contains(yml, address) {
		t.Fatalf("README's composition has no %s", address)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"cordis.yml": strings.Replace(yml, address, srv.URL, 1), "hello.js": js} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opt := builtins.Options{File: filepath.Join(dir, "cordis.yml"), CWD: dir, Env: map[string]string{"MY_API_KEY": "k-1"}, Version: "test",
		Fault: func(f loader.Fault) { t.Error(f) }, Report: func(r cordis.Report) { t.Error(r.Err) }}
	if faults, err := builtins.Check(t.Context(), opt); err != nil || len(faults) > 0 {
		t.Errorf("check: %v %v", faults, err)
	}
	r, err := builtins.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	agent, err := r.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	result := agent.Run(t.Context(), llm.UserText("say hello to Ada"))
	if result.IsError || result.Text != "I greeted her." || tool != "Hello, Ada!" {
		t.Errorf("result %+v, the tool said %v", result, tool)
	}
}

// The scripted composition of docs/config.md runs with README's plugin.
func TestScriptedComposition(t *testing.T) {
	dir := t.TempDir()
	i := slices.IndexFunc(blocks(page(t, "docs", "config.md"), "yaml"), func(b block) bool { return strings.Contains(b.text, "name: scripted") })
	for name, text := range map[string]string{
		"cordis.yml": blocks(page(t, "docs", "config.md"), "yaml")[i].text,
		"hello.js":   blocks(page(t, "README.md"), "js")[0].text,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := builtins.Open(t.Context(), builtins.Options{File: filepath.Join(dir, "cordis.yml"), CWD: dir, Version: "test",
		Fault: func(f loader.Fault) { t.Error(f) }, Report: func(r cordis.Report) { t.Error(r.Err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	agent, err := r.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	for ask, want := range map[string]string{"say hello to Ada": "The tool said: Hello, Ada!", "bye": "I only know how to say hello."} {
		if result := agent.Run(t.Context(), llm.UserText(ask)); result.IsError || result.Text != want {
			t.Errorf("%s: %+v, want %q", ask, result, want)
		}
	}
}

// README's adapter runs, and an error in it is at the line that README names.
func TestReadmeAdapter(t *testing.T) {
	readme := page(t, "README.md")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "hello") {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		fmt.Fprint(w, `{"text":"hi"}`)
	}))
	defer srv.Close()
	w := newWorld(t, networked(t))
	w.mount(w.file("my-adapter.ts", blocks(readme, "ts")[0].text), map[string]any{"url": srv.URL, "models": []any{"m"}})
	w.streams("m", "hello", "hi")
	chunks, err := w.ask(w.Context(), "m", "fail")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`An error thrown on line (\d+)`).FindStringSubmatch(readme)
	if line == nil {
		t.Fatal("README names no line")
	}
	if f := failed(t, chunks).Failure; f.Code != "PROVIDER_HTTP_ERROR" || !strings.Contains(f.Message, "my-adapter.ts:"+line[1]+":") {
		t.Errorf("failure %+v, want it at line %s", f, line[1])
	}
}
