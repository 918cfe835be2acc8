package agents_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// looping is a model that calls for ever; call makes the n-th call.
func looping(call func(n int) []llm.ToolCall) reply {
	n := 0
	return func(ctx context.Context, q llm.Request) llm.Stream {
		n++
		return want(call(n)...)(ctx, q)
	}
}

func one(name, args string) func(int) []llm.ToolCall {
	return func(n int) []llm.ToolCall { return []llm.ToolCall{use(fmt.Sprint("c", n), name, args)} }
}

func TestLimits(t *testing.T) {
	count := func(n int) []llm.ToolCall {
		return []llm.ToolCall{use(fmt.Sprint("c", n), "read", fmt.Sprintf(`{"n":%d}`, n))}
	}
	for _, c := range []struct {
		name     string
		call     func(int) []llm.ToolCall
		limits   agents.Limits
		price    *agents.Price
		code     seams.Code
		requests int
		runs     int
	}{
		{"steps by default", count, agents.Limits{}, nil, seams.StepLimit, 64, 64},
		{"steps", count, agents.Limits{Steps: 3}, nil, seams.StepLimit, 3, 3},
		{"equal calls", one("read", "{}"), agents.Limits{}, nil, seams.RepeatLimit, 6, 5},
		{"equal broken calls", one("read", "{"), agents.Limits{}, nil, seams.RepeatLimit, 6, 0},
		{"equal calls of one reply", func(n int) (out []llm.ToolCall) {
			for i := range 9 {
				out = append(out, use(fmt.Sprint(n, ".", i), "read", ""))
			}
			return
		}, agents.Limits{}, nil, seams.RepeatLimit, 1, 5},
		{"polling", one("poll", "{}"), agents.Limits{Steps: 20, RepeatExempt: []string{"poll"}}, nil, seams.StepLimit, 20, 20},
		{"polling does not hide others", func(n int) []llm.ToolCall {
			return []llm.ToolCall{use(fmt.Sprint("c", n), "read", ""), use(fmt.Sprint("d", n), "poll", "")}
		}, agents.Limits{Steps: 20, RepeatExempt: []string{"poll"}}, nil, seams.RepeatLimit, 6, 10},
		{"a pair in turn", func(n int) []llm.ToolCall { return one("read", fmt.Sprint(`{"n":`, n%2, `}`))(n) }, agents.Limits{Steps: 12}, nil, seams.StepLimit, 12, 12},
		{"unknown tools", func(n int) []llm.ToolCall { return one(fmt.Sprint("made-up-", n), "{}")(n) }, agents.Limits{}, nil, seams.UnknownToolLimit, 6, 0},
		{"unknown tools between known ones", func(n int) []llm.ToolCall {
			return []llm.ToolCall{use(fmt.Sprint("c", n), fmt.Sprint("made-up-", n), ""), use(fmt.Sprint("d", n), "read", fmt.Sprint(`{"n":`, n, `}`))}
		}, agents.Limits{Steps: 10}, nil, seams.StepLimit, 10, 10},
		{"tokens", count, agents.Limits{Tokens: 50}, nil, seams.SpendLimit, 4, 4},
		{"money", count, agents.Limits{USD: 0.00005}, &agents.Price{Input: 1, Output: 1}, seams.SpendLimit, 4, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			runs := 0
			for _, name := range []string{"read", "poll"} {
				w.tool(name, func(context.Context, map[string]any) (any, error) { runs++; return "same", nil })
			}
			calls := looping(c.call)
			w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
				return func(yield func(llm.Chunk, error) bool) {
					for ch, err := range calls(ctx, q) {
						if _, last := ch.(llm.Finish); last {
							yield(llm.Usage{Usage: llm.TokenUsage{InputTokens: 10, OutputTokens: 5}}, nil)
						}
						if !yield(ch, err) {
							return
						}
					}
				}
			})
			a := w.agent(func(s *agents.Spec) { s.Options.Limits, s.Options.Price = c.limits, c.price })
			r := ask(t, a, "go")
			end := lastEnd(t, a)
			if end.Kind != events.Limited || end.Error.Code != c.code || r.Subtype != agents.Limit || r.Error.Code != c.code {
				t.Errorf("end %+v result %+v", end, r)
			}
			if n := len(w.model.asked()); n != c.requests || runs != c.runs {
				t.Errorf("%d requests, %d runs; want %d, %d", n, runs, c.requests, c.runs)
			}
			if calls, results := pick(t, a, events.ToolCall), pick(t, a, events.ToolResult); len(calls) != len(results) {
				t.Errorf("%d calls, %d results", len(calls), len(results))
			}
			if turns, steps := a.Pending(); len(turns)+len(steps) > 0 {
				t.Errorf("pending %v %v", turns, steps)
			}
			if c.price != nil && (r.CostUSD == nil || *r.CostUSD < c.limits.USD) {
				t.Errorf("cost %v", r.CostUSD)
			}
		})
	}
}

// The third call in a row brings a reminder, once; a message of the user begins
// the count anew, and so does a turn.
func TestReminder(t *testing.T) {
	w := newWorld(t)
	w.tool("read", echo("same"))
	var a *agents.Agent
	n := 0
	w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
		n++
		if n == 5 {
			must(t, a.Steer(ctx, llm.UserText("keep trying")))
		}
		if n == 10 {
			return say("done")(ctx, q)
		}
		return want(use(fmt.Sprint("c", n), "read", ""))(ctx, q)
	})
	a = w.agent()
	r := ask(t, a, "go")
	var reminders []int
	for i, m := range a.Session().Messages() {
		if m.Source.Form == "notice" {
			reminders = append(reminders, i)
			if !strings.Contains(m.Content.Text(), `"read" 3 times`) {
				t.Errorf("%s", m.Content.Text())
			}
		}
	}
	if r.Subtype != agents.Success || len(reminders) != 2 {
		t.Errorf("%+v reminders at %v", r, reminders)
	}
}

// The spend of a session counts when it is resumed.
func TestSpendOutlivesTheProcess(t *testing.T) {
	w := newWorld(t)
	limit := func(s *agents.Spec) { s.Options.Limits.Tokens = 15 }
	a := w.agent(limit)
	if r := ask(t, a, "x"); r.Subtype != agents.Success {
		t.Fatalf("%+v", r)
	}
	must(t, a.Dispose(t.Context()))
	s := agents.Spec{Header: events.Header{ID: "main"}, Options: testOptions}
	limit(&s)
	b, err := w.agents.Resume(t.Context(), w.owner, s)
	must(t, err)
	if r := ask(t, b, "y"); r.Error == nil || r.Error.Code != seams.SpendLimit || len(w.model.asked()) != 1 {
		t.Errorf("%+v", r)
	}
	// The message was not lost: it is run when there is money again.
	o := b.Options()
	o.Limits.Tokens = 0
	must(t, b.Configure(o))
	ask(t, b, "z")
	same(t, "request", shapes(w.model.asked()[1].Messages), []string{"user: x", "assistant: ok", "user: y"})
}

// Whatever the order of its members and its white space, a call is the same
// call; with another value it is another.
func TestCanonicalArguments(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.Int32(), 1, 5).Draw(r, "args")
		var keys []string
		for k := range m {
			keys = append(keys, k)
		}
		write := func(order []string, bump string) string {
			var b strings.Builder
			b.WriteString(" {")
			for i, k := range order {
				if i > 0 {
					b.WriteString(rapid.SampledFrom([]string{",", " , ", ",\n"}).Draw(r, "comma"))
				}
				v := m[k]
				if k == bump {
					v ^= 1
				}
				fmt.Fprintf(&b, "%q: %d", k, v)
			}
			return b.String() + "}"
		}
		runs := func(last string) int {
			w := newWorld(quiet{t})
			defer w.owner.dispose(t)
			n := 0
			w.tool("read", func(context.Context, map[string]any) (any, error) { n++; return nil, nil })
			calls := []llm.ToolCall{}
			for i := range stopsAt - 1 {
				calls = append(calls, use(fmt.Sprint("c", i), "read", write(rapid.Permutation(keys).Draw(r, "order"), "")))
			}
			w.model.script(want(append(calls, use("last", "read", last))...), say("done"))
			ask(t, w.agent(), "go")
			return n
		}
		if n := runs(write(rapid.Permutation(keys).Draw(r, "order"), "")); n != stopsAt-1 {
			r.Fatalf("an equal call was run: %d", n)
		}
		if n := runs(write(keys, keys[0])); n != stopsAt {
			r.Fatalf("another call was not run: %d", n)
		}
	})
}

const stopsAt = 6 // as the package comment says
