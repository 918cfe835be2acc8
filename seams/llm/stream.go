package llm

import (
	"context"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// StreamEvent is the waterfall around every request of the registry. A
// listener may change the request's fields before it calls next (the route is
// resolved afterwards), wrap or replace the stream, or answer by itself. The
// request is the dispatch's own; what its slices and pointers refer to is not.
// Go plugins listen with OnStream.
var StreamEvent = seams.Event[*Request, Stream]{Name: "llm/stream", Mode: seams.Waterfall}

// OnStream registers a listener of StreamEvent whose stream may outlive the
// dispatch: the owner is held until the returned stream has ended or the
// request's context has.
func OnStream(o seams.Owner, fn func(ctx context.Context, req *Request, next func(context.Context) (Stream, error)) (Stream, error)) (seams.Undo, error) {
	return StreamEvent.On(o, func(ctx context.Context, req *Request, next func(context.Context) (Stream, error)) (Stream, error) {
		if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
			ctx = ofRequest(request)
		}
		frame, exit, err := o.Claim().Enter(ctx)
		if err != nil {
			return nil, err
		}
		s, err := fn(frame, req, next)
		if err != nil || s == nil {
			exit()
			return s, err
		}
		unused := context.AfterFunc(ctx, exit)
		return func(yield func(Chunk, error) bool) {
			if !unused() {
				yield(nil, seams.Errorf(seams.Aborted, StreamEvent.Name, "the request ended before its stream was read: %w", context.Cause(ctx)))
				return
			}
			defer exit()
			s(yield)
		}, nil
	})
}

// requestKey carries a request's context to its listeners: the one of a
// listener's call ends with the call, before its stream is read.
type requestKey struct{}

func ofRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, ctx)
}

// PreparedCall is one request made ready: its route resolved, its adapter held
// and its defaults filled in. It is used once.
type PreparedCall struct {
	// Config is the caller's, with the adapter's defaults where it left a
	// field out. The request must carry it unchanged.
	Config CallConfig
	// Defaults says which fields of Config are the adapter's.
	Defaults AdapterDefaults
	// RetryPolicy is the one captured when the route was registered.
	RetryPolicy RetryPolicy
	// Model is what the adapter says of the model; of one that resolves no
	// models it has Provider, ID and Name.
	Model ModelInfo

	r      *Registry
	scope  *seams.Scope
	at     held
	config CallConfig // as prepared, whatever became of Config
	// take ends the wait for a use: true for the first to call it, before the
	// context of Prepare has ended. Who has taken the call releases the lease.
	take func() bool
}

// AdapterDefaults marks values of a CallConfig that the adapter owns: they are
// not the caller's wish and do not outlive a change of route.
type AdapterDefaults struct {
	ReasoningEffort string `json:"reasoningEffort,omitempty"`
	MaxTokens       int    `json:"maxTokens,omitempty"`
}

// Prepare resolves the route of cfg and its model. It holds the adapter's
// owner until the stream has ended, Close is called or ctx ends. A provider
// left out is filled in. It fails with NO_ADAPTER (naming the routes there
// are), AMBIGUOUS_MODEL, UNSUPPORTED_REASONING_EFFORT or what the adapter
// answers.
func (r *Registry) Prepare(ctx context.Context, scope *seams.Scope, cfg CallConfig) (*PreparedCall, error) {
	at, err := r.enter(ctx, func(ctx context.Context) (target, error) {
		return r.route(ctx, scope, cfg.Provider, cfg.Model)
	})
	if err != nil {
		return nil, err
	}
	p := &PreparedCall{r: r, scope: scope, at: at}
	if err := p.fill(cfg); err != nil {
		at.exit()
		return nil, err
	}
	p.take = context.AfterFunc(ctx, at.exit)
	return p, nil
}

// fill completes the config by what the adapter says of the model.
func (p *PreparedCall) fill(cfg CallConfig) error {
	if cfg.Provider == "" {
		cfg.Provider = p.at.route
		if p.at.Value.entry != "" && p.at.route == cfg.Model {
			cfg.Provider = p.at.Value.entry
		}
	}
	m, err := p.at.resolve(p.at.frame, cfg.Model)
	if err != nil {
		return err
	}
	if m.Reasoning != nil {
		switch {
		case cfg.ReasoningEffort == "":
			cfg.ReasoningEffort = m.Reasoning.Default
			p.Defaults.ReasoningEffort = m.Reasoning.Default
		case !slices.ContainsFunc(m.Reasoning.Efforts, func(e Effort) bool { return e.ID == cfg.ReasoningEffort }):
			ids := make([]string, len(m.Reasoning.Efforts))
			for i, e := range m.Reasoning.Efforts {
				ids[i] = e.ID
			}
			return NewError(seams.UnsupportedReasoningEffort, "model %q offers no reasoning effort %q, only %s",
				cfg.Model, cfg.ReasoningEffort, strings.Join(ids, ", "))
		}
	}
	if cfg.MaxTokens == 0 {
		cfg.MaxTokens = m.MaxTokens
		p.Defaults.MaxTokens = m.MaxTokens
	}
	cfg.Stop = slices.Clone(cfg.Stop)
	facts, _ := p.at.Value.facts(p.at.route)
	p.Config, p.config, p.Model, p.RetryPolicy = cfg, cfg, m, facts.policy
	return nil
}

// Close releases the adapter of a call that is not to be used. Idempotent; a
// stream releases it by itself.
func (p *PreparedCall) Close() {
	if p.take() {
		p.at.exit()
	}
}

// Stream sends req through StreamEvent to the prepared adapter, whatever has
// become of its route meanwhile. A second use, or a request whose config is
// not p.Config when it reaches the adapter, ends in INVALID_PREPARED_CALL.
func (p *PreparedCall) Stream(ctx context.Context, req Request) Stream {
	return func(yield func(Chunk, error) bool) {
		first := p.take()
		if first {
			defer p.at.exit()
		}
		p.r.dispatch(ctx, p.scope, req, func(ctx context.Context, req Request) Stream {
			switch {
			case !first:
				return failed(ctx, NewError(seams.InvalidPreparedCall, "the prepared call was used or closed, or the context it was prepared in has ended"))
			case !req.CallConfig.Equal(p.config):
				return failed(ctx, NewError(seams.InvalidPreparedCall, "the request's config is not the one that was prepared"))
			}
			return p.deliver(ctx, req)
		})(yield)
	}
}

// Stream sends req through StreamEvent and then to the adapter its provider
// and model lead to. Failures on the adapter's side, NO_ADAPTER included, are
// the last chunk, a Finish; an error is one of the middleware.
func (r *Registry) Stream(ctx context.Context, scope *seams.Scope, req Request) Stream {
	return r.dispatch(ctx, scope, req, func(ctx context.Context, req Request) Stream {
		return func(yield func(Chunk, error) bool) {
			p, err := r.Prepare(ctx, scope, req.CallConfig)
			if err != nil {
				failed(ctx, err)(yield)
				return
			}
			if !p.take() {
				failed(ctx, context.Cause(ctx))(yield)
				return
			}
			defer p.at.exit()
			req.CallConfig = p.config
			p.deliver(ctx, req)(yield)
		}
	})
}

// dispatch runs the waterfall and the stream it answers.
func (r *Registry) dispatch(ctx context.Context, scope *seams.Scope, req Request, inner func(context.Context, Request) Stream) Stream {
	return func(yield func(Chunk, error) bool) {
		s, err := StreamEvent.Dispatch(ofRequest(ctx), r.bus, scope, &req, func(ctx context.Context) (Stream, error) {
			return inner(ctx, req), nil
		})
		if err == nil && s == nil {
			err = seams.Errorf(seams.WrongType, StreamEvent.Name, "a listener of %s answered no stream", StreamEvent.Name)
		}
		if err == nil {
			err = guarded(s, yield)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// guarded runs s; a panic that is not the consumer's is an error.
func guarded(s Stream, yield func(Chunk, error) bool) (err error) {
	consuming, left := false, false
	defer func() {
		if consuming {
			return
		}
		if p := recover(); p != nil && !left {
			err = seams.Errorf(seams.Panicked, StreamEvent.Name, "the stream of a listener panicked: %v", p)
		}
	}()
	s(func(c Chunk, err error) bool {
		consuming = true
		more := yield(c, err)
		consuming, left = false, !more
		return more
	})
	return nil
}

// deliver is the adapter's boundary: it hands the request over in the form the
// adapter may see, and makes of every failure one finish.
func (p *PreparedCall) deliver(ctx context.Context, req Request) Stream {
	return func(yield func(Chunk, error) bool) {
		req.Messages = p.r.forAdapter(p, req.Messages)
		run, cancel := context.WithCancel(p.at.frame)
		defer cancel()
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
		done, err := pump(p.at.Value.adapter, run, req, yield)
		if done {
			return
		}
		if ctx.Err() == nil && p.at.frame.Err() != nil {
			err = unloaded(p.at.frame)
		}
		failed(ctx, err)(yield)
	}
}

// pump passes the adapter's chunks on. done: a finish was passed on, or the
// consumer left; otherwise err is why the stream ended.
func pump(a Adapter, ctx context.Context, req Request, yield func(Chunk, error) bool) (done bool, err error) {
	consuming := false
	defer func() {
		if consuming {
			return // a panic of the consumer is the consumer's
		}
		if p := recover(); p != nil {
			err = NewError(seams.Panicked, "the adapter panicked: %v", p)
		}
	}()
	for c, err := range a.Stream(ctx, req) {
		if err != nil {
			return false, err
		}
		if c == nil {
			return false, NewError(seams.MalformedResponse, "the adapter yielded neither a chunk nor an error")
		}
		consuming = true
		more := yield(c, nil)
		consuming = false
		if _, last := c.(Finish); last || !more {
			done = true
			return done, nil
		}
	}
	return false, NewError(seams.StreamClosed, "the adapter's stream ended without a finish")
}

// failed is the stream of a request that failed: one finish.
func failed(ctx context.Context, err error) Stream {
	return func(yield func(Chunk, error) bool) {
		f := FailureOf(err)
		kind := Failed
		if ctx.Err() != nil || f.Code == seams.Aborted {
			kind = Aborted
		}
		yield(Finish{Reason: FinishReason{Kind: kind, Failure: &f}}, nil)
	}
}

func unloaded(frame context.Context) error {
	err := context.Cause(frame)
	if seams.CodeOf(err) != seams.Unknown {
		return err
	}
	return NewError(seams.Unloaded, "the adapter's plugin was unloaded during the request")
}

// forAdapter returns the messages as the target may see them: replay state
// only if the same registration made it, and for a model that declares its
// input without images a text in place of each. Messages that stay as they are
// are shared, others copied.
func (r *Registry) forAdapter(p *PreparedCall, in []Message) []Message {
	textOnly := p.Model.InputModalities != nil && !slices.Contains(p.Model.InputModalities, "image")
	out, copied := in, false
	change := func(i int) *Message {
		if !copied {
			out, copied = slices.Clone(in), true
		}
		return &out[i]
	}
	for i, m := range in {
		if m.Source.ReplayState != nil && !r.madeBy(p, m.Source) {
			change(i).Source.ReplayState = nil
		}
		if c, ok := withoutImages(m.Content); textOnly && ok {
			change(i).Content = c
		}
	}
	return out
}

// madeBy reports whether the provider of a message in the history is served by
// the registration that p leads to.
func (r *Registry) madeBy(p *PreparedCall, s Source) bool {
	if s.Provider == "" {
		return false
	}
	t, err := r.route(p.at.frame, p.scope, s.Provider, s.Model)
	return err == nil && t.Value == p.at.Value
}

// withoutImages returns c with a text for each image, nested ones included;
// ok is false when there is none.
func withoutImages(c Content) (out Content, ok bool) {
	for i, b := range c {
		switch b := b.(type) {
		case Image:
			out, ok = ensure(out, c), true
			out[i] = Text{"[image " + b.Attachment.Hash[:min(8, len(b.Attachment.Hash))] + " left out: this model takes text only]"}
		case ToolResult:
			if inner, has := withoutImages(b.Content); has {
				out, ok = ensure(out, c), true
				b.Content = inner
				out[i] = b
			}
		}
	}
	return out, ok
}

func ensure(out, c Content) Content {
	if out == nil {
		return slices.Clone(c)
	}
	return out
}
