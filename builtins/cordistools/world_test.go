package cordistools_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/builtins/cordistools"
	eventsplugin "github.com/ouro-run/ouro/builtins/events"
	"github.com/ouro-run/ouro/builtins/fs"
	httpplugin "github.com/ouro-run/ouro/builtins/http"
	llmplugin "github.com/ouro-run/ouro/builtins/llm"
	"github.com/ouro-run/ouro/builtins/logger"
	memoryplugin "github.com/ouro-run/ouro/builtins/memory"
	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/builtins/timer"
	toolsplugin "github.com/ouro-run/ouro/builtins/tools"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a container with the builtins that a composition has, and cordis-tools.
type world struct {
	testing.TB
	c       *cordis.Container
	root    *cordis.Context
	engine  *script.Engine
	tools   *tools.Registry
	toolset *cordis.Fiber
	plugin  *cordis.Plugin

	mu      sync.Mutex
	logged  []string // "<plugin> <level> <text>"
	reports []error
	calls   int
}

// newWorld starts cordis-tools with a configuration; nil is the default one.
func newWorld(t testing.TB, config map[string]any, change ...func(*cordis.Options)) *world {
	t.Helper()
	w := &world{TB: t}
	opt := cordis.Options{Report: w.report, DrainTimeout: time.Second}
	for _, c := range change {
		c(&opt)
	}
	w.c = cordis.New(opt)
	w.root = w.c.Root()
	w.engine = script.New(script.Options{Report: w.report, Log: func(plugin, level, text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logged = append(w.logged, plugin+" "+level+" "+text)
	}})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := errors.Join(w.c.Close(ctx), w.engine.Close()); err != nil {
			t.Error("closing:", err)
		}
	})
	for _, p := range []*cordis.Plugin{toolsplugin.Plugin(), llmplugin.Plugin(), eventsplugin.Plugin(), memoryplugin.Plugin(), timer.Plugin(), logger.Plugin(discard{})} {
		w.run(p, nil)
	}
	var ok bool
	if w.tools, ok = cordis.Lookup(w.root, tools.Key); !ok {
		t.Fatal("no tools")
	}
	w.plugin = cordistools.Plugin(w.engine)
	if config == nil {
		config = map[string]any{}
	}
	w.toolset = w.run(w.plugin, config)
	return w
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (w *world) report(r cordis.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r.Err)
}

// reported waits until something was reported that contains a text.
func (w *world) reported(text string) {
	w.Helper()
	w.until("a report of "+text, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(w.reports, func(err error) bool { return strings.Contains(err.Error(), text) })
	})
}

// console returns what was written to the log so far.
func (w *world) console() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.logged)
}

func (w *world) until(what string, done func() bool) {
	w.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal("waited in vain for", what)
		}
	}
}

// run mounts a Go plugin and waits until it is at rest.
func (w *world) run(p *cordis.Plugin, config any) *cordis.Fiber {
	w.Helper()
	f, err := w.root.Plugin(p, config)
	if err == nil {
		err = f.Settle(context.Background())
	}
	if err != nil {
		w.Fatal(err)
	}
	return f
}

// folder provides fs for a folder of files and says which.
func (w *world) folder(files map[string]string) string {
	w.Helper()
	dir := w.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			w.Fatal(err)
		}
	}
	w.run(fs.Plugin(dir), map[string]any{"root": dir, "write": true})
	return dir
}

// server provides http and a server to ask.
func (w *world) server(answer string) string {
	w.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, answer) }))
	w.Cleanup(s.Close)
	w.run(httpplugin.Plugin(), map[string]any{"timeoutMs": 5000.0, "idleMs": 5000.0, "maxBody": 1e6})
	return s.URL
}

// call runs a tool through the whole pipeline.
func (w *world) call(name string, args any) *tools.Result {
	w.mu.Lock()
	w.calls++
	id := fmt.Sprint("call-", w.calls)
	w.mu.Unlock()
	return w.tools.Execute(context.Background(), tools.Call{ID: id, Name: name, Arguments: args})
}

// ok calls a tool and answers its text.
func (w *world) ok(name string, args any) string {
	w.Helper()
	r := w.call(name, args)
	if r.IsError {
		w.Fatalf("%s: %s", name, r.Content.Text())
	}
	return r.Content.Text()
}

// fails calls a tool that must fail with a code and a text that has all parts.
func (w *world) fails(name string, args any, code seams.Code, parts ...string) string {
	w.Helper()
	r := w.call(name, args)
	if !r.IsError {
		w.Fatalf("%s: no error but %s", name, r.Content.Text())
	}
	if r.Error.Code != code {
		w.Errorf("code %s, want %s: %s", r.Error.Code, code, r.Error.Message)
	}
	for _, p := range parts {
		if !strings.Contains(r.Error.Message, p) {
			w.Errorf("the error does not say %q:\n%s", p, r.Error.Message)
		}
	}
	return r.Error.Message
}

// mount mounts code and answers the output of cordis_mount.
func (w *world) mount(code string) map[string]any {
	w.Helper()
	r := w.call("cordis_mount", map[string]any{"code": code})
	if r.IsError {
		w.Fatalf("cordis_mount: %s", r.Content.Text())
	}
	return r.Value.(map[string]any)
}

// running mounts code that starts and answers its id.
func (w *world) running(code string) string {
	w.Helper()
	v := w.mount(code)
	if v["state"] != "active" {
		w.Fatalf("it is %v and waits for %v", v["state"], v["waitingFor"])
	}
	return v["id"].(string)
}

// refused mounts code that must fail.
func (w *world) refused(code string, want seams.Code, parts ...string) string {
	w.Helper()
	return w.fails("cordis_mount", map[string]any{"code": code}, want, parts...)
}

func (w *world) unmount(id string) {
	w.Helper()
	w.ok("cordis_unmount", map[string]any{"id": id})
}

// section is one section of cordis_inspect without its heading.
func (w *world) section(what string) []string {
	w.Helper()
	lines := strings.Split(w.ok("cordis_inspect", map[string]any{"what": what}), "\n")
	return lines[1:]
}

// has reports whether the registry shows a tool.
func (w *world) has(tool string) bool {
	for _, s := range w.tools.Schemas(nil) {
		if s.Name == tool {
			return true
		}
	}
	return false
}

// shape is all of the container that a mount could leave something in.
func (w *world) shape() (out []string) {
	if err := w.c.Settle(context.Background()); err != nil {
		w.Error(err)
	}
	s := w.c.Inspect()
	for _, f := range s.Fibers {
		out = append(out, fmt.Sprint("fiber ", f.ID, " ", f.Name, " ", f.State, " ", f.Effects))
	}
	for _, v := range s.Services {
		out = append(out, fmt.Sprint("service ", v.Name, " by ", v.Provider))
	}
	for _, e := range s.Events {
		out = append(out, fmt.Sprint("event ", e.Name, " ", e.Listeners))
	}
	for _, t := range w.tools.Schemas(nil) {
		out = append(out, "tool "+t.Name)
	}
	return out
}

// same fails unless the container is what it was.
func (w *world) same(before []string) {
	w.Helper()
	if after := w.shape(); !slices.Equal(before, after) {
		w.Errorf("the container is not what it was:\nbefore %q\nafter  %q", before, after)
	}
}

// adder is a plugin with a tool.
const adder = `return { name: 'adder', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'add', description: 'Add two numbers.',
    parameters: { a: { type: 'number', required: true }, b: { type: 'number', required: true } },
    output: { schema: { type: 'number' }, render: (args, value) => [{ type: 'text', text: args.a + ' + ' + args.b + ' = ' + value }] },
    execute: async ({ a, b }) => a + b,
  }))
} }`

// tool is a plugin with a tool t of which rest is a part.
func tool(rest string) string {
	return `return { name: 'one-tool', inject: ['tools'], apply(ctx) {
  ctx.tools.register(harness.defineTool({ name: 't', description: 'A tool.', ` + rest + ` }))
} }`
}

// bubble runs f in a bubble of synctest. Its end waits for the compiler, which
// keeps what it has built for a moment.
func bubble(t *testing.T, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		f(t)
	})
}
