package script_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// ask sends one text to a model and returns the chunks.
func (w *world) ask(ctx context.Context, model, text string) (out []llm.Chunk, err error) {
	req := llm.Request{CallConfig: llm.CallConfig{Model: model}, Messages: []llm.Message{llm.UserText(text)}}
	for c, err := range w.llm.Stream(ctx, nil, req) {
		if err != nil {
			return out, err
		}
		out = append(out, c)
	}
	return out, nil
}

// failed returns why a stream ended.
func failed(t *testing.T, chunks []llm.Chunk) llm.FinishReason {
	t.Helper()
	f, ok := chunks[len(chunks)-1].(llm.Finish)
	if !ok || f.Reason.Failure == nil {
		t.Fatalf("last chunk is %+v, want a finish with a failure", chunks[len(chunks)-1])
	}
	return f.Reason
}

func (w *world) adapter() *cordis.Fiber {
	w.Helper()
	src, err := w.engine.File(w.Context(), "testdata/my-llm-adapter.ts")
	if err != nil {
		w.Fatal(err)
	}
	if files := paths(src); !slices.Equal(files, []string{"testdata/my-llm-adapter.ts"}) {
		w.Errorf("files = %v", files)
	}
	return w.mount(src.Plugin, map[string]any{"apiKey": "k", "models": []any{"my-model-v1", "my-model-v2"}})
}

// The documented form of an adapter plugin in TypeScript runs as it stands.
func TestAdapterStreams(t *testing.T) {
	w := newWorld(t)
	f := w.adapter()
	chunks, err := w.ask(w.Context(), "my-model-v2", "hello")
	if err != nil {
		t.Fatal(err)
	}
	var g llm.Grammar
	for _, c := range chunks {
		if err := g.Accept(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if want := (llm.Text{Text: "You said hello; I am user-agent"}); chunks[5] != llm.Chunk(llm.BlockEnd{Index: 0, Block: want}) {
		t.Errorf("chunk 5 is %+v, want the block %+v", chunks[5], want)
	}
	if want := (llm.Finish{Reason: llm.FinishReason{Kind: llm.Stop}}); chunks[len(chunks)-1] != llm.Chunk(want) {
		t.Errorf("last chunk is %+v", chunks[len(chunks)-1])
	}
	if got := w.log(); !slices.Equal(got, []string{"[testdata/my-llm-adapter.ts] info left 1"}) {
		t.Errorf("log = %v", got)
	}
	if err := f.Dispose().Wait(w.Context()); err != nil {
		t.Fatal(err)
	}
	chunks, _ = w.ask(w.Context(), "my-model-v2", "hello")
	if got := failed(t, chunks); got.Failure.Code != seams.NoAdapter {
		t.Errorf("after dispose: %+v", got.Failure)
	}
}

func TestAdapterFailures(t *testing.T) {
	w := newWorld(t)
	w.adapter()
	for _, c := range []struct {
		text   string
		code   seams.Code
		kind   llm.FinishKind
		says   string
		status int
	}{
		// An error is shown at its place in the TypeScript file.
		{"throw", seams.Unknown, llm.Failed, "it broke (testdata/my-llm-adapter.ts:17:", 0},
		// M-20: an LlmError keeps its code and its facts.
		{"refuse", seams.Quota, llm.Failed, "over quota", 429},
		{"misspell", seams.MalformedResponse, llm.Failed, `testdata/my-llm-adapter.ts: chunk 0: text-delta chunk without "text"`, 0},
	} {
		t.Run(c.text, func(t *testing.T) {
			chunks, err := w.ask(w.Context(), "my-model-v1", c.text)
			if err != nil {
				t.Fatal(err)
			}
			r := failed(t, chunks)
			if r.Kind != c.kind || r.Failure.Code != c.code || r.Failure.Status != c.status || !strings.Contains(r.Failure.Message, c.says) {
				t.Errorf("got %s %+v, want %s with %q", r.Kind, r.Failure, c.code, c.says)
			}
			if c.status != 0 && (r.Failure.ProviderRetryAfterMs == nil || *r.Failure.ProviderRetryAfterMs != 1500 || r.Failure.RequestID != "r-1") {
				t.Errorf("facts are lost: %+v", r.Failure)
			}
		})
	}
}

func TestAdapterCancel(t *testing.T) {
	w := newWorld(t)
	w.adapter()
	ctx, cancel := context.WithCancel(w.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	chunks, err := w.ask(ctx, "my-model-v1", "wait")
	if err != nil {
		t.Fatal(err)
	}
	if r := failed(t, chunks); r.Kind != llm.Aborted || r.Failure.Code != seams.Aborted {
		t.Errorf("got %s %+v, want aborted", r.Kind, r.Failure)
	}
}

// Who leaves the loop closes the generator.
func TestAdapterLeftEarly(t *testing.T) {
	w := newWorld(t)
	w.adapter()
	req := llm.Request{CallConfig: llm.CallConfig{Model: "my-model-v1"}, Messages: []llm.Message{llm.UserText("hi")}}
	for range w.llm.Stream(w.Context(), nil, req) {
		break
	}
	if got := w.log(); len(got) != 1 || !strings.HasSuffix(got[0], "left 1") {
		t.Errorf("the generator's finally has not run: %v", got)
	}
}

// L: a configuration that breaks the plugin's schema is refused by path.
func TestAdapterConfig(t *testing.T) {
	w := newWorld(t)
	src, err := w.engine.File(w.Context(), "testdata/my-llm-adapter.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, err = src.Plugin.Config.Resolve(map[string]any{"models": "my-model-v1"})
	if !errors.Is(err, seams.InvalidConfig) || !strings.Contains(err.Error(), "config.apiKey") || !strings.Contains(err.Error(), "config.models") {
		t.Errorf("err = %v", err)
	}
}

// An adapter may name its provider and describe its models.
func TestAdapterCatalogue(t *testing.T) {
	w := newWorld(t)
	w.js("catalogue.mjs", `
export const inject = ['llm']
export function apply(ctx) {
  ctx.llm.registerAdapter('acme', {
    async *stream() { yield { type: 'finish', reason: { kind: 'stop' } } },
    providerInfo: async (route) => ({ id: route, name: 'Acme' }),
    listModels: (route) => [{ id: 'm1', contextWindow: 1000 }],
    resolveModel: async (route, model) => ({ provider: route, id: model, name: model, maxTokens: 7 }),
  })
}`)
	deadline := time.Now().Add(5 * time.Second)
	for w.llm.ListProviders(nil)[0].Name != "Acme" && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if got := w.llm.ListProviders(nil); !slices.Equal(got, []llm.ProviderInfo{{ID: "acme", Name: "Acme"}}) {
		t.Errorf("providers = %v", got)
	}
	models, err := w.llm.ListModels(w.Context(), nil, "acme")
	if err != nil || len(models) != 1 || models[0].ID != "m1" || models[0].ContextWindow != 1000 {
		t.Errorf("models = %+v, %v", models, err)
	}
	info, err := w.llm.ResolveModel(w.Context(), nil, "acme", "any")
	if err != nil || info.MaxTokens != 7 {
		t.Errorf("info = %+v, %v", info, err)
	}
}

func TestAdapterRefused(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		call string
		says string
	}{
		{`registerAdapter(['m'], { generate() {} })`, "async *stream(options)"},
		{`registerAdapter(['m'])`, "expected an adapter"},
		{`registerAdapter({ models: ['m'] }, { async *stream() {} })`, "a list of model or provider names"},
		{`registerAdapter([''], { async *stream() {} })`, "route is empty"},
		{`registerAdapter([], { async *stream() {} })`, "at least one route"},
	} {
		p := w.file("bad.js", `module.exports = { inject: ['llm'], apply(ctx) { ctx.llm.`+c.call+` } }`)
		f, err := w.root.Plugin(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Settle(w.Context()); !errors.Is(err, seams.InvalidAdapter) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want INVALID_ADAPTER with %q", c.call, err, c.says)
		}
	}
}

// A JavaScript plugin asks a model, and wraps requests of others.
func TestLlmFromJavaScript(t *testing.T) {
	w := newWorld(t)
	w.adapter()
	w.js("wrap.ts", `
export const inject = ['llm']
export function apply(ctx: any) {
  ctx.on('llm/stream', async function* (options: any, next: any) {
    const routed = options.model === 'alias' ? { ...options, model: 'my-model-v1' } : undefined
    for await (const c of await next(routed)) {
      if (c.type === 'text-delta') c.text = c.text.toUpperCase()
      yield c
    }
  })
  ctx.on('llm/stream', (options: any, next: any) => next())
  ctx.provide('asker', { async ask(model: string) {
    let out = ''
    for await (const c of ctx.llm.stream({ provider: '', model, messages: [{ role: 'user', content: [{ type: 'text', text: 'yes' }], source: { kind: 'user' } }] }))
      if (c.type === 'text-delta') out += c.text
    return out
  } })
}`)
	got := w.call("asker", "ask", "alias")
	if got != "YOU SAID YES; I AM USER-AGENT" {
		t.Errorf("got %q", got)
	}
}

// A listener that answers nothing does not pass for an empty stream.
func TestStreamListenerAnswersNothing(t *testing.T) {
	w := newWorld(t)
	w.adapter()
	w.js("bad.js", `module.exports = (ctx) => { ctx.on('llm/stream', (options, next) => { next() }) }`)
	_, err := w.ask(w.Context(), "my-model-v1", "x")
	if err == nil || !strings.Contains(err.Error(), "not iterable") {
		t.Errorf("err = %v", err)
	}
}
