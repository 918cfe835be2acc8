package cordistools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

func allow(names ...any) map[string]any {
	return map[string]any{"policy": map[string]any{"allow": names}}
}

// Without a policy a mount has the harmless services and observes.
func TestNoPolicy(t *testing.T) {
	w := newWorld(t, nil)
	w.folder(nil)
	w.running(`return { inject: ['tools', 'timer', 'logger', 'events', 'memory', 'llm'], apply(ctx) { ctx.on('tools/result', () => {}); ctx.on('llm/unknown', () => {}) } }`)
	before := w.shape()
	w.refused(`return { inject: ['fs'], apply() {} }`, seams.NotPermitted, `"fs"`, "cordis-tools", "policy: {allow: [fs]}")
	w.refused(`return { inject: ['http'], apply() {} }`, seams.NotPermitted, "policy: {allow: [http]}") // though it does not run
	w.refused(`return { inject: { fs: null }, apply() {} }`, seams.NotPermitted, "policy: {allow: [fs]}")
	for _, event := range []string{"tools/pre-execute", "tools/execute", "tools/post-execute", "llm/stream", "agent/pre-step", "agent/request", "agent/request-error"} {
		w.refused("return { apply(ctx) { ctx.on('"+event+"', (...a) => a.at(-1)()) } }", seams.NotPermitted, `"`+event+`"`, "policy: {wrap: ["+event+"]}")
		w.refused("return { apply(ctx) { ctx.once('"+event+"', (...a) => a.at(-1)()) } }", seams.NotPermitted)
	}
	w.same(before)
}

func TestPolicyAllows(t *testing.T) {
	w := newWorld(t, map[string]any{"policy": map[string]any{"allow": []any{"fs"}, "wrap": []any{"tools/execute"}}})
	w.folder(map[string]string{"a.txt": "text of a"})
	w.server("answer")
	w.running(`return { inject: ['tools', 'fs'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'read', description: 'x', execute: () => ctx.fs.readText('a.txt') }))
		ctx.on('tools/execute', async (exec, next) => { const r = await next(); return exec.name === 'read' ? { isError: false, value: 'wrapped ' + r.value } : r })
	} }`)
	if got := w.ok("read", nil); got != "wrapped text of a" {
		t.Error(got)
	}
	w.refused(`return { inject: ['fs', 'http'], apply() {} }`, seams.NotPermitted, `"http"`, "policy: {allow: [fs, http], wrap: [tools/execute]}")
	w.refused(`return { apply(ctx) { ctx.on('llm/stream', (o, next) => next()) } }`, seams.NotPermitted, "policy: {allow: [fs], wrap: [tools/execute, llm/stream]}")
}

// The line that a refusal shows is the one that permits it.
func TestRefusalShowsTheLine(t *testing.T) {
	w := newWorld(t, nil)
	got := w.refused(`return { inject: ['http'], apply() {} }`, seams.NotPermitted)
	_, line, ok := strings.Cut(got, "\n  policy: {allow: [")
	if !ok {
		t.Fatal(got)
	}
	name, _, _ := strings.Cut(line, "]")
	w2 := newWorld(t, allow(name))
	w2.server("answer")
	w2.running(`return { inject: ['http'], apply() {} }`)
}

func TestPolicyAllowsAll(t *testing.T) {
	w := newWorld(t, map[string]any{"policy": map[string]any{"allow": "*"}})
	url := w.server("answer")
	w.running(`return { inject: ['tools', 'http'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'get', description: 'x', execute: async () => (await ctx.http.fetch('` + url + `')).text() }))
		ctx.on('tools/pre-execute', (exec, next) => next())
	} }`)
	if got := w.ok("get", nil); got != "answer" {
		t.Error(got)
	}
}

// X-03, and the rest of the configuration.
func TestConfig(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.toolset.Dispose().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []map[string]any{
		{"vmTimeoutMs": 0}, {"vmTimeoutMs": 0.5}, {"vmTimeoutMs": -1}, {"vmTimeoutMs": "1"}, {"maxMounts": 0}, {"maxMounts": 1.5},
		{"policy": map[string]any{"allow": "fs"}}, {"policy": map[string]any{"allow": []any{1}}}, {"policy": map[string]any{"alow": []any{}}}, {"unknown": 1}, {"policy": "*"},
	} {
		f, err := w.root.Plugin(w.plugin, bad)
		if err == nil {
			err = f.Settle(t.Context())
		}
		if seams.CodeOf(err) != seams.InvalidConfig {
			t.Errorf("%v: %v", bad, err)
		}
		if f != nil {
			f.Dispose()
		}
	}
	w.toolset = w.run(w.plugin, map[string]any{"vmTimeoutMs": 1})
	cfg, err := w.plugin.Config.Resolve(map[string]any{})
	if got := fmt.Sprintf("%+v", cfg); err != nil || !strings.HasPrefix(got, "{VMTimeoutMS:5000 ApplyTimeoutMS:10000 CallTimeoutMS:30000 MaxMounts:32 ") {
		t.Error(got, err)
	}
}

// A waterfall, or an event that asks for an answer, is only observed by a mount
// that may not wrap it, whoever sends it.
func TestOwnEventsAreObserved(t *testing.T) {
	w := newWorld(t, map[string]any{"policy": map[string]any{"wrap": []any{"granted"}}})
	w.running(`return { apply(ctx) {
		for (const e of ['ask', 'granted']) ctx.on(e, (x, next) => { console.log(e, x, typeof next); return 'mine' })
		ctx.on('ask', () => { throw new Error('observer') })
	} }`)
	send := func(event string, mode seams.Mode) any {
		t.Helper()
		v, err := w.root.Dispatch(t.Context(), seams.Dispatch{Event: event, Mode: mode, Payload: seams.Args{"x"}, Default: func(context.Context) (any, error) { return "default", nil }})
		if err != nil {
			t.Error(err)
		}
		return v
	}
	if v := send("ask", seams.Waterfall); v != "default" {
		t.Error(v)
	}
	if v := send("ask", seams.Bail); v != nil {
		t.Error(v)
	}
	if v := send("granted", seams.Waterfall); v != "mine" {
		t.Error(v)
	}
	w.reported("observer")
	w.until("all three calls", func() bool { return len(w.console()) == 3 })
	if got := strings.Join(w.console(), " "); got != "[cordis:dyn-1] info ask x undefined [cordis:dyn-1] info ask x undefined [cordis:dyn-1] info granted x function" {
		t.Error(got)
	}
}

// A mount is no approver and shadows no default service.
func TestMountIsNoAuthority(t *testing.T) {
	w := newWorld(t, nil)
	w.running(adder)
	w.running(`return { apply(ctx) { ctx.provide('approval', { request: async () => 'allowed-once' }) } }`)
	ask := &cordis.Plugin{Name: "asker", Apply: func(ctx *cordis.Context, _ any) error {
		_, err := tools.PreExecute.On(ctx, func(ctx context.Context, x *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
			if x.Name == "add" {
				return tools.Decision{Kind: tools.Ask}, nil
			}
			return next(ctx)
		})
		return err
	}}
	w.run(ask, nil)
	r := w.tools.Execute(t.Context(), tools.Call{ID: "1", Name: "add", Agent: "a", Arguments: map[string]any{"a": 1.0, "b": 1.0}})
	if !r.IsError {
		t.Errorf("a mount approved: %+v", r)
	}
}
