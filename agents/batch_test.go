package agents_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// trace is a list that calls write to from any goroutine.
type trace struct {
	mu   sync.Mutex
	list []string
}

func (l *trace) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, fmt.Sprintf(format, args...))
}

func (l *trace) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// bodies returns the trace of sleepers; those that began together are in the
// order of their names.
func (l *trace) bodies() []string {
	out := l.all()
	for i := 0; i < len(out); {
		n := i
		for n < len(out) && out[n][0] == '+' {
			n++
		}
		slices.Sort(out[i:n])
		i = n + 1
	}
	return out
}

// sleeper is a body that takes as many milliseconds as its argument says.
func sleeper(l *trace, name string) func(context.Context, map[string]any) (any, error) {
	return func(ctx context.Context, args map[string]any) (any, error) {
		l.add("+%s", name)
		defer l.add("-%s", name)
		select {
		case <-time.After(time.Duration(args["ms"].(float64)) * time.Millisecond):
			return name, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func ms(id, name string, n int) llm.ToolCall { return use(id, name, fmt.Sprintf(`{"ms":%d}`, n)) }

// parallel calls overlap, exclusive ones are alone; A-95: results stand in
// the model's order.
func TestScheduling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &trace{}
		w.tool("p", sleeper(l, "p"), parallel)
		w.tool("q", sleeper(l, "q"), parallel)
		w.tool("x", sleeper(l, "x"))
		w.model.script(want(ms("c1", "p", 30), ms("c2", "q", 10), ms("c3", "x", 10), ms("c4", "p", 5), ms("c5", "q", 20)), say("done"))
		a := w.agent()
		began := time.Now()
		ask(t, a, "go")
		same(t, "order", l.bodies(), []string{"+p", "+q", "-q", "-p", "+x", "-x", "+p", "+q", "-p", "-q"})
		if took := time.Since(began); took != 60*time.Millisecond {
			t.Errorf("took %v", took)
		}
		same(t, "results", shapes(w.model.asked()[1].Messages)[2:], []string{"result c1: p", "result c2: q", "result c3: x", "result c4: p", "result c5: q"})
	})
}

// at most so many at a time, replenished as they end; one at 1.
func TestPool(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			l := &trace{}
			w.tool("p", sleeper(l, "p"), parallel)
			var calls []llm.ToolCall
			for i := range 24 {
				calls = append(calls, ms(fmt.Sprint("c", i), "p", 10+i%2)) // no two equal in a row
			}
			w.model.script(want(calls...), say("done"))
			a := w.agent(func(s *agents.Spec) { s.Options.MaxParallelToolCalls = most })
			ask(t, a, "go")
			running, peak := 0, 0
			for _, s := range l.all() {
				if s[0] == '+' {
					running++
				} else {
					running--
				}
				peak = max(peak, running)
			}
			want := most
			if want == 0 {
				want = 10
			}
			if peak != want {
				t.Errorf("most %d: %d at a time", most, peak)
			}
		})
	}
}

// what a call is, is asked when there is room for it, not before.
func TestReclassification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &trace{}
		w.tool("p", sleeper(l, "p"), parallel)
		var mu sync.Mutex
		safe := true
		w.tool("q", sleeper(l, "q"), func(d *tools.Definition) {
			d.IsConcurrencySafe = func(any) bool { mu.Lock(); defer mu.Unlock(); return safe }
		})
		w.tool("flip", func(context.Context, map[string]any) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			safe = false
			return nil, nil
		}, parallel)
		w.model.script(want(ms("c1", "p", 20), use("c2", "flip", ""), ms("c3", "q", 10)), say("done"))
		a := w.agent(func(s *agents.Spec) { s.Options.MaxParallelToolCalls = 2 })
		ask(t, a, "go")
		same(t, "order", l.all(), []string{"+p", "-p", "+q", "-q"})
	})
}

// pre and post phases run in the model's order, denials too, while bodies
// end in any order.
func TestPolicyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(r, "calls")
		sleeps := rapid.SliceOfN(rapid.IntRange(0, 5), n, n).Draw(r, "sleeps")
		denied := rapid.SliceOfN(rapid.Bool(), n, n).Draw(r, "denied")
		slowPre := rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(r, "pre")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			l := &trace{}
			w.tool("p", sleeper(&trace{}, "p"), parallel)
			at := func(id string) (i int) { fmt.Sscanf(id, "c%d", &i); return }
			on(t, w.owner, tools.PreExecute, func(ctx context.Context, e *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
				l.add("pre %s", e.CallID)
				time.Sleep(time.Duration(slowPre[at(e.CallID)]) * time.Millisecond)
				if denied[at(e.CallID)] {
					return tools.Decision{Kind: tools.Deny, Reason: "no"}, nil
				}
				return next(ctx)
			})
			on(t, w.owner, tools.PostExecute, func(ctx context.Context, o tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
				l.add("post %s", o.Exec.CallID)
				return tools.Verdict{AdditionalContexts: []llm.Message{llm.UserText("context of " + o.Exec.CallID)}}, nil
			})
			var calls []llm.ToolCall
			var pres, posts, results, contexts []string
			for i := range n {
				id := fmt.Sprint("c", i)
				calls = append(calls, use(id, "p", fmt.Sprintf(`{"ms":%d,"i":%d}`, sleeps[i], i)))
				pres, posts = append(pres, "pre "+id), append(posts, "post "+id)
				if denied[i] {
					results = append(results, "result "+id+"!: Error: no")
				} else {
					results = append(results, "result "+id+": p")
				}
				contexts = append(contexts, "user: context of "+id)
			}
			w.model.script(want(calls...), say("done"))
			a := w.agent()
			ask(t, a, "go")
			var gotPre, gotPost []string
			for _, s := range l.all() {
				if strings.HasPrefix(s, "pre") {
					gotPre = append(gotPre, s)
				} else {
					gotPost = append(gotPost, s)
				}
			}
			same(t, "pre", gotPre, pres)
			same(t, "post", gotPost, posts)
			same(t, "request", shapes(w.model.asked()[1].Messages)[2:], slices.Concat(results, contexts))
		})
		if t.Failed() {
			r.FailNow()
		}
	})
}

//
func TestResultErrors(t *testing.T) {
	w := newWorld(t)
	w.tool("fail", func(context.Context, map[string]any) (any, error) {
		return nil, seams.Errorf(seams.Transport, "x", "no route")
	})
	w.model.script(want(use("c1", "fail", "")), say("done"))
	a := w.agent()
	ask(t, a, "x")
	same(t, "error", pick(t, a, events.ToolResult)[0].Error, events.CallError{Code: "TRANSPORT", Message: "no route"})
	for _, e := range a.Session().Events(0) {
		if events.ToolResult.Is(e) && (len(e.SourceEventSeqs) != 1 || !events.ToolCall.Is(a.Session().Events(e.SourceEventSeqs[0])[0])) {
			t.Errorf("cites %v", e.SourceEventSeqs)
		}
	}
}

// a cancel starts nothing more, waits for what was started, and answers
// every call; A-55: what the started ones had to say waits for the next wake.
func TestCancelDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &trace{}
		w.tool("p", sleeper(l, "p"), parallel)
		if _, err := w.tools.Register(w.owner, tools.Definition{Name: "stubborn", IsConcurrencySafe: func(any) bool { return true },
			Execute: func(ctx context.Context, e *tools.Exec, _ any) (any, error) {
				l.add("+stubborn")
				e.DeferContext(llm.UserText("what I did"))
				time.Sleep(time.Second) // does not listen to ctx
				l.add("-stubborn")
				return "did it", nil
			}}); err != nil {
			t.Fatal(err)
		}
		w.tool("x", func(context.Context, map[string]any) (any, error) { t.Error("x ran"); return nil, nil })
		w.model.script(want(use("c1", "stubborn", ""), ms("c2", "p", 60000), use("c3", "x", ""), use("c4", "x", `{"a":1}`)), say("done"))
		a := w.agent()
		must(t, a.Followup(t.Context(), llm.UserText("go")))
		time.Sleep(100 * time.Millisecond)
		must(t, a.Cancel(t.Context(), byUser, false))
		began := time.Now()
		must(t, a.WhenIdle(t.Context()))
		if took := time.Since(began); took != 900*time.Millisecond {
			t.Errorf("idle after %v", took)
		}
		same(t, "bodies", l.bodies(), []string{"+p", "+stubborn", "-p", "-stubborn"})
		same(t, "history", shapes(a.Session().Messages())[2:], []string{
			"result c1!: Error: The call was cancelled while it ran; what it did until then stays done. [ABORTED]",
			"result c2!: Error: context canceled [ABORTED]",
			"result c3!: Error: the turn ended before this call was started; it had no effect [ABORTED_BEFORE_DISPATCH]",
			"result c4!: Error: the turn ended before this call was started; it had no effect [ABORTED_BEFORE_DISPATCH]",
		})
		if _, steps := a.Pending(); len(steps) != 1 {
			t.Errorf("parked %v", steps)
		}
		ask(t, a, "and now?")
		same(t, "request", shapes(w.model.asked()[1].Messages)[6:], []string{"user: what I did", "user: and now?"})
	})
}

// when the log fails, started calls are waited for before that surfaces.
func TestSchedulerFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &trace{}
		f := &flaky{Store: w.store, refuse: events.ToolCall.Name, skip: 1}
		w.agents = agents.New(agents.Deps{Bus: w.bus, LLM: w.llm, Tools: w.tools, Sessions: f, Prompt: w.prompt})
		w.tool("p", sleeper(l, "p"), parallel)
		w.model.script(want(ms("c1", "p", 1000), ms("c2", "p", 2000), ms("c3", "p", 3000)), say("done"))
		a := w.agent()
		if r := ask(t, a, "go"); r.Subtype != agents.Errored || r.Error.Code != seams.InvalidEvent {
			t.Errorf("%+v", r)
		}
		same(t, "bodies", l.all(), []string{"+p", "-p"})
		// What could not be logged the first time was answered after all.
		same(t, "results", len(pick(t, a, events.ToolResult)), 3)
	})
}

// The log is flushed before a model request and before a body, and a flush that
// fails lets neither happen.
func TestFlushBarrier(t *testing.T) {
	w := newWorld(t)
	l := &trace{}
	var fail string
	on(t, w.owner, events.Flushing, func(_ context.Context, s events.Session, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		log := s.Events(0)
		last := log[len(log)-1].Type
		l.add("flush after %s", last)
		if last == fail {
			return struct{}{}, errors.New("disk full")
		}
		return struct{}{}, nil
	})
	w.tool("look", func(context.Context, map[string]any) (any, error) { l.add("body"); return nil, nil })
	w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
		l.add("request")
		return want(use("c1", "look", ""))(ctx, q)
	}, func(ctx context.Context, q llm.Request) llm.Stream {
		l.add("request")
		return say("ok")(ctx, q)
	})
	a := w.agent()
	must(t, a.Followup(t.Context(), llm.UserText("x")))
	must(t, a.WhenIdle(t.Context()))
	same(t, "order", l.all(), []string{
		"flush after request/context", "request", "flush after tool/call", "body", "flush after step/start", "request", "flush after turn/end",
	})
	w.model.script(want(use("c2", "look", "")), say("ok"))
	fail = events.ToolCall.Name
	r := ask(t, a, "y")
	res := pick(t, a, events.ToolResult)
	if got := res[len(res)-1]; got.Error == nil || !strings.Contains(got.Error.Message, "disk full") || r.Subtype != agents.Success {
		t.Errorf("%+v %+v", got, r)
	}
	asked := len(w.model.asked())
	fail = events.UserMessage.Name
	if r := ask(t, a, "z"); r.Subtype != agents.Errored || len(w.model.asked()) != asked {
		t.Errorf("%+v", r)
	}
	fail = events.TurnEnd.Name
	if r := ask(t, a, "z"); r.Subtype != agents.Errored || !strings.Contains(r.Error.Message, "disk full") {
		t.Errorf("%+v", r)
	}
}
