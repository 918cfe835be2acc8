package agents_test

import (
	"context"
	"fmt"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// The bus, the owner and the model of these examples are those of the tests; in
// a composition, the container and an adapter are in their place.
func ExampleAgent_Run() {
	ctx := context.Background()
	b := &bus{}
	o := &owner{name: "example", bus: b}

	llms := llm.NewRegistry(b, nil)
	m := &model{}
	m.script(want(use("c1", "add", `{"a": 2, "b": 3}`)), say("It is 5."))
	_, _ = llms.RegisterAdapter(o, llm.Registration{Routes: []string{"test"}, Adapter: m})

	tool := tools.New(tools.Options{Bus: b})
	_, _ = tool.Register(o, tools.Definition{Name: "add", Execute: func(_ context.Context, _ *tools.Exec, args any) (any, error) {
		n := args.(map[string]any)
		return n["a"].(float64) + n["b"].(float64), nil
	}})

	reg := agents.New(agents.Deps{
		Bus: b, LLM: llms, Tools: tool,
		Sessions: events.NewMemory(events.Options{Bus: b}),
		Prompt:   agents.NewSections(nil),
	})
	a, err := reg.Create(ctx, o, agents.Spec{
		Header:  events.Header{ID: "main"},
		Options: agents.Options{CallConfig: llm.CallConfig{Provider: "test", Model: "m"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Dispose(ctx)

	r := a.Run(ctx, llm.UserText("What is 2 + 3?"))
	fmt.Println(r.Subtype, r.NumSteps, r.Text)
	for _, m := range a.Session().Messages() {
		fmt.Println(shape(m))
	}
	// Output:
	// success 2 It is 5.
	// user: What is 2 + 3?
	// assistant: (c1)
	// result c1: 5
	// assistant: It is 5.
}
