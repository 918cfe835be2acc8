package llm_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// The JSON of chunks, member by member.
func TestChunkJSON(t *testing.T) {
	wait := int64(0)
	for text, c := range map[string]llm.Chunk{
		`{"type":"block-start","index":0,"blockType":"text"}`:                                                 llm.BlockStart{Index: 0, BlockType: "text"},
		`{"type":"text-delta","index":1,"text":"a"}`:                                                          llm.TextDelta{Index: 1, Text: "a"},
		`{"type":"reasoning-delta","index":2,"text":""}`:                                                      llm.ReasoningDelta{Index: 2},
		`{"type":"tool-call-delta","index":3,"id":"c","argumentsDelta":"{"}`:                                  llm.ToolCallDelta{Index: 3, ID: "c", ArgumentsDelta: "{"},
		`{"type":"tool-call-delta","index":3,"id":"c","name":"f","argumentsDelta":""}`:                        llm.ToolCallDelta{Index: 3, ID: "c", Name: "f"},
		`{"type":"block-end","index":0,"block":{"type":"tool-call","id":"c","name":"f","arguments":"{}"}}`:    llm.BlockEnd{Block: llm.ToolCall{ID: "c", Name: "f", Arguments: "{}"}},
		`{"type":"block-end","index":0,"block":{"type":"thing","x":[1]}}`:                                     llm.BlockEnd{Block: llm.OtherBlock{Tag: "thing", Raw: json.RawMessage(`{"type":"thing","x":[1]}`)}},
		`{"type":"usage","usage":{"inputTokens":1,"outputTokens":2,"cacheReadTokens":3,"reasoningTokens":1}}`: llm.Usage{Usage: llm.TokenUsage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, ReasoningTokens: 1}},
		`{"type":"finish","reason":{"kind":"stop"}}`:                                                          llm.Finish{Reason: llm.FinishReason{Kind: llm.Stop}},
		`{"type":"finish","reason":{"kind":"error","failure":{"message":"m","code":"RATE_LIMIT","status":429,"providerRetryAfterMs":0,"requestId":"r"}},"replayState":{"response":1}}`: llm.Finish{Reason: llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Message: "m", Code: seams.RateLimit, Status: 429, ProviderRetryAfterMs: &wait, RequestID: "r"}}, ReplayState: &llm.ReplayState{Response: json.RawMessage("1")}},
	} {
		b, err := json.Marshal(c)
		if err != nil || string(b) != text {
			t.Errorf("%#v: %s (%v), want %s", c, b, err, text)
		}
		back, err := llm.DecodeChunk([]byte(text))
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%s: %#v (%v)", text, back, err)
		}
	}
}

// M-10: the union is closed, and a fault of a known chunk names its member.
func TestChunkFaults(t *testing.T) {
	for text, says := range map[string]string{
		`{"type":"nope"}`:                  `unknown chunk type "nope"`,
		`{}`:                               `no "type"`,
		`[]`:                               "not a chunk",
		`{"type":7}`:                       "not a chunk",
		`{"type":"text-delta","text":"a"}`: `"index"`,
		`{"type":"text-delta","index":0}`:  `"text"`,
		`{"type":"text-delta","index":"0","text":"a"}`:                                                   "index",
		`{"type":"text-delta","index":0.5,"text":"a"}`:                                                   "index",
		`{"type":"reasoning-delta","index":0}`:                                                           `"text"`,
		`{"type":"tool-call-delta","index":0,"argumentsDelta":""}`:                                       `"id"`,
		`{"type":"tool-call-delta","index":0,"id":"c"}`:                                                  `"argumentsDelta"`,
		`{"type":"block-start","index":0}`:                                                               `"blockType"`,
		`{"type":"block-end","index":0}`:                                                                 `"block"`,
		`{"type":"block-end","index":0,"block":{"type":"text"}}`:                                         `text block without "text"`,
		`{"type":"block-end","index":0,"block":{"type":"reasoning"}}`:                                    `"text"`,
		`{"type":"block-end","index":0,"block":{"type":"image"}}`:                                        `"attachment"`,
		`{"type":"block-end","index":0,"block":{"type":"tool-call","id":"c","arguments":""}}`:            `"name"`,
		`{"type":"block-end","index":0,"block":{"type":"tool-call","name":"f","arguments":""}}`:          `"id"`,
		`{"type":"block-end","index":0,"block":{"type":"tool-call","id":"c","name":"f"}}`:                `"arguments"`,
		`{"type":"block-end","index":0,"block":{"type":"tool-call","id":"c","name":"f","arguments":{}}}`: "arguments",
		`{"type":"block-end","index":0,"block":{"type":"tool-result","content":[]}}`:                     `"toolCallId"`,
		`{"type":"block-end","index":0,"block":{"type":"tool-result","toolCallId":"c"}}`:                 `"content"`,
		`{"type":"block-end","index":0,"block":{"type":"tool-result","toolCallId":"c","content":[{}]}}`:  "content[0]",
		`{"type":"block-end","index":0,"block":{"type":"tool-result","toolCallId":"c","content":"x"}}`:   "list of blocks",
		`{"type":"block-end","index":0,"block":{}}`:                                                      `no "type"`,
		`{"type":"block-end","index":0,"block":3}`:                                                       "not a content block",
		`{"type":"usage"}`:  `"usage"`,
		`{"type":"finish"}`: `"reason"`,
	} {
		if c, err := llm.DecodeChunk([]byte(text)); !errors.Is(err, seams.MalformedResponse) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %#v, %v, want %s", text, c, err, says)
		}
	}
}

// Any chunk survives its JSON.
func TestChunkRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyChunk(t)
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := llm.DecodeChunk(b)
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Fatalf("%s: %#v (%v), want %#v", b, back, err, c)
		}
	})
}

func anyBlock(t *rapid.T, depth int) llm.Block {
	s := func(label string) string { return rapid.String().Draw(t, label) }
	most := 5
	if depth == 2 {
		most = 4
	}
	switch rapid.IntRange(0, most).Draw(t, "block") {
	case 0:
		return llm.Text{Text: s("text")}
	case 1:
		return llm.Reasoning{Text: s("text")}
	case 2:
		return llm.ToolCall{ID: s("id"), Name: s("name"), Arguments: s("args")}
	case 3:
		return llm.Image{Attachment: llm.Attachment{Hash: s("hash"), MediaType: s("type"), Size: rapid.Int64().Draw(t, "size")}}
	case 4:
		return llm.OtherBlock{Tag: "x-other", Raw: json.RawMessage(`{"type":"x-other","n":[1,null]}`)}
	}
	content := llm.Content{}
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		content = append(content, anyBlock(t, depth+1))
	}
	return llm.ToolResult{ToolCallID: s("id"), Content: content, IsError: rapid.Bool().Draw(t, "err")}
}

func anyChunk(t *rapid.T) llm.Chunk {
	index := rapid.IntRange(0, 3).Draw(t, "index")
	s := func(label string) string { return rapid.String().Draw(t, label) }
	switch rapid.IntRange(0, 6).Draw(t, "chunk") {
	case 0:
		return llm.BlockStart{Index: index, BlockType: rapid.SampledFrom([]string{"text", "reasoning", "tool-call"}).Draw(t, "kind")}
	case 1:
		return llm.TextDelta{Index: index, Text: s("text")}
	case 2:
		return llm.ReasoningDelta{Index: index, Text: s("text")}
	case 3:
		return llm.ToolCallDelta{Index: index, ID: s("id"), Name: s("name"), ArgumentsDelta: s("args")}
	case 4:
		return llm.BlockEnd{Index: index, Block: anyBlock(t, 0)}
	case 5:
		n := rapid.Int64Range(0, 1<<40)
		return llm.Usage{Usage: llm.TokenUsage{InputTokens: n.Draw(t, "in"), OutputTokens: n.Draw(t, "out"), CacheReadTokens: n.Draw(t, "read")}}
	}
	return llm.Finish{Reason: llm.FinishReason{Kind: rapid.SampledFrom([]llm.FinishKind{llm.Stop, llm.ToolCalls, llm.MaxTokens}).Draw(t, "kind")}}
}

func FuzzDecodeChunk(f *testing.F) {
	f.Add([]byte(`{"type":"block-end","index":0,"block":{"type":"tool-result","toolCallId":"c","content":[{"type":"text","text":"x"}]}}`))
	f.Add([]byte(`{"type":"finish","reason":{"kind":"error","failure":{"message":"m","code":"X"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := llm.DecodeChunk(data)
		if err != nil {
			if !errors.Is(err, seams.MalformedResponse) {
				t.Fatal(err)
			}
			return
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := llm.DecodeChunk(b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if b2, err := json.Marshal(again); err != nil || string(b2) != string(b) {
			t.Fatalf("%s became %s (%v)", b, b2, err)
		}
	})
}

// Messages and their sources keep what this package does not know.
func TestMessageJSON(t *testing.T) {
	const text = `{"id":"m1","role":"assistant","content":[{"type":"text","text":"a"},{"type":"new","y":1}],"source":{"extra":{"a":1},"kind":"model","model":"m","provider":"p","replayState":{"response":{"x":1},"blocks":[1,2]}}}`
	var m llm.Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(m); err != nil || string(b) != text {
		t.Fatalf("%s (%v)", b, err)
	}
	for _, bad := range []string{`{"content":{}}`, `{"content":[{"type":"text"}]}`, `{"source":3}`} {
		if json.Unmarshal([]byte(bad), &m) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// M-57: identity at creation, an own list of blocks, the result coupled to its
// call.
func TestNewMessage(t *testing.T) {
	blocks := []llm.Block{llm.Text{Text: "a"}}
	m := llm.NewMessage(llm.User, llm.Source{Kind: llm.FromUser}, blocks...)
	blocks[0] = llm.Text{Text: "b"}
	if m.ID == "" || m.ID == llm.UserText("a").ID || m.Content.Text() != "a" {
		t.Fatalf("%+v", m)
	}
	r := llm.NewToolResult("c1", true, llm.Text{Text: "x"})
	b, ok := r.Content[0].(llm.ToolResult)
	if !ok || b.ToolCallID != "c1" || r.Source.CallID != "c1" || !b.IsError || r.Source.Kind != llm.FromTool {
		t.Fatalf("%+v", r)
	}
	c := llm.Content{llm.Reasoning{Text: "r"}, llm.Text{Text: "a"}, llm.ToolCall{ID: "1"}, llm.Text{Text: "b"}, llm.ToolCall{ID: "2"}}
	if c.Text() != "ab" || c.Reasoning() != "r" || len(c.ToolCalls()) != 2 || c.ToolCalls()[1].ID != "2" {
		t.Fatalf("%+v", c)
	}
}

// M-54
func TestCallConfigEqual(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	base := llm.CallConfig{Provider: "p", Model: "m", ReasoningEffort: "low", Temperature: f(1), MaxTokens: 5, Stop: []string{"a", "b"}}
	same := base
	same.Temperature, same.Stop = f(1), []string{"a", "b"}
	if !base.Equal(same) || !same.Equal(base) {
		t.Error("equal configs differ")
	}
	fields := reflect.TypeFor[llm.CallConfig]()
	for i := range fields.NumField() {
		other := base
		v := reflect.ValueOf(&other).Elem().Field(i)
		v.SetZero()
		if base.Equal(other) || other.Equal(base) {
			t.Errorf("%s is not compared", fields.Field(i).Name)
		}
	}
	for _, o := range []llm.CallConfig{{Temperature: f(2)}, {Stop: []string{"b", "a"}}, {Stop: []string{"a"}}} {
		other := base
		if o.Temperature != nil {
			other.Temperature = o.Temperature
		} else {
			other.Stop = o.Stop
		}
		if base.Equal(other) {
			t.Errorf("%+v equals %+v", other, base)
		}
	}
}

func TestTokenUsage(t *testing.T) {
	u := llm.TokenUsage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 1}
	if u.Total() != 10 {
		t.Error(u.Total())
	}
	if s := u.Add(u); s != (llm.TokenUsage{InputTokens: 2, OutputTokens: 4, CacheReadTokens: 6, CacheWriteTokens: 8, ReasoningTokens: 2}) {
		t.Error(s)
	}
}
