package memorytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/memory"
)

// clock is a time that checks move.
type clock struct{ time.Time }

type storeTest struct {
	name string
	run  func(ctx context.Context, s memory.Store, c *clock) error
}

// StoreChecks returns the suite for the store that make makes, which must be
// empty.
func StoreChecks(make func(now func() time.Time) memory.Store) []harness.Check {
	var out []harness.Check
	for _, t := range storeSuite {
		out = append(out, harness.Check{Name: t.name, Run: func(ctx context.Context) error {
			c := &clock{time.UnixMilli(1_700_000_000_000).UTC()}
			return t.run(ctx, make(func() time.Time { return c.Time }), c)
		}})
	}
	return out
}

var ann = memory.Scope{User: "ann"}

func item(s memory.Scope, key, text string) memory.Item {
	return memory.Item{Scope: s, Key: key, Kind: memory.Fact, Text: text}
}

func put(ctx context.Context, s memory.Store, items ...memory.Item) {
	for _, it := range items {
		if _, err := s.Put(ctx, it); err != nil {
			panic(err)
		}
	}
}

// keys searches and renders the keys of the hits.
func keys(ctx context.Context, s memory.Store, q memory.Query) string {
	found, err := s.Search(ctx, q)
	if err != nil {
		return err.Error()
	}
	out := []string{}
	for _, h := range found.Hits {
		out = append(out, h.Item.Key)
	}
	return strings.Join(out, " ")
}

var storeSuite = []storeTest{
	{"an item comes back as it was put, with its times", func(ctx context.Context, s memory.Store, c *clock) error {
		it := memory.Item{Scope: ann, Key: "tea", Kind: "taste", Text: "차를 좋아해요", Metadata: map[string]any{"n": 1, "list": []any{"a"}}}
		first, err := s.Put(ctx, it)
		it.Metadata["list"].([]any)[0] = "changed"
		errs := []error{err, equal("created", first.Created, c.Time), equal("updated", first.Updated, c.Time), equal("metadata", first.Metadata, map[string]any{"n": 1.0, "list": []any{"a"}})}
		first.Metadata["n"] = "changed"
		began := c.Time
		c.Time = c.Add(time.Hour)
		got, err := s.Get(ctx, ann, "tea")
		errs = append(errs, err, equal("text", got.Text, it.Text), equal("kind", got.Kind, "taste"), equal("metadata", got.Metadata, map[string]any{"n": 1.0, "list": []any{"a"}}))
		again, err := s.Put(ctx, item(ann, "tea", "no more"))
		return all(append(errs, err, equal("created stays", again.Created.Equal(began), true), equal("updated moves", again.Updated.Equal(c.Time), true),
			equal("one item", keys(ctx, s, memory.Query{Scope: ann}), "tea"))...)
	}},
	{"what is not there is NOT_FOUND, a delete tells whether it was", func(ctx context.Context, s memory.Store, _ *clock) error {
		_, err := s.Get(ctx, ann, "tea")
		was, err1 := s.Delete(ctx, ann, "tea")
		put(ctx, s, item(ann, "tea", "x"))
		is, err2 := s.Delete(ctx, ann, "tea")
		_, gone := s.Get(ctx, ann, "tea")
		return all(code("get", err, seams.NotFound), err1, err2, equal("was", was, false), equal("is", is, true), code("after delete", gone, seams.NotFound),
			equal("search", keys(ctx, s, memory.Query{Scope: ann}), ""))
	}},
	{"nothing is read, found or deleted across scopes", func(ctx context.Context, s memory.Store, _ *clock) error {
		scopes := []memory.Scope{ann, {User: "ann", Agent: "a"}, {User: "ann", Agent: "b"}, {User: "ann", Agent: "a", Session: "1"}, {User: "ann", Session: "1"}, {User: "bob"}, {User: "bob", Agent: "a", Session: "1"}}
		for i, sc := range scopes {
			put(ctx, s, item(sc, fmt.Sprint("k", i), "shared words"), item(sc, "same", fmt.Sprint(i)))
		}
		var errs []error
		for i, at := range scopes {
			for j, of := range scopes {
				_, err := s.Get(ctx, at, fmt.Sprint("k", j))
				if (err == nil) != (i == j) {
					errs = append(errs, fmt.Errorf("get of %d at %d: %v", j, i, err))
				}
				if i != j {
					if was, err := s.Delete(ctx, at, fmt.Sprint("k", j)); was || err != nil {
						errs = append(errs, fmt.Errorf("delete of %d at %d: %v, %v", j, i, was, err))
					}
				}
				found, err := s.Search(ctx, memory.Query{Scope: at, Text: "shared words", Limit: 100})
				seen := false
				for _, h := range found.Hits {
					seen = seen || h.Item.Scope == of
				}
				if err != nil || seen != of.Covers(at) {
					errs = append(errs, fmt.Errorf("search of %+v at %+v: seen %v, %v", of, at, seen, err))
				}
			}
			got, err := s.Get(ctx, at, "same")
			errs = append(errs, err, equal("same key", got.Text, fmt.Sprint(i)))
		}
		return all(errs...)
	}},
	{"a search narrows by prefix, kind, metadata and limit, the newest first", func(ctx context.Context, s memory.Store, c *clock) error {
		for i, key := range []string{"a/1", "a/2", "b/1", "b/2"} {
			it := item(ann, key, "x")
			it.Metadata = map[string]any{"n": i % 2, "tags": []any{"t"}}
			if i == 3 {
				it.Kind = memory.Procedure
			}
			c.Time = c.Add(time.Second)
			put(ctx, s, it)
		}
		q := func(f func(*memory.Query)) string {
			q := memory.Query{Scope: ann}
			f(&q)
			return keys(ctx, s, q)
		}
		return all(
			equal("all", q(func(q *memory.Query) {}), "b/2 b/1 a/2 a/1"),
			equal("prefix", q(func(q *memory.Query) { q.Prefix = "a/" }), "a/2 a/1"),
			equal("kind", q(func(q *memory.Query) { q.Kinds = []string{memory.Procedure, "other"} }), "b/2"),
			equal("where", q(func(q *memory.Query) { q.Where = map[string]any{"n": 0, "tags": []any{"t"}} }), "b/1 a/1"),
			equal("where absent", q(func(q *memory.Query) { q.Where = map[string]any{"none": nil} }), ""),
			equal("all of it", q(func(q *memory.Query) { q.Prefix, q.Where = "b/", map[string]any{"n": 1} }), "b/2"),
			equal("limit", q(func(q *memory.Query) { q.Limit = 2 }), "b/2 b/1"))
	}},
	{"a text finds what has its words, in any script, best first", func(ctx context.Context, s memory.Store, _ *clock) error {
		put(ctx, s, item(ann, "both", "Green Tea, every day"), item(ann, "one", "green fields"), item(ann, "ko", "녹차를 매일 마신다"), item(ann, "ja", "毎日緑茶を飲む"), item(ann, "none", "coffee"))
		found, err := s.Search(ctx, memory.Query{Scope: ann, Text: "green tea"})
		if err != nil {
			return err
		}
		for _, h := range found.Hits {
			if h.Score <= 0 || h.Score > 1 {
				err = errors.Join(err, fmt.Errorf("%s: score %v", h.Item.Key, h.Score))
			}
		}
		best := found.Hits[0].Score
		return all(err, equal("words", keys(ctx, s, memory.Query{Scope: ann, Text: "green tea"}), "both one"), equal("ranking", found.Ranking != memory.ByTime, true),
			equal("Korean", keys(ctx, s, memory.Query{Scope: ann, Text: "녹차"}), "ko"), equal("Japanese", keys(ctx, s, memory.Query{Scope: ann, Text: "緑茶"}), "ja"),
			equal("minimum", keys(ctx, s, memory.Query{Scope: ann, Text: "green tea", MinScore: best}), "both"),
			equal("nothing", keys(ctx, s, memory.Query{Scope: ann, Text: "submarine"}), ""))
	}},
	{"an expired item is as one that was deleted", func(ctx context.Context, s memory.Store, c *clock) error {
		it := item(ann, "tea", "x")
		it.Expires = c.Add(time.Minute)
		put(ctx, s, it)
		before := keys(ctx, s, memory.Query{Scope: ann})
		c.Time = it.Expires
		_, err := s.Get(ctx, ann, "tea")
		after := keys(ctx, s, memory.Query{Scope: ann})
		again, err2 := s.Put(ctx, item(ann, "tea", "y"))
		was, err3 := s.Delete(ctx, ann, "tea")
		return all(err2, err3, equal("before", before, "tea"), code("get", err, seams.NotFound), equal("after", after, ""), equal("created anew", again.Created.Equal(c.Time), true), equal("was", was, true))
	}},
	{"bounds and bad input are refused, never taken as nothing", func(ctx context.Context, s memory.Store, _ *clock) error {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		try := func(name string, it memory.Item, want seams.Code) error {
			_, err := s.Put(ctx, it)
			return code(name, err, want)
		}
		lossy := item(ann, "k", "")
		lossy.Metadata = map[string]any{"f": func() {}}
		_, noUser := s.Search(ctx, memory.Query{})
		_, noUserGet := s.Get(ctx, memory.Scope{Agent: "a"}, "k")
		_, limit := s.Search(ctx, memory.Query{Scope: ann, Limit: -1})
		_, where := s.Search(ctx, memory.Query{Scope: ann, Where: map[string]any{"n": math.NaN()}})
		_, aborted := s.Search(gone, memory.Query{Scope: ann})
		_, abortedGet := s.Get(gone, ann, "k")
		return all(try("no user", item(memory.Scope{}, "k", ""), seams.InvalidArgument), try("no key", item(ann, "", ""), seams.InvalidArgument),
			try("long key", item(ann, strings.Repeat("k", memory.MaxKey+1), ""), seams.InvalidArgument), try("long text", item(ann, "k", strings.Repeat("x", memory.MaxText+1)), seams.TooLarge),
			try("lossy", lossy, seams.NotJSON), code("search without user", noUser, seams.InvalidArgument), code("get without user", noUserGet, seams.InvalidArgument),
			code("negative limit", limit, seams.InvalidArgument), code("lossy where", where, seams.NotJSON), code("cancelled search", aborted, seams.Aborted), code("cancelled get", abortedGet, seams.Aborted),
			equal("nothing was stored", keys(ctx, s, memory.Query{Scope: ann}), ""))
	}},
	{"concurrent use keeps every item", func(ctx context.Context, s memory.Store, _ *clock) error {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 20 {
					put(ctx, s, item(ann, fmt.Sprint(i, "-", j), "x"))
					keys(ctx, s, memory.Query{Scope: ann, Text: "x"})
				}
			})
		}
		wg.Wait()
		found, err := s.Search(ctx, memory.Query{Scope: ann, Limit: 1000})
		return all(err, equal("items", len(found.Hits), 160))
	}},
}

type workingTest struct {
	name string
	run  func(ctx context.Context, s memory.WorkingStore) error
}

// WorkingChecks returns the suite for the working store that make makes, which
// must be empty.
func WorkingChecks(make func() memory.WorkingStore) []harness.Check {
	var out []harness.Check
	for _, t := range workingSuite {
		out = append(out, harness.Check{Name: t.name, Run: func(ctx context.Context) error { return t.run(ctx, make()) }})
	}
	return out
}

var workingSuite = []workingTest{
	{"a state is loaded as it was saved, of its own scope only", func(ctx context.Context, s memory.WorkingStore) error {
		task := memory.Scope{User: "ann", Agent: "a", Session: "1"}
		state := json.RawMessage(`{"step":1}`)
		err := s.Save(ctx, task, state)
		copy(state, "XXXXXXXX")
		got, err2 := s.Load(ctx, task)
		if len(got) > 0 {
			got[0] = 'X'
		}
		again, err3 := s.Load(ctx, task)
		_, other := s.Load(ctx, memory.Scope{User: "ann", Agent: "a"})
		_, bob := s.Load(ctx, memory.Scope{User: "bob", Agent: "a", Session: "1"})
		return all(err, err2, err3, equal("state", string(again), `{"step":1}`), code("wider", other, seams.NotFound), code("another's", bob, seams.NotFound))
	}},
	{"saving replaces, dropping removes, twice too", func(ctx context.Context, s memory.WorkingStore) error {
		err := all(s.Save(ctx, ann, json.RawMessage(`1`)), s.Save(ctx, ann, json.RawMessage(`2`)))
		got, err2 := s.Load(ctx, ann)
		errs := []error{err, err2, equal("state", string(got), "2"), s.Drop(ctx, ann), s.Drop(ctx, ann)}
		_, gone := s.Load(ctx, ann)
		return all(append(errs, code("dropped", gone, seams.NotFound))...)
	}},
	{"what is no JSON, no scope or cancelled is refused", func(ctx context.Context, s memory.WorkingStore) error {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, aborted := s.Load(gone, ann)
		return all(code("text", s.Save(ctx, ann, json.RawMessage(`{"a":`)), seams.NotJSON), code("no user", s.Save(ctx, memory.Scope{}, json.RawMessage(`1`)), seams.InvalidArgument), code("cancelled", aborted, seams.Aborted))
	}},
}

// EmbedderChecks returns the suite for an embedder.
func EmbedderChecks(e memory.Embedder) []harness.Check {
	return []harness.Check{
		{Name: "one finite vector of Dim numbers for each text, in order", Run: func(ctx context.Context) error {
			texts := []string{"green tea", "submarine", "", "緑茶"}
			together, err := e.Embed(ctx, texts)
			if err != nil {
				return err
			}
			errs := []error{equal("vectors", len(together), len(texts))}
			for i, t := range texts[:min(len(texts), len(together))] {
				alone, err := e.Embed(ctx, []string{t})
				if err != nil {
					return err
				}
				errs = append(errs, equal("length", len(together[i]), e.Dim()), equal("order", alone[0], together[i]))
				for _, f := range together[i] {
					if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
						errs = append(errs, fmt.Errorf("%q has a number that is not finite", t))
					}
				}
			}
			none, err := e.Embed(ctx, nil)
			return all(append(errs, err, equal("no texts", len(none), 0), equal("named", e.Name() != "", true))...)
		}},
		{Name: "a cancelled call is an error", Run: func(ctx context.Context) error {
			gone, cancel := context.WithCancel(ctx)
			cancel()
			_, err := e.Embed(gone, []string{"x"})
			return code("cancelled", err, seams.Aborted)
		}},
	}
}

func all(errs ...error) error { return errors.Join(errs...) }

func equal(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %#v, want %#v", what, got, want)
	}
	return nil
}

func code(what string, err error, want seams.Code) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: got %v, want %s", what, err, want)
	}
	return nil
}
