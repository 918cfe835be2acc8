package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// What apply and ctx.effect answer becomes effects of the host, which are
// undone last first (reference §1.7; J4).

var effects = &Facade{Verbs: []Method{{Name: "say"}, {Name: "wait", Async: true}}}

// story says in which order things happened, "say" calls and console lines.
type story struct {
	record
	told []string
	gate chan struct{}
}

func (s *story) Call(ctx context.Context, target, method string, args []any) (any, error) {
	switch method {
	case "say":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, args[0].(string))
		return nil, nil
	case "wait":
		if s.gate != nil {
			select {
			case <-s.gate:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return nil, nil
	}
	return s.record.Call(ctx, target, method, args)
}

func (s *story) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, " ")
}

func TestEffectForms(t *testing.T) {
	for name, c := range map[string]struct{ code, applied, undone string }{
		"nothing":            {`(ctx) => { ctx.say('a') }`, "a", "a"},
		"disposer":           {`(ctx) => () => ctx.say('x')`, "", "x"},
		"promise":            {`async (ctx) => { ctx.say('a'); await null; return () => ctx.say('x') }`, "a", "a x"},
		"generator":          {`function* (ctx) { ctx.say('a'); yield () => ctx.say('x'); ctx.say('b'); yield () => ctx.say('y'); return () => ctx.say('z') }`, "a b", "a b z y x"},
		"async generator":    {`async function* (ctx) { yield () => ctx.say('x'); await ctx.wait(); ctx.say('b'); yield () => ctx.say('y') }`, "b", "b y x"},
		"async disposers":    {`function* (ctx) { yield async () => { await ctx.wait(); ctx.say('x') }; yield () => ctx.say('y'); yield async () => { await null; ctx.say('z') } }`, "", "z y x"},
		"effect":             {`(ctx) => { ctx.effect(() => { ctx.say('a'); return () => ctx.say('x') }, 'label'); ctx.effect(function* () { yield () => ctx.say('y') }) }`, "a", "a y x"},
		"effect async":       {`async (ctx) => { const off = await ctx.effect(async () => { await ctx.wait(); ctx.say('a'); return () => ctx.say('x') }); ctx.say(typeof off) }`, "a function", "a function x"},
		"early":              {`(ctx) => { const off = ctx.effect(() => () => ctx.say('x')); off(); off(); ctx.say('a') }`, "x a", "x a"},
		"early async":        {`async (ctx) => { const off = ctx.effect(() => async () => { await ctx.wait(); ctx.say('x') }); await off(); ctx.say('a') }`, "x a", "x a"},
		"class":              {`class { constructor(ctx, c) { ctx.say('a' + c.n) } }`, "a1", "a1"},
		"prototype":          {`(() => { function Old(ctx) { ctx.say('a' + (this instanceof Old)) } Old.prototype.m = function () {}; return Old })()`, "atrue", "atrue"},
		"object":             {`{ v: 1, apply(ctx, c) { ctx.say('a' + this.v + c.n); return () => ctx.say('x') } }`, "a11", "a11 x"},
		"nested in failures": {`function* (ctx) { yield () => ctx.say('x'); yield () => { ctx.say('y'); }; }`, "", "y x"},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Options{Facade: effects})
			p, err := l.load("p.js", "module.exports = "+c.code, compile.Module)
			if err != nil {
				t.Fatal(err)
			}
			h := &story{}
			if err := p.Apply(t.Context(), Activation{Host: h, Config: map[string]any{"n": 1}}); err != nil {
				t.Fatal(err)
			}
			if got := h.text(); got != c.applied {
				t.Errorf("applied: %q, want %q", got, c.applied)
			}
			h.undo(t)
			if got := h.text(); got != c.undone {
				t.Errorf("undone: %q, want %q", got, c.undone)
			}
			if rs := l.reports(); len(rs) > 0 {
				t.Error(rs)
			}
		})
	}
}

func TestEffectFailures(t *testing.T) {
	for name, c := range map[string]struct {
		code, told string
		parts      []string
	}{
		"throws":           {`(ctx) => { throw new Error('one') }`, "", []string{"one", "p.js:1:"}},
		"rejects":          {`async (ctx) => { await null; throw new Error('one') }`, "", []string{"one"}},
		"generator":        {`function* (ctx) { yield () => ctx.say('x'); yield () => ctx.say('y'); throw new Error('one') }`, "y x", []string{"one"}},
		"async generator":  {`async function* (ctx) { yield () => ctx.say('x'); await null; throw new Error('one') }`, "x", []string{"one"}},
		"effect":           {`(ctx) => { ctx.effect(function* () { yield () => ctx.say('x'); throw new Error('one') }) }`, "x", []string{"one"}},
		"effect async":     {`async (ctx) => { await ctx.effect(async function* () { yield () => ctx.say('x'); throw new Error('one') }) }`, "x", []string{"one"}},
		"invalid":          {`() => 7`, "", []string{"disposer", "7"}},
		"invalid yield":    {`function* (ctx) { yield () => ctx.say('x'); yield { a: 1 } }`, "x", []string{"disposer", "{ a: 1 }"}},
		"invalid in async": {`async () => ({ a: 1 })`, "", []string{"disposer"}},
		"no setup":         {`(ctx) => { ctx.effect({}) }`, "", []string{"setup is a function"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Options{Facade: effects})
			p, err := l.load("p.js", "module.exports = "+c.code, compile.Module)
			if err != nil {
				t.Fatal(err)
			}
			h := &story{}
			wantError(t, p.Apply(t.Context(), Activation{Host: h}), seams.ScriptError, c.parts...)
			if got := h.text(); got != c.told {
				t.Errorf("told %q, want %q", got, c.told)
			}
			eventually(t, "nothing is left with the host", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.effects) == 0 })
		})
	}
}

// All disposers of one effect are tried; their errors are one.
func TestEffectDisposerErrors(t *testing.T) {
	l := open(t, Options{Facade: effects})
	p, _ := l.load("p.js", `module.exports = function* (ctx) { yield () => { ctx.say('x'); throw new Error('one') }; yield async () => { throw new Error('two') }; yield () => ctx.say('z') }`, compile.Module)
	h := &story{}
	if err := p.Apply(t.Context(), Activation{Host: h}); err != nil {
		t.Fatal(err)
	}
	_, err := h.effects[0].Call(t.Context())
	wantError(t, err, seams.ScriptError, "one", "two")
	if h.text() != "z x" {
		t.Error(h.text())
	}
	if _, err := h.effects[0].Call(t.Context()); err == nil {
		t.Error("the second call hides the failure")
	}
	if h.text() != "z x" {
		t.Error("ran twice:", h.text())
	}
}

// An owner that is over gets no effect: the setup does not run.
func TestEffectOfInactiveOwner(t *testing.T) {
	l := open(t, Options{Facade: effects})
	p, _ := l.load("p.js", `module.exports = (ctx) => { ctx.effect(() => { ctx.say('ran') }) }`, compile.Module)
	h := &story{record: record{over: true}}
	wantError(t, p.Apply(t.Context(), Activation{Host: h}), seams.InactiveEffect)
	if h.text() != "" {
		t.Error(h.text())
	}
}

// A disposer that is called while an async generator is still setting up waits
// for the step that runs, closes the generator, then undoes. (J4)
func TestEffectDivertedWhileSettingUp(t *testing.T) {
	l := open(t, Options{Facade: effects})
	p, _ := l.load("p.js", `module.exports = async function* (ctx) {
		try {
			yield () => ctx.say('x')
			ctx.say('step')
			await ctx.wait()
			yield () => ctx.say('y')
			ctx.say('never')
		} finally { ctx.say('closed') }
	}`, compile.Module)
	h := &story{gate: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- p.Apply(context.Background(), Activation{Host: h}) }()
	eventually(t, "the step runs", func() bool { return h.text() == "step" })
	h.mu.Lock()
	dispose := h.effects[0]
	h.mu.Unlock()
	undone := make(chan error, 1)
	turns := l.Usage().Turns
	go func() { _, err := dispose.Call(context.Background()); undone <- err }()
	eventually(t, "the disposer is called", func() bool { return l.Usage().Turns > turns })
	select {
	case <-undone:
		t.Fatal("undone while the step runs")
	default:
	}
	close(h.gate)
	if err := <-undone; err != nil {
		t.Fatal(err)
	}
	<-done
	if got := h.text(); got != "step closed y x" {
		t.Error(got)
	}
}

// The context of a call is that of the host calls made for it, also after an
// await and from within a lowered async generator.
func TestCallerContext(t *testing.T) {
	type key struct{}
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "who"}, {Name: "whoLater", Async: true}, {Name: "keep"}}}})
	h := &record{}
	answer := hostFunc(func(ctx context.Context, target, method string, args []any) (any, error) {
		if method == "keep" {
			return h.Call(ctx, target, method, args)
		}
		v, _ := ctx.Value(key{}).(string)
		return v, nil
	})
	err := l.apply(`export function apply(ctx) {
		async function* steps() { yield ctx.who(); await ctx.whoLater(); yield ctx.who(); await null; yield ctx.whoLater() }
		ctx.keep(async (other) => { const out = [ctx.who()]; await null; for await (const s of steps()) out.push(s); await new Promise((f) => queueMicrotask(f)); out.push(ctx.who()); return out.join() })
	}`, answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := h.values["keep"][0].(*Func)
	results := make(chan error, 20)
	for i := range 20 {
		name := string(rune('a' + i))
		go func() {
			v, err := f.Call(context.WithValue(context.Background(), key{}, name))
			if err == nil && v != strings.Repeat(name+",", 4)+name {
				err = errors.New(name + " got " + v.(string))
			}
			results <- err
		}()
	}
	for range 20 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
