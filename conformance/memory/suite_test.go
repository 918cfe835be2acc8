package memorytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ouro-run/ouro/conformance/harness"
	memorytest "github.com/ouro-run/ouro/conformance/memory"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/memory"
)

func run(t *testing.T, checks []harness.Check) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func byText(now func() time.Time) memory.Store { return memory.New(memory.Options{Now: now}) }
func bySimilarity(now func() time.Time) memory.Store {
	return memory.New(memory.Options{Now: now, Embedder: memory.TermHash(512)})
}
func working() memory.WorkingStore { return memory.New(memory.Options{}) }

func TestMemoryConforms(t *testing.T) {
	t.Run("by text", func(t *testing.T) { run(t, memorytest.StoreChecks(byText)) })
	t.Run("by similarity", func(t *testing.T) { run(t, memorytest.StoreChecks(bySimilarity)) })
	t.Run("working", func(t *testing.T) { run(t, memorytest.WorkingChecks(working)) })
	t.Run("embedder", func(t *testing.T) { run(t, memorytest.EmbedderChecks(memory.TermHash(64))) })
}

// broken is a store with one promise left out.
type broken struct {
	memory.Store
	put    func(*memory.Item)
	query  func(*memory.Query)
	found  func(*memory.Found)
	scope  func(memory.Scope) memory.Scope
	silent bool // failures are shown as nothing found
}

func (b broken) Put(ctx context.Context, it memory.Item) (memory.Item, error) {
	if b.put != nil {
		b.put(&it)
	}
	if b.scope != nil {
		it.Scope = b.scope(it.Scope)
	}
	return b.Store.Put(ctx, it)
}

func (b broken) Get(ctx context.Context, s memory.Scope, key string) (memory.Item, error) {
	if b.scope != nil {
		s = b.scope(s)
	}
	return b.Store.Get(ctx, s, key)
}

func (b broken) Delete(ctx context.Context, s memory.Scope, key string) (bool, error) {
	if b.scope != nil {
		s = b.scope(s)
	}
	return b.Store.Delete(ctx, s, key)
}

func (b broken) Search(ctx context.Context, q memory.Query) (memory.Found, error) {
	if b.query != nil {
		b.query(&q)
	}
	if b.scope != nil {
		q.Scope = b.scope(q.Scope)
	}
	f, err := b.Store.Search(ctx, q)
	if b.silent {
		err = nil
	}
	if b.found != nil {
		b.found(&f)
	}
	return f, err
}

type state struct {
	memory.WorkingStore
	one, deaf bool
}

func (s state) Save(ctx context.Context, sc memory.Scope, v json.RawMessage) error {
	if s.one {
		sc = memory.Scope{User: sc.User}
	}
	return s.WorkingStore.Save(ctx, sc, v)
}

func (s state) Load(ctx context.Context, sc memory.Scope) (json.RawMessage, error) {
	if s.one {
		sc = memory.Scope{User: sc.User}
	}
	return s.WorkingStore.Load(ctx, sc)
}

func (s state) Drop(ctx context.Context, sc memory.Scope) error {
	if s.deaf {
		return nil
	}
	return s.WorkingStore.Drop(ctx, sc)
}

type vectors struct {
	memory.TermHash
	change func([][]float32) [][]float32
	deaf   bool
}

func (v vectors) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if v.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	out, err := v.TermHash.Embed(ctx, texts)
	if v.change != nil {
		out = v.change(out)
	}
	return out, err
}

func TestSuiteCatchesBrokenImplementations(t *testing.T) {
	store := func(b broken) []harness.Check {
		return memorytest.StoreChecks(func(now func() time.Time) memory.Store { b.Store = byText(now); return b })
	}
	embedder := func(v vectors) []harness.Check { v.TermHash = 64; return memorytest.EmbedderChecks(v) }
	for _, c := range []struct {
		name   string
		checks []harness.Check
		caught string
	}{
		{"own clock", memorytest.StoreChecks(func(func() time.Time) memory.Store { return byText(time.Now) }), "an item comes back"},
		{"metadata dropped", store(broken{put: func(it *memory.Item) { it.Metadata = nil }}), "an item comes back"},
		{"agents share", store(broken{scope: func(s memory.Scope) memory.Scope { s.Agent = ""; return s }}), "nothing is read"},
		{"users share", store(broken{scope: func(s memory.Scope) memory.Scope { s.User = "x"; return s }}), "nothing is read"},
		{"wider scopes not seen", store(broken{found: func(f *memory.Found) {
			f.Hits = slices.DeleteFunc(f.Hits, func(h memory.Hit) bool { return h.Item.Scope.Agent == "" })
		}}), "nothing is read"},
		{"prefix ignored", store(broken{query: func(q *memory.Query) { q.Prefix = "" }}), "a search narrows"},
		{"kinds ignored", store(broken{query: func(q *memory.Query) { q.Kinds = nil }}), "a search narrows"},
		{"where ignored", store(broken{query: func(q *memory.Query) { q.Where = nil }}), "a search narrows"},
		{"limit ignored", store(broken{query: func(q *memory.Query) { q.Limit = 99 }}), "a search narrows"},
		{"oldest first", store(broken{found: func(f *memory.Found) { slices.Reverse(f.Hits) }}), "a search narrows"},
		{"text ignored", store(broken{query: func(q *memory.Query) { q.Text = "" }}), "a text finds"},
		{"minimum ignored", store(broken{query: func(q *memory.Query) { q.MinScore = 0 }}), "a text finds"},
		{"one script", store(broken{put: func(it *memory.Item) { it.Text = strings.ToValidUTF8(it.Text[:min(len(it.Text), 2)], "") }}), "a text finds"},
		{"nothing expires", store(broken{put: func(it *memory.Item) { it.Expires = time.Time{} }}), "an expired item"},
		{"failures silent", store(broken{silent: true}), "bounds and bad input"},
		{"keys cut", store(broken{put: func(it *memory.Item) { it.Key = it.Key[:min(len(it.Key), 3)] }}), "concurrent use"},
		{"working scopes share", memorytest.WorkingChecks(func() memory.WorkingStore { return state{working(), true, false} }), "a state is loaded"},
		{"drop does nothing", memorytest.WorkingChecks(func() memory.WorkingStore { return state{working(), false, true} }), "saving replaces"},
		{"vectors cut", embedder(vectors{change: func(v [][]float32) [][]float32 {
			for i := range v {
				v[i] = v[i][:len(v[i])-1]
			}
			return v
		}}), "one finite vector"},
		{"vectors not finite", embedder(vectors{change: func(v [][]float32) [][]float32 {
			for i := range v {
				v[i][0] = float32(math.Inf(1))
			}
			return v
		}}), "one finite vector"},
		{"vectors out of order", embedder(vectors{change: func(v [][]float32) [][]float32 { slices.Reverse(v); return v }}), "one finite vector"},
		{"cancel ignored", embedder(vectors{deaf: true}), "a cancelled call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checks := slices.DeleteFunc(c.checks, func(k harness.Check) bool { return !strings.HasPrefix(k.Name, c.caught) })
			if len(harness.Failing(context.Background(), checks)) == 0 {
				t.Errorf("no check beginning with %q failed", c.caught)
			}
		})
	}
}

// An embedder's outage is an error with its cause, in Put and in Search.
func TestOutageIsNotNothing(t *testing.T) {
	down := errors.New("connection refused")
	m := memory.New(memory.Options{Embedder: failing{down}})
	scope := memory.Scope{User: "u"}
	_, put := m.Put(context.Background(), memory.Item{Scope: scope, Key: "k"})
	_, search := m.Search(context.Background(), memory.Query{Scope: scope, Text: "x"})
	for _, err := range []error{put, search} {
		if !errors.Is(err, seams.MemoryUnavailable) || !errors.Is(err, down) {
			t.Errorf("got %v, want MEMORY_UNAVAILABLE with its cause", err)
		}
	}
}

type failing struct{ err error }

func (f failing) Embed(context.Context, []string) ([][]float32, error) { return nil, f.err }
func (failing) Dim() int                                               { return 1 }
func (failing) Name() string                                           { return "failing" }
