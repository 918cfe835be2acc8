package llm_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// described is an adapter with every optional interface.
type described struct {
	adapterFunc
	info    func(route string) llm.ProviderInfo
	models  func(ctx context.Context, route string) ([]llm.ModelInfo, error)
	resolve func(ctx context.Context, route, model string) (llm.ModelInfo, error)
	policy  *llm.RetryPolicy
}

func (d described) ProviderInfo(route string) llm.ProviderInfo {
	if d.info == nil {
		return llm.ProviderInfo{ID: route, Name: "Provider " + route}
	}
	return d.info(route)
}

func (d described) ListModels(ctx context.Context, route string) ([]llm.ModelInfo, error) {
	if d.models == nil {
		return nil, nil
	}
	return d.models(ctx, route)
}

func (d described) ResolveModel(ctx context.Context, route, model string) (llm.ModelInfo, error) {
	if d.resolve == nil {
		return llm.ModelInfo{Provider: route, ID: model, Name: model}, nil
	}
	return d.resolve(ctx, route, model)
}

func (d described) RetryPolicy(string) llm.RetryPolicy {
	if d.policy == nil {
		return llm.DefaultRetryPolicy()
	}
	return *d.policy
}

func lists(names ...string) func(context.Context, string) ([]llm.ModelInfo, error) {
	return func(context.Context, string) ([]llm.ModelInfo, error) {
		var out []llm.ModelInfo
		for _, n := range names {
			out = append(out, llm.ModelInfo{ID: n})
		}
		return out, nil
	}
}

// who asks for a model and tells which adapter answered.
func who(t testing.TB, w *world, scope *seams.Scope, req llm.Request) (string, seams.Code) {
	t.Helper()
	all, fin, err := drain(w.Stream(t.Context(), scope, req))
	if err != nil || fin == nil {
		t.Fatalf("%v %v", fin, err)
	}
	if f := fin.Reason.Failure; f != nil {
		return f.Message, f.Code
	}
	return all[1].(llm.TextDelta).Text, ""
}

// The rule of routes: by model, by provider, by catalogue. M-17, M-18.
func TestRouting(t *testing.T) {
	w := newWorld()
	must := func(entry string, a llm.Adapter, routes ...string) {
		t.Helper()
		if _, err := w.RegisterAdapter(w.owner(entry), llm.Registration{Entry: entry, Routes: routes, Adapter: a}); err != nil {
			t.Fatal(err)
		}
	}
	must("my-llm", says("mine"), "my-model-v1", "my-model-v2")
	must("other-llm", says("other"), "vendor", "other-model")
	must("catalogued", described{adapterFunc: says("listed"), models: lists("big", "shared")}, "cat")
	must("second", described{adapterFunc: says("second"), models: lists("shared")}, "dog")
	must("broken", described{adapterFunc: says("broken"), models: func(context.Context, string) ([]llm.ModelInfo, error) {
		panic("no list")
	}}, "broken")
	for _, c := range []struct {
		provider, model string
		want            string
		code            seams.Code
	}{
		{"my-llm", "my-model-v1", "mine", ""},      // the entry id of the route's owner
		{"my-model-v1", "my-model-v2", "mine", ""}, // a route of the owner
		{"", "my-model-v1", "mine", ""},            // no provider
		{"vendor", "my-model-v1", "other", ""},     // the model's route is another's: by provider
		{"vendor", "anything", "other", ""},        // by provider
		{"vendor", "", "other", ""},                // a provider alone
		{"other-llm", "other-model", "other", ""},  // an entry id and a model's route
		{"", "vendor", "other", ""},                // a provider's route as the model
		{"", "big", "listed", ""},                  // by catalogue
		{"cat", "unlisted", "listed", ""},          // the catalogue is advice
		{"", "shared", "", seams.AmbiguousModel},   // two list it
		{"my-llm", "nope", "", seams.NoAdapter},    // an entry id is no route
		{"nobody", "my-model-v1", "", seams.NoAdapter},
		{"", "nope", "", seams.NoAdapter},
		{"", "", "", seams.NoAdapter},
	} {
		got, code := who(t, w, nil, to(c.provider, c.model))
		if code != c.code || code == "" && got != c.want {
			t.Errorf("%q/%q: %q %q", c.provider, c.model, got, code)
		}
		if code == seams.NoAdapter && !strings.Contains(got, "my-model-v1, my-model-v2, vendor, other-model, cat, dog, broken") {
			t.Errorf("the routes are not listed: %s", got)
		}
		if code == seams.AmbiguousModel && !strings.Contains(got, "cat, dog") {
			t.Errorf("the providers are not named: %s", got)
		}
	}
}

// The provider a request leaves out is filled in, and leads to the same place.
func TestProviderIsFilledIn(t *testing.T) {
	w := newWorld()
	if _, err := w.RegisterAdapter(w.owner("o"), llm.Registration{Entry: "my-llm", Routes: []string{"m1"}, Adapter: says("x")}); err != nil {
		t.Fatal(err)
	}
	w.add(t, described{adapterFunc: says("y"), models: lists("m2")}, "cat")
	for model, provider := range map[string]string{"m1": "my-llm", "m2": "cat"} {
		p, err := w.Prepare(t.Context(), nil, llm.CallConfig{Model: model})
		if err != nil || p.Config.Provider != provider {
			t.Fatalf("%s: %q %v", model, p.Config.Provider, err)
		}
		p.Close()
		again, err := w.Prepare(t.Context(), nil, p.Config)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	}
}

func TestScopes(t *testing.T) {
	w := newWorld()
	w.add(t, says("global"), "p")
	inner := seams.NewScope("agent", nil)
	o := w.owner("inner")
	o.scope = inner
	if _, err := w.RegisterAdapter(o, llm.Registration{Routes: []string{"p"}, Adapter: says("inner")}); err != nil {
		t.Fatal(err)
	}
	if got, _ := who(t, w, inner, to("p", "m")); got != "inner" {
		t.Error(got)
	}
	if got, _ := who(t, w, nil, to("p", "m")); got != "global" {
		t.Error(got)
	}
}

// M-24, M-44, M-45
func TestRegistration(t *testing.T) {
	w := newWorld()
	o, h := w.add(t, says("x"), "a", "b")
	bad := func(code seams.Code, a llm.Adapter, routes ...string) {
		t.Helper()
		if _, err := w.RegisterAdapter(w.owner("z"), llm.Registration{Routes: routes, Adapter: a}); !errors.Is(err, code) {
			t.Errorf("%q: %v, want %s", routes, err, code)
		}
	}
	bad(seams.InvalidAdapter, says("y"))
	bad(seams.InvalidAdapter, nil, "c")
	bad(seams.InvalidAdapter, says("y"), "c", "")
	bad(seams.DuplicateAdapter, says("y"), "c", "c")
	bad(seams.DuplicateAdapter, says("y"), "c", "a")
	if got := len(w.ListProviders(nil)); got != 2 {
		t.Errorf("%d providers", got)
	}
	if err := h.Replace("b", "c"); err != nil {
		t.Error(err)
	}
	if _, code := who(t, w, nil, to("a", "m")); code != seams.NoAdapter {
		t.Error(code)
	}
	if got, _ := who(t, w, nil, to("c", "m")); got != "x" {
		t.Error(got)
	}
	_, other := w.add(t, says("y"), "d")
	for _, e := range []struct {
		routes []string
		code   seams.Code
	}{{[]string{"b", ""}, seams.InvalidAdapter}, {[]string{"b", "b"}, seams.DuplicateAdapter}, {[]string{"b", "d"}, seams.DuplicateAdapter}} {
		if err := h.Replace(e.routes...); !errors.Is(err, e.code) {
			t.Errorf("%q: %v", e.routes, err)
		}
	}
	if err := h.Replace("new", "d"); !errors.Is(err, seams.DuplicateAdapter) {
		t.Error(err)
	}
	for _, provider := range []string{"a", "new"} { // once a route, and never one
		if _, code := who(t, w, nil, to(provider, "b")); code != seams.NoAdapter {
			t.Errorf("%s still names the provider", provider)
		}
	}
	if got := w.ListProviders(nil); len(got) != 3 || got[0].ID != "b" || got[1].ID != "c" {
		t.Errorf("a failed replace changed something: %v", got)
	}
	if err := h.Replace(); err != nil || len(w.ListProviders(nil)) != 1 {
		t.Errorf("%v %v", err, w.ListProviders(nil))
	}
	if err := other.Undo(t.Context()); err != nil || other.Undo(t.Context()) != nil {
		t.Error(err)
	}
	if err := other.Replace("x"); !errors.Is(err, seams.RegistrationDisposed) {
		t.Error(err)
	}
	w.add(t, says("again"), "d")
	if err := h.Replace("a"); err != nil {
		t.Fatal(err)
	}
	o.end()
	if _, code := who(t, w, nil, to("a", "m")); code != seams.NoAdapter {
		t.Error(code)
	}
	if err := h.Replace("a"); !errors.Is(err, seams.RegistrationDisposed) {
		t.Error(err)
	}
	if _, err := w.RegisterAdapter(o, llm.Registration{Routes: []string{"a"}, Adapter: says("x")}); !errors.Is(err, seams.InactiveEffect) {
		t.Error(err)
	}
}

// What an owner that is not active registered is not seen; a successor of the
// same entry may hold the same route beside it.
func TestVisibility(t *testing.T) {
	w := newWorld()
	old := &owner{bus: w.bus, name: "v1", entry: "e"}
	next := &owner{bus: w.bus, name: "v2", entry: "e", hidden: true}
	for _, o := range []*owner{old, next} {
		if _, err := w.RegisterAdapter(o, llm.Registration{Entry: "e", Routes: []string{"p"}, Adapter: says(o.name)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := who(t, w, nil, to("p", "m")); got != "v1" {
		t.Error(got)
	}
	old.hidden, next.hidden = true, false
	if got, _ := who(t, w, nil, to("p", "m")); got != "v2" {
		t.Error(got)
	}
}

// closing is an owner that is found and then refuses entry: its successor is
// taken.
type closing struct {
	*owner
	refused func()
}

func (c *closing) Claim() seams.Claim         { return c }
func (c *closing) Kin(other seams.Claim) bool { return true }

func (c *closing) Enter(context.Context) (context.Context, func(), error) {
	c.refused()
	return nil, nil, seams.Errorf(seams.InactiveEffect, "test", "closing")
}

func TestASuccessorIsTaken(t *testing.T) {
	w := newWorld()
	next := w.owner("next")
	next.hidden = true
	old := &closing{owner: w.owner("old")}
	stays := false
	old.refused = func() {
		if !stays {
			old.hidden, next.hidden = true, false
		}
	}
	for _, c := range []struct {
		o seams.Owner
		a llm.Adapter
	}{{next, says("next")}, {old, says("old")}} {
		if _, err := w.RegisterAdapter(c.o, llm.Registration{Routes: []string{"p"}, Adapter: c.a}); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := who(t, w, nil, to("p", "m")); got != "next" {
		t.Error(got)
	}
	stays, old.hidden, next.hidden = true, false, true
	if _, code := who(t, w, nil, to("p", "m")); code != seams.InactiveEffect {
		t.Error(code)
	}
}

// M-26, M-39, M-40
func TestProviderAndCatalogue(t *testing.T) {
	w := newWorld()
	list := []llm.ModelInfo{{ID: "m", ContextWindow: 10}}
	w.add(t, described{adapterFunc: says("x"), models: func(context.Context, string) ([]llm.ModelInfo, error) { return list, nil }}, "full")
	w.add(t, says("y"), "bare")
	if got := w.ListProviders(nil); !reflect.DeepEqual(got, []llm.ProviderInfo{{ID: "full", Name: "Provider full"}, {ID: "bare", Name: "bare"}}) {
		t.Errorf("%+v", got)
	}
	got, err := w.ListModels(t.Context(), nil, "full")
	if err != nil || !reflect.DeepEqual(got, []llm.ModelInfo{{Provider: "full", ID: "m", Name: "m", ContextWindow: 10}}) {
		t.Errorf("%+v %v", got, err)
	}
	got[0].Name = "changed"
	if list[0].Name != "" {
		t.Error("the catalogue is not detached")
	}
	if got, err := w.ListModels(t.Context(), nil, "bare"); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := w.ListModels(t.Context(), nil, "none"); !errors.Is(err, seams.NoAdapter) {
		t.Error(err)
	}
	for name, bad := range map[string][]llm.ModelInfo{
		"no id": {{Name: "x"}}, "another provider": {{ID: "a", Provider: "q"}}, "twice": {{ID: "a"}, {ID: "a"}}, "window": {{ID: "a", ContextWindow: -1}},
		"limit": {{ID: "a", MaxTokens: -1}}, "efforts": {{ID: "a", Reasoning: &llm.ReasoningInfo{}}}, "modality": {{ID: "a", InputModalities: []string{""}}},
	} {
		list = bad
		if _, err := w.ListModels(t.Context(), nil, "full"); !errors.Is(err, seams.InvalidCatalog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, info := range map[string]llm.ProviderInfo{"id": {ID: "q", Name: "x"}, "no id": {Name: "x"}, "no name": {ID: "p"}} {
		d := described{adapterFunc: says("x"), info: func(string) llm.ProviderInfo { return info }}
		if _, err := w.RegisterAdapter(w.owner("z"), llm.Registration{Routes: []string{"p"}, Adapter: d}); !errors.Is(err, seams.InvalidAdapter) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(w.ListProviders(nil)) != 2 {
		t.Error("a refused registration left something")
	}
}

// M-27, M-28, M-29, M-30, M-31, M-38
func TestResolveModel(t *testing.T) {
	w := newWorld()
	var info llm.ModelInfo
	var fail error
	w.add(t, described{adapterFunc: says("x"), resolve: func(ctx context.Context, route, model string) (llm.ModelInfo, error) {
		if fail == nil {
			fail = ctx.Err()
		}
		return info, fail
	}}, "p")
	efforts := []llm.Effort{{ID: "low", Name: "Low"}, {ID: "high", Name: "High"}}
	info = llm.ModelInfo{Provider: "p", ID: "m", Name: "M", ContextWindow: 100, MaxTokens: 5, InputModalities: []string{"text", "image"}, Reasoning: &llm.ReasoningInfo{Efforts: efforts, Default: "low"}}
	if got, err := w.ResolveModel(t.Context(), nil, "p", "m"); err != nil || !reflect.DeepEqual(got, info) {
		t.Fatalf("%+v %v", got, err)
	}
	good := info
	for name, c := range map[string]struct {
		change func()
		code   seams.Code
	}{
		"provider":       {func() { info.Provider = "q" }, seams.InvalidModelInfo},
		"id":             {func() { info.ID = "n" }, seams.InvalidModelInfo},
		"no id":          {func() { info.ID = "" }, seams.InvalidModelInfo},
		"name":           {func() { info.Name = "" }, seams.InvalidModelInfo},
		"modality":       {func() { info.InputModalities = []string{"text", ""} }, seams.InvalidModelInfo},
		"window":         {func() { info.ContextWindow = -1 }, seams.InvalidModelContext},
		"window unsafe":  {func() { info.ContextWindow = 1 << 53 }, seams.InvalidModelContext},
		"limit":          {func() { info.MaxTokens = -1 }, seams.InvalidModelMaxTokens},
		"limit unsafe":   {func() { info.MaxTokens = 1 << 53 }, seams.InvalidModelMaxTokens},
		"no efforts":     {func() { info.Reasoning = &llm.ReasoningInfo{} }, seams.InvalidModelReasoning},
		"effort id":      {func() { info.Reasoning = &llm.ReasoningInfo{Efforts: []llm.Effort{{Name: "x"}}} }, seams.InvalidModelReasoning},
		"effort name":    {func() { info.Reasoning = &llm.ReasoningInfo{Efforts: []llm.Effort{{ID: "x"}}} }, seams.InvalidModelReasoning},
		"effort twice":   {func() { info.Reasoning = &llm.ReasoningInfo{Efforts: append(efforts, efforts[0])} }, seams.InvalidModelReasoning},
		"effort default": {func() { info.Reasoning = &llm.ReasoningInfo{Efforts: efforts, Default: "max"} }, seams.InvalidModelReasoning},
	} {
		info = good
		c.change()
		if _, err := w.ResolveModel(t.Context(), nil, "p", "m"); !errors.Is(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if _, code := who(t, w, nil, to("p", "m")); code != c.code {
			t.Errorf("%s: the stream ends in %s", name, code)
		}
	}
	if _, err := w.ResolveModel(t.Context(), nil, "q", "m"); !errors.Is(err, seams.NoAdapter) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.ResolveModel(ctx, nil, "p", "m"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.add(t, says("bare"), "bare")
	if got, err := w.ResolveModel(t.Context(), nil, "bare", "m"); err != nil || !reflect.DeepEqual(got, llm.ModelInfo{Provider: "bare", ID: "m", Name: "m"}) {
		t.Errorf("%+v %v", got, err)
	}
}
