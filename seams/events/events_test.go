package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The rows E-01…E-22 that concern a store are pinned by the conformance suite
// in conformance/events, which runs against Memory.

func newLog(t interface{ Fatal(...any) }) *events.Log {
	l, err := events.NewLog(events.Header{ID: "a"}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func model(content ...llm.Block) llm.Message {
	return llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, Provider: "p", Model: "m"}, content...)
}

// turns draws the drafts of a well-formed log of whole turns.
func turns(t *rapid.T) []events.Draft {
	var out []events.Draft
	add := func(d events.Draft) int {
		out = append(out, d)
		return len(out) - 1
	}
	for turn := range rapid.IntRange(1, 3).Draw(t, "turns") {
		turn++
		add(events.TurnStart.New(events.Turn{Turn: turn}))
		for step := range rapid.IntRange(0, 3).Draw(t, "steps") {
			step++
			add(events.StepStart.New(events.Step{Turn: turn, Step: step}))
			if rapid.Bool().Draw(t, "input") {
				add(events.UserMessage.New(events.Message{Message: llm.UserText("hi")}))
			}
			var chunks []int
			for range rapid.IntRange(0, 2).Draw(t, "chunks") {
				chunks = append(chunks, add(events.AssistantChunk.New(events.Chunk{Turn: turn, Step: step, Chunk: llm.TextDelta{Text: "x"}})))
			}
			var calls []llm.Block
			for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
				calls = append(calls, llm.ToolCall{ID: fmt.Sprint("c", turn, step, i), Name: "t", Arguments: "{}"})
			}
			if len(calls) == 0 && rapid.Bool().Draw(t, "text") {
				calls = append(calls, llm.Text{Text: "re"})
			}
			add(events.AssistantMessage.New(events.Reply{Turn: turn, Step: step, Message: model(calls...)}).Citing(chunks...))
			at := map[string]int{}
			for _, b := range calls {
				if c, ok := b.(llm.ToolCall); ok {
					at[c.ID] = add(events.ToolCall.New(events.Call{Turn: turn, Step: step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments}))
					if rapid.Bool().Draw(t, "log-only") {
						add(events.Draft{Type: "my-plugin/thing", Data: map[string]any{"n": 1}, Ignorable: true})
					}
				}
			}
			for _, b := range calls {
				if c, ok := b.(llm.ToolCall); ok {
					add(events.ToolResult.New(events.CallResult{Turn: turn, Step: step, Message: llm.NewToolResult(c.ID, false, llm.Text{Text: "ok"})}).Citing(at[c.ID]))
				}
			}
			add(events.StepEnd.New(events.Step{Turn: turn, Step: step}))
		}
		add(events.TurnEnd.New(events.TurnResult{Turn: turn, Reason: events.EndReason{Kind: events.Completed}}))
	}
	return out
}

// A log cut at any place, as by a crash, is repaired to one whose grammar holds
// and in which every call has one result, right after its reply; what was there
// is untouched, and a second repair finds nothing to do (E-16, E-20, agt-05).
func TestRepairAfterACrashAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLog(t)
		drafts := turns(t)
		for i, d := range drafts[:rapid.IntRange(0, len(drafts)).Draw(t, "cut")] {
			if e, err := l.Append(int64(i), d); err != nil || e.Seq != i {
				t.Fatalf("%d %s: seq %d, %v", i, d.Type, e.Seq, err)
			}
		}
		before := l.Events(0)
		closers, err := events.Repair(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range closers {
			if _, err := l.Append(99, d); err != nil {
				t.Fatal(err)
			}
		}
		if err := events.Verify(l.Header(), l.Events(0)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(l.Events(0)[:len(before)], before) {
			t.Fatal("repair changed what was logged")
		}
		if again, err := events.Repair(l); len(again) != 0 || err != nil || l.State().InTurn {
			t.Fatalf("not balanced after repair: %v, %v", again, err)
		}
		open := map[string]bool{}
		for _, m := range l.Messages() {
			for id := range open {
				if m.Source.Kind != llm.FromTool {
					t.Fatalf("%s has no result before the next message", id)
				}
			}
			delete(open, m.Source.CallID)
			for _, c := range m.Content.ToolCalls() {
				open[c.ID] = true
			}
		}
		if len(open) > 0 {
			t.Fatalf("no result for %v", open)
		}
	})
}

// Whatever is appended: numbers are contiguous, what is refused changes
// nothing, the messages are those that the events alone give, and events that
// are not on the surface never change them (E-02, E-11, E-13, E-14, E-22).
func TestLogLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLog(t)
		seq := rapid.IntRange(-1, 12)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				d := rapid.SampledFrom([]events.Draft{
					events.UserMessage.New(events.Message{Message: llm.UserText("hi")}),
					events.AssistantMessage.New(events.Reply{Message: model(llm.ToolCall{ID: "c1"})}),
					events.AssistantMessage.New(events.Reply{Message: model()}),
					events.ToolResult.New(events.CallResult{Message: llm.NewToolResult("c1", false)}),
					events.TurnStart.New(events.Turn{Turn: 1}), events.EndSeed.New(events.Nothing{}),
					{Type: "x/y", Data: map[string]any{}}, {Type: "x/y", Data: 1}, {Type: "", Data: map[string]any{}},
				}).Draw(t, "draft")
				if rapid.Bool().Draw(t, "cites") {
					d = d.Citing(rapid.SliceOfN(seq, 0, 4).Draw(t, "sources")...)
				}
				if rapid.Bool().Draw(t, "replaces") {
					d = d.Replacing(seq.Draw(t, "start"), seq.Draw(t, "end"))
				}
				before, messages, state := l.Events(0), l.Messages(), l.State()
				e, err := l.Append(5, d)
				if err == nil && d.SurfaceOp != nil {
					messages = l.Messages()
				}
				if err != nil && (l.Len() != len(before) || !reflect.DeepEqual(l.State(), state) || !errors.Is(err, seams.InvalidEvent)) {
					t.Fatalf("a refused append changed the log: %v", err)
				}
				if err == nil && (e.Seq != len(before) || l.Len() != e.Seq+1) {
					t.Fatalf("seq %d at length %d", e.Seq, len(before))
				}
				if !reflect.DeepEqual(l.Messages(), messages) {
					t.Fatalf("%s changed the messages", d.Type)
				}
			},
			"": func(t *rapid.T) {
				again, err := events.ReadLog(l.Header(), l.Events(0))
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(again.Messages(), l.Messages()) || !reflect.DeepEqual(again.State(), l.State()) || !reflect.DeepEqual(again.Surface(), l.Surface()) {
					t.Fatal("the log read again differs")
				}
			},
		})
	})
}

// E-20: each way to break the order of execution is refused, before commit.
func TestGrammar(t *testing.T) {
	start := func(n int) events.Draft { return events.TurnStart.New(events.Turn{Turn: n}) }
	end := func(n int) events.Draft {
		return events.TurnEnd.New(events.TurnResult{Turn: n, Reason: events.EndReason{Kind: events.Completed}})
	}
	step := func(turn, n int) events.Draft { return events.StepStart.New(events.Step{Turn: turn, Step: n}) }
	stepEnd := func(turn, n int) events.Draft { return events.StepEnd.New(events.Step{Turn: turn, Step: n}) }
	ask := events.AssistantMessage.New(events.Reply{Turn: 1, Step: 1, Message: model(llm.ToolCall{ID: "c1"})})
	call := events.ToolCall.New(events.Call{Turn: 1, Step: 1, CallID: "c1"})
	answer := events.ToolResult.New(events.CallResult{Turn: 1, Step: 1, Message: llm.NewToolResult("c1", false)})
	chunk := func(turn, n int) events.Draft {
		return events.AssistantChunk.New(events.Chunk{Turn: turn, Step: n, Chunk: llm.TextDelta{Text: "x"}})
	}
	for name, c := range map[string]struct {
		good []events.Draft
		bad  events.Draft
	}{
		"first turn is 1":          {nil, start(2)},
		"turns count up":           {[]events.Draft{start(1), end(1)}, start(1)},
		"turns do not overlap":     {[]events.Draft{start(1)}, start(2)},
		"no end without a start":   {nil, end(1)},
		"the open turn ends":       {[]events.Draft{start(1)}, end(2)},
		"steps end before turns":   {[]events.Draft{start(1), step(1, 1)}, end(1)},
		"no step outside of turns": {nil, step(1, 1)},
		"steps count from 1":       {[]events.Draft{start(1)}, step(1, 2)},
		"steps do not overlap":     {[]events.Draft{start(1), step(1, 1)}, step(1, 2)},
		"a step's turn is open":    {[]events.Draft{start(1)}, step(2, 1)},
		"the open step ends":       {[]events.Draft{start(1), step(1, 1)}, stepEnd(1, 2)},
		"no chunk outside":         {[]events.Draft{start(1)}, chunk(1, 1)},
		"a chunk names its step":   {[]events.Draft{start(1), step(1, 1)}, chunk(1, 2)},
		"no reply outside":         {[]events.Draft{start(1)}, ask},
		"no call unasked":          {[]events.Draft{start(1), step(1, 1)}, call},
		"no call twice":            {[]events.Draft{start(1), step(1, 1), ask, call}, call},
		"no result uncalled":       {[]events.Draft{start(1), step(1, 1), ask}, answer},
		"no result twice":          {[]events.Draft{start(1), step(1, 1), ask, call, answer}, answer},
		"calls are answered":       {[]events.Draft{start(1), step(1, 1), ask, call}, stepEnd(1, 1)},
		"asked is answered":        {[]events.Draft{start(1), step(1, 1), ask}, stepEnd(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			store := events.NewMemory(events.Options{Bus: harness.NewBus(), Enforce: true})
			s, err := events.Create(context.Background(), store, events.Spec{Header: events.Header{ID: "a"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range c.good {
				if _, err := s.Append(context.Background(), d); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Append(context.Background(), c.bad); !errors.Is(err, seams.InvalidEvent) {
				t.Errorf("got %v, want INVALID_EVENT", err)
			}
			if s.Len() != len(c.good) {
				t.Error("the refused event was committed")
			}
		})
	}
}

// agt-05: the process died while the second call ran; the session goes on and
// what is sent has an answer for each call, in order.
func TestHistoryAfterAKill(t *testing.T) {
	b, err := os.ReadFile("testdata/agt-05.history.json")
	if err != nil {
		t.Fatal(err)
	}
	var history []struct {
		Role, Content, ID, Note string
		ToolCalls               []struct{ ID, Name string } `json:"tool_calls"`
	}
	if err := json.Unmarshal(b, &history); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	store := events.NewMemory(events.Options{Bus: harness.NewBus(), Enforce: true})
	s, err := events.Create(ctx, store, events.Spec{Header: events.Header{ID: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	put := func(d events.Draft) {
		t.Helper()
		if _, err := s.Append(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	put(events.TurnStart.New(events.Turn{Turn: 1}))
	put(events.StepStart.New(events.Step{Turn: 1, Step: 1}))
	for i, h := range history {
		switch {
		case h.Note != "":
			if err := s.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if s, err = store.Resume(ctx, "a", nil); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.Enter(), s.Announce(ctx)); err != nil {
				t.Fatal(err)
			}
		case h.Role == "user":
			put(events.UserMessage.New(events.Message{Message: llm.UserText(h.Content)}))
		case h.Role == "assistant":
			content := []llm.Block{llm.Text{Text: h.Content}}
			for _, c := range h.ToolCalls {
				content = append(content, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: "{}"})
			}
			put(events.AssistantMessage.New(events.Reply{Turn: 1, Step: 1, Message: model(content...)}).Citing())
			for _, c := range h.ToolCalls {
				put(events.ToolCall.New(events.Call{Turn: 1, Step: 1, CallID: c.ID, Name: c.Name, Arguments: "{}"}))
			}
		case h.Role == "tool":
			put(events.ToolResult.New(events.CallResult{Turn: 1, Step: 1, Message: llm.NewToolResult(h.ID, false, llm.Text{Text: h.Content})}))
		default:
			t.Fatalf("row %d of the history is not understood", i)
		}
	}
	var got []string
	for _, m := range s.Messages() {
		line := string(m.Role)
		if m.Source.Kind == llm.FromTool {
			r := m.Content[0].(llm.ToolResult)
			line = "tool " + r.ToolCallID + ": " + r.Content.Text()
		}
		got = append(got, line)
	}
	want := []string{"user", "assistant", "tool c1: old new", "tool c2: Error: ", "user"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("message %d is %q, want %q", i, got[i], want[i])
		}
	}
	if !strings.Contains(got[3], "TOOL_OUTCOME_UNKNOWN") {
		t.Errorf("the second result says %q", got[3])
	}
}

// The JSON of the core events is what the reference documents (§5.6).
func TestJSON(t *testing.T) {
	message := llm.Message{ID: "m1", Role: llm.User, Content: llm.Content{llm.Text{Text: "hi"}}, Source: llm.Source{Kind: "user"}}
	asked := llm.Message{ID: "m2", Role: llm.Assistant, Content: llm.Content{}, Source: llm.Source{Kind: "model", Provider: "p", Model: "m"}}
	answer := llm.Message{ID: "m3", Role: llm.User, Content: llm.Content{llm.ToolResult{ToolCallID: "c1", Content: llm.Content{}}}, Source: llm.Source{Kind: "tool", CallID: "c1"}}
	const user = `{"id":"m1","role":"user","content":[{"type":"text","text":"hi"}],"source":{"kind":"user"}}`
	for _, c := range []struct {
		d    events.Draft
		want string
	}{
		{events.TurnStart.New(events.Turn{Turn: 1}), `"turn/start","time":7,"data":{"turn":1}`},
		{events.TurnEnd.New(events.TurnResult{Turn: 1, Reason: events.EndReason{Kind: events.Aborted, Cause: &events.Cause{Kind: events.ByUser}}}), `"turn/end","time":7,"data":{"turn":1,"reason":{"kind":"aborted","reason":{"kind":"user"}}}`},
		{events.TurnEnd.New(events.TurnResult{Turn: 1, Reason: events.EndReason{Kind: events.Failed, Error: &llm.Failure{Message: "no", Code: "SERVER"}}}), `"turn/end","time":7,"data":{"turn":1,"reason":{"kind":"error","error":{"message":"no","code":"SERVER"}}}`},
		{events.StepStart.New(events.Step{Turn: 1, Step: 2}), `"step/start","time":7,"data":{"turn":1,"step":2}`},
		{events.UserMessage.New(events.Message{Message: message}), `"user/message","time":7,"data":{"message":` + user + `},"surfaceOp":"append"`},
		{events.UserMessage.New(events.Message{Message: message}).Replacing(4, 4).Citing(4), `"user/message","time":7,"data":{"message":` + user + `},"surfaceOp":{"op":"replace","start":4,"end":4},"sourceEventSeqs":[4]`},
		{events.AssistantChunk.New(events.Chunk{Turn: 1, Step: 1, Chunk: llm.TextDelta{Index: 0, Text: "x"}}), `"assistant/chunk","time":7,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"x"}}`},
		{events.AssistantMessage.New(events.Reply{Turn: 1, Step: 1, Message: asked, Interrupted: true}).Citing(), `"assistant/message","time":7,"data":{"turn":1,"step":1,"message":{"id":"m2","role":"assistant","content":[],"source":{"kind":"model","provider":"p","model":"m"}},"interrupted":true},"surfaceOp":"append","sourceEventSeqs":[]`},
		{events.ToolCall.New(events.Call{Turn: 1, Step: 1, CallID: "c1", Name: "t", Arguments: "{"}), `"tool/call","time":7,"data":{"turn":1,"step":1,"callId":"c1","name":"t","arguments":"{"}`},
		{events.ToolResult.New(events.CallResult{Turn: 1, Step: 1, Message: answer, Error: &events.CallError{Code: "X"}}), `"tool/result","time":7,"data":{"turn":1,"step":1,"message":{"id":"m3","role":"user","content":[{"type":"tool-result","toolCallId":"c1","content":[]}],"source":{"kind":"tool","callId":"c1"}},"error":{"code":"X"}},"surfaceOp":"append"`},
		{events.RequestContext.New(events.ModelContext{Provider: "p", Model: "m"}), `"request/context","time":7,"data":{"provider":"p","model":"m"}`},
		{events.EndSeed.New(events.Nothing{}), `"session/end-seed","time":7,"data":{}`},
		{events.InboxSpliced.New(events.Splice{Target: events.NextTurn, Inserted: []llm.Message{message}}), `"agent/inbox/spliced","time":7,"data":{"target":"next-turn","start":0,"inserted":[` + user + `]}`},
		{events.Type[events.Nothing]{Name: "x/y", Ignorable: true}.New(events.Nothing{}), `"x/y","time":7,"data":{},"ignorable":true`},
	} {
		l := newLog(t)
		for range 4 {
			l.Append(0, events.Draft{Type: "x/y", Data: map[string]any{}})
		}
		l.Append(0, events.UserMessage.New(events.Message{Message: message}))
		e, err := l.Append(7, c.d)
		if err != nil {
			t.Errorf("%s: %v", c.d.Type, err)
			continue
		}
		b, err := json.Marshal(e)
		if want := `{"seq":5,"type":` + c.want + `}`; err != nil || string(b) != want {
			t.Errorf("got  %s\nwant %s (%v)", b, want, err)
		}
		var back events.Event
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%s does not come back: %v", b, err)
		}
	}
}

// E-06: members that this version does not know are refused, not dropped.
func TestDecodeHeader(t *testing.T) {
	h := events.Header{ID: "a", CreatedAt: 1, CWD: "/tmp", ParentSession: "b", SeedLength: 2, Origin: "subagent", DelegationDepth: 1, AgentPreset: "p"}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := events.DecodeHeader(b); err != nil || back != h {
		t.Errorf("%s came back as %+v, %v", b, back, err)
	}
	for _, bad := range []string{``, `[]`, `{"version":0,"id":"a","createdAt":1,"colour":"red"}`, `{"version":2,"id":"a"}`, `{"id":1}`} {
		if _, err := events.DecodeHeader([]byte(bad)); !errors.Is(err, seams.InvalidEvent) {
			t.Errorf("%s: got %v, want INVALID_EVENT", bad, err)
		}
	}
}

// Decode answers for its own type only.
func TestDecode(t *testing.T) {
	l := newLog(t)
	e, err := l.Append(0, events.TurnStart.New(events.Turn{Turn: 3}))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := events.TurnStart.Decode(e); err != nil || d.Turn != 3 {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, err := events.StepStart.Decode(e); !errors.Is(err, seams.InvalidEvent) {
		t.Errorf("another type: %v", err)
	}
}

// What is read from outside is refused or kept exactly, never a panic.
func FuzzReadLog(f *testing.F) {
	l := newLog(f)
	for _, d := range []events.Draft{
		events.TurnStart.New(events.Turn{Turn: 1}), events.StepStart.New(events.Step{Turn: 1, Step: 1}),
		events.UserMessage.New(events.Message{Message: llm.UserText("hi")}),
		events.AssistantMessage.New(events.Reply{Turn: 1, Step: 1, Message: model(llm.ToolCall{ID: "c1"})}).Citing(),
		events.ToolCall.New(events.Call{Turn: 1, Step: 1, CallID: "c1"}),
		events.ToolResult.New(events.CallResult{Turn: 1, Step: 1, Message: llm.NewToolResult("c1", false)}),
		events.AssistantChunk.New(events.Chunk{Turn: 1, Step: 1, Chunk: llm.TextDelta{Text: "x"}}),
		events.InboxSpliced.New(events.Splice{Target: events.NextStep}),
		events.RequestHeader.New(events.HeaderChange{Header: events.Envelope{Config: llm.CallConfig{Provider: "p", Model: "m"}}, Reason: events.HeaderInitial}),
	} {
		if _, err := l.Append(0, d); err != nil {
			f.Fatal(err)
		}
		b, _ := json.Marshal(l.Events(0))
		f.Add(b)
	}
	f.Add([]byte(`[{"type":"tool/result","data":{"Message":{}},"surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var es []events.Event
		if json.Unmarshal(data, &es) != nil {
			return
		}
		l, err := events.ReadLog(events.Header{ID: "a"}, es)
		if err != nil {
			if c := seams.CodeOf(err); c != seams.InvalidEvent && c != seams.NotJSON && c != seams.TooLarge {
				t.Fatalf("code %s: %v", c, err)
			}
			return
		}
		again, err := events.ReadLog(l.Header(), l.Events(0))
		if err != nil || !reflect.DeepEqual(again.Messages(), l.Messages()) {
			t.Fatalf("read again: %v", err)
		}
		if closers, err := events.Repair(l); err == nil {
			for _, d := range closers {
				if _, err := l.Append(0, d); err != nil {
					t.Fatalf("a closer is refused: %v", err)
				}
			}
		}
	})
}

func BenchmarkAppendChunk(b *testing.B) {
	l := newLog(b)
	d := events.AssistantChunk.New(events.Chunk{Turn: 1, Step: 1, Chunk: llm.TextDelta{Text: "some words of a reply"}})
	for b.Loop() {
		if _, err := l.Append(0, d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessages(b *testing.B) {
	l := newLog(b)
	for range 500 {
		if _, err := l.Append(0, events.UserMessage.New(events.Message{Message: llm.UserText("hi")})); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		l.Messages()
	}
}

func ExampleMemory() {
	ctx := context.Background()
	store := events.NewMemory(events.Options{Bus: harness.NewBus(), Now: func() time.Time { return time.UnixMilli(0) }})
	s, err := events.Create(ctx, store, events.Spec{Header: events.Header{ID: "main"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)
	e, _ := s.Append(ctx, events.UserMessage.New(events.Message{Message: llm.UserText("hello")}))
	fmt.Println(e.Seq, e.Type)
	_, err = s.Append(ctx, events.Draft{Type: "user/message", Data: map[string]any{"text": "no message"}})
	fmt.Println(err)
	for _, m := range s.Messages() {
		fmt.Println(m.Role, m.Content.Text())
	}
	// Output:
	// 0 user/message
	// events: event 1 (user/message): surfaceOp is missing: every user/message is a node of the surface [INVALID_EVENT]
	// user hello
}
