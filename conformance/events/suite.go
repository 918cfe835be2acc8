package eventstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// Checks returns the suite for the store that make makes, which must be empty.
func Checks(make func(bus seams.Bus, now func() time.Time) events.Store) []harness.Check {
	var out []harness.Check
	for _, c := range suite {
		out = append(out, harness.Check{Name: c.name, Run: func(ctx context.Context) error {
			s := &stage{bus: harness.NewBus(), clock: time.UnixMilli(1_700_000_000_000)}
			s.owner = s.bus.Owner("plugin", nil)
			s.store = make(s.bus, func() time.Time { return s.clock })
			return c.run(ctx, s)
		}})
	}
	return out
}

type test struct {
	name string
	run  func(ctx context.Context, s *stage) error
}

type none = func(context.Context) (struct{}, error)

var suite = []test{
	{"envelope: seq counts from 0, time is the clock's, data is what was given", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		var errs []error
		for i := range 3 {
			s.clock = s.clock.Add(time.Second)
			e, err := x.Append(ctx, raw("my-plugin/thing", fmt.Sprintf(`{"n":%d}`, i)))
			errs = append(errs, err, equal("seq", e.Seq, i), equal("type", e.Type, "my-plugin/thing"),
				equal("time", e.Time, s.clock.UnixMilli()), equal("data", string(e.Data), fmt.Sprintf(`{"n":%d}`, i)))
		}
		line, err := json.Marshal(x.Events(2)[0])
		return all(append(errs, err, equal("len", x.Len(), 3),
			equal("JSON", string(line), fmt.Sprintf(`{"seq":2,"type":"my-plugin/thing","time":%d,"data":{"n":2}}`, s.clock.UnixMilli())))...)
	}},
	{"E-01 history is derived of user, injected, model and tool alike", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, user("hi"), injected("note"), reply("", "c1"), call("c1"), answer("c1", "ok"), reply(""), reply("bye"))
		before := x.Surface()
		before[0].Message.Role = llm.System
		return all(equal("messages", say(x.Messages()), "user:hi, user:note, assistant:(c1), c1=ok, assistant:bye"),
			equal("surface", len(x.Surface()), 6), equal("surface is a copy", x.Surface()[0].Message.Role, llm.User))
	}},
	{"E-02 a seed gives the same history; it is marked, a fresh session is not", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, turn(1, "one")...)
		y := s.session(ctx, "b", x.Events(0)...)
		empty, err := events.Create(ctx, s.store, events.Spec{Header: events.Header{ID: "c"}, Seed: []events.Event{}})
		if err != nil {
			return err
		}
		again := s.session(ctx, "d", y.Events(0)...)
		return all(equal("messages", y.Messages(), x.Messages()), equal("fresh", x.Header().SeedLength, 0),
			equal("seeded", types(y.Events(6)), "session/end-seed"), equal("seed length", y.Header().SeedLength, 7),
			equal("empty", types(empty.Events(0)), "session/end-seed"), equal("marked once", again.Len(), 7),
			equal("seed is kept", y.Events(0)[:6], x.Events(0)))
	}},
	{"E-03 a malformed seed is refused and its id stays free", func(ctx context.Context, s *stage) error {
		good := func() []events.Event {
			x := s.session(ctx, fmt.Sprint("good", s.clock.UnixNano()))
			s.clock = s.clock.Add(time.Second)
			put(ctx, x, user("hi"), reply("yes", "c1"), call("c1"), answer("c1", "ok"))
			return x.Events(0)
		}
		var errs []error
		for name, spoil := range map[string]func([]events.Event) []events.Event{
			"gap":             func(es []events.Event) []events.Event { return es[1:] },
			"seq":             func(es []events.Event) []events.Event { es[1].Seq = 5; return es },
			"no type":         func(es []events.Event) []events.Event { es[0].Type = ""; return es },
			"time":            func(es []events.Event) []events.Event { es[0].Time = -1; return es },
			"data is a list":  func(es []events.Event) []events.Event { es[0].Data = json.RawMessage(`[]`); return es },
			"data is no JSON": func(es []events.Event) []events.Event { es[0].Data = json.RawMessage(`{"a":`); return es },
			"data beyond 2^53": func(es []events.Event) []events.Event {
				es[0] = events.Event{Type: "x/y", Data: json.RawMessage(`{"n":9007199254740993}`)}
				return es
			},
			"message without id":  spoilData(0, `"id":"msg-`, `"di":"msg-`),
			"user's role":         spoilData(0, `"role":"user"`, `"role":"system"`),
			"user's source":       spoilData(0, `"kind":"user"`, `"kind":"model"`),
			"no provider":         spoilData(1, `"provider":"p"`, `"x":"p"`),
			"no model":            spoilData(1, `"model":"m"`, `"x":"m"`),
			"other call's source": spoilData(3, `"callId":"c1"`, `"callId":"c2"`),
			"call without id":     spoilData(1, `"id":"c1"`, `"id":""`),
			"block without text":  spoilData(0, `"text":"hi"`, `"txt":"hi"`),
			"no surfaceOp":        func(es []events.Event) []events.Event { es[0].SurfaceOp = nil; return es },
		} {
			_, err := s.store.Prepare(ctx, events.Spec{Header: events.Header{ID: "bad"}, Seed: spoil(good())})
			if code := seams.CodeOf(err); code != seams.InvalidEvent && code != seams.NotJSON {
				errs = append(errs, fmt.Errorf("%s: got %v, want INVALID_EVENT or NOT_JSON", name, err))
			}
		}
		s.session(ctx, "bad")
		return all(errs...)
	}},
	{"E-04 E-18 data is a lossless copy", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		list := []any{1, "two", nil, true, map[string]any{"__proto__": 0.5}}
		data := map[string]any{"list": list}
		e, err := x.Append(ctx, events.Draft{Type: "x/y", Data: data})
		list[0] = "changed"
		sources := []int{0}
		op := events.SurfaceOp{}
		d := user("hi").Citing(sources...)
		d.SurfaceOp = &op
		seq := put(ctx, x, d)
		sources[0], op.Replace = 7, true
		cycle := map[string]any{}
		cycle["self"] = cycle
		errs := []error{err, equal("data", string(e.Data), `{"list":[1,"two",null,true,{"__proto__":0.5}]}`),
			equal("stored", string(x.Events(0)[0].Data), string(e.Data)), equal("sources", x.Events(seq)[0].SourceEventSeqs, []int{0}), equal("op", *x.Events(seq)[0].SurfaceOp, events.SurfaceOp{})}
		for name, bad := range map[string]any{"function": map[string]any{"f": func() {}}, "cycle": cycle, "2^53": map[string]any{"n": int64(1) << 60},
			"NaN": json.RawMessage(`{"n":NaN}`), "1e400": json.RawMessage(`{"n":1e400}`)} {
			_, err := x.Append(ctx, events.Draft{Type: "x/y", Data: bad})
			errs = append(errs, is(name, err, seams.NotJSON))
		}
		deep := json.RawMessage(`{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`)
		_, err = x.Append(ctx, events.Draft{Type: "x/y", Data: deep})
		if err == nil {
			errs = append(errs, errors.New("100,000 levels: no error"))
		}
		return all(append(errs, equal("len", x.Len(), 2))...)
	}},
	{"E-05 surface metadata is checked, and illegal elsewhere", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, user("hi"), turnStart(1))
		no := func(name string, d events.Draft, says string) error {
			_, err := x.Append(ctx, d)
			return is(name, err, seams.InvalidEvent, says)
		}
		bare := user("x")
		bare.SurfaceOp = nil
		placed := turnEnd(1)
		placed.SurfaceOp = &events.SurfaceOp{}
		unknown := raw("x/y", "{}")
		unknown.SurfaceOp = &events.SurfaceOp{}
		return all(no("none", bare, "surfaceOp"), no("on a turn", placed, "surfaceOp"), no("on an unknown", unknown, "surfaceOp"),
			no("later source", user("x").Citing(2), "sourceEventSeqs"), no("negative", user("x").Citing(-1), "sourceEventSeqs"),
			no("twice", user("x").Citing(1, 1), "sourceEventSeqs"), no("empty", user("x").Citing(), "sourceEventSeqs"), equal("len", x.Len(), 2))
	}},
	{"E-06 a bad header is refused", func(ctx context.Context, s *stage) error {
		var errs []error
		for field, h := range map[string]events.Header{
			"version": {Version: 1, ID: "a"}, "id": {}, "createdAt": {ID: "a", CreatedAt: -1}, "cwd": {ID: "a", CWD: "relative"},
			"parentSession": {ID: "a", ParentSession: "a"}, "origin": {ID: "a", Origin: "moon"}, "delegationDepth": {ID: "a", DelegationDepth: -1},
		} {
			_, err := s.store.Prepare(ctx, events.Spec{Header: h})
			errs = append(errs, is(field, err, seams.InvalidEvent, field))
		}
		return all(errs...)
	}},
	{"E-07 prepare, enter, announce, close; an id is taken once", func(ctx context.Context, s *stage) error {
		seen := s.observe()
		x, err := s.store.Prepare(ctx, events.Spec{Header: events.Header{ID: "a"}})
		if err != nil {
			return err
		}
		put(ctx, x, raw("x/before", "{}"))
		_, live := s.store.Get("a")
		_, again := s.store.Prepare(ctx, events.Spec{Header: events.Header{ID: "a"}})
		_, resumed := s.store.Resume(ctx, "a", nil)
		errs := []error{equal("prepared is not live", live, false), is("second", again, seams.SessionAlreadyExists), is("resume", resumed, seams.SessionAlreadyLive),
			is("announce before enter", x.Announce(ctx), seams.SessionNotLive), x.Enter()}
		_, live = s.store.Get("a")
		errs = append(errs, equal("entered is live", live, true), is("enter twice", x.Enter(), seams.SessionNotLive), x.Announce(ctx),
			is("announce twice", x.Announce(ctx), seams.SessionNotLive))
		put(ctx, x, raw("x/after", "{}"))
		errs = append(errs, x.Close(ctx), x.Close(ctx))
		_, err = x.Append(ctx, raw("x/late", "{}"))
		_, live = s.store.Get("a")
		errs = append(errs, is("append", err, seams.SessionNotLive), is("flush", x.Flush(ctx), seams.SessionNotLive), equal("closed is not live", live, false),
			equal("seen", *seen, []string{"created a", "1 x/after", "disposed a"}))
		unseen, err := s.store.Prepare(ctx, events.Spec{Header: events.Header{ID: "b"}})
		if err != nil {
			return err
		}
		errs = append(errs, unseen.Close(ctx), equal("nobody heard", len(*seen), 3))
		_, err = s.store.Prepare(ctx, events.Spec{Header: events.Header{ID: "b"}})
		return all(append(errs, err)...)
	}},
	{"E-07 an observer may close its session: it ends after the notice", func(ctx context.Context, s *stage) error {
		must(events.Appended.On(s.owner, func(ctx context.Context, n events.Notice, _ none) (struct{}, error) {
			return struct{}{}, n.Session.Close(ctx)
		}))
		seen := s.observe()
		x := s.session(ctx, "a")
		put(ctx, x, raw("x/y", "{}"))
		return all(x.Close(ctx), equal("seen", *seen, []string{"created a", "0 x/y", "disposed a"}))
	}},
	{"E-08 a veto of creation is undone with its disposal, and the id is free", func(ctx context.Context, s *stage) error {
		seen := s.observe()
		undo, err := events.Created.On(s.owner, func(context.Context, events.Session, none) (struct{}, error) {
			return struct{}{}, errors.New("not this one")
		})
		if err != nil {
			return err
		}
		_, err = events.Create(ctx, s.store, events.Spec{Header: events.Header{ID: "a"}})
		if err == nil || !strings.Contains(err.Error(), "not this one") {
			return fmt.Errorf("got %v, want the veto", err)
		}
		_, live := s.store.Get("a")
		errs := []error{equal("live", live, false), equal("seen", *seen, []string{"created a", "disposed a"}), undo(ctx)}
		s.session(ctx, "a")
		return all(errs...)
	}},
	{"E-09 failing observers are contained; an append from within a notice is refused", func(ctx context.Context, s *stage) error {
		var inner error
		must(events.Appended.On(s.owner, func(ctx context.Context, n events.Notice, _ none) (struct{}, error) {
			_, inner = n.Session.Append(ctx, raw("x/inner", "{}"))
			return struct{}{}, errors.New("observer broke")
		}))
		must(events.Appended.On(s.owner, func(context.Context, events.Notice, none) (struct{}, error) { panic("observer broke") }))
		seen := s.observe()
		x := s.session(ctx, "a")
		_, err := x.Append(ctx, raw("x/y", "{}"))
		return all(err, is("inner", inner, seams.ReentrantAppend), equal("len", x.Len(), 1), equal("seen", *seen, []string{"created a", "0 x/y"}))
	}},
	{"E-09 what an observer began may append once the notice was given", func(ctx context.Context, s *stage) error {
		var later context.Context
		undo, err := events.Appended.On(s.owner, func(ctx context.Context, _ events.Notice, _ none) (struct{}, error) {
			later = ctx
			return struct{}{}, nil
		})
		if err != nil {
			return err
		}
		x := s.session(ctx, "a")
		put(ctx, x, raw("x/y", "{}"))
		err = undo(ctx)
		_, err2 := x.Append(context.WithoutCancel(later), raw("x/z", "{}"))
		return all(err, err2, x.Close(later), equal("len", x.Len(), 2))
	}},
	{"E-10 E-17 state: the last todo list, header and context count, and are not on the surface", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		head := func(model string, reason events.HeaderReason) events.Draft {
			return events.RequestHeader.New(events.HeaderChange{Header: events.Envelope{Config: llm.CallConfig{Provider: "p", Model: model}, System: "be kind"}, Reason: reason})
		}
		put(ctx, x, events.TodoWrite.New(events.TodoList{Todos: []events.Todo{{Content: "a", Status: "pending"}}}),
			events.TodoWrite.New(events.TodoList{Todos: []events.Todo{{Content: "b", Status: "done"}}}),
			head("m1", events.HeaderInitial), head("m2", events.HeaderChanged),
			events.RequestContext.New(events.ModelContext{Provider: "p", Model: "m2", ContextWindow: 10}))
		st := x.State()
		errs := []error{equal("todos", st.Todos, []events.Todo{{Content: "b", Status: "done"}}), equal("model", st.Header.Config.Model, "m2"),
			equal("system", st.Header.System, "be kind"), equal("window", st.Context.ContextWindow, 10), equal("surface", len(x.Surface()), 0)}
		for name, d := range map[string]events.Draft{"no model": head("", events.HeaderInitial), "reason": head("m", "because"),
			"legacy": raw("request/header", `{"config":{"provider":"p","model":"m"}}`), "context": raw("request/context", `{"provider":"p"}`)} {
			_, err := x.Append(ctx, d)
			errs = append(errs, is(name, err, seams.InvalidEvent))
		}
		y := s.session(ctx, "b", x.Events(0)...)
		return all(append(errs, equal("state of a seed", y.State().Header, st.Header))...)
	}},
	{"E-11 E-13 the surface folds: append, replace ranges; a refused event changes nothing", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, user("a"), user("b"), user("c"), turnStart(1), user("d"))
		no := func(name string, d events.Draft, says string) error {
			_, err := x.Append(ctx, d)
			return all(is(name, err, seams.InvalidEvent, says), equal("unchanged", say(x.Messages()), "user:a, user:b, user:c, user:d"), equal("len", x.Len(), 5))
		}
		errs := []error{
			no("start", user("x").Replacing(3, 4).Citing(3, 4), "surfaceOp.start"), no("end", user("x").Replacing(1, 9).Citing(1), "surfaceOp.end"),
			no("inverted", user("x").Replacing(2, 1).Citing(1, 2), "after end"), no("uncited", user("x").Replacing(1, 2).Citing(1), "does not cite 2"),
		}
		five := put(ctx, x, user("b+c").Replacing(1, 2).Citing(1, 2))
		errs = append(errs, equal("replaced", say(x.Messages()), "user:a, user:b+c, user:d"))
		_, err := x.Append(ctx, user("x").Replacing(1, 1).Citing(1))
		errs = append(errs, is("hidden node", err, seams.InvalidEvent, "not on the surface"))
		put(ctx, x, user("all").Replacing(0, 4).Citing(0, 4, five), user("next"))
		return all(append(errs, equal("all", say(x.Messages()), "user:all, user:next"))...)
	}},
	{"E-12 a tool result replaces one tool result, and its content alone", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, user("hi"), reply("", "c1", "c2"), call("c1"), call("c2"), answer("c1", "long"), answer("c2", "other"))
		var old events.CallResult
		if err := json.Unmarshal(x.Events(4)[0].Data, &old); err != nil {
			return err
		}
		with := func(change func(*events.CallResult)) events.Draft {
			d := old
			d.Message.Content = llm.Content{llm.ToolResult{ToolCallID: "c1", Content: llm.Content{llm.Text{Text: "short"}}}}
			change(&d)
			return events.ToolResult.New(d)
		}
		same := with(func(*events.CallResult) {})
		no := func(name string, d events.Draft) error {
			_, err := x.Append(ctx, d)
			return is(name, err, seams.InvalidEvent)
		}
		errs := []error{
			no("two", same.Replacing(4, 5).Citing(4, 5)), no("a user message", same.Replacing(0, 0).Citing(0)), no("another's", same.Replacing(5, 5).Citing(5)),
			no("error", with(func(r *events.CallResult) { r.Error = &events.CallError{Code: "X"} }).Replacing(4, 4).Citing(4)),
			no("message id", with(func(r *events.CallResult) { r.Message.ID = "other" }).Replacing(4, 4).Citing(4)),
			no("step", with(func(r *events.CallResult) { r.Step = 2 }).Replacing(4, 4).Citing(4)),
		}
		put(ctx, x, same.Replacing(4, 4).Citing(4))
		return all(append(errs, equal("messages", say(x.Messages()), "user:hi, assistant:(c1)(c2), c1=short, c2=other"))...)
	}},
	{"E-14 what is derived step by step is what the log alone says, in a fresh list", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		var errs []error
		for _, d := range []events.Draft{user("a"), reply("", "c1"), call("c1"), answer("c1", "r"), reply("b"), user("s").Replacing(0, 3).Citing(0, 1, 3), raw("x/y", "{}"), reply("")} {
			put(ctx, x, d)
			scratch, err := events.Derive(x.Events(0))
			errs = append(errs, err, equal("derived", x.Messages(), scratch))
		}
		x.Messages()[0].ID = "changed"
		return all(append(errs, equal("fresh", x.Messages()[0].ID == "changed", false))...)
	}},
	{"E-15 fork cuts outside of turns", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		fork := func(id string, at int) (events.Session, error) {
			return s.store.Fork(ctx, "a", events.ForkSpec{Boundary: at, ID: id})
		}
		put(ctx, x, turnStart(1))
		_, open := fork("b", 0)
		errs := []error{is("no closed turn", open, seams.OpenTurn)}
		put(ctx, x, turnEnd(1))
		put(ctx, x, raw("x/between", "{}"))
		put(ctx, x, turn(2, "two")...)
		put(ctx, x, turnStart(3), stepStart(3, 1))
		_, inOpen := fork("b", 10)
		_, inClosed := fork("b", 5)
		_, outside := fork("b", 99)
		_, missing := s.store.Fork(ctx, "nope", events.ForkSpec{ID: "b"})
		_, taken := fork("a", 0)
		errs = append(errs, is("open turn", inOpen, seams.OpenTurn), is("closed turn", inClosed, seams.InvalidBoundary), is("outside", outside, seams.InvalidBoundary),
			is("missing", missing, seams.SessionNotFound), is("taken", taken, seams.SessionAlreadyExists))
		b, err := fork("b", 0)
		if err != nil {
			return all(append(errs, err)...)
		}
		c, err := fork("c", 3)
		if err != nil {
			return all(append(errs, err)...)
		}
		put(ctx, x, user("later"))
		errs = append(errs, equal("default", types(b.Events(8)), "turn/end session/end-seed"), equal("parent", b.Header().ParentSession, "a"), equal("seed length", b.Header().SeedLength, 10),
			equal("explicit", types(c.Events(2)), "x/between session/end-seed"), equal("own history", say(b.Messages()), "user:two, assistant:re two"), x.Close(ctx))
		_, closed := fork("d", 0)
		return all(append(errs, is("closed", closed, seams.SessionNotLive))...)
	}},
	{"E-16 resume closes an open turn: results first, then step, then turn", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, turn(1, "one")...)
		done := x.Len()
		put(ctx, x, turnStart(2), stepStart(2, 1), user("go"))
		m := llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, Provider: "p", Model: "m"},
			llm.ToolCall{ID: "c1", Name: "t"}, llm.ToolCall{ID: "c2", Name: "t"}, llm.ToolCall{ID: "c3", Name: "t"})
		put(ctx, x, events.AssistantMessage.New(events.Reply{Turn: 2, Step: 1, Message: m}).Citing(),
			events.ToolCall.New(events.Call{Turn: 2, Step: 1, CallID: "c1", Name: "t"}),
			events.ToolResult.New(events.CallResult{Turn: 2, Step: 1, Message: llm.NewToolResult("c1", false, llm.Text{Text: "ok"})}),
			events.ToolCall.New(events.Call{Turn: 2, Step: 1, CallID: "c2", Name: "t"}))
		before := x.Events(0)
		if err := x.Close(ctx); err != nil {
			return err
		}
		_, missing := s.store.Resume(ctx, "nope", nil)
		y, err := s.store.Resume(ctx, "a", nil)
		if err != nil {
			return err
		}
		added := y.Events(len(before))
		if got := types(added); got != "tool/result tool/result step/end turn/end session/end-seed" {
			return fmt.Errorf("repair added %s", got)
		}
		result := func(e events.Event) (string, string) {
			r, err := events.ToolResult.Decode(e)
			if err != nil || r.Error == nil {
				return "", fmt.Sprint(err)
			}
			return r.Message.Source.CallID + " " + r.Error.Code, say([]llm.Message{r.Message})
		}
		ran, ranText := result(added[0])
		not, _ := result(added[1])
		end, err := events.TurnEnd.Decode(added[3])
		errs := []error{err, is("missing", missing, seams.SessionNotFound), equal("earlier events", y.Events(0)[:len(before)], before), equal("started", ran, "c2 TOOL_OUTCOME_UNKNOWN"),
			equal("not started", not, "c3 TOOL_NOT_STARTED"), equal("reason", end.Reason.Kind, events.Interrupted), equal("turn 1 untouched", done, 6),
			y.Enter(), y.Announce(ctx), events.Verify(y.Header(), y.Events(0))}
		if !strings.Contains(ranText, "before you call it again") {
			errs = append(errs, fmt.Errorf("the unknown outcome says %q", ranText))
		}
		n := y.Len()
		put(ctx, y, turn(3, "three")...)
		if err := y.Close(ctx); err != nil {
			return err
		}
		z, err := s.store.Resume(ctx, "a", nil)
		if err != nil {
			return err
		}
		return all(append(errs, equal("a balanced log gets its marker alone", types(z.Events(n+6)), "session/end-seed"))...)
	}},
	{"E-21 bus events stay in the session's scope", func(ctx context.Context, s *stage) error {
		mine, other := seams.NewScope("mine", nil), seams.NewScope("other", nil)
		heard := map[string]int{}
		for name, scope := range map[string]*seams.Scope{"global": nil, "mine": mine, "other": other} {
			must(events.Appended.On(s.bus.Owner(name, scope), func(context.Context, events.Notice, none) (struct{}, error) {
				heard[name]++
				return struct{}{}, nil
			}))
		}
		x, err := events.Create(ctx, s.store, events.Spec{Header: events.Header{ID: "a"}, Scope: mine})
		if err != nil {
			return err
		}
		put(ctx, x, raw("x/y", "{}"))
		return equal("heard", heard, map[string]int{"global": 1, "mine": 1})
	}},
	{"E-21 flush asks all who keep something and returns their errors", func(ctx context.Context, s *stage) error {
		asked := 0
		for range 2 {
			must(events.Flushing.On(s.owner, func(context.Context, events.Session, none) (struct{}, error) {
				asked++
				return struct{}{}, errors.New("disk full")
			}))
		}
		x := s.session(ctx, "a")
		err := x.Flush(ctx)
		if err == nil || !strings.Contains(err.Error(), "disk full") {
			return fmt.Errorf("flush: got %v, want the error", err)
		}
		return equal("asked", asked, 2)
	}},
	{"flush comes after the notices of what was appended", func(ctx context.Context, s *stage) error {
		var order []string
		must(events.Appended.On(s.owner, func(context.Context, events.Notice, none) (struct{}, error) {
			time.Sleep(5 * time.Millisecond)
			order = append(order, "event")
			return struct{}{}, nil
		}))
		must(events.Flushing.On(s.owner, func(context.Context, events.Session, none) (struct{}, error) {
			order = append(order, "flush")
			return struct{}{}, nil
		}))
		x := s.session(ctx, "a")
		var wg sync.WaitGroup
		wg.Go(func() { put(ctx, x, raw("x/y", "{}")) })
		for x.Len() == 0 {
			time.Sleep(time.Millisecond)
		}
		err := x.Flush(ctx)
		wg.Wait()
		return all(err, equal("order", order, []string{"event", "flush"}))
	}},
	{"E-22 concurrent appends have contiguous numbers and are observed in order", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		var seen []int
		must(events.Appended.On(s.owner, func(_ context.Context, n events.Notice, _ none) (struct{}, error) {
			seen = append(seen, n.Event.Seq)
			return struct{}{}, nil
		}))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					put(ctx, x, raw("x/y", "{}"))
				}
			})
		}
		wg.Wait()
		err := x.Close(ctx)
		want := make([]int, 400)
		for i := range want {
			want[i] = i
		}
		var seqs []int
		for _, e := range x.Events(0) {
			seqs = append(seqs, e.Seq)
		}
		return all(err, equal("seqs", seqs, want), equal("seen", seen, want))
	}},
	{"follow yields what is there, waits for more and ends with the session or the context", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, raw("x/0", "{}"), raw("x/1", "{}"))
		var got []string
		done, begun := make(chan error), make(chan struct{})
		go func() {
			for e, err := range x.Follow(ctx, 1) {
				if err != nil {
					done <- err
					return
				}
				if got = append(got, e.Type); len(got) == 1 {
					close(begun)
				}
			}
			done <- nil
		}()
		<-begun
		put(ctx, x, raw("x/2", "{}"))
		short, cancel := context.WithCancel(ctx)
		var errs []error
		for e, err := range x.Follow(short, 2) {
			if e.Type == "x/2" {
				cancel()
				continue
			}
			errs = append(errs, is("cancelled", err, seams.Aborted))
		}
		cancel()
		put(ctx, x, raw("x/3", "{}"))
		errs = append(errs, x.Close(ctx), <-done)
		return all(append(errs, equal("followed", got, []string{"x/1", "x/2", "x/3"}))...)
	}},
	{"list tells of live and closed sessions in order of creation", func(ctx context.Context, s *stage) error {
		a, b := s.session(ctx, "a"), s.session(ctx, "b")
		put(ctx, a, raw("x/y", "{}"))
		put(ctx, b, raw("x/y", "{}"))
		if _, err := s.store.Prepare(ctx, events.Spec{Header: events.Header{ID: "c"}}); err != nil {
			return err
		}
		err := all(s.session(ctx, "empty").Close(ctx), a.Close(ctx))
		var got []string
		for info, err := range s.store.List(ctx) {
			if err != nil {
				return err
			}
			got = append(got, fmt.Sprint(info.Header.ID, " ", info.Length, " ", info.Live))
		}
		return all(err, equal("list", got, []string{"a 1 false", "b 1 true"}))
	}},
	{"agt-05 what is derived can be sent: results follow their calls, orphans are left out", func(ctx context.Context, s *stage) error {
		x := s.session(ctx, "a")
		put(ctx, x, user("clean up"), answer("c0", "orphan"), reply("two", "c1", "c2"), call("c1"), answer("c1", "ok"), user("what?"), call("c2"), answer("c2", "late"), answer("c2", "twice"), user("then?"))
		return equal("messages", say(x.Messages()), "user:clean up, assistant:two(c1)(c2), c1=ok, c2=late, user:what?, user:then?")
	}},
}

// spoilData makes a change of the data of one event.
func spoilData(i int, old, new string) func([]events.Event) []events.Event {
	return func(es []events.Event) []events.Event {
		es = slices.Clone(es)
		text := string(es[i].Data)
		if !strings.Contains(text, old) {
			panic("the seed does not hold " + old)
		}
		es[i].Data = json.RawMessage(strings.ReplaceAll(text, old, new))
		return es
	}
}
