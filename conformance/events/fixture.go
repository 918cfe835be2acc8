package eventstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// stage is a store in a container.
type stage struct {
	bus   *harness.Bus
	owner *harness.Owner
	store events.Store
	clock time.Time
}

// session makes a live session; it panics when that fails.
func (s *stage) session(ctx context.Context, id string, seed ...events.Event) events.Session {
	out, err := events.Create(ctx, s.store, events.Spec{Header: events.Header{ID: id}, Seed: seed})
	if err != nil {
		panic(err)
	}
	return out
}

// observe records the bus events of sessions as "type" and "created", …
func (s *stage) observe() *[]string {
	var seen []string
	life := func(what string) func(context.Context, events.Session, func(context.Context) (struct{}, error)) (struct{}, error) {
		return func(_ context.Context, x events.Session, _ func(context.Context) (struct{}, error)) (struct{}, error) {
			seen = append(seen, what+" "+x.Header().ID)
			return struct{}{}, nil
		}
	}
	must(events.Created.On(s.owner, life("created")))
	must(events.Disposed.On(s.owner, life("disposed")))
	must(events.Appended.On(s.owner, func(_ context.Context, n events.Notice, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		seen = append(seen, fmt.Sprint(n.Event.Seq, " ", n.Event.Type))
		return struct{}{}, nil
	}))
	return &seen
}

func must(_ seams.Undo, err error) {
	if err != nil {
		panic(err)
	}
}

// put appends drafts and returns the seq of the last; it panics when one fails.
func put(ctx context.Context, s events.Session, drafts ...events.Draft) int {
	seq := -1
	for _, d := range drafts {
		e, err := s.Append(ctx, d)
		if err != nil {
			panic(err)
		}
		seq = e.Seq
	}
	return seq
}

func user(text string) events.Draft {
	return events.UserMessage.New(events.Message{Message: llm.UserText(text)})
}

func injected(text string) events.Draft {
	return events.UserMessage.New(events.Message{Message: llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: "p"}, llm.Text{Text: text})})
}

// reply is an assistant message of turn 1, step 1 that asks for calls by id.
func reply(text string, calls ...string) events.Draft {
	var content []llm.Block
	if text != "" {
		content = append(content, llm.Text{Text: text})
	}
	for _, id := range calls {
		content = append(content, llm.ToolCall{ID: id, Name: "t", Arguments: "{}"})
	}
	m := llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, Provider: "p", Model: "m"}, content...)
	return events.AssistantMessage.New(events.Reply{Turn: 1, Step: 1, Message: m}).Citing()
}

func call(id string) events.Draft {
	return events.ToolCall.New(events.Call{Turn: 1, Step: 1, CallID: id, Name: "t", Arguments: "{}"})
}

func answer(id, text string) events.Draft {
	return events.ToolResult.New(events.CallResult{Turn: 1, Step: 1, Message: llm.NewToolResult(id, false, llm.Text{Text: text})})
}

func turnStart(n int) events.Draft { return events.TurnStart.New(events.Turn{Turn: n}) }
func turnEnd(n int) events.Draft {
	return events.TurnEnd.New(events.TurnResult{Turn: n, Reason: events.EndReason{Kind: events.Completed}})
}
func stepStart(turn, step int) events.Draft {
	return events.StepStart.New(events.Step{Turn: turn, Step: step})
}
func stepEnd(turn, step int) events.Draft {
	return events.StepEnd.New(events.Step{Turn: turn, Step: step})
}

// turn is a whole turn of one step.
func turn(n int, text string) []events.Draft {
	m := llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, Provider: "p", Model: "m"}, llm.Text{Text: "re " + text})
	return []events.Draft{turnStart(n), stepStart(n, 1), user(text),
		events.AssistantMessage.New(events.Reply{Turn: n, Step: 1, Message: m}).Citing(), stepEnd(n, 1), turnEnd(n)}
}

// say renders messages: role, text, calls and results.
func say(ms []llm.Message) string {
	var out []string
	for _, m := range ms {
		line := string(m.Role) + ":" + m.Content.Text()
		for _, b := range m.Content {
			switch b := b.(type) {
			case llm.ToolCall:
				line += "(" + b.ID + ")"
			case llm.ToolResult:
				line = b.ToolCallID + "=" + b.Content.Text()
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

func types(es []events.Event) string {
	var out []string
	for _, e := range es {
		out = append(out, e.Type)
	}
	return strings.Join(out, " ")
}

func all(errs ...error) error { return errors.Join(errs...) }

func equal(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %#v, want %#v", what, got, want)
	}
	return nil
}

// is checks an error's code and that it says something.
func is(what string, err error, code seams.Code, says ...string) error {
	if !errors.Is(err, code) {
		return fmt.Errorf("%s: got %v, want %s", what, err, code)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			return fmt.Errorf("%s: %q does not say %q", what, err, s)
		}
	}
	return nil
}

// raw is a draft of JSON text.
func raw(typ, data string) events.Draft {
	return events.Draft{Type: typ, Data: json.RawMessage(data)}
}
