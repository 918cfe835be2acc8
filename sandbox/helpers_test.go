package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dop251/goja"
	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	// The clock of regexp2 is one goroutine of the process that ends by itself.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// lab is a realm with what it said.
type lab struct {
	*Realm
	t        testing.TB
	compiler *Compiler

	mu       sync.Mutex
	lines    []string // "level text"
	reported []error
	died     []error
}

func open(t testing.TB, o Options) *lab {
	t.Helper()
	l := &lab{t: t, compiler: NewCompiler()}
	if o.Name == "" {
		o.Name = "lab"
	}
	if o.Budgets.Turn == 0 { // only a test of the budget is about time
		o.Budgets.Turn, o.Budgets.Minute = time.Minute, time.Hour
	}
	note := func(f func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f()
	}
	o.Log = func(level, text string) { note(func() { l.lines = append(l.lines, level+" "+text) }) }
	o.Report = func(err error) { note(func() { l.reported = append(l.reported, err) }) }
	o.Dead = func(err error) { note(func() { l.died = append(l.died, err) }) }
	r, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	l.Realm = r
	t.Cleanup(func() {
		if err := r.Close(10 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return l
}

// eval runs code as the body of an async function.
func (l *lab) eval(code string) (any, error) {
	p, err := l.compiler.Compile(compile.Source{Name: "test.js", Text: code, Form: compile.Body})
	if err != nil {
		return nil, err
	}
	return l.run(p)
}

func (l *lab) run(p *Program) (any, error) { return l.Eval(context.Background(), p) }

// program compiles a body ahead of a synctest bubble: esbuild leaves a
// goroutine that sleeps a moment.
func program(t *testing.T, code string) *Program {
	t.Helper()
	p, err := NewCompiler().Compile(compile.Source{Name: "test.js", Text: code, Form: compile.Body})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// want runs code and compares what it answers, as %v shows it.
func (l *lab) want(code string, want any) {
	l.t.Helper()
	got, err := l.eval(code)
	if err != nil {
		l.t.Errorf("%s\n  error: %v", code, err)
	} else if fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("%s\n  got  %v\n  want %v", code, got, want)
	}
}

// fails runs code and expects an error of a code whose text has all parts.
func (l *lab) fails(code string, want seams.Code, parts ...string) {
	l.t.Helper()
	_, err := l.eval(code)
	wantError(l.t, err, want, parts...)
}

func wantError(t testing.TB, err error, code seams.Code, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("%q does not say %q", err, p)
		}
	}
}

func (l *lab) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *lab) reports() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]error(nil), l.reported...)
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("did not happen: %s", what)
}

// exports runs a module and answers what it exports.
func (l *lab) exports(name, text string) *Object {
	l.t.Helper()
	p, err := l.compiler.Compile(compile.Source{Name: name, Text: text})
	if err != nil {
		l.t.Fatal(err)
	}
	o, err := exportsOf(context.Background(), l.Realm, p)
	if err != nil {
		l.t.Fatal(err)
	}
	return o
}

// exportsOf evaluates a program and answers its exports, default export unwrapped.
func exportsOf(ctx context.Context, r *Realm, p *Program) (*Object, error) {
	v, err := r.evaluate(ctx, p, func(exports goja.Value) (any, error) {
		o := r.unwrap(exports).ToObject(r.vm)
		out := r.vm.NewObject()
		for _, k := range o.Keys() { // those of an ES module are accessors
			out.Set(k, o.Get(k))
		}
		return r.newObject(out), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*Object), nil
}

// load reads a plugin in its module or body form.
func (l *lab) load(name, text string, form compile.Form) (*Plugin, error) {
	p, err := l.compiler.Compile(compile.Source{Name: name, Text: text, Form: form})
	if err != nil {
		return nil, err
	}
	return l.Load(context.Background(), p)
}

// record is a Host that keeps what it was called with.
type record struct {
	mu      sync.Mutex
	calls   []string
	values  map[string][]any // the arguments of the last call of "target.method"
	live    []string
	answer  func(ctx context.Context, target, method string, args []any) (any, error)
	effects []*Func
	over    bool
}

func (h *record) Call(ctx context.Context, target, method string, args []any) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := method
	if target != "" {
		name = target + "." + method
	}
	if name != "services" && name != "effect" {
		h.calls = append(h.calls, name)
	}
	if h.values == nil {
		h.values = map[string][]any{}
	}
	h.values[name] = args
	switch name {
	case "services":
		return h.live, nil
	case "effect":
		if h.over {
			return nil, seams.Errorf(seams.InactiveEffect, "effect", "the plugin is over")
		}
		dispose := args[1].(*Func)
		h.effects = append(h.effects, dispose)
		return AsyncFunc(func(context.Context, []any) (any, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			for i, e := range h.effects {
				if e == dispose {
					h.effects = append(h.effects[:i:i], h.effects[i+1:]...)
				}
			}
			return nil, nil
		}), nil
	}
	if h.answer != nil {
		return h.answer(ctx, target, method, args)
	}
	return nil, nil
}

// undo undoes the recorded effects, last first.
func (h *record) undo(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	effects := h.effects
	h.effects = nil
	h.mu.Unlock()
	for i := len(effects) - 1; i >= 0; i-- {
		if _, err := effects[i].Call(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// apply loads a plugin in the module form and activates it.
func (l *lab) apply(text string, h Host, config any) error {
	l.t.Helper()
	p, err := l.load("plugin.ts", text, compile.Module)
	if err != nil {
		l.t.Fatal(err)
	}
	return p.Apply(context.Background(), Activation{Host: h, Config: config})
}

func compileSource(text string) compile.Source { return compile.Source{Name: "a.js", Text: text} }

// bubble runs f in a bubble of synctest. Its end waits for the compiler, which
// keeps what it has built for a moment.
func bubble(t *testing.T, f func(*testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		f(t)
	})
}
