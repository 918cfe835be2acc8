package builtins_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/memory"
)

const composition = `
- id: model
  name: scripted
  config:
    text: |
      rules:
        - when: {user: '(?P<what>.*)'}
          text: 'You said {{what}}.'
- id: agent-loop
  name: agent-loop
  config: {agents: [{id: main, provider: model}], model: scripted, workspaceContext: false}
`

// A program opens a composition and talks to its agent.
func ExampleOpen() {
	ctx := context.Background()
	r, err := builtins.Open(ctx, builtins.Options{File: "cordis.yml", Text: []byte(composition), CWD: "/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close(ctx)
	agent, err := r.Agent("")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(agent.Run(ctx, llm.UserText("hello")).Text)
	// Output: You said hello.
}

// The six default services are there, and one makes room for an entry that
// provides it.
func TestDefaults(t *testing.T) {
	ctx := context.Background()
	r, err := builtins.Open(ctx, builtins.Options{File: "cordis.yml", Text: []byte(composition), CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	for _, name := range []string{"llm", "tools", "events", "memory", "timer", "logger"} {
		if _, ok := cordis.Lookup(r.Container().Root(), seams.Key[any]{Name: name}); !ok {
			t.Errorf("%s is not provided", name)
		}
	}
	if _, ok := cordis.Lookup(r.Container().Root(), memory.Key); !ok {
		t.Error("the memory service has another type")
	}
	own, err := builtins.Open(ctx, builtins.Options{File: "cordis.yml", Text: []byte("- {id: mine, name: memory}\n"), CWD: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close(ctx)
	for _, s := range own.Container().Inspect().Services {
		if s.Name == "memory" {
			for _, f := range own.Container().Inspect().Fibers {
				if f.ID == s.Provider && f.Entry != "mine" {
					t.Errorf("memory is provided by the entry %s", f.Entry)
				}
			}
		}
	}
}

// Every builtin can be named, and none is named twice.
func TestNames(t *testing.T) {
	names := builtins.Names()
	if len(names) != 14 {
		t.Errorf("%d builtins: %q", len(names), names)
	}
}
