package sandbox

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// Cases from the field, run from their inputs. A case's test harness (report,
// registerTool, sleep) is a façade here.

func input(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// js-01: an endless loop inside try, catch and finally ends at the limit, and
// neither catch nor finally runs.
func TestCaseJS01(t *testing.T) {
	l := open(t, Options{Budgets: Budgets{Turn: 300 * time.Millisecond}})
	code := strings.Replace(input(t, "js-01.js"), "var log = [];", "var log = { push: console.log };", 1)
	l.fails(code, seams.OverBudget, "300ms")
	if said := l.said(); said != "" {
		t.Error(said)
	}
	eventually(t, "the owner hears of it", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.died) == 1 })
	l.fails(`return 1`, seams.OverBudget) // the realm stays dead
}

// js-02: a limit that fires just after a call does not end the next one.
func TestCaseJS02(t *testing.T) {
	l := open(t, Options{})
	o := l.exports("js-02.js", input(t, "js-02.js")+"\nexports.handle = handle")
	for i := range 2000 {
		if v, err := o.Call(t.Context(), "handle", i); err != nil || v != float64(2*i) {
			t.Fatal(i, v, err)
		}
		l.dog.stop(errors.New("late timer of an earlier call"))
	}
}

// js-03: what one plugin emits and another one hears is a copy; functions are
// called in their own realm.
func TestCaseJS03(t *testing.T) {
	a, b, _ := strings.Cut(input(t, "js-03.js"), "// --- B ---")
	hear := open(t, Options{Name: "b", Facade: &Facade{Verbs: []Method{{Name: "on"}}}})
	var listeners []*Func
	hb := &record{answer: func(_ context.Context, _, _ string, args []any) (any, error) {
		listeners = append(listeners, args[1].(*Func))
		return nil, nil
	}}
	if err := hear.apply("let result; export function apply(ctx) { const on = ctx.on;\n"+b+"\nctx.on('ask', async (p) => ({ ...result, own: await p.f() })) }", hb, nil); err != nil {
		t.Fatal(err)
	}
	tell := open(t, Options{Name: "a", Facade: &Facade{Verbs: []Method{{Name: "emit", Async: true}}}})
	ha := &record{answer: func(ctx context.Context, _, _ string, args []any) (any, error) {
		if _, err := listeners[0].Call(ctx, args[1]); err != nil {
			return nil, err
		}
		return listeners[1].Call(ctx, args[1])
	}}
	err := tell.apply("export async function apply(ctx) { const emit = (...a) => answer = ctx.emit(...a); let answer;\n"+a+
		"\nconst got = await answer; if (JSON.stringify(got) !== '{\"f\":\"function\",\"len\":3,\"n\":1,\"own\":1}') throw new Error(JSON.stringify(got)); if (payload.list.length !== 2 || 'extra' in payload) throw new Error('changed') }", ha, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// js-04: requests for huge memory are refused or stopped, and the process
// lives. What the guard does not cover is named in the package comment.
func TestCaseJS04(t *testing.T) {
	for _, kind := range []string{"repeat", "sparse", "fill", "double"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			code := strings.Replace(input(t, "js-04.js"), "'repeat';", "'"+kind+"'; let result;", 1) + "\nreturn result"
			if out := child(t, "eval", code); !refused.MatchString(out) {
				t.Errorf("answered %.300s", out)
			}
		})
	}
}

// js-06: a regular expression that backtracks for ever ends at its own limit.
func TestCaseJS06(t *testing.T) {
	out := child(t, "eval", "let result;\n"+input(t, "js-06.js")+"\nreturn result")
	if out != "false <nil>" && !refused.MatchString(out) {
		t.Errorf("answered %.300s", out)
	}
}

// js-08: entries from many goroutines go through one queue, and a hook may be
// entered from inside itself by way of the host.
func TestCaseJS08(t *testing.T) {
	if !again(t) {
		return
	}
	var hook *Func
	h := &record{answer: func(ctx context.Context, _, method string, args []any) (any, error) {
		if method == "on" {
			hook = args[1].(*Func)
			return nil, nil
		}
		return hook.Call(ctx, "nested")
	}}
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "on"}, {Name: "again", Async: true}, {Name: "againNow"}}}})
	if err := l.apply("let more; export function apply(ctx) { const on = (name, f) => ctx.on(name, (i) => i === 'nested' ? 'in' : i === 'ask' ? more() : i === 'askNow' ? ctx.againNow() : f(i)); more = () => ctx.again();\n"+input(t, "js-08.js")+"}", h, nil); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		n   float64
		err error
	}
	answers := make(chan answer)
	for g := range 8 {
		go func() {
			for i := range 200 {
				v, err := hook.Call(context.Background(), 200*g+i)
				if err != nil {
					answers <- answer{err: err}
					continue
				}
				answers <- answer{n: v.(map[string]any)["n"].(float64)}
			}
		}()
	}
	distinct := map[float64]bool{}
	for range 1600 {
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		distinct[a.n] = true
	}
	if len(distinct) != 1600 || !distinct[1600] {
		t.Error(len(distinct))
	}
	if v, err := hook.Call(t.Context(), "ask"); v != "in" || err != nil {
		t.Error(v, err)
	}
	_, err := hook.Call(t.Context(), "askNow")
	wantError(t, err, seams.WouldDeadlock)
}

// cor-01: what a plugin registers while it is unloaded is refused, and nothing
// of it is left.
func TestCaseCor01(t *testing.T) {
	l := open(t, Options{Facade: &Facade{Verbs: []Method{{Name: "on"}, {Name: "report"}, {Name: "registerTool"}, {Name: "sleep", Async: true}}}})
	over := false
	h := &record{}
	h.answer = func(_ context.Context, _, method string, _ []any) (any, error) {
		switch {
		case method == "sleep":
			time.Sleep(5 * time.Millisecond)
			return nil, nil
		case over:
			return nil, seams.Errorf(seams.InactiveEffect, method, "the plugin is over")
		}
		return nil, nil
	}
	p, err := l.load("cor-01.js", input(t, "cor-01.js"), compile.Module)
	if err != nil || p.Name != "late-child" {
		t.Fatal(p, err)
	}
	if err := p.Apply(t.Context(), Activation{Host: h}); err != nil {
		t.Fatal(err)
	}
	over = true
	if len(h.effects) != 1 {
		t.Fatal(h.effects)
	}
	_, err = h.effects[0].Call(t.Context())
	wantError(t, err, seams.InactiveEffect, "registerTool")
	if err := l.Realm.Close(time.Second); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(h.calls, " "); got != "sleep registerTool" {
		t.Error(got)
	}
}

// cor-03: the declaration says what the plugin waits for; what it did not
// declare is refused by name.
func TestCaseCor03(t *testing.T) {
	l := open(t, Options{Facade: &Facade{
		Verbs:    []Method{{Name: "report"}},
		Services: []Service{{Name: "memory", Methods: []Method{{Name: "get"}}}},
	}})
	p, err := l.load("cor-03.js", input(t, "cor-03.js"), compile.Module)
	if err != nil || len(p.Inject) != 2 || p.Inject[0].Name != "memory" || p.Inject[1].Name != "clock" {
		t.Fatal(p, err)
	}
	h := &record{answer: func(_ context.Context, target, method string, args []any) (any, error) {
		if target == "" && method == "get" && args[0] == "clock" {
			return map[string]any{"zone": "UTC"}, nil
		}
		return nil, nil
	}}
	if err := p.Apply(t.Context(), Activation{Host: h}); err != nil {
		t.Fatal(err)
	}
	if got := h.values["report"]; len(got) != 1 || got[0] != "up object object" {
		t.Error(got)
	}
	h.undo(t)
	if got := h.values["report"]; got[0] != "down" {
		t.Error(got)
	}
	// The same plugin with less than it needs.
	err = p.Apply(t.Context(), Activation{Host: &record{live: []string{"clock"}}, Inject: []string{"memory"}})
	wantError(t, err, seams.NotInjected, "ctx.clock", "inject: ['clock']")
}
