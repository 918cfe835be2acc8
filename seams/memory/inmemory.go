package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Options is what a [Memory] may be given.
type Options struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Embedder makes Search rank by similarity; nil ranks by text.
	Embedder Embedder
}

// Memory is the [Store] and the [WorkingStore] that live in this process.
type Memory struct {
	now      func() time.Time
	embedder Embedder

	mu      sync.RWMutex
	items   map[id]entry
	swept   int // items left when those that had expired were last dropped
	working map[Scope]json.RawMessage
}

type id struct {
	scope Scope
	key   string
}

type entry struct {
	Item
	vector []float32
}

// New makes an empty memory.
func New(opt Options) *Memory {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Memory{now: opt.Now, embedder: opt.Embedder, items: map[id]entry{}, working: map[Scope]json.RawMessage{}}
}

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, it Item) (Item, error) {
	if err := admit(ctx, "memory.put", it.Scope); err != nil {
		return Item{}, err
	}
	switch {
	case it.Key == "" || len(it.Key) > MaxKey:
		return Item{}, seams.Errorf(seams.InvalidArgument, "memory.put", "a key has 1 to %d bytes", MaxKey)
	case len(it.Text) > MaxText:
		return Item{}, seams.Errorf(seams.TooLarge, "memory.put", "text of %d bytes, over the bound of %d", len(it.Text), MaxText)
	}
	if it.Metadata != nil {
		v, err := schema.JSON(it.Metadata)
		if err != nil {
			return Item{}, seams.Errorf(seams.NotJSON, "memory.put", "metadata: %w", err)
		}
		it.Metadata = v.(map[string]any)
	}
	e := entry{Item: it}
	if m.embedder != nil {
		v, err := embed(ctx, m.embedder, it.Text)
		if err != nil {
			return Item{}, err
		}
		e.vector = v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Updated = m.now()
	e.Created = e.Updated
	at := id{it.Scope, it.Key}
	if old, ok := m.items[at]; ok && !old.expired(e.Updated) {
		e.Created = old.Created
	}
	m.items[at] = e
	if len(m.items) > 2*m.swept+64 {
		maps.DeleteFunc(m.items, func(_ id, it entry) bool { return it.expired(e.Updated) })
		m.swept = len(m.items)
	}
	return e.copy(), nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, s Scope, key string) (Item, error) {
	if err := admit(ctx, "memory.get", s); err != nil {
		return Item{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.items[id{s, key}]
	if !ok || e.expired(m.now()) {
		return Item{}, seams.Errorf(seams.NotFound, "memory.get", "nothing is stored under this key in this scope")
	}
	return e.copy(), nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, s Scope, key string) (bool, error) {
	if err := admit(ctx, "memory.delete", s); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.items[id{s, key}]
	delete(m.items, id{s, key})
	return ok && !e.expired(m.now()), nil
}

// Search implements [Store].
func (m *Memory) Search(ctx context.Context, q Query) (Found, error) {
	if err := admit(ctx, "memory.search", q.Scope); err != nil {
		return Found{}, err
	}
	if q.Limit < 0 || q.MinScore < 0 || q.MinScore > 1 {
		return Found{}, seams.Errorf(seams.InvalidArgument, "memory.search", "limit cannot be negative and minScore lies in 0 to 1")
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	where, err := schema.JSON(q.Where)
	if err != nil {
		return Found{}, seams.Errorf(seams.NotJSON, "memory.search", "where: %w", err)
	}
	score, ranking, err := m.ranker(ctx, q.Text)
	if err != nil {
		return Found{}, err
	}
	found := Found{Hits: []Hit{}, Ranking: ranking}
	m.mu.RLock()
	now := m.now()
	for _, e := range m.items {
		if !e.Scope.Covers(q.Scope) || e.expired(now) || !strings.HasPrefix(e.Key, q.Prefix) ||
			len(q.Kinds) > 0 && !slices.Contains(q.Kinds, e.Kind) || !fits(e.Metadata, where.(map[string]any)) {
			continue
		}
		s := score(e)
		if ranking != ByTime && s <= 0 || s < q.MinScore {
			continue
		}
		found.Hits = append(found.Hits, Hit{e.copy(), s})
	}
	m.mu.RUnlock()
	slices.SortFunc(found.Hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Item.Updated.Compare(a.Item.Updated),
			cmp.Compare(a.Item.Key, b.Item.Key), compareScopes(a.Item.Scope, b.Item.Scope))
	})
	found.Hits = found.Hits[:min(len(found.Hits), q.Limit)]
	return found, nil
}

// ranker returns how items are scored for a text.
func (m *Memory) ranker(ctx context.Context, text string) (func(entry) float64, Ranking, error) {
	switch {
	case text == "":
		return func(entry) float64 { return 0 }, ByTime, nil
	case m.embedder == nil:
		want := terms(text)
		return func(e entry) float64 { return overlap(want, terms(e.Text)) }, ByText, nil
	}
	v, err := embed(ctx, m.embedder, text)
	return func(e entry) float64 { return cosine(v, e.vector) }, BySimilarity, err
}

// Load implements [WorkingStore].
func (m *Memory) Load(ctx context.Context, s Scope) (json.RawMessage, error) {
	if err := admit(ctx, "memory.load", s); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	state, ok := m.working[s]
	if !ok {
		return nil, seams.Errorf(seams.NotFound, "memory.load", "this scope has no working state")
	}
	return slices.Clone(state), nil
}

// Save implements [WorkingStore].
func (m *Memory) Save(ctx context.Context, s Scope, state json.RawMessage) error {
	if err := admit(ctx, "memory.save", s); err != nil {
		return err
	}
	if _, err := schema.Parse(state); err != nil {
		return seams.Errorf(seams.CodeOf(err), "memory.save", "state: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working[s] = slices.Clone(state)
	return nil
}

// Drop implements [WorkingStore].
func (m *Memory) Drop(ctx context.Context, s Scope) error {
	if err := admit(ctx, "memory.drop", s); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.working, s)
	return nil
}

// admit checks what every call has.
func admit(ctx context.Context, op string, s Scope) error {
	if err := ctx.Err(); err != nil {
		return seams.Errorf(seams.Aborted, op, "%w", err)
	}
	if s.User == "" {
		return seams.Errorf(seams.InvalidArgument, op, "the scope names no user")
	}
	return nil
}

func (e entry) expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

// copy returns the item with metadata of its own.
func (e entry) copy() Item {
	it := e.Item
	if it.Metadata != nil {
		v, _ := schema.JSON(it.Metadata) // it was checked by Put
		it.Metadata, _ = v.(map[string]any)
	}
	return it
}

func fits(metadata, where map[string]any) bool {
	for k, want := range where {
		if v, ok := metadata[k]; !ok || !schema.Equal(v, want) {
			return false
		}
	}
	return true
}

func compareScopes(a, b Scope) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Session, b.Session))
}
