package agents_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestResultJSON(t *testing.T) {
	w := newWorld(t)
	w.tool("look", echo("seen"))
	w.model.script(want(use("c1", "look", "")), say("it is there"), failing(seams.Auth, 401))
	a := w.agent()
	line := func() string {
		r := ask(t, a, "x")
		r.DurationMS = 7
		b, err := json.Marshal(r)
		must(t, err)
		return string(b)
	}
	if got := line(); got != `{"type":"result","subtype":"success","is_error":false,"result":"it is there","session_id":"main","num_turns":1,"num_steps":2,"usage":{"inputTokens":10,"outputTokens":5},"duration_ms":7}` {
		t.Error(got)
	}
	if got := line(); got != `{"type":"result","subtype":"error","is_error":true,"result":"","error":{"code":"AUTH","message":"it failed","status":401},"session_id":"main","num_turns":1,"num_steps":1,"usage":{"inputTokens":0,"outputTokens":0},"duration_ms":7}` {
		t.Error(got)
	}
}

// A run whose context ends cancels the agent, and is over when the agent is
// idle.
func TestRunIsCancelled(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{}, 1)
	w.model.script(hang(began, text(0, "so far")...), say("ok"))
	a := w.agent()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	r := a.Run(ctx, llm.UserText("x"))
	if r.Subtype != agents.Cancelled || r.Error.Code != seams.Aborted || r.Text != "so far" || a.Status() != agents.Idle {
		t.Errorf("%+v", r)
	}
	same(t, "end", lastEnd(t, a), events.EndReason{Kind: events.Aborted, Cause: &byUser})
	// One that ended before it began leaves nothing behind.
	r = a.Run(ctx, llm.UserText("y"))
	if r.Subtype != agents.Cancelled {
		t.Errorf("%+v", r)
	}
	if turns, _ := a.Pending(); len(turns) != 0 {
		t.Errorf("%v", turns)
	}
	must(t, a.Dispose(t.Context()))
	if r := a.Run(t.Context(), llm.UserText("z")); r.Subtype != agents.Errored || r.Error.Code != seams.InactiveEffect {
		t.Errorf("%+v", r)
	}
}

// Every reason for which a turn may end has its subtype.
func TestSummarize(t *testing.T) {
	failure := &llm.Failure{Code: seams.Server, Message: "m"}
	for _, c := range []struct {
		reason  events.EndReason
		subtype agents.Subtype
		code    seams.Code
	}{
		{events.EndReason{Kind: events.Completed}, agents.Success, ""},
		{events.EndReason{Kind: events.MaxTokens}, agents.Limit, seams.MaxTokensReached},
		{events.EndReason{Kind: events.Limited, Error: failure}, agents.Limit, seams.Server},
		{events.EndReason{Kind: events.Aborted, Cause: &byParent}, agents.Cancelled, seams.Aborted},
		{events.EndReason{Kind: events.Blocked}, agents.Errored, seams.Rejected},
		{events.EndReason{Kind: events.Failed, Error: failure}, agents.Errored, seams.Server},
		{events.EndReason{Kind: events.Interrupted}, agents.Errored, seams.Unknown},
	} {
		log, err := events.NewLog(events.Header{ID: "s"}, nil, 0)
		must(t, err)
		_, err = log.Append(0, events.TurnStart.New(events.Turn{Turn: 1}))
		must(t, err)
		_, err = log.Append(0, events.TurnEnd.New(events.TurnResult{Turn: 1, Reason: c.reason}))
		must(t, err)
		r := agents.Summarize("s", log.Events(0))
		var code seams.Code
		if r.Error != nil {
			code = r.Error.Code
		}
		if r.Subtype != c.subtype || code != c.code || r.IsError != (c.subtype != agents.Success) || r.NumTurns != 1 {
			t.Errorf("%s: %+v", c.reason.Kind, r)
		}
	}
	if r := agents.Summarize("s", nil); r.Subtype != agents.Errored || !strings.Contains(r.Error.Message, "no turn") {
		t.Errorf("%+v", r)
	}
}
