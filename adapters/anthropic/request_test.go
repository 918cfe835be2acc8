package anthropic

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func encoded(t testing.TB, req llm.Request, compat Compat) map[string]any {
	t.Helper()
	req.Model = "m"
	if req.MaxTokens == 0 {
		req.MaxTokens = DefaultMaxTokens
	}
	b, err := encode(req, compat)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(b)).(map[string]any)
}

// contents returns the content of each message that is sent for the given.
func contents(t testing.TB, in ...llm.Message) []any {
	t.Helper()
	var out []any
	for _, m := range encoded(t, llm.Request{Messages: in}, Compat{})["messages"].([]any) {
		out = append(out, m.(map[string]any)["content"])
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
		CallConfig: llm.CallConfig{Temperature: &zero, MaxTokens: 9000, Stop: []string{"a", "b"}, ReasoningEffort: "low"},
		System:     "be kind",
		Messages:   []llm.Message{llm.UserText("hi"), llm.NewMessage(llm.System, llm.Source{}, llm.Text{Text: "be brief"})},
		Tools:      []llm.ToolSchema{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "g"}},
	}
	want := object(t, `{"model":"m","stream":true,"temperature":0,"max_tokens":9000,"stop_sequences":["a","b"],"thinking":{"type":"enabled","budget_tokens":2048},
		"system":"be kind\n\nbe brief","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],
		"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object","properties":{}}}]}`)
	if got := encoded(t, req, Compat{}); !reflect.DeepEqual(any(got), want) {
		t.Errorf("%v", got)
	}
	if got := encoded(t, llm.Request{Tools: []llm.ToolSchema{}}, Compat{}); !reflect.DeepEqual(any(got), object(t, `{"model":"m","max_tokens":32000,"messages":[],"stream":true}`)) {
		t.Errorf("%v", got)
	}
	for effort, want := range map[string]string{"off": `{}`, "xhigh": `{"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}}`} {
		got := encoded(t, llm.Request{CallConfig: llm.CallConfig{ReasoningEffort: effort}}, Compat{AdaptiveThinking: true})
		for _, k := range []string{"model", "max_tokens", "messages", "stream"} {
			delete(got, k)
		}
		if !reflect.DeepEqual(any(got), object(t, want)) {
			t.Errorf("%s: %v", effort, got)
		}
	}
}

func replayed(t testing.TB, entries ...entry) llm.Source {
	r := replayState(entries)
	if r == nil {
		t.Fatal("no replay state")
	}
	return llm.Source{Kind: llm.FromModel, ReplayState: r}
}

func TestMessages(t *testing.T) {
	call := func(id, args string) llm.ToolCall { return llm.ToolCall{ID: id, Name: "f", Arguments: args} }
	result := func(id string, c ...llm.Block) llm.ToolResult { return llm.ToolResult{ToolCallID: id, Content: c} }
	user := func(c ...llm.Block) llm.Message { return llm.NewMessage(llm.User, llm.Source{}, c...) }
	model := func(c ...llm.Block) llm.Message {
		return llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel}, c...)
	}
	say := func(s string) llm.Block { return llm.Text{Text: s} }
	other := llm.OtherBlock{Tag: "video", Raw: json.RawMessage(`{"type":"video"}`)}
	signed := replayed(t, entry{Signature: "s"}, entry{Before: []opaque{{Type: kindRedacted, Data: "d"}}})
	foreign := signed
	foreign.ReplayState = &llm.ReplayState{Response: json.RawMessage(`{"format":"other"}`), Blocks: signed.ReplayState.Blocks}
	short := signed
	short.ReplayState = &llm.ReplayState{Response: signed.ReplayState.Response, Blocks: signed.ReplayState.Blocks[:1]}
	broken := signed
	broken.ReplayState = &llm.ReplayState{Response: signed.ReplayState.Response, Blocks: []json.RawMessage{json.RawMessage(`[]`), json.RawMessage(`[]`)}}
	thought := []llm.Block{llm.Reasoning{Text: "r"}, say("a")}
	for _, c := range []struct {
		name string
		in   []llm.Message
		want string
	}{
		{"user", []llm.Message{user(say("a"))}, `[[{"type":"text","text":"a"}]]`},
		{"neighbours are one", []llm.Message{user(say("a")), user(say("b")), model(say("c")), model(say("d"))}, `[[{"type":"text","text":"a"},{"type":"text","text":"b"}],[{"type":"text","text":"c"},{"type":"text","text":"d"}]]`},
		{"blank texts are left out", []llm.Message{user(say(" \n"), say("a"))}, `[[{"type":"text","text":"a"}]]`},
		{"an empty user message", []llm.Message{user()}, `[[{"type":"text","text":"(no content)"}]]`},
		{"an empty answer goes", []llm.Message{user(say("a")), model(), user(say("b"))}, `[[{"type":"text","text":"a"},{"type":"text","text":"b"}]]`},
		{"unknown blocks are skipped", []llm.Message{user(other, say("a"))}, `[[{"type":"text","text":"a"}]]`},
		{"calls and results", []llm.Message{model(say("a"), call("1", `{"x":1}`), call("2", `{`)), user(say("and"), result("1", say("x"), say("y"))), user(result("2"))},
			`[[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"f","input":{"x":1}},{"type":"tool_use","id":"2","name":"f","input":{}}],
			[{"type":"tool_result","tool_use_id":"1","content":"x\ny"},{"type":"tool_result","tool_use_id":"2","content":"(no output)"},{"type":"text","text":"and"}]]`},
		{"a failed result", []llm.Message{llm.NewToolResult("c", true, say("no"))}, `[[{"type":"tool_result","tool_use_id":"c","content":"no","is_error":true}]]`},
		{"ids of other providers", []llm.Message{model(call("f:0", "{}")), user(result("f:0", say("x")))}, `[[{"type":"tool_use","id":"f_3a0","name":"f","input":{}}],[{"type":"tool_result","tool_use_id":"f_3a0","content":"x"}]]`},
		{"an id that is none", []llm.Message{model(call("", "{}"))}, `[[{"type":"tool_use","id":"_","name":"f","input":{}}]]`},
		{"reasoning without signature stays here", []llm.Message{model(thought...)}, `[[{"type":"text","text":"a"}]]`},
		{"what is ours goes back", []llm.Message{llm.NewMessage(llm.Assistant, signed, thought...)}, `[[{"type":"thinking","thinking":"r","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"}]]`},
		{"an old signature without its text", []llm.Message{llm.NewMessage(llm.Assistant, signed, llm.Reasoning{}, say("a"))}, `[[{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"}]]`},
		{"another's replay state", []llm.Message{llm.NewMessage(llm.Assistant, foreign, thought...)}, `[[{"type":"text","text":"a"}]]`},
		{"one that does not fit", []llm.Message{llm.NewMessage(llm.Assistant, short, thought...)}, `[[{"type":"text","text":"a"}]]`},
		{"one that is broken", []llm.Message{llm.NewMessage(llm.Assistant, broken, thought...)}, `[[{"type":"text","text":"a"}]]`},
		{"thinking alone", []llm.Message{user(say("a")), llm.NewMessage(llm.Assistant, replayed(t, entry{Signature: "s"}), llm.Reasoning{Text: "r"}), user(say("b"))}, `[[{"type":"text","text":"a"},{"type":"text","text":"b"}]]`},
	} {
		if got := contents(t, c.in...); !reflect.DeepEqual(any(got), object(t, c.want)) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// The UNSUPPORTED rule: refused with a code, before any request is made.
func TestRefusedBeforeIO(t *testing.T) {
	image := llm.Image{Attachment: llm.Attachment{Hash: "ab"}}
	ask := func(c llm.CallConfig, m ...llm.Message) llm.Request {
		c.Model = "m"
		return llm.Request{CallConfig: c, Messages: m}
	}
	for name, c := range map[string]struct {
		req    llm.Request
		compat Compat
		code   seams.Code
	}{
		"no model":               {llm.Request{}, Compat{}, seams.InvalidRequest},
		"a negative limit":       {ask(llm.CallConfig{MaxTokens: -1}), Compat{}, seams.UnsupportedOption},
		"an unknown effort":      {ask(llm.CallConfig{ReasoningEffort: "max"}), Compat{}, seams.UnsupportedReasoningEffort},
		"an unknown one by name": {ask(llm.CallConfig{ReasoningEffort: "minimal"}), Compat{AdaptiveThinking: true}, seams.UnsupportedReasoningEffort},
		"no room to think":       {ask(llm.CallConfig{ReasoningEffort: "low", MaxTokens: 2048}), Compat{}, seams.UnsupportedReasoningEffort},
		"an image":               {ask(llm.CallConfig{}, llm.NewMessage(llm.User, llm.Source{}, image)), Compat{}, seams.UnsupportedContent},
		"an image in a result":   {ask(llm.CallConfig{}, llm.NewToolResult("c", false, image)), Compat{}, seams.UnsupportedContent},
		"a broken schema":        {llm.Request{CallConfig: llm.CallConfig{Model: "m"}, Tools: []llm.ToolSchema{{Name: "f", Parameters: json.RawMessage("{")}}}, Compat{}, seams.InvalidRequest},
	} {
		a := newAdapter(t, Config{Compat: c.compat})
		a.client.HTTP.Transport = wire(func(*http.Request) (*http.Response, error) { panic("a request was made") })
		if o := join(t, a.Stream(t.Context(), c.req)); !errors.Is(o.err, c.code) {
			t.Errorf("%s: %v", name, o.err)
		}
	}
}
