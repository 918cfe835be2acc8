package toolstest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/conformance/harness"
	toolstest "github.com/ouro-run/ouro/conformance/tools"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRegistryConforms(t *testing.T) {
	for _, c := range toolstest.Checks(func(o tools.Options) toolstest.Registry { return tools.New(o) }) {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// broken is a registry with one promise left out.
type broken struct {
	*tools.Registry
	register func(tools.Definition) tools.Definition
	guard    func(tools.Guard) tools.Guard
	restrict func(tools.Filter) tools.Filter
	mode     func(tools.ExecutionMode) tools.ExecutionMode
	call     func(context.Context, tools.Call) (context.Context, tools.Call)
	result   func(*tools.Result) *tools.Result
	early    bool
}

func (b broken) Register(o seams.Owner, d tools.Definition) (seams.Undo, error) {
	if b.register != nil {
		d = b.register(d)
	}
	return b.Registry.Register(o, d)
}

func (b broken) Guard(o seams.Owner, g tools.Guard) (seams.Undo, error) {
	if b.guard != nil {
		g = b.guard(g)
	}
	return b.Registry.Guard(o, g)
}

func (b broken) Restrict(o seams.Owner, f tools.Filter) (seams.Undo, error) {
	if b.restrict != nil {
		f = b.restrict(f)
	}
	return b.Registry.Restrict(o, f)
}

func (b broken) ExecutionMode(ctx context.Context, s *seams.Scope, name string, args any) tools.ExecutionMode {
	m := b.Registry.ExecutionMode(ctx, s, name, args)
	if b.mode != nil {
		m = b.mode(m)
	}
	return m
}

func (b broken) Execute(ctx context.Context, c tools.Call) *tools.Result {
	if b.call != nil {
		ctx, c = b.call(ctx, c)
	}
	done := make(chan *tools.Result, 1)
	go func() { done <- b.Registry.Execute(ctx, c) }()
	var r *tools.Result
	if b.early {
		select {
		case r = <-done:
		case <-ctx.Done():
			return tools.Failed(seams.Aborted, "cancelled")
		}
	} else {
		r = <-done
	}
	if b.result != nil {
		c := *r
		r = b.result(&c)
	}
	return r
}

// deaf is a bus that does not dispatch one event.
type deaf struct {
	seams.Bus
	event string
}

func (d deaf) Dispatch(ctx context.Context, x seams.Dispatch) (any, error) {
	if x.Event == d.event {
		if x.Default == nil {
			return nil, nil
		}
		return x.Default(ctx)
	}
	return d.Bus.Dispatch(ctx, x)
}

// global is a bus that ignores scopes.
type global struct{ seams.Bus }

func (g global) Dispatch(ctx context.Context, x seams.Dispatch) (any, error) {
	x.Scope = nil
	return g.Bus.Dispatch(ctx, x)
}

type yes struct{ tools.Approver }

func (yes) Request(context.Context, tools.ApprovalRequest) (tools.Approval, error) {
	return tools.AllowedOnce, nil
}

func TestSuiteCatchesBrokenImplementations(t *testing.T) {
	with := func(b broken) func(tools.Options) toolstest.Registry {
		return func(o tools.Options) toolstest.Registry { b.Registry = tools.New(o); return b }
	}
	bus := func(wrap func(seams.Bus) seams.Bus) func(tools.Options) toolstest.Registry {
		return func(o tools.Options) toolstest.Registry { o.Bus = wrap(o.Bus); return tools.New(o) }
	}
	without := func(event string) func(tools.Options) toolstest.Registry {
		return bus(func(b seams.Bus) seams.Bus { return deaf{b, event} })
	}
	def := func(f func(*tools.Definition)) func(tools.Options) toolstest.Registry {
		return with(broken{register: func(d tools.Definition) tools.Definition { f(&d); return d }})
	}
	for _, c := range []struct {
		name   string
		make   func(tools.Options) toolstest.Registry
		caught string // the check that must fail, by the beginning of its name
	}{
		{"no pre-execute", without("tools/pre-execute"), "T-16"},
		{"no execute event", without("tools/execute"), "T-25"},
		{"no post-execute", without("tools/post-execute"), "T-10"},
		{"no result event", without("tools/result"), "T-53"},
		{"no change event", without("tools/change"), "T-38"},
		{"events in no scope", bus(func(b seams.Bus) seams.Bus { return global{b} }), "T-50"},
		{"guards ignored", with(broken{guard: func(tools.Guard) tools.Guard {
			return func(context.Context, *tools.Exec) (string, error) { return "", nil }
		}}), "T-51"},
		{"deny lists ignored", with(broken{restrict: func(f tools.Filter) tools.Filter {
			if f.Deny != nil && f.Deny[0] == "bash" {
				f = tools.Filter{Allow: []string{"read", "write", "bash"}}
			}
			return f
		}}), "T-49"},
		{"approval taken for granted", func(o tools.Options) toolstest.Registry {
			o.Approver = func() (tools.Approver, func()) { return yes{}, func() {} }
			return tools.New(o)
		}, "T-19"},
		{"always parallel", with(broken{mode: func(tools.ExecutionMode) tools.ExecutionMode { return tools.Parallel }}), "T-42"},
		{"cancel ignored", with(broken{call: func(ctx context.Context, c tools.Call) (context.Context, tools.Call) {
			return context.WithoutCancel(ctx), c
		}}), "T-32"},
		{"body left running", with(broken{early: true}), "T-31"},
		{"barrier ignored", with(broken{call: func(ctx context.Context, c tools.Call) (context.Context, tools.Call) {
			c.Barrier = nil
			return ctx, c
		}}), "the barrier"},
		{"agent forgotten", with(broken{call: func(ctx context.Context, c tools.Call) (context.Context, tools.Call) {
			c.Agent = ""
			return ctx, c
		}}), "T-18"},
		{"contexts dropped", with(broken{result: func(r *tools.Result) *tools.Result { r.AdditionalContexts = nil; return r }}), "T-24"},
		{"conclusion dropped", with(broken{result: func(r *tools.Result) *tools.Result { r.ConcludesTurn = false; return r }}), "T-13"},
		{"codes dropped", with(broken{result: func(r *tools.Result) *tools.Result {
			if r.IsError {
				f := *r.Error
				f.Code = ""
				r.Error = &f
			}
			return r
		}}), "T-15"},
		{"value kept in failures", with(broken{result: func(r *tools.Result) *tools.Result {
			if r.IsError {
				r.Value = "left over"
			}
			return r
		}}), "T-09"},
		{"arguments unchecked", def(func(d *tools.Definition) { d.Parameters = nil }), "T-43"},
		{"output unchecked", def(func(d *tools.Definition) {
			if d.Output != nil {
				d.Output = &tools.Output{Render: d.Output.Render}
			}
		}), "T-06"},
		{"render ignored", def(func(d *tools.Definition) { d.Output = nil }), "T-03"},
		{"finalize ignored", def(func(d *tools.Definition) { d.FinalizeContent = nil }), "T-23"},
		{"time limit ignored", def(func(d *tools.Definition) { d.Timeout = 0 }), "a tool's own time limit"},
		{"body run twice", def(func(d *tools.Definition) {
			if run := d.Execute; run != nil {
				d.Execute = func(ctx context.Context, x *tools.Exec, args any) (any, error) {
					_, _ = run(ctx, x, args)
					return run(ctx, x, args)
				}
			}
		}), "T-25"},
		{"everything text", def(func(d *tools.Definition) {
			d.Output = &tools.Output{Render: func(_, v any) (llm.Content, error) { return llm.Content{llm.Text{Text: "ok"}}, nil }}
		}), "T-05 a missing output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checks := slices.DeleteFunc(toolstest.Checks(c.make), func(k harness.Check) bool { return !strings.HasPrefix(k.Name, c.caught) })
			if len(harness.Failing(context.Background(), checks)) == 0 {
				t.Errorf("no check beginning with %q failed", c.caught)
			}
		})
	}
}
