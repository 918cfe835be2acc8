package script

import (
	"encoding/json"
	"testing"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/memory"
	"github.com/ouro-run/ouro/seams/tools"
)

// Whatever data JavaScript hands over, the doors answer a value or a coded
// error, and do not panic.
func FuzzDoors(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `7`, `"x"`, `{"kind":"allow"}`, `{"kind":"accept","value":null}`, `{"isError":true,"error":{"message":"m"}}`,
		`{"type":"text-delta","index":0,"text":"x"}`, `{"type":"block-end","index":-1,"block":{"type":"image"}}`,
		`{"name":"t","description":"d","parameters":{"a":{"type":"string"}},"timeoutMs":-1,"output":{"schema":{"type":"number"}}}`,
		`{"name":"t","description":"d","timeoutMs":1e308,"isConcurrencySafe":{}}`,
		`{"provider":"p","model":"m","messages":[{"role":"user","content":[{"type":"text"}]}],"maxTokens":1e30}`,
		`{"scope":{"user":"u"},"key":"k","text":"t","expires":"yesterday"}`, `{"kind":"enter","messages":[{}]}`, `[{"type":"text","text":"x"}]`, `[[]]`,
	} {
		f.Add(s, 12.5)
	}
	h := &host{reading: &reading{source: &source{name: "fuzz"}}}
	coded := func(t *testing.T, what string, err error) {
		if err != nil && seams.CodeOf(err) == seams.Unknown {
			t.Errorf("%s: an error without a code: %v", what, err)
		}
	}
	f.Fuzz(func(t *testing.T, text string, n float64) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		if m, ok := v.(map[string]any); ok && n > 0 {
			m["execute"] = &sandbox.Func{}
		}
		_, err := h.definition(v)
		coded(t, "tool", err)
		_, err = read[tools.Decision]("decision", v)
		coded(t, "decision", err)
		_, err = readVerdict("verdict", v)
		coded(t, "verdict", err)
		_, err = readResult("result", v)
		coded(t, "result", err)
		_, err = readAdmission("admission", v)
		coded(t, "admission", err)
		_, err = read[agents.Recovery]("recovery", v)
		coded(t, "recovery", err)
		_, err = read[llm.CallConfig]("config", v)
		coded(t, "config", err)
		_, _, err = request("request", v)
		coded(t, "request", err)
		_, err = blocks(v)
		coded(t, "blocks", err)
		_, err = chunk(v)
		coded(t, "chunk", err)
		_, err = decode[memory.Item](seams.InvalidArgument, "item", v, true)
		coded(t, "item", err)
		_, err = routesArg("routes", v)
		coded(t, "routes", err)
		if d, err := delay("delay", []any{n}, 0); err == nil && d < 0 {
			t.Errorf("delay %v of %v", d, n)
		}
		_ = loggable(v)
	})
}
