package script_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/builtins/logger"
	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/builtins/timer"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/memory"
	"github.com/ouro-run/ouro/seams/tools"
)

// world is a container with the four seams and an engine.
type world struct {
	testing.TB
	c      *cordis.Container
	root   *cordis.Context
	engine *script.Engine
	tools  *tools.Registry
	llm    *llm.Registry
	events *events.Memory
	dir    string
	ctx    context.Context

	mu      sync.Mutex
	logged  []string
	reports []cordis.Report
}

func newWorld(t testing.TB, change ...func(*script.Options)) *world {
	w := &world{TB: t, dir: t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	w.ctx = ctx
	w.c = cordis.New(cordis.Options{Report: w.report, DrainTimeout: 2 * time.Second})
	w.root = w.c.Root()
	opt := script.Options{
		Env: map[string]string{"WHO": "world"}, Identity: llm.Ouro("test"), Report: w.report,
		Log: func(plugin, level, text string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.logged = append(w.logged, "["+plugin+"] "+level+" "+text)
		},
	}
	for _, c := range change {
		c(&opt)
	}
	w.engine = script.New(opt)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := w.c.Close(ctx); err != nil {
			t.Errorf("closing the container: %v", err)
		}
		if err := w.engine.Close(); err != nil {
			t.Errorf("closing the engine: %v", err)
		}
	})
	w.tools = tools.New(tools.Options{Bus: w.root, Stamp: w.c.Stamp})
	w.llm = llm.NewRegistry(w.root, w.c.Stamp)
	w.events = events.NewMemory(events.Options{Bus: w.root})
	provide(w, tools.Key, w.tools)
	provide(w, llm.Key, w.llm)
	provide[events.Store](w, events.Key, w.events)
	provide[memory.Store](w, memory.Key, memory.New(memory.Options{}))
	w.mount(timer.Plugin(), nil)
	return w
}

// Context bounds every wait of a test.
func (w *world) Context() context.Context { return w.ctx }

func provide[T any](w *world, key seams.Key[T], v T) seams.Undo {
	w.Helper()
	undo, err := cordis.Provide(w.root, key, v)
	if err != nil {
		w.Fatal(err)
	}
	return undo
}

func (w *world) report(r cordis.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
}

// reported returns the texts of the errors that were reported so far.
func (w *world) reported() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, r := range w.reports {
		out = append(out, r.Err.Error())
	}
	return out
}

func (w *world) log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.logged)
}

// write writes a file of the world's folder.
func (w *world) write(name, text string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
	return path
}

// file makes a plugin of a file with a text.
func (w *world) file(name, text string) *cordis.Plugin {
	w.Helper()
	src, err := w.engine.File(w.Context(), w.write(name, text))
	if err != nil {
		w.Fatal(err)
	}
	return src.Plugin
}

// paths are those of the files a plugin was made of.
func paths(src loader.Source) (out []string) {
	for _, f := range src.Files {
		out = append(out, f.Path)
	}
	return out
}

// mount mounts a plugin and waits until it is at rest.
func (w *world) mount(p *cordis.Plugin, config any) *cordis.Fiber {
	w.Helper()
	f, err := w.root.Plugin(p, config)
	if err != nil {
		w.Fatal(err)
	}
	if err := f.Settle(w.Context()); err != nil {
		w.Fatal(err)
	}
	return f
}

// js mounts a file with a text.
func (w *world) js(name, text string) *cordis.Fiber {
	w.Helper()
	return w.mount(w.file(name, text), nil)
}

// call calls a method of a service that a JavaScript plugin provides.
func (w *world) call(service, method string, args ...any) any {
	w.Helper()
	v, err := w.try(service, method, args...)
	if err != nil {
		w.Fatalf("%s.%s: %v", service, method, err)
	}
	return v
}

func (w *world) try(service, method string, args ...any) (any, error) {
	w.Helper()
	v, ok := cordis.Lookup(w.root, seams.Key[any]{Name: service})
	if !ok {
		w.Fatalf("service %s is not there", service)
	}
	return v.(*sandbox.Object).Call(w.Context(), method, args...)
}

// said returns what plugins wrote to the console.
func (w *world) said() []string {
	var out []string
	for _, l := range w.log() {
		_, text, _ := strings.Cut(l, "] info ")
		out = append(out, text)
	}
	return out
}

// expect waits until the console holds exactly these lines.
func (w *world) expect(lines ...string) {
	w.Helper()
	for deadline := time.Now().Add(5 * time.Second); !slices.Equal(w.said(), lines); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("the console holds %q\nwant %q", w.said(), lines)
		}
	}
}

// expectReport waits until an error was reported whose text holds want.
func (w *world) expectReport(want string) {
	w.Helper()
	for deadline := time.Now().Add(5 * time.Second); !strings.Contains(strings.Join(w.reported(), "\n"), want); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("reported %q, want %q", w.reported(), want)
		}
	}
}

// emit sends an event of a plugin's own.
func (w *world) emit(event string, args ...any) {
	w.Helper()
	if _, err := w.root.Dispatch(w.Context(), seams.Dispatch{Event: event, Payload: seams.Args(args)}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) dispose(f *cordis.Fiber) {
	w.Helper()
	if err := f.Dispose().Wait(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// logger provides a logger and returns a reader of its records.
func (w *world) logger() func() []string {
	var mu sync.Mutex
	var out []string
	f := w.mount(logger.Plugin(io.Discard), nil)
	l, ok := cordis.Lookup(w.root, logger.Key)
	if !ok {
		w.Fatalf("no logger: %s", f.State())
	}
	l.Hub().Export(func(r logger.Record) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, r.Level.String()+" "+r.Name+" "+r.Text)
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(out)
	}
}

func callTool(name string, args any) tools.Call {
	return tools.Call{ID: "call-1", Name: name, Arguments: args}
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

// read reads a file of testdata.
func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bubble runs f in a bubble of synctest. Its end waits for the compiler, which
// keeps what it has built for a moment.
func bubble(t *testing.T, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		f(t)
	})
}
