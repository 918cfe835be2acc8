package openai

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func encoded(t testing.TB, req llm.Request, compat Compat) map[string]any {
	t.Helper()
	if req.Model == "" {
		req.Model = "m"
	}
	b, err := encode(req, compat)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func object(t testing.TB, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRequestBody(t *testing.T) {
	zero := 0.0
	req := llm.Request{
		CallConfig: llm.CallConfig{Model: "m", Temperature: &zero, MaxTokens: 9, Stop: []string{"a", "b"}, ReasoningEffort: "low"},
		System:     "be kind",
		Messages:   []llm.Message{llm.UserText("hi")},
		Tools:      []llm.ToolSchema{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}},
	}
	want := object(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0,"max_tokens":9,"stop":["a","b"],"reasoning_effort":"low",
		"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"}],
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}]}`)
	if got := encoded(t, req, Compat{}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	// What is not given is not sent; an empty list of tools least of all.
	if got := encoded(t, llm.Request{Tools: []llm.ToolSchema{}}, Compat{}); !reflect.DeepEqual(got, object(t, `{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}`)) {
		t.Errorf("%v", got)
	}
}

// M-79, M-80
func TestMessages(t *testing.T) {
	model := llm.Source{Kind: llm.FromModel}
	call := func(id, args string) llm.ToolCall { return llm.ToolCall{ID: id, Name: "f", Arguments: args} }
	result := func(id string, c ...llm.Block) llm.ToolResult { return llm.ToolResult{ToolCallID: id, Content: c} }
	other := llm.OtherBlock{Tag: "video", Raw: json.RawMessage(`{"type":"video"}`)}
	for _, c := range []struct {
		name   string
		in     llm.Message
		want   string
		compat Compat
	}{
		{"user", llm.UserText("a"), `[{"role":"user","content":"a"}]`, Compat{}},
		{"several texts", llm.NewMessage(llm.User, llm.Source{}, llm.Text{Text: "a"}, llm.Text{Text: "b"}), `[{"role":"user","content":"a\nb"}]`, Compat{}},
		{"an empty user message is kept", llm.NewMessage(llm.User, llm.Source{}), `[{"role":"user","content":""}]`, Compat{}},
		{"system", llm.NewMessage(llm.System, llm.Source{}, llm.Text{Text: "a"}), `[{"role":"system","content":"a"}]`, Compat{}},
		{"unknown blocks are skipped", llm.NewMessage(llm.User, llm.Source{}, other, llm.Text{Text: "a"}), `[{"role":"user","content":"a"}]`, Compat{}},
		{"content is never null", llm.NewMessage(llm.Assistant, model, call("c", `{"x":1}`)), `[{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}]`, Compat{}},
		{"an empty answer", llm.NewMessage(llm.Assistant, model), `[{"role":"assistant","content":""}]`, Compat{}},
		{"parallel calls keep their order", llm.NewMessage(llm.Assistant, model, llm.Text{Text: "a"}, call("1", "{}"), call("2", "{}")),
			`[{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}]`, Compat{}},
		{"reasoning stays here", llm.NewMessage(llm.Assistant, model, llm.Reasoning{Text: "r"}, llm.Text{Text: "a"}), `[{"role":"assistant","content":"a"}]`, Compat{}},
		{"reasoning goes back", llm.NewMessage(llm.Assistant, model, llm.Reasoning{Text: "r"}, llm.Text{Text: "a"}), `[{"role":"assistant","content":"a","reasoning_content":"r"}]`, Compat{SendReasoning: true}},
		{"a result", llm.NewToolResult("c", false, llm.Text{Text: "x"}, other, llm.Text{Text: "y"}), `[{"role":"tool","tool_call_id":"c","content":"x\ny"}]`, Compat{}},
		{"an empty result", llm.NewToolResult("c", false), `[{"role":"tool","tool_call_id":"c","content":"(no output)"}]`, Compat{}},
		{"results before text", llm.NewMessage(llm.User, llm.Source{}, llm.Text{Text: "and"}, result("c", llm.Text{Text: "x"})), `[{"role":"tool","tool_call_id":"c","content":"x"},{"role":"user","content":"and"}]`, Compat{}},
	} {
		got := encoded(t, llm.Request{Messages: []llm.Message{c.in}}, c.compat)["messages"]
		if !reflect.DeepEqual(got, object(t, c.want)) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	// agt-01: what is sent is a JSON object, whatever the model wrote.
	for args, want := range map[string]string{`{"a":1}`: `{"a":1}`, "": "{}", "null": "{}", "[]": "{}", `"text"`: "{}", "{}{}": "{}", `{"a":1,}`: "{}", `{"a":NaN}`: "{}", `{"path": "a`: "{}", strings.Repeat("[", 5_000_000): "{}"} {
		if got := objectOr(args); got != want {
			t.Errorf("%.20s: %s", args, got)
		}
	}
}

// The UNSUPPORTED rule: refused with a code, before any request is made.
func TestRefusedBeforeIO(t *testing.T) {
	a := newAdapter(t, Config{})
	a.client.HTTP.Transport = wire(nil) // would panic
	image := llm.Image{Attachment: llm.Attachment{Hash: "ab"}}
	for name, c := range map[string]struct {
		req  llm.Request
		code seams.Code
	}{
		"no model":             {llm.Request{}, seams.InvalidRequest},
		"a negative limit":     {llm.Request{CallConfig: llm.CallConfig{Model: "m", MaxTokens: -1}}, seams.UnsupportedOption},
		"an image":             {llm.Request{CallConfig: llm.CallConfig{Model: "m"}, Messages: []llm.Message{llm.NewMessage(llm.User, llm.Source{}, image)}}, seams.UnsupportedContent},
		"an image in a result": {llm.Request{CallConfig: llm.CallConfig{Model: "m"}, Messages: []llm.Message{llm.NewToolResult("c", false, image)}}, seams.UnsupportedContent},
		"a broken schema":      {llm.Request{CallConfig: llm.CallConfig{Model: "m"}, Tools: []llm.ToolSchema{{Name: "f", Parameters: json.RawMessage("{")}}}, seams.InvalidRequest},
	} {
		if o := join(t, a.Stream(t.Context(), c.req)); !errors.Is(o.Err, c.code) {
			t.Errorf("%s: %v", name, o.Err)
		}
	}
}

// agt-09: reasoning goes back where it is demanded and nowhere else.
func TestReasoningOfHistory(t *testing.T) {
	raw, err := os.ReadFile("testdata/agt-09.history.json")
	if err != nil {
		t.Fatal(err)
	}
	var history []struct {
		Role, ID, Reasoning, Content string
		ToolCalls                    []struct {
			ID, Name string
			Args     json.RawMessage
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &history); err != nil {
		t.Fatal(err)
	}
	var req llm.Request
	for _, h := range history {
		var m llm.Message
		switch h.Role {
		case "user":
			m = llm.UserText(h.Content)
		case "tool":
			m = llm.NewToolResult(h.ID, false, llm.Text{Text: h.Content})
		default:
			var blocks []llm.Block
			if h.Reasoning != "" {
				blocks = append(blocks, llm.Reasoning{Text: h.Reasoning})
			}
			if h.Content != "" {
				blocks = append(blocks, llm.Text{Text: h.Content})
			}
			for _, c := range h.ToolCalls {
				blocks = append(blocks, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: string(c.Args)})
			}
			m = llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel}, blocks...)
		}
		req.Messages = append(req.Messages, m)
	}
	plain, _ := json.Marshal(encoded(t, req, Compat{}))
	if strings.Contains(string(plain), "reasoning") {
		t.Errorf("%s", plain)
	}
	list := encoded(t, req, Compat{SendReasoning: true})["messages"].([]any)
	for i, want := range map[int]any{1: "Need the clock tool.", 3: "Say it.", 5: ""} {
		if got, ok := list[i].(map[string]any)["reasoning_content"]; !ok || got != want {
			t.Errorf("message %d: %v", i+1, list[i])
		}
	}
}
