package agents_test

import (
	"testing"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams/llm"
)

// What a turn costs besides the model's and the tools' own time.
func BenchmarkTurn(b *testing.B) {
	for name, replies := range map[string][]reply{
		"plain": {say("ok")},
		"tool":  {want(use("c1", "look", `{"a":1}`)), say("ok")},
	} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			w.tool("look", echo("seen"))
			for b.Loop() {
				w.model.script(replies...)
				a := w.agent()
				if r := a.Run(b.Context(), llm.UserText("x")); r.Subtype != agents.Success {
					b.Fatalf("%+v", r)
				}
				if err := a.Dispose(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				w = newWorld(b)
				w.tool("look", echo("seen"))
				b.StartTimer()
			}
		})
	}
}
