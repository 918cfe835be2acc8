package toolstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// Checks returns the suite for the implementation that make makes.
func Checks(make func(tools.Options) Registry) []harness.Check {
	var out []harness.Check
	for _, c := range suite {
		out = append(out, harness.Check{Name: c.name, Run: func(ctx context.Context) error {
			s := newStage(make)
			defer s.owner.Close(ctx)
			return c.run(ctx, s)
		}})
	}
	return out
}

type test struct {
	name string
	run  func(ctx context.Context, s *stage) error
}

func params(v any) *schema.Schema {
	s, err := schema.Parameters(v)
	if err != nil {
		panic(err)
	}
	return s
}

func output(v any) *schema.Schema {
	s, err := schema.Output(v)
	if err != nil {
		panic(err)
	}
	return s
}

type object = map[string]any

var suite = []test{
	{"T-01 a registered tool is in the schemas", func(ctx context.Context, s *stage) error {
		s.tool(nil, func(d *tools.Definition) {
			d.Parameters = params(object{"q": object{"type": "string", "required": true}})
		})
		list := s.reg.Schemas(nil)
		if len(list) != 1 {
			return fmt.Errorf("%d schemas, want 1", len(list))
		}
		v, err := schema.Parse(list[0].Parameters)
		if err != nil {
			return err
		}
		return all(equal("name", list[0].Name, "t"), equal("description", list[0].Description, "a tool"),
			equal("required", v.(object)["required"], []any{"q"}))
	}},
	{"T-02 schemas are snapshots", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		list := s.reg.Schemas(nil)
		list[0].Name = "changed"
		return equal("name", s.reg.Schemas(nil)[0].Name, "t")
	}},
	{"T-03 a success has value and rendering", func(ctx context.Context, s *stage) error {
		s.tool(func(_ context.Context, _ *tools.Exec, args any) (any, error) { return object{"sum": 3}, nil }, func(d *tools.Definition) {
			d.Output = &tools.Output{Render: func(args, value any) (llm.Content, error) {
				return llm.Content{llm.Text{Text: fmt.Sprint(args.(object)["a"], value.(object)["sum"])}}, nil
			}}
		})
		return succeeds(s.call(ctx, object{"a": 1}), object{"sum": 3.0}, "1 3")
	}},
	{"T-05 a missing output shows text as it is and the rest as JSON", func(ctx context.Context, s *stage) error {
		s.tool(func(_ context.Context, _ *tools.Exec, args any) (any, error) { return args.(object)["v"], nil })
		var errs []error
		for _, c := range []struct {
			v    any
			text string
		}{{"a <b>", "a <b>"}, {nil, "null"}, {1.5, "1.5"}, {object{"b": []any{true}, "a": "x"}, `{"a":"x","b":[true]}`}} {
			errs = append(errs, succeeds(s.call(ctx, object{"v": c.v}), c.v, c.text))
		}
		return all(errs...)
	}},
	{"T-05 a bad or second registration is refused, an undone one is gone", func(ctx context.Context, s *stage) error {
		ok := func(context.Context, *tools.Exec, any) (any, error) { return nil, nil }
		code := func(d tools.Definition, want seams.Code) error {
			_, err := s.reg.Register(s.owner, d)
			if seams.CodeOf(err) != want {
				return fmt.Errorf("%q: got %v, want %s", d.Name, err, want)
			}
			return nil
		}
		undo, err := s.reg.Register(s.owner, tools.Definition{Name: "t", Execute: ok})
		errs := []error{err,
			code(tools.Definition{Name: "", Execute: ok}, seams.InvalidArgument),
			code(tools.Definition{Name: "a b", Execute: ok}, seams.InvalidArgument),
			code(tools.Definition{Name: "run_code", Execute: ok}, seams.InvalidArgument),
			code(tools.Definition{Name: "u"}, seams.InvalidArgument),
			code(tools.Definition{Name: "u", Execute: ok, Timeout: -1}, seams.InvalidArgument),
			code(tools.Definition{Name: "u", Execute: ok, Parameters: schema.String()}, seams.InvalidArgument),
			code(tools.Definition{Name: "t", Execute: ok}, seams.Duplicate),
		}
		if err != nil {
			return err
		}
		errs = append(errs, undo(ctx), equal("schemas after undo", len(s.reg.Schemas(nil)), 0),
			fails(s.call(ctx, nil), seams.UnknownTool, "t"))
		other := s.bus.Owner("other", nil)
		must(s.reg.Register(other, tools.Definition{Name: "t", Execute: ok}))
		errs = append(errs, other.Close(ctx), equal("schemas after close", len(s.reg.Schemas(nil)), 0))
		return all(errs...)
	}},
	{"T-06 a value that is no JSON or breaks its schema is INVALID_TOOL_OUTPUT", func(ctx context.Context, s *stage) error {
		var value any
		s.tool(func(context.Context, *tools.Exec, any) (any, error) { return value, nil }, func(d *tools.Definition) {
			d.Output = &tools.Output{Schema: output(object{"type": "object", "properties": object{"n": object{"type": "integer"}}, "required": []any{"n"}})}
		})
		var errs []error
		for _, value = range []any{func() {}, object{"n": make(chan int)}, "text", object{}, object{"n": "1"}} {
			errs = append(errs, fails(s.call(ctx, nil), seams.InvalidToolOutput, "t"))
		}
		secret := strings.Repeat("s", 1000)
		value = object{"n": secret}
		r := s.call(ctx, nil)
		if strings.Contains(r.Content.Text(), secret) {
			errs = append(errs, errors.New("the failure shows the value"))
		}
		return all(append(errs, fails(r, seams.InvalidToolOutput, "value.n"))...)
	}},
	{"T-07 a failing render fails its call only", func(ctx context.Context, s *stage) error {
		mode := ""
		s.tool(nil, func(d *tools.Definition) {
			d.Output = &tools.Output{Render: func(args, value any) (llm.Content, error) {
				switch mode {
				case "error":
					return nil, errors.New("no")
				case "panic":
					panic("no")
				case "nil":
					return llm.Content{nil}, nil
				case "call":
					return llm.Content{llm.ToolCall{ID: "x"}}, nil
				}
				return llm.Content{llm.Text{Text: "fine"}}, nil
			}}
		})
		var errs []error
		for _, mode = range []string{"error", "panic", "nil", "call"} {
			errs = append(errs, fails(s.call(ctx, nil), seams.InvalidToolOutput, "t"))
		}
		mode = ""
		return all(append(errs, succeeds(s.call(ctx, nil), "done", "fine"))...)
	}},
	{"T-08 a replaced content keeps the value, a replaced value is rendered", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		var v tools.Verdict
		s.post(func(context.Context, tools.Outcome, func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			return v, nil
		})
		v = tools.Verdict{Content: llm.Content{llm.Text{Text: "short"}}}
		err := succeeds(s.call(ctx, nil), "done", "short")
		other := any(object{"n": 1})
		v = tools.Verdict{Value: &other}
		return all(err, succeeds(s.call(ctx, nil), object{"n": 1.0}, `{"n":1}`))
	}},
	{"T-09 two replacements, a bad value and a value for a failure are failures", func(ctx context.Context, s *stage) error {
		var v tools.Verdict
		var fail error
		s.tool(func(context.Context, *tools.Exec, any) (any, error) { return "done", fail }, func(d *tools.Definition) {
			d.Output = &tools.Output{Schema: output(object{"type": "string"})}
		})
		s.post(func(context.Context, tools.Outcome, func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			return v, nil
		})
		text, number := any("x"), any(1)
		v = tools.Verdict{Content: llm.Content{llm.Text{Text: "x"}}, Value: &text}
		errs := []error{fails(s.call(ctx, nil), seams.InvalidArgument, "tools/post-execute")}
		v = tools.Verdict{Value: &number}
		errs = append(errs, fails(s.call(ctx, nil), seams.InvalidToolOutput, "value"))
		fail = errors.New("broke")
		v = tools.Verdict{Value: &text}
		return all(append(errs, fails(s.call(ctx, nil), seams.InvalidArgument, "failed call"))...)
	}},
	{"T-10 block is a failure without value, with the feedback", func(ctx context.Context, s *stage) error {
		s.tool(func(_ context.Context, x *tools.Exec, _ any) (any, error) {
			x.DeferContext(note("tool"))
			return "done", nil
		})
		s.verdict(tools.Verdict{Block: true, Feedback: "not now", AdditionalContexts: []llm.Message{note("post")}})
		r := s.call(ctx, nil)
		return all(fails(r, "", "not now"), equal("contexts", texts(r.AdditionalContexts), "post"))
	}},
	{"T-11 a listener's own success needs the tool", func(ctx context.Context, s *stage) error {
		s.around(func(context.Context, *tools.Exec, func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			return tools.Success("mine"), nil
		})
		return fails(s.call(ctx, nil), seams.UnknownTool, "t")
	}},
	{"T-12 a listener's own failure keeps code and contexts", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.around(func(context.Context, *tools.Exec, func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			return tools.Failed("CACHED", "known to fail", note("wrapper")), nil
		})
		r := s.call(ctx, nil)
		return all(fails(r, "CACHED", "known to fail"), equal("contexts", texts(r.AdditionalContexts), "wrapper"), equal("ran", s.ran(), ""))
	}},
	{"T-13 a nested call's conclusion is passed on by its composite", func(ctx context.Context, s *stage) error {
		s.tool(func(ctx context.Context, x *tools.Exec, _ any) (any, error) {
			in := s.reg.Execute(ctx, tools.Call{ID: "c2", Name: "inner", Parent: x, Agent: x.Agent})
			if in.ConcludesTurn {
				x.ConcludeTurn()
			}
			return nil, nil
		})
		var root string
		must(s.reg.Register(s.owner, tools.Definition{Name: "inner", Execute: func(_ context.Context, x *tools.Exec, _ any) (any, error) {
			root = x.RootCallID
			x.ConcludeTurn()
			return nil, nil
		}}))
		r := s.call(ctx, nil)
		return all(equal("concludes", r.ConcludesTurn, true), equal("root", root, "c1"))
	}},
	{"T-14 unknown tools and bodies that fail or panic are failed results", func(ctx context.Context, s *stage) error {
		var fail func() error
		s.tool(func(context.Context, *tools.Exec, any) (any, error) { return nil, fail() })
		fail = func() error { return errors.New("disk full") }
		errs := []error{fails(s.call(ctx, nil), "", "disk full")}
		fail = func() error { return seams.Errorf("MY_CODE", "op", "my text") }
		errs = append(errs, fails(s.call(ctx, nil), "MY_CODE", "my text"))
		fail = func() error { panic(errors.New("boom")) }
		errs = append(errs, fails(s.call(ctx, nil), seams.Panicked, "boom"))
		fail = func() error { var p *tools.Exec; return errors.New(p.Name) }
		return all(append(errs, fails(s.call(ctx, nil), seams.Panicked, "nil pointer"))...)
	}},
	{"T-15 an unknown tool is UNKNOWN_TOOL and says which there are", func(ctx context.Context, s *stage) error {
		for _, n := range []string{"search", "read"} {
			must(s.reg.Register(s.owner, tools.Definition{Name: n, Execute: func(context.Context, *tools.Exec, any) (any, error) { return nil, nil }}))
		}
		r := s.reg.Execute(ctx, tools.Call{ID: "c1", Name: "serach"})
		empty := s.reg.Execute(ctx, tools.Call{ID: "c1", Name: ""})
		return all(fails(r, seams.UnknownTool, `Did you mean "search"?`), fails(r, seams.UnknownTool, "read, search"), fails(empty, seams.UnknownTool, "read, search"))
	}},
	{"T-16 T-33 deny keeps the body and phase 5 from running", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.watch()
		s.decide(tools.Decision{Kind: tools.Deny, Reason: "too late"})
		return all(fails(s.call(ctx, nil), "", "too late"), equal("ran", s.ran(), "pre post result"))
	}},
	{"T-17 asking without an approval service denies", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.decide(tools.Decision{Kind: tools.Ask})
		err := fails(s.call(ctx, nil), "", "no approval service")
		return all(err, equal("ran", s.ran(), ""))
	}},
	{"T-18 asking tells agent, tool, call and reason; granted runs", func(ctx context.Context, s *stage) error {
		var got tools.ApprovalRequest
		s.tool(nil)
		s.decide(tools.Decision{Kind: tools.Ask, Reason: "writes"})
		s.approver = answers{tools.AllowedOnce, nil, &got}
		r := s.call(ctx, object{"p": "x"})
		return all(succeeds(r, "done", "done"), equal("request", got,
			tools.ApprovalRequest{Agent: "main", ToolName: "t", CallID: "c1", Arguments: object{"p": "x"}, Reason: "writes"}))
	}},
	{"T-19 T-22 every other answer denies in its own words", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.decide(tools.Decision{Kind: tools.Ask})
		seen := map[string]bool{}
		var errs []error
		for _, a := range []tools.Approval{tools.Rejected, tools.Cancelled, tools.Unavailable} {
			s.approver = answers{Approval: a}
			r := s.call(ctx, nil)
			errs = append(errs, fails(r, "", "Error"))
			seen[r.Content.Text()] = true
		}
		s.approver = answers{Approval: "perhaps"}
		errs = append(errs, fails(s.call(ctx, nil), seams.InvalidArgument, "perhaps"))
		s.approver = answers{err: errors.New("terminal gone")}
		errs = append(errs, fails(s.call(ctx, nil), "", "terminal gone"))
		return all(append(errs, equal("distinct texts", len(seen), 3), equal("ran", s.ran(), ""))...)
	}},
	{"T-20 a cancel that overtakes the question is ABORTED_BEFORE_DISPATCH", func(ctx context.Context, s *stage) error {
		ctx, cancel := context.WithCancel(ctx)
		s.tool(nil)
		s.decide(tools.Decision{Kind: tools.Ask})
		s.approver = approverFunc(func() (tools.Approval, error) { cancel(); return tools.Cancelled, nil })
		return fails(s.call(ctx, nil), seams.AbortedBeforeDispatch, "cancelled")
	}},
	{"T-21 asking for a call of no agent denies unasked", func(ctx context.Context, s *stage) error {
		var got tools.ApprovalRequest
		s.tool(nil)
		s.decide(tools.Decision{Kind: tools.Ask})
		s.approver = answers{tools.AllowedOnce, nil, &got}
		r := s.reg.Execute(ctx, tools.Call{ID: "c1", Name: "t"})
		return all(fails(r, "", "approval"), equal("request", got, tools.ApprovalRequest{}))
	}},
	{"T-23 FinalizeContent runs once, last, for failures too", func(ctx context.Context, s *stage) error {
		var seen []string
		var content llm.Content
		var fail error
		s.tool(nil, func(d *tools.Definition) {
			d.FinalizeContent = func(_ context.Context, _ *tools.Exec, r *tools.Result) (llm.Content, error) {
				seen = append(seen, r.Content.Text())
				return content, fail
			}
		})
		s.verdict(tools.Verdict{Content: llm.Content{llm.Text{Text: "post"}}})
		errs := []error{succeeds(s.call(ctx, nil), "done", "post")}
		content = llm.Content{llm.Text{Text: "final"}}
		errs = append(errs, succeeds(s.call(ctx, nil), "done", "final"))
		content, fail = nil, errors.New("cannot")
		errs = append(errs, fails(s.call(ctx, nil), "", "cannot"))
		fail = nil
		s.decide(tools.Decision{Kind: tools.Deny, Reason: "denied"})
		s.call(ctx, nil)
		return all(append(errs, equal("seen", seen, []string{"post", "post", "post", "post"}))...)
	}},
	{"T-24 contexts come in order of tool, listener, post and survive a body's failure", func(ctx context.Context, s *stage) error {
		var fail error
		s.tool(func(_ context.Context, x *tools.Exec, _ any) (any, error) {
			x.DeferContext(note("tool"))
			return nil, fail
		})
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			r, err := next(ctx)
			if err != nil {
				return nil, err
			}
			mine := *r
			mine.AdditionalContexts = append(mine.AdditionalContexts[:len(r.AdditionalContexts):len(r.AdditionalContexts)], note("around"))
			return &mine, nil
		})
		s.verdict(tools.Verdict{AdditionalContexts: []llm.Message{note("post")}})
		err := equal("contexts", texts(s.call(ctx, nil).AdditionalContexts), "tool around post")
		fail = errors.New("broke")
		return all(err, equal("contexts of a failure", texts(s.call(ctx, nil).AdditionalContexts), "tool around post"))
	}},
	{"T-25 T-54 the phases pass in their order, once", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.watch()
		return all(succeeds(s.call(ctx, nil), "done", "done"), equal("ran", s.ran(), "pre guard around body post result"))
	}},
	{"T-26 a cancel in phase 3, around the dispatch or by the listener keeps the body from running", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		var cancel context.CancelFunc
		when := ""
		s.pre(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			if when == "pre" {
				cancel()
			}
			return next(ctx)
		})
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			inner, stop := context.WithCancel(ctx)
			defer stop()
			switch when {
			case "around":
				cancel()
			case "own":
				stop()
			}
			return next(inner)
		})
		var errs []error
		for _, when = range []string{"pre", "around", "own"} {
			var c context.Context
			c, cancel = context.WithCancel(ctx)
			if err := fails(s.call(c, nil), seams.AbortedBeforeDispatch, "cancelled"); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", when, err))
			}
			cancel()
		}
		return all(append(errs, equal("ran", s.ran(), ""))...)
	}},
	{"T-27 a denial or a failure in phase 3 is kept when the caller has cancelled", func(ctx context.Context, s *stage) error {
		var cancel context.CancelFunc
		var fail error
		s.tool(nil)
		s.pre(func(context.Context, *tools.Exec, func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			cancel()
			return tools.Decision{Kind: tools.Deny, Reason: "no"}, fail
		})
		call := func() *tools.Result {
			var in context.Context
			in, cancel = context.WithCancel(ctx)
			defer cancel()
			return s.call(in, nil)
		}
		err := fails(call(), "", "no")
		fail = errors.New("policy broke")
		return all(err, fails(call(), "", "policy broke"))
	}},
	{"T-28 a cancel overtakes successes: before-dispatch without a body, ABORTED with one, contexts kept", func(ctx context.Context, s *stage) error {
		var cancel context.CancelFunc
		when := ""
		s.tool(func(_ context.Context, x *tools.Exec, _ any) (any, error) {
			x.DeferContext(note("tool"))
			return 1, nil
		})
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			if when == "short" {
				cancel()
				return tools.Success("mine"), nil
			}
			r, err := next(ctx)
			if when == "late" {
				cancel()
			}
			return r, err
		})
		s.post(func(ctx context.Context, _ tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			if when == "post" {
				cancel()
			}
			return tools.Verdict{AdditionalContexts: []llm.Message{note("post")}}, nil
		})
		var errs []error
		for _, c := range []struct {
			when     string
			code     seams.Code
			contexts string
		}{{"short", seams.AbortedBeforeDispatch, "post"}, {"late", seams.Aborted, "tool post"}, {"post", seams.Aborted, "tool post"}} {
			when = c.when
			var in context.Context
			in, cancel = context.WithCancel(ctx)
			r := s.call(in, nil)
			cancel()
			errs = append(errs, fails(r, c.code, "cancelled"), equal(when, texts(r.AdditionalContexts), c.contexts))
		}
		return all(errs...)
	}},
	{"T-29 failures that settle after a cancel are kept", func(ctx context.Context, s *stage) error {
		ctx, cancel := context.WithCancel(ctx)
		s.tool(func(context.Context, *tools.Exec, any) (any, error) { cancel(); return nil, errors.New("disk full") })
		return fails(s.call(ctx, nil), "", "disk full")
	}},
	{"T-30 the caller's cancel reaches a body whose listener gave it another context", func(ctx context.Context, s *stage) error {
		ctx, cancel := context.WithCancel(ctx)
		s.tool(func(ctx context.Context, _ *tools.Exec, _ any) (any, error) {
			cancel()
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(5 * time.Second):
				return nil, errors.New("not cancelled")
			}
		})
		s.around(func(_ context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			return next(context.Background())
		})
		return fails(s.call(ctx, nil), seams.Aborted, "cancel")
	}},
	{"T-31 a started body is waited for", func(ctx context.Context, s *stage) error {
		ctx, cancel := context.WithCancel(ctx)
		s.tool(func(context.Context, *tools.Exec, any) (any, error) {
			cancel()
			time.Sleep(20 * time.Millisecond)
			s.note("end")
			return nil, nil
		})
		return all(fails(s.call(ctx, nil), seams.Aborted, "cancelled"), equal("ran", s.ran(), "body end"))
	}},
	{"T-32 a call cancelled before it began has one result and no phases; bad arguments win", func(ctx context.Context, s *stage) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		s.tool(nil)
		s.watch()
		r := s.call(ctx, nil)
		bad := s.call(ctx, object{"f": func() {}})
		return all(fails(r, seams.AbortedBeforeDispatch, "cancelled"), fails(bad, seams.InvalidArgs, "arguments.f"), equal("ran", s.ran(), "result result"))
	}},
	{"T-34 a body's failure is a result before a listener sees it and reaches phase 6", func(ctx context.Context, s *stage) error {
		s.tool(func(context.Context, *tools.Exec, any) (any, error) { return nil, errors.New("broke") })
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			r, err := next(ctx)
			s.note(fmt.Sprint(r.IsError, err))
			return r, err
		})
		s.post(func(ctx context.Context, o tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			s.note(fmt.Sprint(o.Result.IsError))
			return next(ctx)
		})
		return all(fails(s.call(ctx, nil), "", "broke"), equal("ran", s.ran(), "body true <nil> true"))
	}},
	{"T-35 what listeners do to a result they were shown changes nothing", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			r, err := next(ctx)
			r.Value, r.Content = "forged", nil
			return r, err
		})
		s.post(func(ctx context.Context, o tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			o.Result.IsError = true
			return next(ctx)
		})
		return succeeds(s.call(ctx, nil), "done", "done")
	}},
	{"T-36 a listener's own success is checked and rendered by the tool", func(ctx context.Context, s *stage) error {
		s.tool(nil, func(d *tools.Definition) { d.Output = &tools.Output{Schema: output(object{"type": "string"})} })
		var r *tools.Result
		s.around(func(context.Context, *tools.Exec, func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			return r, nil
		})
		r = tools.Success("cached")
		errs := []error{succeeds(s.call(ctx, nil), "cached", "cached")}
		r = tools.Success(1)
		errs = append(errs, fails(s.call(ctx, nil), seams.InvalidToolOutput, "value"))
		r = nil
		return all(append(errs, fails(s.call(ctx, nil), seams.InvalidArgument, "answered nothing"), equal("ran", s.ran(), ""))...)
	}},
	{"T-37 a failing listener of any phase is a failed result with its code", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		at := ""
		fail := func(phase string) error {
			if at == phase {
				return seams.Errorf("MY_CODE", "", "%s broke", phase)
			}
			return nil
		}
		s.pre(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			d, err := next(ctx)
			return d, errors.Join(err, fail("pre"))
		})
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			r, err := next(ctx)
			return r, errors.Join(err, fail("around"))
		})
		s.post(func(ctx context.Context, _ tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
			s.note("post")
			v, err := next(ctx)
			return v, errors.Join(err, fail("post"))
		})
		var errs []error
		for _, c := range []struct{ at, ran string }{{"pre", ""}, {"around", "body"}, {"post", "body post"}} {
			s.trace, at = nil, c.at
			errs = append(errs, fails(s.call(ctx, nil), "MY_CODE", at+" broke"), equal(at, s.ran(), c.ran))
		}
		return all(errs...)
	}},
	{"T-38 a failing listener of tools/change undoes the registration", func(ctx context.Context, s *stage) error {
		var seen []tools.Change
		veto := true
		must(tools.Changed.On(s.owner, func(_ context.Context, c tools.Change, _ func(context.Context) (struct{}, error)) (struct{}, error) {
			seen = append(seen, c)
			if veto {
				return struct{}{}, errors.New("not this one")
			}
			return struct{}{}, nil
		}))
		d := tools.Definition{Name: "t", Execute: func(context.Context, *tools.Exec, any) (any, error) { return nil, nil }}
		_, err := s.reg.Register(s.owner, d)
		if err == nil || !strings.Contains(err.Error(), "not this one") {
			return fmt.Errorf("register: got %v, want the listener's error", err)
		}
		errs := []error{equal("schemas", len(s.reg.Schemas(nil)), 0)}
		veto = false
		undo, err := s.reg.Register(s.owner, d)
		errs = append(errs, err, undo(ctx))
		return all(append(errs, equal("changes", seen, []tools.Change{{What: "tool", Name: "t"}, {What: "tool", Name: "t"}, {What: "tool", Name: "t", Gone: true}}))...)
	}},
	{"T-42 parallel only on true, with a known tool and good arguments", func(ctx context.Context, s *stage) error {
		answer := func(args any) bool { return true }
		s.tool(nil, func(d *tools.Definition) {
			d.Parameters = params(object{"n": object{"type": "number", "required": true}})
			d.IsConcurrencySafe = func(args any) bool { return answer(args) }
		})
		must(s.reg.Register(s.owner, tools.Definition{Name: "silent", Execute: func(context.Context, *tools.Exec, any) (any, error) { return nil, nil }}))
		mode := func(name string, args any) tools.ExecutionMode { return s.reg.ExecutionMode(ctx, nil, name, args) }
		good := object{"n": 1}
		errs := []error{
			equal("true", mode("t", good), tools.Parallel),
			equal("bad arguments", mode("t", object{"n": "x"}), tools.Exclusive),
			equal("text", mode("t", "{"), tools.Exclusive),
			equal("no JSON", mode("t", object{"n": func() {}}), tools.Exclusive),
			equal("unknown", mode("nope", good), tools.Exclusive),
			equal("silent", mode("silent", nil), tools.Exclusive),
		}
		answer = func(any) bool { return false }
		errs = append(errs, equal("false", mode("t", good), tools.Exclusive))
		answer = func(any) bool { panic("no") }
		return all(append(errs, equal("panic", mode("t", good), tools.Exclusive))...)
	}},
	{"T-43 arguments are checked whole: INVALID_ARGS with every violation", func(ctx context.Context, s *stage) error {
		s.tool(nil, func(d *tools.Definition) {
			d.Parameters = params(object{
				"path": object{"type": "string", "required": true},
				"mode": object{"type": "string", "enum": []any{"r", "w"}},
				"tags": object{"type": "array", "items": object{"type": "string"}},
			})
		})
		r := s.call(ctx, object{"mode": "x", "tags": []any{"a", 2}})
		return all(fails(r, seams.InvalidArgs, "arguments.path"), fails(r, seams.InvalidArgs, "arguments.mode"),
			fails(r, seams.InvalidArgs, "arguments.tags[1]"), equal("ran", s.ran(), ""),
			fails(s.call(ctx, []any{}), seams.InvalidArgs, "arguments"), fails(s.call(ctx, `{"path": "unfinis`), seams.InvalidArgs, "line 1"))
	}},
	{"T-48 a scoped tool is seen in its scope only and shadows in either order", func(ctx context.Context, s *stage) error {
		scope := seams.NewScope("agent", nil)
		inner := seams.NewScope("sub", scope)
		scoped := s.bus.Owner("agent", scope)
		reg := func(o seams.Owner, name, answer string) {
			must(s.reg.Register(o, tools.Definition{Name: name, Execute: func(context.Context, *tools.Exec, any) (any, error) { return answer, nil }}))
		}
		reg(s.owner, "a", "global")
		reg(scoped, "a", "scoped")
		reg(scoped, "b", "scoped")
		reg(s.owner, "b", "global")
		value := func(scope *seams.Scope, name string) any {
			return s.reg.Execute(ctx, tools.Call{ID: "c", Name: name, Scope: scope}).Value
		}
		errs := []error{
			equal("a global", value(nil, "a"), "global"), equal("a scoped", value(scope, "a"), "scoped"),
			equal("b global", value(nil, "b"), "global"), equal("b scoped", value(inner, "b"), "scoped"),
			equal("other scope", value(seams.NewScope("other", nil), "a"), "global"),
		}
		_, err := s.reg.Register(scoped, tools.Definition{Name: "a", Execute: func(context.Context, *tools.Exec, any) (any, error) { return nil, nil }})
		if !errors.Is(err, seams.Duplicate) || !strings.Contains(err.Error(), "agent") {
			errs = append(errs, fmt.Errorf("second a of the scope: got %v, want DUPLICATE that names its owner", err))
		}
		errs = append(errs, scoped.Close(ctx))
		return all(append(errs, equal("after close", value(scope, "a"), "global"))...)
	}},
	{"T-49 restrict masks what is inherited, not a scope's own", func(ctx context.Context, s *stage) error {
		preset := seams.NewScope("preset", nil)
		agent := seams.NewScope("agent", preset)
		inPreset, inAgent := s.bus.Owner("preset", preset), s.bus.Owner("agent", agent)
		reg := func(o seams.Owner, names ...string) {
			for _, n := range names {
				must(s.reg.Register(o, tools.Definition{Name: n, Execute: func(context.Context, *tools.Exec, any) (any, error) { return nil, nil }}))
			}
		}
		reg(s.owner, "read", "write", "bash")
		reg(inPreset, "own")
		reg(inAgent, "mine")
		names := func(scope *seams.Scope) string {
			var out []string
			for _, t := range s.reg.Schemas(scope) {
				out = append(out, t.Name)
			}
			return strings.Join(out, " ")
		}
		refused := func(o seams.Owner, f tools.Filter, want seams.Code) error {
			if _, err := s.reg.Restrict(o, f); seams.CodeOf(err) != want {
				return fmt.Errorf("restrict %v: got %v, want %s", f, err, want)
			}
			return nil
		}
		errs := []error{
			refused(s.owner, tools.Filter{Deny: []string{"bash"}}, seams.InvalidArgument),
			refused(inPreset, tools.Filter{}, seams.InvalidArgument),
			refused(inPreset, tools.Filter{Allow: []string{"nope"}}, seams.NotFound),
			refused(inPreset, tools.Filter{Deny: []string{"run_code"}}, seams.NotFound),
		}
		deny := []string{"bash"}
		undo, err := s.reg.Restrict(inPreset, tools.Filter{Deny: deny})
		if err != nil {
			return err
		}
		deny[0] = "read"
		errs = append(errs, equal("global", names(nil), "read write bash"), equal("preset", names(preset), "read write own"), equal("agent", names(agent), "read write own mine"))
		must(s.reg.Restrict(inAgent, tools.Filter{Allow: []string{"read", "bash"}}))
		reg(s.owner, "late")
		r := s.reg.Execute(ctx, tools.Call{ID: "c", Name: "write", Scope: agent})
		errs = append(errs, equal("both", names(agent), "read mine"), fails(r, seams.UnknownTool, "mine, read"), undo(ctx))
		return all(append(errs, equal("lifted", names(agent), "read bash mine"), equal("preset lifted", names(preset), "read write bash own late"))...)
	}},
	{"T-50 a scoped listener gates its own agent only", func(ctx context.Context, s *stage) error {
		scope := seams.NewScope("agent", nil)
		s.tool(nil)
		must(tools.PreExecute.On(s.bus.Owner("agent", scope), func(context.Context, *tools.Exec, func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			return tools.Decision{Kind: tools.Deny, Reason: "not here"}, nil
		}))
		in := s.reg.Execute(ctx, tools.Call{ID: "c", Name: "t", Scope: seams.NewScope("sub", scope)})
		return all(fails(in, "", "not here"), succeeds(s.call(ctx, nil), "done", "done"))
	}},
	{"T-51 guards deny after phase 3, each by itself, and are iterated live", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.pre(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			s.note("pre")
			return next(ctx)
		})
		reason := ""
		first, err := s.reg.Guard(s.owner, func(context.Context, *tools.Exec) (string, error) { s.note("g1"); return reason, nil })
		if err != nil {
			return err
		}
		var late seams.Undo
		must(s.reg.Guard(s.owner, func(context.Context, *tools.Exec) (string, error) {
			s.note("g2")
			if late == nil {
				late, err = s.reg.Guard(s.owner, func(context.Context, *tools.Exec) (string, error) { s.note("g3"); return "g3 says no", nil })
			}
			return "", err
		}))
		errs := []error{fails(s.call(ctx, nil), "", "g3 says no"), equal("ran", s.ran(), "pre g1 g2 g3"), late(ctx)}
		s.trace, reason = nil, "g1 says no"
		errs = append(errs, fails(s.call(ctx, nil), "", "g1 says no"), equal("ran", s.ran(), "pre g1"), first(ctx))
		s.trace = nil
		errs = append(errs, succeeds(s.call(ctx, nil), "done", "done"), equal("ran", s.ran(), "pre g2 body"))
		must(s.reg.Guard(s.owner, func(context.Context, *tools.Exec) (string, error) { panic("guard broke") }))
		return all(append(errs, fails(s.call(ctx, nil), "", "guard broke"))...)
	}},
	{"T-52 all phases see one snapshot of the arguments", func(ctx context.Context, s *stage) error {
		args := object{"list": []any{1}}
		var seen []any
		s.pre(func(ctx context.Context, x *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			args["list"].([]any)[0] = "changed"
			seen = append(seen, x.Arguments)
			return next(ctx)
		})
		s.tool(func(_ context.Context, x *tools.Exec, args any) (any, error) {
			seen = append(seen, args, x.Arguments)
			return nil, nil
		})
		s.call(ctx, args)
		want := object{"list": []any{1.0}}
		return equal("arguments", seen, []any{want, want, want})
	}},
	{"T-53 observers have run when Execute returns, and their failures are contained", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		for range 2 {
			must(tools.Results.On(s.owner, func(ctx context.Context, o tools.Outcome, _ func(context.Context) (struct{}, error)) (struct{}, error) {
				s.note(o.Exec.CallID + ":" + o.Result.Content.Text())
				o.Result.IsError = true
				return struct{}{}, errors.New("observer broke")
			}))
		}
		return all(succeeds(s.call(ctx, nil), "done", "done"), equal("seen", s.ran(), "body c1:done c1:done"))
	}},
	{"a tool's own time limit ends its body: TOOL_TIMEOUT", func(ctx context.Context, s *stage) error {
		s.tool(func(ctx context.Context, _ *tools.Exec, _ any) (any, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return "late", nil
		}, func(d *tools.Definition) { d.Timeout = 10 * time.Millisecond })
		return fails(s.call(ctx, nil), seams.ToolTimeout, "10ms")
	}},
	{"a body has ended, and its phases, before its owner's close returns", func(ctx context.Context, s *stage) error {
		owner := s.bus.Owner("mount", nil)
		begun := make(chan struct{})
		must(s.reg.Register(owner, tools.Definition{Name: "slow",
			Execute: func(context.Context, *tools.Exec, any) (any, error) {
				close(begun)
				time.Sleep(10 * time.Millisecond)
				s.note("body")
				return "old code", nil
			},
			FinalizeContent: func(context.Context, *tools.Exec, *tools.Result) (llm.Content, error) {
				s.note("final")
				return nil, nil
			},
		}))
		done := make(chan *tools.Result)
		go func() { done <- s.reg.Execute(ctx, tools.Call{ID: "c", Name: "slow"}) }()
		<-begun
		err := owner.Close(ctx)
		ran := s.ran()
		r := <-done
		gone := s.reg.Execute(ctx, tools.Call{ID: "c", Name: "slow"})
		return all(err, equal("ran before close returned", ran, "body final"), succeeds(r, "old code", "old code"), fails(gone, seams.UnknownTool, "slow"))
	}},
	{"T-31 a body is ended and waited for when a listener answers without it", func(ctx context.Context, s *stage) error {
		begun, left := make(chan struct{}), make(chan struct{})
		s.tool(func(ctx context.Context, _ *tools.Exec, _ any) (any, error) {
			close(begun)
			<-ctx.Done()
			time.Sleep(10 * time.Millisecond)
			s.note("end")
			return "late", nil
		})
		s.around(func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
			go func() {
				defer close(left)
				_, _ = next(context.WithoutCancel(ctx))
			}()
			<-begun
			return tools.Success("mine"), nil
		})
		r := s.call(ctx, nil)
		err := equal("ran", s.ran(), "body end")
		<-left
		return all(err, succeeds(r, "mine", "mine"))
	}},
	{"a drain deadline ends the body: UNLOADED", func(ctx context.Context, s *stage) error {
		owner := s.bus.Owner("mount", nil)
		must(s.reg.Register(owner, tools.Definition{Name: "slow", Execute: func(ctx context.Context, _ *tools.Exec, _ any) (any, error) {
			owner.Cut()
			<-ctx.Done()
			return nil, ctx.Err()
		}}))
		return fails(s.reg.Execute(ctx, tools.Call{ID: "c", Name: "slow"}), seams.Unloaded, "unloaded")
	}},
	{"the barrier passes right before the body and can keep it from running", func(ctx context.Context, s *stage) error {
		var fail error
		s.tool(nil)
		s.watch()
		call := func(ctx context.Context) *tools.Result {
			return s.reg.Execute(ctx, tools.Call{ID: "c", Name: "t", Barrier: func(context.Context) error { s.note("barrier"); return fail }})
		}
		errs := []error{succeeds(call(ctx), "done", "done"), equal("ran", s.ran(), "pre guard around barrier body post result")}
		s.trace, fail = nil, seams.Errorf("DISK_FULL", "", "not written")
		errs = append(errs, fails(call(ctx), "DISK_FULL", "not written"), equal("ran", s.ran(), "pre guard around barrier post result"))
		ctx, cancel := context.WithCancel(ctx)
		s.trace = nil
		r := s.reg.Execute(ctx, tools.Call{ID: "c", Name: "t", Barrier: func(context.Context) error { cancel(); return ctx.Err() }})
		return all(append(errs, fails(r, seams.AbortedBeforeDispatch, "cancelled"))...)
	}},
	{"a listener of phase 3 that answers nothing does not allow", func(ctx context.Context, s *stage) error {
		s.tool(nil)
		s.decide(tools.Decision{})
		return all(fails(s.call(ctx, nil), seams.InvalidArgument, "return what next() returns"), equal("ran", s.ran(), ""))
	}},
}

type approverFunc func() (tools.Approval, error)

func (f approverFunc) Request(context.Context, tools.ApprovalRequest) (tools.Approval, error) {
	return f()
}
