package anthropic_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/seams/llm"
)

// A composition's agent speaks to the service of its settings, within the
// output limit of its model.
func TestAgentOverAnthropic(t *testing.T) {
	var sent string
	var key string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent, key = string(body), r.Header.Get("x-api-key")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello."}}`+"\n\n"+
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n")
	}))
	defer srv.Close()
	r, err := builtins.Open(t.Context(), builtins.Options{File: "cordis.yml", CWD: t.TempDir(), Text: []byte(fmt.Sprintf(`
- id: claude
  name: anthropic
  config: {baseURL: %q, apiKey: sk-test, models: [{id: small, maxTokens: 77}]}
- id: agent-loop
  name: agent-loop
  config: {agents: [{id: main, provider: claude, model: small}], workspaceContext: false}
`, srv.URL+"/v1"))})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(t.Context())
	agent, err := r.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	res := agent.Run(t.Context(), llm.UserText("hi"))
	if res.Text != "Hello." || key != "sk-test" || !strings.Contains(sent, `"model":"small","max_tokens":77,`) {
		t.Errorf("%+v, sent %s", res, sent)
	}
}
