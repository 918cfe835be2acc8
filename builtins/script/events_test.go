package script_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// Sessions reach JavaScript by event, by reading and by following.
func TestSessions(t *testing.T) {
	w := newWorld(t)
	w.js("log.js", `module.exports = { name: 'log', inject: ['events'], apply(ctx) {
  ctx.on('session/created', (s) => console.log('created', s.id, s.createdAt > 0))
  ctx.on('session/event', (s, e) => console.log(s.id, e.seq, e.type, JSON.stringify(e.data)))
  ctx.on('session/flush', async (s) => { await null; console.log('flush', s.id) })
  ctx.on('session/disposed', (s) => console.log('disposed', s.id))
  ctx.provide('log', {
    follow: async () => { const seen = []; for await (const e of ctx.events.follow({ session: 's1', from: 0 })) { seen.push(e.type); if (seen.length === 2) break } return seen },
    append: (type, session) => ctx.events.append(type, { x: 1 }, session),
    read: async () => (await ctx.events.read({ session: 's1', from: 1 })).length,
  })
} }`)
	s, err := events.Create(w.Context(), w.events, events.Spec{Header: events.Header{ID: "s1"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, typ := range []string{"tick", "log/tock"} {
		e := w.call("log", "append", typ, "s1").(map[string]any)
		if e["seq"] != float64(i) || !strings.HasPrefix(e["type"].(string), "log/") {
			t.Errorf("event = %v", e)
		}
	}
	if got := w.call("log", "follow"); !equal(got, []any{"log/tick", "log/tock"}) {
		t.Errorf("followed %v", got)
	}
	if got := w.call("log", "read"); got != 1.0 {
		t.Errorf("read %v events", got)
	}
	if err := s.Flush(w.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(w.Context()); err != nil {
		t.Fatal(err)
	}
	w.expect("created s1 true", `s1 0 log/tick {"x":1}`, `s1 1 log/tock {"x":1}`, "flush s1", "disposed s1")
	for _, c := range []struct {
		args []any
		code seams.Code
	}{
		{[]any{"tick", "s1"}, seams.SessionNotFound}, {[]any{"tick"}, seams.InvalidArgument}, {[]any{"", "s1"}, seams.InvalidArgument}, {[]any{"tick", 7.0}, seams.InvalidArgument},
	} {
		if _, err := w.try("log", "append", c.args...); seams.CodeOf(err) != c.code {
			t.Errorf("append(%v): %v, want %s", c.args, err, c.code)
		}
	}
}

// The container's own events are observed, in order and after the fact.
func TestContainerEvents(t *testing.T) {
	w := newWorld(t)
	w.js("watch.js", `module.exports = { name: 'watch', apply(ctx) {
  ctx.on('internal/status', (f, old) => { if (f.name === 'watched') console.log(old, f.state) })
  ctx.on('internal/service', (name) => { if (name === 'watched') console.log('service') })
  ctx.on('internal/plugin', (f) => { if (f.name === 'watched') console.log('plugin', f.state) })
} }`)
	f := w.js("watched.js", `module.exports = { name: 'watched', apply(ctx) { ctx.provide('watched', 1) } }`)
	w.dispose(f)
	for want := []string{"plugin pending", "pending loading", "loading active", "service", "active unloading", "pending disposed", "plugin disposed"}; ; {
		missing := ""
		said := strings.Join(w.said(), "|")
		for _, s := range want {
			if !strings.Contains(said, s) {
				missing = s
			}
		}
		if missing == "" {
			break
		}
		if w.Context().Err() != nil {
			t.Fatalf("not heard: %s; said %s", missing, said)
		}
		time.Sleep(time.Millisecond)
	}
}

// A reload is heard with the files that have changed.
func TestReloadEvent(t *testing.T) {
	w := newWorld(t)
	w.js("watch.js", `module.exports = (ctx) => { ctx.on('hmr/reload', (e) => console.log(JSON.stringify(e))) }`)
	if _, err := loader.ReloadEvent.Dispatch(w.Context(), w.root, nil, loader.Reload{Files: []string{"/a.js"}}, nil); err != nil {
		t.Fatal(err)
	}
	w.expect(`{"files":["/a.js"]}`)
}

// A plugin does not send events that the runtime sends.
func TestDeclaredEventsAreTheRuntimes(t *testing.T) {
	w := newWorld(t)
	w.js("fake.js", `module.exports = (ctx) => ctx.provide('fake', { send: (name) => ctx.emit(name, {}), nothing: () => ctx.emit(), bare: () => ctx.waterfall('x') })`)
	for _, e := range script.Events() {
		if _, err := w.try("fake", "send", e.Name); seams.CodeOf(err) != seams.NotExposed {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	for _, m := range []string{"nothing", "bare"} {
		if _, err := w.try("fake", m); seams.CodeOf(err) != seams.InvalidArgument {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// The waterfalls of agents take JavaScript's answers, and refuse wrong ones.
func TestAgentWaterfalls(t *testing.T) {
	w := newWorld(t)
	w.js("agents.js", `module.exports = (ctx) => {
  ctx.on('agent/pre-step', async (e, next) => { const a = await next(); return { kind: 'enter', messages: [...a.messages, { role: 'user', content: [{ type: 'text', text: 'step ' + e.step }], source: { kind: 'plugin', plugin: 'p' } }] } })
  ctx.on('agent/request', async (e, next) => ({ ...await next(), model: 'm' + e.turn, temperature: 0.5 }))
  ctx.on('agent/request-error', async (e, next) => e.failure.code === 'SERVER' ? { kind: 'retry' } : next())
  ctx.on('agent/turn-stopping', async (e) => { await null; console.log('stopping', e.turn, e.signal.aborted) })
  ctx.on('agent/error', (e) => console.log('error', e.error.code))
}`)
	ctx := w.Context()
	admit := func(context.Context) (agents.Admission, error) {
		return agents.Admission{Kind: agents.Enter, Messages: []llm.Message{llm.UserText("hi")}}, nil
	}
	a, err := agents.PreStep.Dispatch(ctx, w.root, nil, agents.Proposal{Turn: 1, Step: 2}, admit)
	if err != nil || len(a.Messages) != 2 || a.Messages[1].ID == "" || a.Messages[1].Content.Text() != "step 2" || a.Messages[1].Source.Plugin != "p" {
		t.Errorf("pre-step: %+v, %v", a, err)
	}
	c, err := agents.Request.Dispatch(ctx, w.root, nil, agents.StepNotice{Turn: 3, Step: 1}, func(context.Context) (llm.CallConfig, error) {
		return llm.CallConfig{Provider: "p", Model: "m", Stop: []string{"x"}}, nil
	})
	if err != nil || c.Model != "m3" || c.Provider != "p" || c.Temperature == nil || *c.Temperature != 0.5 || len(c.Stop) != 1 {
		t.Errorf("request: %+v, %v", c, err)
	}
	for code, want := range map[seams.Code]agents.RecoveryKind{seams.Server: agents.Retry, seams.Auth: ""} {
		r, err := agents.RequestFailed.Dispatch(ctx, w.root, nil, agents.RequestFailure{Failure: llm.Failure{Code: code}}, func(context.Context) (agents.Recovery, error) { return agents.Recovery{}, nil })
		if err != nil || r.Kind != want {
			t.Errorf("request-error %s: %+v, %v", code, r, err)
		}
	}
	if _, err := agents.TurnStopping.Dispatch(ctx, w.root, nil, agents.TurnNotice{Turn: 4}, nil); err != nil {
		t.Error(err)
	}
	if _, err := agents.Failed.Dispatch(ctx, w.root, nil, agents.FailureNotice{Error: llm.Failure{Code: "X"}}, nil); err != nil {
		t.Error(err)
	}
	w.expect("stopping 4 false", "error X")

	w.js("wrong.js", `module.exports = (ctx) => { ctx.on('agent/pre-step', () => ({ kind: 'maybe' })); ctx.on('agent/request', () => ({ modle: 'x' })) }`)
	if _, err := agents.Request.Dispatch(ctx, w.root, nil, agents.StepNotice{}, func(context.Context) (llm.CallConfig, error) { return llm.CallConfig{}, nil }); err == nil || !strings.Contains(err.Error(), "modle") {
		t.Errorf("request: %v", err)
	}
	if _, err := agents.PreStep.Dispatch(ctx, w.root, nil, agents.Proposal{}, admit); err == nil || !strings.Contains(err.Error(), "expected 'enter' or 'reject'") {
		t.Errorf("pre-step: %v", err)
	}
}

// A listener whose disposer was called is not entered any more, also by a
// dispatch that had begun; a waterfall then goes on inward.
func TestListenerTakenBack(t *testing.T) {
	w := newWorld(t)
	w.js("off.js", `module.exports = (ctx) => {
  const off = ctx.on('flow', () => 'outer')
  ctx.on('stop', () => { off() })
  ctx.provide('flow', { go: () => ctx.waterfall('flow', () => 'inner') })
}`)
	if got := w.call("flow", "go"); got != "outer" {
		t.Errorf("got %v", got)
	}
	w.emit("stop")
	if got := w.call("flow", "go"); got != "inner" {
		t.Errorf("got %v", got)
	}
}
