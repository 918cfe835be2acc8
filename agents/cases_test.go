package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// The files in testdata are failure cases from the field: scripts of a model,
// or a history. These types are their form.
type caseScript struct {
	Tools []string    `json:"tools"`
	Model []caseEntry `json:"model"`
	Root  []caseEntry `json:"model_root"`
	Child []caseEntry `json:"model_child"`
	Deep  []caseEntry `json:"model_deepest"`
}

type caseEntry struct {
	Calls     []caseCall  `json:"calls"`
	Text      string      `json:"text"`
	Finish    string      `json:"finish"`
	Repeat    int         `json:"repeat"`
	Alternate []caseEntry `json:"alternate"`
	Restart   bool        `json:"restart_session"`
	User      string      `json:"user"`
	Check     *struct {
		Objects   bool     `json:"every_assistant_arguments_is_json_object"`
		ResultFor []string `json:"tool_result_for"`
		IsError   bool     `json:"result_is_error"`
		Errors    []string `json:"errors"`
		Order     []string `json:"order"`
	} `json:"check_request"`
}

type caseCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Raw  *string         `json:"raw_args"`
}

func (c caseCall) call(n int) llm.ToolCall {
	args := string(c.Args)
	if c.Raw != nil {
		args = *c.Raw
	}
	return use(strings.ReplaceAll(c.ID, "$n", fmt.Sprint("n", n)), c.Name, args)
}

// answer is the entry as a reply to the n-th request.
func (e caseEntry) answer(n int) reply {
	if len(e.Calls) == 0 {
		return say(e.Text)
	}
	var calls []llm.ToolCall
	for _, c := range e.Calls {
		calls = append(calls, c.call(n))
	}
	return want(calls...)
}

func readCase(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	must(t, json.Unmarshal(b, into))
}

// checkSendable checks what every provider asks of a history: each call has a
// name, an id of its own and an object as arguments, and its results follow it.
func checkSendable(t *testing.T, ms []llm.Message) {
	t.Helper()
	seen := map[string]bool{}
	var open []string
	for _, m := range ms {
		if m.Source.Kind == llm.FromTool {
			if !slices.Contains(open, m.Source.CallID) {
				t.Errorf("result %q answers no call before it", m.Source.CallID)
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == m.Source.CallID })
			continue
		}
		if len(open) > 0 {
			t.Errorf("%s stands between calls %v and their results", shape(m), open)
		}
		for _, c := range m.Content.ToolCalls() {
			var object map[string]any
			if err := json.Unmarshal([]byte(c.Arguments), &object); err != nil || object == nil {
				t.Errorf("arguments %q of %s are no JSON object", c.Arguments, c.ID)
			}
			if c.Name == "" || c.ID == "" || seen[c.ID] {
				t.Errorf("call %q of %q", c.ID, c.Name)
			}
			seen[c.ID] = true
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("calls %v have no result", open)
	}
}

func results(ms []llm.Message) (order, failed []string) {
	for _, m := range ms {
		if m.Source.Kind == llm.FromTool {
			order = append(order, m.Source.CallID)
			if m.Content[0].(llm.ToolResult).IsError {
				failed = append(failed, m.Source.CallID)
			}
		}
	}
	return
}

// agt-01, agt-02: the scripts, with what they check of each request.
func TestScriptedCases(t *testing.T) {
	for file, expect := range map[string]struct {
		runs     []string
		final    string
		requests int
	}{
		"agt-01.script.json": {nil, "fine", 3},
		"agt-02.script.json": {[]string{"read"}, "done", 2},
	} {
		t.Run(file, func(t *testing.T) {
			w := newWorld(t)
			var script caseScript
			readCase(t, file, &script)
			var runs []string
			for _, name := range script.Tools {
				w.tool(name, func(context.Context, map[string]any) (any, error) { runs = append(runs, name); return "ok", nil })
			}
			var replies []reply
			users := []string{"begin"}
			for i, e := range script.Model {
				if e.Check == nil && e.User == "" && !e.Restart {
					replies = append(replies, e.answer(i))
				}
				if e.User != "" {
					users = append(users, e.User)
				}
			}
			w.model.script(replies...)
			a := w.agent()
			last := ask(t, a, users[0])
			if len(users) > 1 { // after a restart of the session
				must(t, a.Dispose(t.Context()))
				var err error
				a, err = w.agents.Resume(t.Context(), w.owner, agents.Spec{Header: events.Header{ID: "main"}, Options: testOptions})
				must(t, err)
				last = ask(t, a, users[1])
			}
			if last.Text != expect.final || len(w.model.asked()) != expect.requests || !slices.Equal(runs, expect.runs) {
				t.Errorf("final %q, %d requests, runs %v", last.Text, len(w.model.asked()), runs)
			}
			request := 0
			for _, e := range script.Model {
				if e.Check == nil {
					if e.User == "" && !e.Restart {
						request++
					}
					continue
				}
				ms := w.model.asked()[request].Messages
				order, failed := results(ms)
				if e.Check.ResultFor != nil {
					same(t, "results", order, e.Check.ResultFor)
				}
				if e.Check.IsError {
					same(t, "errors", failed, e.Check.ResultFor)
				}
				if e.Check.Errors != nil {
					same(t, "errors", failed, e.Check.Errors)
				}
			}
			for _, q := range w.model.asked() {
				checkSendable(t, q.Messages)
			}
		})
	}
}

// agt-01, A-64: whatever text stands where arguments should, the call is either
// run with an object or answered with an error that says what is wrong.
func TestBrokenArguments(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		runs bool
	}{
		"none":        {"", true},
		"blank":       {" \n", true},
		"object":      {` {"a":1} `, true},
		"cut":         {`{"path": "a.txt", "content": "unfinis`, false},
		"null":        {"null", true},
		"list":        {"[]", false},
		"text":        {`"text"`, false},
		"two":         {`{"a":1}{"b":2}`, false},
		"comma":       {`{"a":1,}`, false},
		"NaN":         {`{"a":NaN}`, false},
		"5 MB of [":   {strings.Repeat("[", 5<<20), false},
		"deep object": {strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000), false},
		"bad UTF-8":   {"{\"a\":\"\xff\"}", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs := 0
			w.tool("write_file", func(context.Context, map[string]any) (any, error) { runs++; return "ok", nil })
			state := &llm.ReplayState{Response: jsonRaw(`"verbatim"`)}
			w.model.script(chunks(
				llm.BlockStart{BlockType: llm.KindToolCall}, llm.BlockEnd{Block: use("c1", "write_file", c.raw)},
				llm.Finish{Reason: llm.FinishReason{Kind: llm.ToolCalls}, ReplayState: state}), say("fine"))
			a := w.agent()
			if r := ask(t, a, "x"); r.Text != "fine" {
				t.Fatalf("%+v", r)
			}
			ms := w.model.asked()[1].Messages
			checkSendable(t, ms)
			if replay := ms[1].Source.ReplayState; (replay != nil) != (ms[1].Content.ToolCalls()[0].Arguments == c.raw) {
				t.Errorf("arguments were changed, or not, and the replay state is %v", replay)
			}
			res := ms[2].Content[0].(llm.ToolResult)
			if res.IsError == c.runs || runs == 1 != c.runs {
				t.Errorf("runs %d, result %.200s", runs, shape(ms[2]))
			}
			if !c.runs && (!strings.Contains(res.Content.Text(), string(seams.InvalidArgs)) || len(res.Content.Text()) > 1000) {
				t.Errorf("result %.200s (%d bytes)", res.Content.Text(), len(res.Content.Text()))
			}
		})
	}
}

// agt-02: a tool that is gone when its call is run is unknown, and the others of
// the reply run; names and ids no provider would take back are made acceptable.
func TestUnknownTools(t *testing.T) {
	w := newWorld(t)
	undo := w.tool("read", func(context.Context, map[string]any) (any, error) { t.Error("it ran"); return nil, nil })
	w.tool("search", echo("found"))
	w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
		must(t, undo(ctx))
		return want(use("same", "read", ""), use("same", "search", ""), use("", "functions.search (1)", ""), use("x", strings.Repeat("n", 500), ""), use("y", "serach", ""))(ctx, q)
	}, say("done"))
	a := w.agent()
	if r := ask(t, a, "x"); r.Text != "done" {
		t.Fatalf("%+v", r)
	}
	ms := w.model.asked()[1].Messages
	checkSendable(t, ms)
	got := shapes(ms)[2:]
	if !strings.Contains(got[0], "UNKNOWN_TOOL") || !strings.Contains(got[0], "search") || !strings.HasSuffix(got[1], ": found") ||
		!strings.Contains(got[2], "UNKNOWN_TOOL") || !strings.Contains(got[4], `Did you mean "search"?`) {
		t.Errorf("%q", got)
	}
	calls := pick(t, a, events.ToolCall)
	if calls[2].Name != "functions.search (1)" { // as the model wrote it
		t.Errorf("%+v", calls[2])
	}
}

// agt-04: equal calls in other words.
func TestRepeatCase(t *testing.T) {
	w := newWorld(t)
	var script caseScript
	readCase(t, "agt-04.script.json", &script)
	runs := 0
	w.tool("read", func(context.Context, map[string]any) (any, error) { runs++; return "same", nil })
	e := script.Model[0]
	n := 0
	w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
		n++
		if n > e.Repeat {
			return say("out of script")(ctx, q)
		}
		return e.Alternate[n%len(e.Alternate)].answer(n)(ctx, q)
	})
	a := w.agent()
	r := ask(t, a, "x")
	if runs > 10 || len(w.model.asked()) > 11 || r.Error == nil || r.Error.Code != seams.RepeatLimit {
		t.Errorf("%d runs, %d requests, %+v", runs, len(w.model.asked()), r)
	}
}

// agt-05: a history that ends with a call without a result, because the process
// died there.
func TestKilledWhileAToolRan(t *testing.T) {
	var history []struct {
		Role, Content, ID, Note string
		ToolCalls               []caseCall `json:"tool_calls"`
	}
	readCase(t, "agt-05.history.json", &history)
	w := newWorld(t)
	s, err := events.Create(t.Context(), w.store, events.Spec{Header: events.Header{ID: "main"}})
	must(t, err)
	add := func(d events.Draft) events.Event {
		e, err := s.Append(t.Context(), d)
		must(t, err)
		return e
	}
	add(events.TurnStart.New(events.Turn{Turn: 1}))
	add(events.StepStart.New(events.Step{Turn: 1, Step: 1}))
	seqs := map[string]int{}
	var after string
	for i, h := range history {
		switch {
		case h.Role == "user" && i == 0:
			add(events.UserMessage.New(events.Message{Message: llm.UserText(h.Content)}))
		case h.Role == "user":
			after = h.Content
		case h.Role == "assistant":
			content := []llm.Block{llm.Text{Text: h.Content}}
			for _, c := range h.ToolCalls {
				content = append(content, c.call(0))
			}
			add(events.AssistantMessage.New(events.Reply{Turn: 1, Step: 1, Message: llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, Provider: "test", Model: "m"}, content...)}).Citing())
			for _, c := range h.ToolCalls {
				seqs[c.ID] = add(events.ToolCall.New(events.Call{Turn: 1, Step: 1, CallID: c.ID, Name: c.Name, Arguments: string(c.Args)})).Seq
			}
		case h.Role == "tool":
			add(events.ToolResult.New(events.CallResult{Turn: 1, Step: 1, Message: llm.NewToolResult(h.ID, false, llm.Text{Text: h.Content})}).Citing(seqs[h.ID]))
		}
	}
	must(t, s.Close(t.Context()))
	a, err := w.agents.Resume(t.Context(), w.owner, agents.Spec{Header: events.Header{ID: "main"}, Options: testOptions})
	must(t, err)
	w.tool("list", echo("new"))
	w.model.script(want(use("c1", "list", "{}")), say("ok")) // an id of the history again
	if r := ask(t, a, after); r.Subtype != agents.Success {
		t.Errorf("%+v", r)
	}
	checkSendable(t, w.model.asked()[1].Messages)
	ms := w.model.asked()[0].Messages
	checkSendable(t, ms)
	got := shapes(ms)
	if len(got) != 5 || got[1] != "assistant: Two steps.(c1,c2)" || got[2] != "result c1: old new" ||
		!strings.Contains(got[3], "may have had its effects") || got[4] != "user: what happened?" {
		t.Errorf("%q", got)
	}
}

// agt-06: a cancel reaches what the agents that an agent has started have
// started, before anybody is idle. In the second run a child fails by itself.
func TestCancelReachesDescendants(t *testing.T) {
	var script caseScript
	readCase(t, "agt-06.script.json", &script)
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			l := &trace{}
			var n atomic.Int64
			w.model.script(func(ctx context.Context, q llm.Request) llm.Stream {
				task := q.Messages[0].Content.Text()
				l.add("asked by %s", q.SessionID)
				entries := map[string][]caseEntry{"root": script.Root, "A": script.Child, "B": script.Child, "deeper": script.Deep}[task]
				switch {
				case fails && task == "B":
					return failing(seams.Server, 500)(ctx, q)
				case len(q.Messages) > 1:
					return say("done")(ctx, q)
				}
				return entries[0].answer(0)(ctx, q)
			})
			w.tool("sleep", sleeper(l, "sleep"), parallel)
			w.tool("spawn", func(ctx context.Context, args map[string]any) (any, error) {
				parent, _ := agents.From(ctx)
				h := parent.Session().Header()
				const deepest = 2
				if h.DelegationDepth >= deepest {
					return nil, seams.Errorf(seams.InvalidArgument, "spawn", "agents may not be nested deeper than %d", deepest)
				}
				child, err := w.agents.Create(ctx, w.owner, agents.Spec{Options: testOptions, Header: events.Header{
					ID: fmt.Sprint(args["task"], n.Add(1)), ParentSession: h.ID, Origin: "subagent", DelegationDepth: h.DelegationDepth + 1,
				}})
				if err != nil {
					return nil, err
				}
				defer func() { must(t, child.Dispose(context.WithoutCancel(ctx))) }()
				r := child.Run(ctx, llm.UserText(args["task"].(string)))
				if end := lastEnd(t, child); end.Cause != nil {
					same(t, "cause", end.Cause, byParent)
				}
				l.add("%s was %s", child.ID(), r.Subtype)
				if r.IsError {
					return nil, seams.Errorf(r.Error.Code, "spawn", "%s", r.Error.Message)
				}
				return r.Text, nil
			}, parallel)
			a := w.agent()
			must(t, a.Followup(t.Context(), llm.UserText("root")))
			if !fails {
				time.Sleep(500 * time.Millisecond)
				began := time.Now()
				must(t, a.Cancel(t.Context(), byUser, false))
				asked := len(w.model.asked())
				must(t, a.WhenIdle(t.Context()))
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("took %v", took)
				}
				if len(w.model.asked()) != asked {
					t.Error("the model was asked after the cancel")
				}
			}
			must(t, a.WhenIdle(t.Context()))
			checkSendable(t, a.Session().Messages())
			order, failed := results(a.Session().Messages())
			same(t, "results", order, []string{"r1", "r2"})
			if len(w.agents.List(nil)) != 1 {
				t.Error("a child is left")
			}
			if !fails {
				same(t, "failed", failed, []string{"r1", "r2"})
				same(t, "end", lastEnd(t, a).Kind, events.Aborted)
				for _, s := range l.all() {
					if strings.Contains(s, " was ") && !strings.HasSuffix(s, "cancelled") {
						t.Error(s)
					}
				}
				return
			}
			same(t, "failed", failed, []string{"r2"})
			same(t, "end", lastEnd(t, a).Kind, events.Completed)
		})
	}
}
