package seams_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"pgregory.net/rapid"
)

func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("outer: %w", seams.Errorf(seams.Clash, "op", "it is %q: %w", "x", cause))
	if !errors.Is(err, seams.Clash) || errors.Is(err, seams.Timeout) || !errors.Is(err, cause) {
		t.Fatal(err)
	}
	if got := err.Error(); got != `outer: op: it is "x": cause [CLASH]` {
		t.Fatal(got)
	}
	for err, want := range map[error]seams.Code{nil: "", cause: seams.Unknown, err: seams.Clash, seams.Aborted: seams.Aborted} {
		if got := seams.CodeOf(err); got != want {
			t.Errorf("CodeOf(%v) = %s, want %s", err, got, want)
		}
	}
	if _, ok := seams.Explain("NO_SUCH"); ok {
		t.Error("explained")
	}
}

// A text is shortened between characters, never within one.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int
		want  string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aé", 2, "a…"}, {"日本", 5, "日…"}, {"é", 0, "…"}} {
		if got := seams.Clip(c.text, c.bytes); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.text, c.bytes, got, c.want)
		}
	}
}

// S-03: within is the order of the chain.
func TestScope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scopes := []*seams.Scope{nil}
		above := [][]bool{{true}}
		for i := range rapid.IntRange(1, 12).Draw(t, "scopes") {
			p := rapid.IntRange(0, i).Draw(t, "parent")
			scopes = append(scopes, seams.NewScope("s", scopes[p]))
			row := append(append([]bool(nil), above[p]...), make([]bool, i+2-len(above[p]))...)
			row[i+1] = true
			above = append(above, row)
		}
		for i, s := range scopes {
			for j, outer := range scopes {
				want := j < len(above[i]) && above[i][j]
				if s.Within(outer) != want {
					t.Fatalf("%d within %d: %v", i, j, !want)
				}
			}
		}
	})
}

func container(t *testing.T) *cordis.Container {
	c := cordis.New(cordis.Options{})
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// The registry, against a plain reading of its rules: nearest scope first, one
// entry for a name in a scope, gone when undone.
func TestRegistryLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := cordis.New(cordis.Options{})
		defer c.Close(context.Background())
		r := seams.NewRegistry[int]("thing", c.Stamp)
		outer := seams.NewScope("outer", nil)
		scopes := []*seams.Scope{nil, outer, seams.NewScope("inner", outer), seams.NewScope("other", nil)}
		type row struct {
			scope int
			name  string
			value int
			reg   *seams.Registration[int]
		}
		var rows []row
		for i := range rapid.IntRange(1, 30).Draw(rt, "ops") {
			if len(rows) > 0 && rapid.IntRange(0, 2).Draw(rt, "undo") == 0 {
				k := rapid.IntRange(0, len(rows)-1).Draw(rt, "which")
				if err := rows[k].reg.Undo(context.Background()); err != nil {
					rt.Fatal(err)
				}
				rows = append(rows[:k], rows[k+1:]...)
			} else {
				sc := rapid.IntRange(0, len(scopes)-1).Draw(rt, "scope")
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
				taken := false
				for _, o := range rows {
					taken = taken || o.scope == sc && o.name == name
				}
				reg, err := r.Register(c.Root().WithScope(scopes[sc]), "r", i, name)
				if taken != errors.Is(err, seams.Duplicate) || !taken && err != nil {
					rt.Fatal(taken, err)
				}
				if err == nil {
					rows = append(rows, row{sc, name, i, reg})
				}
			}
			for si, s := range scopes {
				seen := map[string]int{}
				for _, name := range []string{"a", "b", "c"} {
					want, best, found := 0, -1, false
					for _, o := range rows {
						if o.name == name && scopes[si].Within(scopes[o.scope]) && (!found || scopes[o.scope].Within(scopes[best])) {
							want, best, found = o.value, o.scope, true
						}
					}
					got, ok := r.Get(s, name)
					if ok != found || ok && got.Value != want {
						rt.Fatalf("get %s in scope %d: %v %v, want %v %v", name, si, got.Value, ok, want, found)
					}
					if found {
						seen[name] = want
					}
				}
				all := r.All(s)
				if len(all) != len(seen) {
					rt.Fatalf("all in scope %d: %v, want %v", si, all, seen)
				}
				for _, e := range all {
					if seen[e.Name] != e.Value {
						rt.Fatalf("all in scope %d: %v, want %v", si, all, seen)
					}
				}
			}
		}
	})
}

// What a plugin registers appears when it is active, in one step with its
// successor's taking over, and a failing successor changes nothing.
func TestRegistryFollowsActivation(t *testing.T) {
	c := container(t)
	ctx := context.Background()
	r := seams.NewRegistry[string]("thing", c.Stamp)
	hold := make(chan struct{})
	version := func(v string, fail error) *cordis.Plugin {
		return &cordis.Plugin{Name: v, Apply: func(ctx *cordis.Context, _ any) error {
			if _, err := r.Register(ctx, "r", v, "x", "y"); err != nil {
				return err
			}
			<-hold
			return fail
		}}
	}
	e := c.Root().Entry("e")
	f, err := e.Set(version("one", nil), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Get(nil, "x"); ok {
		t.Fatal("visible while loading")
	}
	close(hold)
	if err := f.Ready().Wait(ctx); err != nil {
		t.Fatal(err)
	}
	see := func(want string) {
		t.Helper()
		for _, n := range []string{"x", "y"} {
			if got, ok := r.Get(nil, n); !ok || got.Value != want {
				t.Fatalf("%s is %q %v, want %q", n, got.Value, ok, want)
			}
		}
	}
	see("one")
	bad, err := e.Set(version("bad", errors.New("no")), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Settle(ctx); err == nil {
		t.Fatal("it must fail")
	}
	see("one")
	good, err := e.Set(version("two", nil), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Readers never see neither or both while the takeover happens.
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			all := r.All(nil)
			if len(all) != 2 || all[0].Value != all[1].Value {
				t.Errorf("%v", all)
				return
			}
		}
	}()
	if err := good.Ready().Wait(ctx); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := c.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	see("two")
	if _, err := r.Register(c.Root(), "r", "mine", "x"); !errors.Is(err, seams.Duplicate) {
		t.Fatal(err)
	}
}

func TestRegistrationNames(t *testing.T) {
	c := container(t)
	r := seams.NewRegistry[int]("thing", nil)
	g, err := r.Register(c.Root(), "r", 1, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Register(c.Root(), "r", 2, "c", "c"); !errors.Is(err, seams.InvalidArgument) {
		t.Fatal(err)
	}
	if err := g.Rename("b", "c"); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Get(nil, "a"); ok {
		t.Fatal("the old name stays")
	}
	if _, err := r.Register(c.Root(), "r", 2, "c"); !errors.Is(err, seams.Duplicate) {
		t.Fatal(err)
	}
	if err := g.Undo(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := g.Rename("z"); !errors.Is(err, seams.InactiveEffect) {
		t.Fatal(err)
	}
}

var changed = seams.Event[string, string]{Name: "changed", Mode: seams.Waterfall}

// A declared event carries its types; a listener of another type is WRONG_TYPE.
func ExampleEvent() {
	c := cordis.New(cordis.Options{})
	defer c.Close(context.Background())
	ctx := context.Background()
	_, _ = changed.On(c.Root(), func(ctx context.Context, what string, next func(context.Context) (string, error)) (string, error) {
		inner, err := next(ctx)
		return "[" + inner + "]", err
	})
	out, err := changed.Dispatch(ctx, c.Root(), nil, "x", func(context.Context) (string, error) { return "default", nil })
	fmt.Println(out, err)
	// Output: [default] <nil>
}

func TestEventTypes(t *testing.T) {
	c := container(t)
	ctx := context.Background()
	if _, err := c.Root().On("changed", func(context.Context, any, seams.Next) (any, error) { return 17, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := changed.Dispatch(ctx, c.Root(), nil, "x", nil); !errors.Is(err, seams.WrongType) {
		t.Fatal(err)
	}
	bail := seams.Event[int, string]{Name: "bail", Mode: seams.Bail}
	for _, answer := range []string{"", "yes", "never"} {
		if _, err := bail.On(c.Root(), func(context.Context, int, func(context.Context) (string, error)) (string, error) { return answer, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := bail.Dispatch(ctx, c.Root(), nil, 1, nil); got != "yes" || err != nil {
		t.Fatal(got, err)
	}
	if _, err := c.Root().Dispatch(ctx, seams.Dispatch{Event: "bail", Mode: seams.Bail, Payload: "text"}); !errors.Is(err, seams.WrongType) {
		t.Fatal(err)
	}
}
