package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/seams/llm"
)

// wire is a server of the OpenAI chat format, written from its public
// description. Reply n of a conversation is what answer(n) says.
type wire struct {
	*httptest.Server
	spent    atomic.Int64          // nanoseconds in the handler
	hold     func(r *http.Request) // called when the answer is written, if set
	mu       sync.Mutex
	requests []map[string]any
	answer   func(n int, w http.ResponseWriter, request map[string]any)
}

func newWire(t testing.TB, answer func(n int, w http.ResponseWriter, request map[string]any)) *wire {
	s := &wire{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		defer func() { s.spent.Add(int64(time.Since(began))) }()
		body, err := io.ReadAll(r.Body)
		var request map[string]any
		if err != nil || r.URL.Path != "/v1/chat/completions" || json.Unmarshal(body, &request) != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, request)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		s.answer(n, w, request)
		if s.hold != nil {
			s.hold(r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *wire) seen() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.requests...)
}

func event(v any) string {
	b, _ := json.Marshal(v)
	return "data: " + string(b) + "\n\n"
}

func chunk(delta map[string]any, finish any) string {
	return event(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "m",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
}

const done = "data: [DONE]\n\n"

func say(text string) string {
	var b strings.Builder
	for _, word := range strings.SplitAfter(text, " ") {
		b.WriteString(chunk(map[string]any{"content": word}, nil))
	}
	b.WriteString(chunk(map[string]any{}, "stop"))
	b.WriteString(event(map[string]any{"choices": []any{}, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5}}))
	return b.String() + done
}

// call streams a tool call in small pieces.
func call(id, name string, args any) string {
	raw, _ := json.Marshal(args)
	var b strings.Builder
	b.WriteString(chunk(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"index": 0, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": ""}}}}, nil))
	for i := 0; i < len(raw); i += 17 {
		b.WriteString(chunk(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": string(raw[i:min(i+17, len(raw))])}}}}, nil))
	}
	b.WriteString(chunk(map[string]any{}, "tool_calls"))
	return b.String() + done
}

const mountCode = `return { name: 'doubler', inject: ['tools'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({
    name: 'double', description: 'Doubles a number.',
    parameters: { n: { type: 'number', required: true } },
    output: { schema: { type: 'number' }, render: (args, value) => [{ type: 'text', text: 'twice is ' + value }] },
    execute: async ({ n }) => n * 2,
  }))
} }`

func composition(url string) string {
	return fmt.Sprintf(`- id: model
  name: openai
  config: {baseURL: %q, models: [m]}
- name: cordis-tools
- id: agent-loop
  name: agent-loop
  config:
    agents: [{id: main, provider: model, model: m}]
    workspaceContext: false
`, url+"/v1")
}

// invoke runs the program in this process.
func invoke(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, dir: dir}
	return p.main(args), out.String(), errs.String()
}

func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// last returns the last message of a request.
func last(request map[string]any) map[string]any {
	ms := request["messages"].([]any)
	return ms[len(ms)-1].(map[string]any)
}

func offers(request map[string]any, name string) bool {
	tools, _ := request["tools"].([]any)
	for _, t := range tools {
		if t.(map[string]any)["function"].(map[string]any)["name"] == name {
			return true
		}
	}
	return false
}

// The whole loop against a server on loopback: inspect, mount, call, unmount,
// answer. X-60
func TestRunAgainstServer(t *testing.T) {
	s := newWire(t, func(n int, w http.ResponseWriter, request map[string]any) {
		reply := []string{
			call("c1", "cordis_inspect", map[string]any{"what": "tools"}),
			call("c2", "cordis_mount", map[string]any{"code": mountCode}),
			call("c3", "double", map[string]any{"n": 21}),
			call("c4", "cordis_unmount", map[string]any{"id": "dyn-1"}),
			say("It is 42."),
		}[n]
		_, _ = io.WriteString(w, reply)
	})
	dir := folder(t, map[string]string{configName: composition(s.URL)})
	code, out, errs := invoke(t, dir, "run", "--output-format", "json", "double 21")
	if code != 0 || errs != "" {
		t.Fatal(code, out, errs)
	}
	var result struct {
		Result   string
		NumSteps int `json:"num_steps"`
		Usage    llm.TokenUsage
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Result != "It is 42." || result.NumSteps != 5 || result.Usage.OutputTokens != 5 {
		t.Fatal(out, err)
	}
	requests := s.seen()
	for i, want := range []struct {
		result  string
		offered bool
	}{{"", false}, {"cordis_mount", false}, {"dyn-1 is running", true}, {"twice is 42", true}, {"dyn-1", false}} {
		if i > 0 {
			m := last(requests[i])
			if m["role"] != "tool" || !strings.Contains(m["content"].(string), want.result) {
				t.Errorf("request %d ends in %v, want %q", i, m, want.result)
			}
		}
		if offers(requests[i], "double") != want.offered {
			t.Errorf("request %d offers double: %v", i, !want.offered)
		}
	}
}

// A reply that is cut anywhere ends the turn with a coded error.
func TestCutStreams(t *testing.T) {
	whole := call("c1", "cordis_inspect", map[string]any{"what": "tools"})
	s := newWire(t, func(n int, w http.ResponseWriter, _ map[string]any) {
		_, _ = io.WriteString(w, whole[:min(n, len(whole))])
		if n%2 == 1 {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	s.Config.ErrorLog = nil
	dir := folder(t, map[string]string{configName: composition(s.URL)})
	ctx := context.Background()
	r, err := builtins.Open(ctx, builtins.Options{File: filepath.Join(dir, configName), CWD: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	agent, err := r.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	finish := strings.Index(whole, `"finish_reason":"tool_calls"`)
	for n := range finish {
		result := agent.Run(ctx, llm.UserText("go"))
		if !result.IsError || result.Error.Code == "" || result.Error.Code == "UNKNOWN" {
			t.Fatalf("cut at %d of %d: %+v %+v", n, len(whole), result, result.Error)
		}
	}
}

// The exit code tells whose fault it was; no key is ever shown.
func TestProviderErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		code   int
		name   string
	}{
		{401, `{"error":{"message":"bad key sk-very-secret"}}`, exitProvider, "AUTH"},
		{429, `{"error":{"message":"slow down"}}`, exitProvider, "RATE_LIMIT"},
		{500, "oops", exitProvider, "SERVER"},
		{400, `{"error":{"message":"no such field"}}`, exitFailed, "INVALID_REQUEST"},
		{200, "<html>portal</html>", exitProvider, "MALFORMED_RESPONSE"},
	} {
		s := newWire(t, func(_ int, w http.ResponseWriter, _ map[string]any) {
			if c.status == 200 {
				w.Header().Set("Content-Type", "text/html")
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		dir := folder(t, map[string]string{configName: strings.Replace(composition(s.URL), "models: [m]", "models: [m], apiKey: sk-very-secret", 1)})
		code, out, errs := invoke(t, dir, "run", "hello")
		if code != c.code || !strings.Contains(errs, c.name) || strings.Contains(out+errs, "sk-very-secret") {
			t.Errorf("%d: exit %d\n%s\n%s", c.status, code, out, errs)
		}
	}
}
