package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

var llmService = service{
	Service: Service{Name: "llm", Summary: "Models: register an adapter for model or provider names, ask a model."},
	methods: []method{
		{Method: Method{"registerAdapter", "registerAdapter(routes: string[], adapter: LlmAdapter): Disposer & { replace(routes: string[]): void }",
			"Serves routes, which are names of models or of a provider, with an adapter. Its stream yields chunks: each block has a block-start and a block-end with the whole block, usage comes before finish, finish comes last. Throw LlmError with a stable code for failures; do not retry."},
			args: []sandbox.Kind{sandbox.Data, sandbox.Instance}, call: of(llm.Key, "registerAdapter", registerAdapter)},
		{Method: Method{"stream", "stream(options: GenerateOptions): AsyncIterable<StreamChunk>",
			"Asks a model. Failures of the provider are the last chunk, {type: 'finish', reason: {kind: 'error', failure}}."},
			args: []sandbox.Kind{sandbox.Data}, call: of(llm.Key, "stream", ask)},
		{Method: Method{"listProviders", "listProviders(): ProviderInfo[]",
			"Lists the routes that adapters serve."},
			call: of(llm.Key, "listProviders", func(_ context.Context, h *host, r *llm.Registry, _ []any) (any, error) {
				return encode(r.ListProviders(h.ctx.Scope()))
			})},
		{Method: Method{"listModels", "listModels(route: string): Promise<ModelInfo[]>",
			"Lists the models of a route, none if its adapter has no catalogue."},
			async: true, call: of(llm.Key, "listModels", func(ctx context.Context, h *host, r *llm.Registry, args []any) (any, error) {
				route, err := textArg("ctx.llm.listModels", args, 0, "a route")
				if err != nil {
					return nil, err
				}
				list, err := r.ListModels(ctx, h.ctx.Scope(), route)
				if err != nil {
					return nil, err
				}
				return encode(list)
			})},
		{Method: Method{"resolveModelInfo", "resolveModelInfo(provider: string, model: string): Promise<ModelInfo>",
			"Describes one model, whether a catalogue lists it or not."},
			async: true, call: of(llm.Key, "resolveModelInfo", func(ctx context.Context, h *host, r *llm.Registry, args []any) (any, error) {
				info, err := r.ResolveModel(ctx, h.ctx.Scope(), text(args, 0), text(args, 1))
				if err != nil {
					return nil, err
				}
				return encode(info)
			})},
	},
}

func registerAdapter(_ context.Context, h *host, r *llm.Registry, args []any) (any, error) {
	const op = "ctx.llm.registerAdapter"
	routes, err := routesArg(op, arg(args, 0))
	if err != nil {
		return nil, err
	}
	obj, ok := arg(args, 1).(*sandbox.Object)
	if !ok || !obj.Has("stream") {
		return nil, seams.Errorf(seams.InvalidAdapter, op, "argument 2: expected an adapter, an object with an `async *stream(options)` method, got %s", kind(arg(args, 1)))
	}
	a := &adapter{h: h, obj: obj, infos: map[string]llm.ProviderInfo{}}
	handle, err := r.RegisterAdapter(h.ctx, llm.Registration{Entry: h.ctx.Fiber().Entry(), Routes: routes, Adapter: a.sized()})
	if err != nil {
		return nil, err
	}
	if obj.Has("providerInfo") {
		// The names for people come from JavaScript, which cannot be asked while
		// it waits for this call.
		_, err = h.ctx.Go("llm.providerInfo", func(ctx context.Context) error {
			if err := a.describe(ctx, routes); err != nil {
				return err
			}
			return handle.Replace(routes...)
		})
		if err != nil {
			return nil, err
		}
	}
	return sandbox.Callable{
		Call: release(nil, handle.Undo),
		Members: map[string]any{"replace": sandbox.HostFunc(func(_ context.Context, args []any) (any, error) {
			routes, err := routesArg(op+".replace", arg(args, 0))
			if err != nil {
				return nil, err
			}
			return nil, handle.Replace(routes...)
		})},
	}, nil
}

func routesArg(op string, v any) ([]string, error) {
	if s, ok := v.(string); ok {
		v = []any{s}
	}
	routes, err := decode[[]string](seams.InvalidAdapter, op, v, true)
	if err != nil || routes == nil {
		return nil, seams.Errorf(seams.InvalidAdapter, op, "argument 1: expected a list of model or provider names, got %s", kind(v))
	}
	return routes, nil
}

// adapter is an adapter that a JavaScript plugin registered.
type adapter struct {
	h   *host
	obj *sandbox.Object

	mu    sync.Mutex
	infos map[string]llm.ProviderInfo
}

// sized gives the adapter the optional interfaces whose methods its object has.
func (a *adapter) sized() llm.Adapter {
	list, resolve := catalogue{a}, resolver{a}
	switch has := a.obj.Has; {
	case has("listModels") && has("resolveModel"):
		return struct {
			*adapter
			catalogue
			resolver
		}{a, list, resolve}
	case has("listModels"):
		return struct {
			*adapter
			catalogue
		}{a, list}
	case has("resolveModel"):
		return struct {
			*adapter
			resolver
		}{a, resolve}
	}
	return a
}

// ProviderInfo implements llm.Describer with what was read last.
func (a *adapter) ProviderInfo(route string) llm.ProviderInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	if info, ok := a.infos[route]; ok {
		return info
	}
	return llm.ProviderInfo{ID: route, Name: route}
}

func (a *adapter) describe(ctx context.Context, routes []string) error {
	for _, route := range routes {
		v, err := a.obj.Call(ctx, "providerInfo", route)
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		info, err := decode[llm.ProviderInfo](seams.InvalidAdapter, a.h.source.name+": providerInfo("+route+")", v, false)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.infos[route] = info
		a.mu.Unlock()
	}
	return nil
}

type catalogue struct{ a *adapter }

// ListModels implements llm.Catalogue.
func (c catalogue) ListModels(ctx context.Context, route string) ([]llm.ModelInfo, error) {
	v, err := c.a.obj.Call(ctx, "listModels", route)
	if err != nil {
		return nil, failure(err)
	}
	return decode[[]llm.ModelInfo](seams.InvalidCatalog, c.a.h.source.name+": listModels", v, false)
}

type resolver struct{ a *adapter }

// ResolveModel implements llm.ModelResolver.
func (r resolver) ResolveModel(ctx context.Context, route, model string) (llm.ModelInfo, error) {
	v, err := r.a.obj.Call(ctx, "resolveModel", route, model)
	if err != nil {
		return llm.ModelInfo{}, failure(err)
	}
	return decode[llm.ModelInfo](seams.InvalidModelInfo, r.a.h.source.name+": resolveModel", v, false)
}

// Stream implements llm.Adapter.
func (a *adapter) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		options, err := encodeObject(req)
		if err != nil {
			yield(nil, err)
			return
		}
		options["signal"] = ctx
		chunks(a.h.source.name, a.obj.Iterate(ctx, "stream", options))(yield)
	}
}

// chunks reads what JavaScript yields.
func chunks(name string, from iter.Seq2[any, error]) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		n := 0
		for v, err := range from {
			if err != nil {
				yield(nil, failure(err))
				return
			}
			c, err := chunk(v)
			if err != nil {
				yield(nil, llm.NewError(seams.MalformedResponse, "%s: chunk %d: %s", name, n, reason(err)))
				return
			}
			n++
			if !yield(c, nil) {
				return
			}
		}
	}
}

func chunk(v any) (llm.Chunk, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return llm.DecodeChunk(raw)
}

// failure makes the failure of a request of what JavaScript threw: an LlmError
// keeps its code and facts, a plain Error is UNKNOWN; both say where.
func failure(err error) error {
	var t *sandbox.Thrown
	if !errors.As(err, &t) {
		return err
	}
	f := llm.Failure{Message: err.Error(), Code: seams.CodeOf(err)}
	var coded *seams.Error
	if errors.As(err, &coded) {
		f.Message = coded.Msg
	}
	if f.Code == seams.ScriptError {
		f.Code = seams.Unknown
	}
	if n, ok := t.Data["status"].(float64); ok {
		f.Status = int(n)
	}
	if n, ok := t.Data["providerRetryAfterMs"].(float64); ok && n >= 0 {
		ms := int64(n)
		f.ProviderRetryAfterMs = &ms
	}
	f.RequestID, _ = t.Data["requestId"].(string)
	return &llm.Error{Failure: f, Err: err}
}

// ask is ctx.llm.stream.
func ask(ctx context.Context, h *host, r *llm.Registry, args []any) (any, error) {
	req, signal, err := request("ctx.llm.stream", arg(args, 0))
	if err != nil {
		return nil, err
	}
	if signal != nil {
		ctx = signal
	}
	return chunksOut(r.Stream(ctx, h.ctx.Scope(), req)), nil
}

// request reads GenerateOptions.
func request(op string, v any) (req llm.Request, signal context.Context, err error) {
	m, ok := v.(map[string]any)
	if !ok {
		return req, nil, seams.Errorf(seams.InvalidArgument, op, "expected options {provider, model, messages}, got %s", kind(v))
	}
	signal, _ = m["signal"].(context.Context)
	data := make(map[string]any, len(m))
	for k, v := range m {
		if k != "signal" {
			data[k] = v
		}
	}
	req, err = decode[llm.Request](seams.InvalidArgument, op, data, true)
	for i := range req.Messages {
		identify(&req.Messages[i])
	}
	return req, signal, err
}

// chunksOut are chunks as JavaScript iterates them.
func chunksOut(s llm.Stream) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for c, err := range s {
			if err != nil {
				yield(nil, err)
				return
			}
			v, err := encode(c)
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// streamEvent is llm/stream. Its listener may be an async generator. It is
// called when the stream is read, and its owner is held until that has ended.
var streamEvent = event{
	Event{llm.StreamEvent.Name, llm.StreamEvent.Mode, "around every request to a model",
		"(options: GenerateOptions, next: (options?: GenerateOptions) => Promise<AsyncIterable<StreamChunk>>) => AsyncIterable<StreamChunk> | Promise<AsyncIterable<StreamChunk>>",
		"Returns what next answers, or yields chunks of its own. Options given to next take the place of the request's."},
	func(o seams.Owner, l *listener) (seams.Undo, error) {
		return llm.OnStream(o, func(ctx context.Context, req *llm.Request, next func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
			options, err := encodeObject(*req)
			if err != nil {
				return nil, err
			}
			options["signal"] = ctx
			// The stream that next answers is read after the call of next, under the
			// request's context.
			inner := sandbox.AsyncFunc(func(_ context.Context, args []any) (any, error) {
				if v := arg(args, 0); v != nil {
					changed, _, err := request(fmt.Sprintf("next of %s", llm.StreamEvent.Name), v)
					if err != nil {
						return nil, err
					}
					*req = changed
				}
				s, err := next(ctx)
				if err != nil {
					return nil, err
				}
				return chunksOut(s), nil
			})
			return chunks(l.h.source.name, l.fn.Iterate(ctx, options, inner)), nil
		})
	},
}
