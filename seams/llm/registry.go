package llm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/seams"
)

// Key is the service key of the registry.
var Key = seams.Key[*Registry]{Name: "llm"}

// Registry routes requests to adapters. It is the service "llm".
type Registry struct {
	bus  seams.Bus
	regs *seams.Registry[*provider]
}

// NewRegistry makes a registry. bus dispatches StreamEvent; stamp is the
// container's publication stamp, as for seams.NewRegistry.
func NewRegistry(bus seams.Bus, stamp func() uint64) *Registry {
	return &Registry{bus: bus, regs: seams.NewRegistry[*provider]("adapter", stamp)}
}

// Registration states who serves which routes. A route is the name of a model
// or of a provider. Entry is the id of the owner's entry in the composition
// (it may be empty): a request may name it as its provider.
type Registration struct {
	Entry   string
	Routes  []string
	Adapter Adapter
}

// provider is one registration as the registry keeps it.
type provider struct {
	entry   string
	adapter Adapter

	mu     sync.RWMutex
	routes map[string]routeFacts
}

// routeFacts is what an adapter said of a route when it was registered.
type routeFacts struct {
	info   ProviderInfo
	policy RetryPolicy
}

func (p *provider) facts(route string) (routeFacts, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	f, ok := p.routes[route]
	return f, ok
}

func (p *provider) setFacts(m map[string]routeFacts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes = m
}

// is reports whether a request that names name as its provider means p.
func (p *provider) is(name string) bool {
	_, ok := p.facts(name)
	return ok || name == p.entry
}

// Handle is a registered adapter.
type Handle struct {
	reg *seams.Registration[*provider]
	p   *provider

	mu sync.Mutex // orders Replace
}

// RegisterAdapter registers all routes or none, as an effect of o and in o's
// scope. INVALID_ADAPTER: no adapter, no route, an empty one, or provider info
// that does not fit. DUPLICATE_ADAPTER: a route repeated or owned by another
// entry.
func (r *Registry) RegisterAdapter(o seams.Owner, reg Registration) (*Handle, error) {
	if reg.Adapter == nil || len(reg.Routes) == 0 {
		return nil, seams.Errorf(seams.InvalidAdapter, "llm.registerAdapter", "an adapter and at least one route are needed")
	}
	facts, err := describe(reg.Adapter, reg.Routes)
	if err != nil {
		return nil, err
	}
	p := &provider{entry: reg.Entry, adapter: reg.Adapter, routes: facts}
	g, err := r.regs.Register(o, "llm.registerAdapter("+strings.Join(reg.Routes, ", ")+")", p, reg.Routes...)
	if err != nil {
		return nil, adapterError(err, seams.InactiveEffect)
	}
	return &Handle{reg: g, p: p}, nil
}

// Replace swaps the routes in one step; none is legal. It fails as
// RegisterAdapter does and then changes nothing; REGISTRATION_DISPOSED after
// Undo or the owner's end.
func (h *Handle) Replace(routes ...string) error {
	facts, err := describe(h.p.adapter, routes)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.p.routes
	both := maps.Clone(before)
	maps.Copy(both, facts)
	h.p.setFacts(both)
	if err := h.reg.Rename(routes...); err != nil {
		h.p.setFacts(before)
		return adapterError(err, seams.RegistrationDisposed)
	}
	h.p.setFacts(facts)
	return nil
}

// Undo releases the registration ahead of its owner's end. Idempotent.
func (h *Handle) Undo(ctx context.Context) error { return h.reg.Undo(ctx) }

// describe asks the adapter about its routes and checks what it says.
func describe(a Adapter, routes []string) (map[string]routeFacts, error) {
	out := make(map[string]routeFacts, len(routes))
	for _, route := range routes {
		if route == "" {
			return nil, seams.Errorf(seams.InvalidAdapter, "llm.registerAdapter", "a route is empty")
		}
		if _, twice := out[route]; twice {
			return nil, seams.Errorf(seams.DuplicateAdapter, "llm.registerAdapter", "route %q is given twice", route)
		}
		f := routeFacts{ProviderInfo{route, route}, DefaultRetryPolicy()}
		if d, ok := a.(Describer); ok {
			f.info = d.ProviderInfo(route)
			if f.info.ID != route || f.info.Name == "" {
				return nil, seams.Errorf(seams.InvalidAdapter, "llm.registerAdapter",
					"provider info of route %q has id %q and name %q: the id must be the route, the name not empty", route, f.info.ID, f.info.Name)
			}
		}
		if p, ok := a.(RetryPolicied); ok {
			f.policy = p.RetryPolicy(route)
			f.policy.RetryableCodes = slices.Clone(f.policy.RetryableCodes)
			if err := f.policy.Validate(); err != nil {
				return nil, seams.Errorf(seams.InvalidAdapter, "llm.registerAdapter", "retry policy of route %q: %w", route, err)
			}
		}
		out[route] = f
	}
	return out, nil
}

// adapterError gives a failure of the layered registry this seam's code.
func adapterError(err error, inactive seams.Code) error {
	code := seams.CodeOf(err)
	switch code {
	case seams.Duplicate:
		code = seams.DuplicateAdapter
	case seams.InactiveEffect:
		code = inactive
	}
	return seams.Errorf(code, "llm.registerAdapter", "%w", err)
}

// ListProviders returns what is registered for scope, in order of
// registration.
func (r *Registry) ListProviders(scope *seams.Scope) []ProviderInfo {
	var out []ProviderInfo
	for _, e := range r.regs.All(scope) {
		if f, ok := e.Value.facts(e.Name); ok {
			out = append(out, f.info)
		}
	}
	return out
}

// ListModels returns the catalogue of one route, empty if the adapter has
// none. NO_ADAPTER; INVALID_CATALOG names a bad or repeated entry.
func (r *Registry) ListModels(ctx context.Context, scope *seams.Scope, route string) ([]ModelInfo, error) {
	t, err := r.enter(ctx, func(context.Context) (target, error) {
		if e, ok := r.regs.Get(scope, route); ok {
			return target{e, route}, nil
		}
		return target{}, r.noAdapter(scope, route, "")
	})
	if err != nil {
		return nil, err
	}
	defer t.exit()
	return t.models(t.frame)
}

// ResolveModel describes one model exactly, whether a catalogue lists it or
// not. NO_ADAPTER, INVALID_MODEL_…
func (r *Registry) ResolveModel(ctx context.Context, scope *seams.Scope, provider, model string) (ModelInfo, error) {
	t, err := r.enter(ctx, func(ctx context.Context) (target, error) { return r.route(ctx, scope, provider, model) })
	if err != nil {
		return ModelInfo{}, err
	}
	defer t.exit()
	return t.resolve(t.frame, model)
}

// target is where a request goes: a registration, and the route that leads
// there.
type target struct {
	seams.Entry[*provider]
	route string
}

// held is a target whose owner is held by a lease.
type held struct {
	target
	frame context.Context
	exit  func()
}

// route finds the registration for a provider and a model.
func (r *Registry) route(ctx context.Context, scope *seams.Scope, provider, model string) (target, error) {
	if model != "" {
		if e, ok := r.regs.Get(scope, model); ok && (provider == "" || e.Value.is(provider)) {
			return target{e, model}, nil
		}
	}
	if provider != "" {
		if e, ok := r.regs.Get(scope, provider); ok {
			return target{e, provider}, nil
		}
	} else if model != "" {
		return r.byCatalogue(ctx, scope, model)
	}
	return target{}, r.noAdapter(scope, provider, model)
}

// byCatalogue finds the one registration whose catalogue lists the model. A
// catalogue that cannot be read lists nothing.
func (r *Registry) byCatalogue(ctx context.Context, scope *seams.Scope, model string) (target, error) {
	var hits []target
	for _, e := range r.regs.All(scope) {
		if slices.ContainsFunc(hits, func(h target) bool { return h.Value == e.Value }) {
			continue
		}
		frame, exit, err := e.Claim.Enter(ctx)
		if err != nil {
			continue
		}
		list, err := target{e, e.Name}.models(frame)
		exit()
		if err == nil && slices.ContainsFunc(list, func(m ModelInfo) bool { return m.ID == model }) {
			hits = append(hits, target{e, e.Name})
		}
	}
	switch len(hits) {
	case 0:
		return target{}, r.noAdapter(scope, "", model)
	case 1:
		return hits[0], nil
	}
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.route
	}
	return target{}, NewError(seams.AmbiguousModel, "model %q is offered by %s: name one of them as the provider", model, strings.Join(names, ", "))
}

func (r *Registry) noAdapter(scope *seams.Scope, provider, model string) error {
	const most = 20
	var routes []string
	for _, e := range r.regs.All(scope) {
		if len(routes) == most {
			routes = append(routes, "…")
			break
		}
		routes = append(routes, e.Name)
	}
	there := "no routes are registered"
	if len(routes) > 0 {
		there = "the routes are " + strings.Join(routes, ", ")
	}
	return NewError(seams.NoAdapter, "no adapter for provider %q and model %q: %s", provider, model, there)
}

// enter finds a target and takes its owner's lease. When the owner closes in
// between, the search begins again: its successor may be there.
func (r *Registry) enter(ctx context.Context, find func(context.Context) (target, error)) (held, error) {
	const tries = 3
	for try := 1; ; try++ {
		t, err := find(ctx)
		if err != nil {
			return held{}, err
		}
		frame, exit, err := t.Claim.Enter(ctx)
		if err == nil {
			return held{t, frame, exit}, nil
		}
		if try == tries || !errors.Is(err, seams.InactiveEffect) {
			return held{}, err
		}
	}
}

// models returns the catalogue of the target's route, checked. The caller
// holds the owner.
func (t target) models(ctx context.Context) (list []ModelInfo, err error) {
	c, ok := t.Value.adapter.(Catalogue)
	if !ok {
		return nil, nil
	}
	if err := contained("ListModels", func() error { list, err = c.ListModels(ctx, t.route); return err }); err != nil {
		return nil, err
	}
	list = slices.Clone(list)
	seen := make(map[string]bool, len(list))
	for i := range list {
		m := &list[i]
		if m.Provider == "" {
			m.Provider = t.route
		}
		if m.Name == "" {
			m.Name = m.ID
		}
		if m.ID == "" || seen[m.ID] {
			return nil, seams.Errorf(seams.InvalidCatalog, "llm.listModels", "models[%d] of %q: the id %q is empty or repeated", i, t.route, m.ID)
		}
		if err := m.check(t.route, m.ID); err != nil {
			return nil, seams.Errorf(seams.InvalidCatalog, "llm.listModels", "models[%d]: %w", i, err)
		}
		seen[m.ID] = true
	}
	return list, nil
}

// resolve describes one model, checked. The caller holds the owner.
func (t target) resolve(ctx context.Context, model string) (info ModelInfo, err error) {
	info = ModelInfo{Provider: t.route, ID: model, Name: model}
	m, ok := t.Value.adapter.(ModelResolver)
	if !ok || model == "" {
		return info, nil
	}
	if err := contained("ResolveModel", func() error { info, err = m.ResolveModel(ctx, t.route, model); return err }); err != nil {
		return ModelInfo{}, err
	}
	if info.Provider == "" {
		info.Provider = t.route
	}
	return info, info.check(t.route, model)
}

// check says what is wrong with a model's description (M-27, M-29…M-31).
func (m ModelInfo) check(route, model string) error {
	const safe = 1<<53 - 1
	bad := func(code seams.Code, format string, args ...any) error {
		return seams.Errorf(code, "llm.model", "model %q of %q: "+format, append([]any{model, route}, args...)...)
	}
	switch {
	case m.Provider != route:
		return bad(seams.InvalidModelInfo, "its provider is given as %q", m.Provider)
	case m.ID != model:
		return bad(seams.InvalidModelInfo, "its id is given as %q", m.ID)
	case m.Name == "":
		return bad(seams.InvalidModelInfo, "its name is empty")
	case m.ContextWindow < 0 || m.ContextWindow > safe:
		return bad(seams.InvalidModelContext, "its context window is %d", m.ContextWindow)
	case m.MaxTokens < 0 || m.MaxTokens > safe:
		return bad(seams.InvalidModelMaxTokens, "its output limit is %d", m.MaxTokens)
	case slices.Contains(m.InputModalities, ""):
		return bad(seams.InvalidModelInfo, "an input modality is empty")
	case m.Reasoning == nil:
		return nil
	case len(m.Reasoning.Efforts) == 0:
		return bad(seams.InvalidModelReasoning, "its list of reasoning efforts is empty")
	}
	seen := map[string]bool{}
	for i, e := range m.Reasoning.Efforts {
		if e.ID == "" || e.Name == "" || seen[e.ID] {
			return bad(seams.InvalidModelReasoning, "reasoning effort %d has an empty or repeated id, or no name", i)
		}
		seen[e.ID] = true
	}
	if d := m.Reasoning.Default; d != "" && !seen[d] {
		return bad(seams.InvalidModelReasoning, "its default effort %q is not one of its efforts", d)
	}
	return nil
}

// contained runs code of an adapter; a panic becomes an error.
func contained(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = NewError(seams.Panicked, "the adapter's %s panicked: %v", what, p)
		}
	}()
	return f()
}
