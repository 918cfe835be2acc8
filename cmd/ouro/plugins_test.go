package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams/llm"
)

// The upstream layout as it stands: the agent's provider is the id of an entry,
// its route the name of a model.
const upstream = `- id: my-llm
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
`

// A TypeScript adapter runs unchanged; its error is reported at its own line.
func TestTypeScriptAdapter(t *testing.T) {
	adapter, err := os.ReadFile("../../builtins/script/testdata/my-llm-adapter.ts")
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{configName: upstream, "src/my-llm-adapter.ts": string(adapter)})
	var out, errs strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, dir: dir, env: []string{"MY_API_KEY=k-1"}}
	if code := p.main([]string{"run", "talk"}); code != 0 || out.String() != "You said talk; I am user-agent\n" || !strings.HasSuffix(errs.String(), ": left 3\n") {
		t.Fatal(code, out.String(), errs.String())
	}
	out.Reset()
	if code := p.main([]string{"run", "throw"}); code != exitFailed || !strings.Contains(errs.String(), "my-llm-adapter.ts:17:") {
		t.Fatal(code, out.String(), errs.String())
	}
	errs.Reset()
	p.env = nil
	if code := p.main([]string{"check"}); code != exitUsage || !strings.Contains(out.String(), "cordis.yml:4:13: warning: entry my-llm: process.env.MY_API_KEY has no value") ||
		!strings.Contains(out.String(), "config.apiKey: is required") {
		t.Fatal(code, out.String(), errs.String())
	}
}

// watched is a runtime whose faults are collected.
type watched struct {
	*builtins.Runtime
	mu     sync.Mutex
	faults []string
}

func open(t *testing.T, dir string) *watched {
	t.Helper()
	w := &watched{}
	r, err := builtins.Open(context.Background(), builtins.Options{
		File: filepath.Join(dir, configName), CWD: dir, Watch: true,
		Fault: func(f loader.Fault) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.faults = append(w.faults, f.String())
		},
		Report: func(r cordis.Report) { t.Log(r.Phase, r.Label, r.Err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Runtime = r
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) fault(part string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		if strings.Contains(f, part) {
			return true
		}
	}
	return false
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 1000 {
		if f() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

// replace writes a file as editors do: aside, then renamed.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".tmp", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func greeter(text string) string {
	return `module.exports = { name: 'greeter', inject: ['tools'], apply(ctx) {
  ctx.tools.register({ name: 'greet', description: 'Greets.', parameters: {}, execute: () => '` + text + `' })
} }`
}

// Files are edited while the model thinks: the change is in force at the next
// step, a broken edit is reported with its place and the old version serves on.
func TestEditsWhileRunning(t *testing.T) {
	var dir string
	var w *watched
	edit := []func(){
		func() {
			old := fiberOf(w, "greet")
			replace(t, filepath.Join(dir, "greet.js"), greeter("second"))
			eventually(t, "the new version", func() bool { return fiberOf(w, "greet") > old })
		},
		func() {
			replace(t, filepath.Join(dir, "greet.js"), "module.exports = { apply( {")
			eventually(t, "the fault of greet.js", func() bool { return w.fault("greet.js:1") })
		},
		func() {
			text, _ := os.ReadFile(filepath.Join(dir, configName))
			replace(t, filepath.Join(dir, configName), string(text)+"- id: more\n  name: ./more.js\n")
			eventually(t, "the new entry", func() bool {
				for _, e := range w.Loader().Entries() {
					if e.ID == "more" && e.State == cordis.Active.String() {
						return true
					}
				}
				return false
			})
		},
		func() {
			replace(t, filepath.Join(dir, configName), "- id: a\n  name: [unclosed\n")
			eventually(t, "the fault of cordis.yml", func() bool { return w.fault("cordis.yml:2") })
		},
	}
	s := newWire(t, func(n int, wr http.ResponseWriter, _ map[string]any) {
		if n < len(edit) {
			edit[n]()
			_, _ = io.WriteString(wr, call("c", "greet", map[string]any{"n": n}))
			return
		}
		_, _ = io.WriteString(wr, say("done"))
	})
	dir = folder(t, map[string]string{
		configName: composition(s.URL) + "- id: greet\n  name: ./greet.js\n",
		"greet.js": greeter("first"),
		"more.js":  "module.exports = { name: 'more', inject: ['tools'], apply(ctx) { ctx.tools.register({ name: 'more', description: '', parameters: {}, execute: () => 'x' }) } }",
	})
	w = open(t, dir)
	agent, err := w.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	if r := agent.Run(context.Background(), llm.UserText("go")); r.IsError {
		t.Fatal(r.Error)
	}
	requests := s.seen()
	for i := 1; i < len(requests); i++ {
		if m := last(requests[i]); m["content"] != "second" {
			t.Errorf("request %d: %v", i, m)
		}
	}
	if offers(requests[2], "more") || !offers(requests[3], "more") || !offers(requests[4], "more") {
		t.Error("the new entry's tool is there from the next step on")
	}
}

// fiberOf is the id of the entry's active fiber, 0 if it has none.
func fiberOf(w *watched, entry string) uint64 {
	for _, f := range w.Container().Inspect().Fibers {
		if f.Entry == entry && f.State == cordis.Active.String() {
			return f.ID
		}
	}
	return 0
}
