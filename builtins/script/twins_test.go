package script_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// twin is a plugin that can be made in Go and in JavaScript.
type twin struct {
	name    string
	inject  []string
	provide string
	ops     []op
}

type op struct {
	kind  string // effect, listen, once, child, fail
	n     int
	child *twin
}

var services = []string{"s0", "s1", "s2"}

func genTwin(t *rapid.T, name string, depth int) *twin {
	p := &twin{name: name, inject: rapid.SliceOfNDistinct(rapid.SampledFrom(services), 0, 1, rapid.ID[string]).Draw(t, name+".inject")}
	if rapid.IntRange(0, 2).Draw(t, name+".provides") == 0 {
		p.provide = rapid.SampledFrom(services).Draw(t, name+".provide")
	}
	for i := range rapid.IntRange(0, 4).Draw(t, name+".n") {
		kinds := []string{"effect", "effect", "listen", "once"}
		if !slices.ContainsFunc(p.ops, func(o op) bool { return o.kind == "child" }) {
			kinds = append(kinds, "fail") // else it is chance whether the child has begun
		}
		if depth > 0 {
			kinds = append(kinds, "child", "child")
		}
		o := op{kind: rapid.SampledFrom(kinds).Draw(t, name+".op"), n: i}
		if o.kind == "child" {
			o.child = genTwin(t, fmt.Sprintf("%s.%d", name, i), depth-1)
			o.child.provide = "" // which of two children provides first is chance
		}
		p.ops = append(p.ops, o)
	}
	return p
}

// goPlugin is the Go twin.
func (p *twin) goPlugin(say func(string)) *cordis.Plugin {
	return &cordis.Plugin{Name: p.name, Inject: cordis.Inject(p.inject...), Apply: func(ctx *cordis.Context, _ any) error {
		say(p.name + " up")
		if p.provide != "" {
			if _, err := cordis.Provide[any](ctx, seams.Key[any]{Name: p.provide}, p.name); err != nil {
				say(p.name + " " + string(seams.CodeOf(err)))
				return err
			}
		}
		for _, o := range p.ops {
			hear := func(context.Context, any, seams.Next) (any, error) {
				say(fmt.Sprintf("%s hears %d", p.name, o.n))
				return nil, nil
			}
			var err error
			switch o.kind {
			case "effect":
				_, err = ctx.Effect("e", func(context.Context) (seams.Undo, error) {
					return func(context.Context) error { say(fmt.Sprintf("%s undo %d", p.name, o.n)); return nil }, nil
				})
			case "listen":
				_, err = ctx.Listen("ping", hear)
			case "once":
				_, err = ctx.Listen("ping", hear, cordis.Once())
			case "child":
				_, err = ctx.Plugin(o.child.goPlugin(say), nil)
			case "fail":
				err = seams.Errorf(seams.InvalidArgument, "twin", "fails")
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// source is the JavaScript twin.
func (p *twin) source() string {
	var b strings.Builder
	list := make([]string, len(p.inject))
	for i, n := range p.inject {
		list[i] = "'" + n + "'"
	}
	fmt.Fprintf(&b, "{ name: '%s', inject: [%s], apply(ctx) {\nconsole.log('%s up')\n", p.name, strings.Join(list, ", "), p.name)
	if p.provide != "" {
		fmt.Fprintf(&b, "try { ctx.provide('%s', '%s') } catch (e) { console.log('%s', e.code); throw e }\n", p.provide, p.name, p.name)
	}
	for _, o := range p.ops {
		switch o.kind {
		case "effect":
			fmt.Fprintf(&b, "ctx.effect(() => () => console.log('%s undo', %d))\n", p.name, o.n)
		case "listen":
			fmt.Fprintf(&b, "ctx.on('ping', () => console.log('%s hears', %d))\n", p.name, o.n)
		case "once":
			fmt.Fprintf(&b, "ctx.once('ping', () => console.log('%s hears', %d))\n", p.name, o.n)
		case "child":
			fmt.Fprintf(&b, "ctx.plugin(%s)\n", o.child.source())
		case "fail":
			b.WriteString("throw Object.assign(new Error('fails'), { code: 'INVALID_ARGUMENT' })\n")
		}
	}
	b.WriteString("} }")
	return b.String()
}

// observe carries out a plan and tells, after each step, what each plugin said
// and in which state the fibers are.
func observe(w *world, plugins []*cordis.Plugin, plan []int, said func() []string) []string {
	var out []string
	fibers := make([]*cordis.Fiber, len(plugins))
	for step, do := range plan {
		switch i := do / 2 % len(plugins); {
		case do >= 100:
			_, _ = w.root.Dispatch(w.Context(), seams.Dispatch{Event: "ping", Payload: seams.Args{}})
		case do%2 == 0 && fibers[i] == nil:
			f, err := w.root.Plugin(plugins[i], nil)
			if err != nil {
				w.Fatal(err)
			}
			fibers[i] = f
		case fibers[i] != nil:
			_ = fibers[i].Dispose().Wait(w.Context())
			fibers[i] = nil
		}
		if err := w.c.Settle(w.Context()); err != nil {
			w.Fatal(err)
		}
		lines := said()
		slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(first(a), first(b)) })
		var states []string
		for _, f := range w.c.Inspect().Fibers {
			if strings.HasPrefix(f.Name, "p") {
				states = append(states, f.Name+":"+f.State)
			}
		}
		slices.Sort(states)
		out = append(out, fmt.Sprintf("%d: %s | %s", step, strings.Join(lines, ", "), strings.Join(states, " ")))
	}
	return out
}

func first(s string) string { f, _, _ := strings.Cut(s, " "); return f }

// J1: for every plan, the JavaScript twin of a set of plugins is observed to do
// what the Go one does.
func TestTwins(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "plugins")
		twins := make([]*twin, n)
		for i := range twins {
			twins[i] = genTwin(rt, fmt.Sprintf("p%d", i), 1)
		}
		plan := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 7), rapid.Just(100)), 1, 8).Draw(rt, "plan")

		var mu sync.Mutex
		var lines []string
		taken := func() []string {
			mu.Lock()
			defer mu.Unlock()
			out := lines
			lines = nil
			return out
		}
		var inGo, inJS []*cordis.Plugin
		a, b := newWorld(t), newWorld(t)
		for i, p := range twins {
			inGo = append(inGo, p.goPlugin(func(s string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, s)
			}))
			inJS = append(inJS, b.file(fmt.Sprintf("p%d.js", i), "module.exports = "+p.source()))
		}
		want := observe(a, inGo, plan, taken)
		seen := 0
		got := observe(b, inJS, plan, func() []string {
			all := b.said()
			out := all[seen:]
			seen = len(all)
			return out
		})
		if !slices.Equal(got, want) {
			rt.Fatalf("JavaScript:\n%s\nGo:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
