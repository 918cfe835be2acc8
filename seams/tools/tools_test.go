package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The rows T-01…T-54 are pinned by the conformance suite in conformance/tools,
// which runs against this implementation.

func body(answer any) func(context.Context, *tools.Exec, any) (any, error) {
	return func(context.Context, *tools.Exec, any) (any, error) { return answer, nil }
}

func register(t testing.TB, r *tools.Registry, o seams.Owner, d tools.Definition) seams.Undo {
	t.Helper()
	undo, err := r.Register(o, d)
	if err != nil {
		t.Fatal(err)
	}
	return undo
}

// Whatever policy does, a call has one result of one of two forms, is told
// to observers once, and runs its body at most once and only if nobody denied
// (T-04, T-16, T-25, T-54).
func TestEveryCallHasOneWellFormedResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bus := harness.NewBus()
		owner := bus.Owner("plugin", nil)
		reg := tools.New(tools.Options{Bus: bus})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		bodies, told, allowed := 0, 0, true
		oops := func(label string) error {
			switch rapid.SampledFrom([]string{"", "", "", "error", "panic", "cancel"}).Draw(t, label) {
			case "error":
				return errors.New(label)
			case "panic":
				panic(label)
			case "cancel":
				cancel()
			}
			return nil
		}
		value := func(label string) any {
			return rapid.SampledFrom([]any{"text", nil, 1.5, map[string]any{"a": 1}, func() {}, []any{make(chan int)}}).Draw(t, label)
		}
		d := tools.Definition{Name: "t", Execute: func(context.Context, *tools.Exec, any) (any, error) {
			bodies++
			return value("value"), oops("body")
		}}
		if rapid.Bool().Draw(t, "finalizes") {
			d.FinalizeContent = func(context.Context, *tools.Exec, *tools.Result) (llm.Content, error) {
				return llm.Content{llm.Text{Text: "final"}}, oops("finalize")
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
			if _, err := reg.Register(owner, d); err != nil {
				t.Fatal(err)
			}
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "listeners") {
			label := func(s string) string { return fmt.Sprint(s, i) }
			tools.PreExecute.On(owner, func(ctx context.Context, _ *tools.Exec, next func(context.Context) (tools.Decision, error)) (tools.Decision, error) {
				kind := rapid.SampledFrom([]tools.DecisionKind{"next", "next", "next", tools.Allow, tools.Deny, tools.Ask, ""}).Draw(t, label("pre"))
				if err := oops(label("pre-oops")); err != nil {
					allowed = false
					return tools.Decision{}, err
				}
				if kind == "next" {
					return next(ctx)
				}
				allowed = allowed && kind == tools.Allow
				return tools.Decision{Kind: kind}, nil
			})
			tools.Around.On(owner, func(ctx context.Context, _ *tools.Exec, next func(context.Context) (*tools.Result, error)) (*tools.Result, error) {
				if err := oops(label("around-oops")); err != nil {
					return nil, err
				}
				switch rapid.SampledFrom([]string{"next", "next", "success", "failure", "nothing", "twice"}).Draw(t, label("around")) {
				case "success":
					return tools.Success(value(label("own"))), nil
				case "failure":
					return tools.Failed("X", "own"), nil
				case "nothing":
					return nil, nil
				case "twice":
					next(ctx)
				}
				return next(ctx)
			})
			tools.PostExecute.On(owner, func(ctx context.Context, _ tools.Outcome, next func(context.Context) (tools.Verdict, error)) (tools.Verdict, error) {
				v, err := next(ctx)
				if err := oops(label("post-oops")); err != nil {
					return v, err
				}
				switch rapid.SampledFrom([]string{"", "", "block", "content", "value"}).Draw(t, label("post")) {
				case "block":
					v.Block = true
				case "content":
					v.Content = llm.Content{llm.Text{Text: "post"}}
				case "value":
					n := value(label("post-value"))
					v.Value = &n
				}
				return v, err
			})
		}
		tools.Results.On(owner, func(context.Context, tools.Outcome, func(context.Context) (struct{}, error)) (struct{}, error) {
			told++
			return struct{}{}, nil
		})
		r := reg.Execute(ctx, tools.Call{ID: "c", Name: "t"})
		switch {
		case r == nil:
			t.Fatal("no result")
		case r.IsError && (r.Error == nil || r.Error.Message == "" || r.Value != nil):
			t.Fatalf("ill-formed failure %+v", r)
		case !r.IsError && r.Error != nil:
			t.Fatalf("ill-formed success %+v", r)
		case told != 1:
			t.Fatalf("observers were told %d times", told)
		case bodies > 1:
			t.Fatalf("the body ran %d times", bodies)
		case bodies == 1 && !allowed:
			t.Fatal("the body ran though a listener did not allow it")
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("the result is not JSON: %v", err)
		}
	})
}

// What a scope sees is, for each name, the nearest registration that is still
// there and that no restriction inside the tool's own scope masks (T-48, T-49).
func TestScopesAgainstModel(t *testing.T) {
	type registration struct {
		name, answer string
		scope        int
		undo         seams.Undo
	}
	rapid.Check(t, func(t *rapid.T) {
		bus := harness.NewBus()
		reg := tools.New(tools.Options{Bus: bus})
		scopes := []*seams.Scope{nil, seams.NewScope("preset", nil)}
		scopes = append(scopes, seams.NewScope("agent", scopes[1]), seams.NewScope("other", nil))
		chains := [][]int{{0}, {1, 0}, {2, 1, 0}, {3, 0}} // each scope's, nearest first
		owners := make([]*harness.Owner, len(scopes))
		for i, s := range scopes {
			owners[i] = bus.Owner(fmt.Sprint("owner", i), s)
		}
		var there []*registration
		denied := map[int][]string{}
		at := func(scope int, name string) *registration {
			for _, g := range there {
				if g.scope == scope && g.name == name {
					return g
				}
			}
			return nil
		}
		see := func(scope int, name string) (answer string) {
			for depth, s := range chains[scope] {
				if g := at(s, name); g != nil {
					for _, inner := range chains[scope][:depth] {
						if slices.Contains(denied[inner], name) {
							return ""
						}
					}
					return g.answer
				}
			}
			return ""
		}
		names := []string{"a", "b", "c"}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				g := &registration{name: rapid.SampledFrom(names).Draw(t, "name"), scope: rapid.IntRange(0, 3).Draw(t, "scope")}
				g.answer = fmt.Sprint(g.name, g.scope, len(there))
				undo, err := reg.Register(owners[g.scope], tools.Definition{Name: g.name, Execute: body(g.answer)})
				if at(g.scope, g.name) != nil {
					if !errors.Is(err, seams.Duplicate) {
						t.Fatalf("second %s in scope %d: %v", g.name, g.scope, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				g.undo = undo
				there = append(there, g)
			},
			"undo": func(t *rapid.T) {
				if len(there) == 0 {
					t.Skip("nothing is registered")
				}
				i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				for range 2 { // idempotent
					if err := there[i].undo(context.Background()); err != nil {
						t.Fatal(err)
					}
				}
				there = slices.Delete(there, i, i+1)
			},
			"deny": func(t *rapid.T) {
				s, name := rapid.IntRange(1, 3).Draw(t, "scope"), rapid.SampledFrom(names).Draw(t, "name")
				inherited := at(0, name) != nil || s == 2 && at(1, name) != nil
				_, err := reg.Restrict(owners[s], tools.Filter{Deny: []string{name}})
				if inherited != (err == nil) {
					t.Fatalf("restrict %s in %d: inherited %v, %v", name, s, inherited, err)
				}
				if err == nil {
					denied[s] = append(denied[s], name)
				}
			},
			"": func(t *rapid.T) {
				for s := range scopes {
					listed := map[string]bool{}
					for _, x := range reg.Schemas(scopes[s]) {
						listed[x.Name] = true
					}
					for _, n := range names {
						want := see(s, n)
						r := reg.Execute(context.Background(), tools.Call{ID: "c", Name: n, Scope: scopes[s]})
						got, _ := r.Value.(string)
						if got != want || listed[n] != (want != "") || (want == "") != (r.IsError && r.Error.Code == seams.UnknownTool) {
							t.Fatalf("scope %d, %s: got %q, listed %v; want %q", s, n, got, listed[n], want)
						}
					}
				}
			},
		})
	})
}

func script(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// Case agt-01: a call whose arguments are not JSON is not run; its result says
// what is wrong with them.
func TestBrokenArguments(t *testing.T) {
	var in struct {
		Model []struct {
			Calls []struct {
				Name string
				Raw  string `json:"raw_args"`
			}
		}
	}
	script(t, "agt-01.script.json", &in)
	call := in.Model[0].Calls[0]

	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	runs := 0
	params, err := schema.Parameters(map[string]any{"path": map[string]any{"type": "string"}})
	if err != nil {
		t.Fatal(err)
	}
	register(t, reg, bus.Owner("p", nil), tools.Definition{Name: call.Name, Parameters: params, Execute: func(context.Context, *tools.Exec, any) (any, error) {
		runs++
		return "ran", nil
	}})
	run := func(raw string) *tools.Result {
		return reg.Execute(context.Background(), tools.Call{ID: "c1", Name: call.Name, Arguments: tools.ParseArguments(raw)})
	}
	for raw, says := range map[string]string{
		call.Raw:                       "line 1, column",
		"null":                         "",
		"[]":                           "arguments",
		`"text"`:                       "arguments",
		`{"path":"a"}{"path":"b"}`:     "more text after the value",
		`{"path":"a",}`:                "line 1, column 13",
		`{"path":NaN}`:                 "line 1, column",
		strings.Repeat("[", 5_000_000): "arguments",
		"\xff":                         "UTF-8",
	} {
		r := run(raw)
		if raw == "null" { // no arguments
			if r.IsError {
				t.Errorf("null: %s", r.Error.Message)
			}
			continue
		}
		if !r.IsError || r.Error.Code != seams.InvalidArgs || !strings.Contains(r.Content.Text(), says) || len(r.Content.Text()) > 500 {
			t.Errorf("%.40q: got %.200q, want INVALID_ARGS that says %q", raw, r.Content.Text(), says)
		}
	}
	if runs != 1 {
		t.Errorf("the tool ran %d times, want once, for null", runs)
	}
	if r := run(""); r.IsError {
		t.Errorf("no text: %s", r.Error.Message)
	}
}

// Case agt-02: unknown tools and a tool that was unmounted a moment ago are
// error results that say what there is; the others run.
func TestUnknownTools(t *testing.T) {
	var in struct {
		Tools []string
		Model []struct {
			Calls []struct {
				ID, Name string
				Args     map[string]any
			}
		}
	}
	script(t, "agt-02.script.json", &in)
	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	var runs []string
	owners := map[string]*harness.Owner{}
	for _, n := range in.Tools {
		owners[n] = bus.Owner(n, nil)
		register(t, reg, owners[n], tools.Definition{Name: n, Execute: func(context.Context, *tools.Exec, any) (any, error) {
			runs = append(runs, n)
			return nil, nil
		}})
	}
	var failed []string
	for _, c := range in.Model[0].Calls {
		r := reg.Execute(context.Background(), tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Args})
		if r.IsError {
			failed = append(failed, c.ID)
			if text := r.Content.Text(); !strings.Contains(text, "UNKNOWN_TOOL") || !strings.Contains(text, "read, search") {
				t.Errorf("%s: %q does not list the tools", c.ID, text)
			}
		}
	}
	if !reflect.DeepEqual(runs, []string{"read"}) || !reflect.DeepEqual(failed, []string{"c1", "c3"}) {
		t.Errorf("ran %v, failed %v", runs, failed)
	}
	if err := owners["read"].Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if r := reg.Execute(context.Background(), tools.Call{ID: "c", Name: "read"}); !r.IsError || r.Error.Code != seams.UnknownTool {
		t.Errorf("after unmount: %+v", r)
	}
}

// A definition may come from any of the forms of parameters (T-40, T-41).
func TestParameterForms(t *testing.T) {
	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	short, err1 := schema.Parameters(map[string]any{"n": map[string]any{"type": "number", "required": true}})
	raw, err2 := schema.Parameters(map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number"}}, "required": []any{"n"}})
	astreus, err3 := schema.AstreusParameters(map[string]any{"n": map[string]any{"name": "n", "type": "number", "description": "a number", "required": true}})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*schema.Schema{"short": short, "raw": raw, "astreus": astreus} {
		register(t, reg, bus.Owner(name, nil), tools.Definition{Name: name, Parameters: p, Execute: body("ran")})
		for args, want := range map[string]seams.Code{`{"n":1}`: "", `{}`: seams.InvalidArgs, `{"n":"1"}`: seams.InvalidArgs} {
			r := reg.Execute(context.Background(), tools.Call{ID: "c", Name: name, Arguments: tools.ParseArguments(args)})
			if r.IsError != (want != "") || r.IsError && r.Error.Code != want {
				t.Errorf("%s %s: %+v", name, args, r.Error)
			}
		}
	}
}

// A14: the view of Astreus.
func TestView(t *testing.T) {
	call := tools.Call{ID: "c1", Name: "t"}
	for _, c := range []struct {
		r    *tools.Result
		want string
	}{
		{tools.Success(map[string]any{"n": 1}), `{"id":"c1","name":"t","result":{"success":true,"data":{"n":1}},"executionTime":12}`},
		{tools.Success(nil), `{"id":"c1","name":"t","result":{"success":true,"data":null},"executionTime":12}`},
		{tools.Failed(seams.UnknownTool, "no tool"), `{"id":"c1","name":"t","result":{"success":false,"error":"no tool"},"executionTime":12}`},
	} {
		got, err := json.Marshal(tools.View(call, c.r, 12*time.Millisecond))
		if err != nil || string(got) != c.want {
			t.Errorf("got %s (%v), want %s", got, err, c.want)
		}
	}
}

// A global duplicate says how to have one tool for one agent.
func TestGlobalDuplicateHints(t *testing.T) {
	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	register(t, reg, bus.Owner("first", nil), tools.Definition{Name: "t", Execute: body(nil)})
	_, err := reg.Register(bus.Owner("second", nil), tools.Definition{Name: "t", Execute: body(nil)})
	if !errors.Is(err, seams.Duplicate) || !strings.Contains(err.Error(), "first") || !strings.Contains(err.Error(), "agent's scope") {
		t.Error(err)
	}
}

func FuzzParseArguments(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":[1,{"b":null}]}`, `{"a":1e400}`, "[[[", `"\ud800"`, "{\"a\":1}x"} {
		f.Add(s)
	}
	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	register(f, reg, bus.Owner("p", nil), tools.Definition{Name: "echo", Execute: func(_ context.Context, _ *tools.Exec, args any) (any, error) { return args, nil }})
	f.Fuzz(func(t *testing.T, raw string) {
		args := tools.ParseArguments(raw)
		r := reg.Execute(context.Background(), tools.Call{ID: "c", Name: "echo", Arguments: args})
		_, object := args.(map[string]any)
		if r.IsError == (object || args == nil) {
			t.Fatalf("%q: %+v", raw, r)
		}
		if object && !schema.Equal(r.Value, args) {
			t.Fatalf("%q came back as %v", raw, r.Value)
		}
	})
}

func BenchmarkExecute(b *testing.B) {
	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	params, err := schema.Parameters(map[string]any{"path": map[string]any{"type": "string", "required": true}})
	if err != nil {
		b.Fatal(err)
	}
	register(b, reg, bus.Owner("p", nil), tools.Definition{Name: "t", Parameters: params, Execute: body("done")})
	call := tools.Call{ID: "c", Name: "t", Arguments: map[string]any{"path": "a.txt"}}
	for b.Loop() {
		reg.Execute(context.Background(), call)
	}
}

func BenchmarkSchemas(b *testing.B) {
	bus := harness.NewBus()
	reg := tools.New(tools.Options{Bus: bus})
	for i := range 30 {
		register(b, reg, bus.Owner("p", nil), tools.Definition{Name: fmt.Sprint("t", i), Execute: body("done")})
	}
	for b.Loop() {
		reg.Schemas(nil)
	}
}

func ExampleRegistry() {
	bus := harness.NewBus()
	owner := bus.Owner("my-plugin", nil)
	defer owner.Close(context.Background())

	params, _ := schema.Parameters(map[string]any{
		"a": map[string]any{"type": "number", "required": true},
		"b": map[string]any{"type": "number", "required": true},
	})
	registry := tools.New(tools.Options{Bus: bus})
	registry.Register(owner, tools.Definition{
		Name:        "add",
		Description: "Adds two numbers.",
		Parameters:  params,
		Execute: func(_ context.Context, _ *tools.Exec, args any) (any, error) {
			a := args.(map[string]any)
			return a["a"].(float64) + a["b"].(float64), nil
		},
	})

	call := func(args string) {
		r := registry.Execute(context.Background(), tools.Call{ID: "c1", Name: "add", Arguments: tools.ParseArguments(args)})
		fmt.Println(r.Content.Text())
	}
	call(`{"a": 1, "b": 2}`)
	call(`{"a": 1}`)
	// Output:
	// 3
	// Error: arguments.b: is required [INVALID_ARGS]
}
