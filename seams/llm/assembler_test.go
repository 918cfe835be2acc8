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

func assemble(t testing.TB, list ...llm.Chunk) *llm.Assembler {
	t.Helper()
	var a llm.Assembler
	for _, c := range list {
		if err := a.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return &a
}

func finish(kind llm.FinishKind) llm.Chunk { return llm.Finish{Reason: llm.FinishReason{Kind: kind}} }

func TestAssembler(t *testing.T) {
	start := func(i int, kind string) llm.Chunk { return llm.BlockStart{Index: i, BlockType: kind} }
	text := func(i int, s string) llm.Chunk { return llm.TextDelta{Index: i, Text: s} }
	think := func(i int, s string) llm.Chunk { return llm.ReasoningDelta{Index: i, Text: s} }
	call := func(i int, id, name, args string) llm.Chunk {
		return llm.ToolCallDelta{Index: i, ID: id, Name: name, ArgumentsDelta: args}
	}
	end := func(i int, b llm.Block) llm.Chunk { return llm.BlockEnd{Index: i, Block: b} }
	for _, c := range []struct {
		row  string
		in   []llm.Chunk
		want llm.Content
	}{
		{"M-01 interleaved", []llm.Chunk{start(1, "text"), start(0, "reasoning"), text(1, "a"), think(0, "x"), start(2, "tool-call"), call(2, "c", "f", "{"), text(1, "b"), call(2, "c", "", "}"), think(0, "y")},
			llm.Content{llm.Text{Text: "ab"}, llm.Reasoning{Text: "xy"}, llm.ToolCall{ID: "c", Name: "f", Arguments: "{}"}}},
		{"M-02 the end counts", []llm.Chunk{start(0, "text"), text(0, "a"), end(0, llm.Text{Text: "whole"}), end(0, llm.Text{Text: "second"})}, llm.Content{llm.Text{Text: "whole"}}},
		{"M-03 deltas alone", []llm.Chunk{text(0, "a"), think(5, "b"), call(2, "c", "f", "")}, llm.Content{llm.Text{Text: "a"}, llm.Reasoning{Text: "b"}, llm.ToolCall{ID: "c", Name: "f"}}},
		{"M-03 an end alone", []llm.Chunk{end(0, llm.Text{Text: "a"})}, llm.Content{llm.Text{Text: "a"}}},
		{"M-06 started twice", []llm.Chunk{start(0, "text"), text(0, "a"), start(0, "reasoning"), text(0, "b")}, llm.Content{llm.Text{Text: "ab"}}},
		{"M-06 stragglers", []llm.Chunk{start(0, "text"), end(0, llm.Text{Text: "a"}), text(0, "b"), think(0, "c"), start(0, "text")}, llm.Content{llm.Text{Text: "a"}}},
		{"M-07 no id", []llm.Chunk{call(3, "", "f", "{}")}, llm.Content{llm.ToolCall{ID: "call-3", Name: "f", Arguments: "{}"}}},
		{"M-07 no id in the end", []llm.Chunk{end(3, llm.ToolCall{Name: "f"})}, llm.Content{llm.ToolCall{ID: "call-3", Name: "f"}}},
		{"M-08 limit", []llm.Chunk{text(0, "a"), call(1, "c", "f", "{"), finish(llm.MaxTokens)}, llm.Content{llm.Text{Text: "a"}}},
		{"a later id and name count where the first were empty", []llm.Chunk{call(0, "", "", "{"), call(0, "c", "f", "}"), call(0, "d", "g", "")}, llm.Content{llm.ToolCall{ID: "c", Name: "f", Arguments: "{}"}}},
		{"an unknown kind that is closed", []llm.Chunk{start(0, "video"), end(0, llm.OtherBlock{Tag: "video"})}, llm.Content{llm.OtherBlock{Tag: "video"}}},
		{"nothing", nil, llm.Content{}},
	} {
		a := assemble(t, c.in...)
		for range 2 {
			if got, err := a.Blocks(); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s: %+v (%v)", c.row, got, err)
			}
		}
	}
}

// M-04
func TestAssemblerUsageAndFinish(t *testing.T) {
	a := assemble(t, llm.TextDelta{Text: "a"})
	if _, ok := a.Usage(); ok || a.Finish().Kind != llm.Stop || a.ReplayState() != nil {
		t.Error("an open stream has a usage, a finish or a replay state")
	}
	a = assemble(t, llm.Usage{Usage: llm.TokenUsage{InputTokens: 7}}, finish(llm.ToolCalls), finish(llm.MaxTokens))
	if u, ok := a.Usage(); !ok || u.InputTokens != 7 || a.Finish().Kind != llm.MaxTokens {
		t.Errorf("%+v %v", u, a.Finish())
	}
}

// M-05, M-10
func TestAssemblerFaults(t *testing.T) {
	a := assemble(t, llm.BlockStart{BlockType: "video"}, llm.TextDelta{Text: "x"})
	if _, err := a.Blocks(); !errors.Is(err, seams.MalformedResponse) || !strings.Contains(err.Error(), "video") {
		t.Error(err)
	}
	for _, c := range []llm.Chunk{nil, llm.BlockEnd{}, &llm.TextDelta{}} {
		if err := new(llm.Assembler).Add(c); !errors.Is(err, seams.MalformedResponse) {
			t.Errorf("%#v: %v", c, err)
		}
	}
}

// M-08, M-09
func TestAssemblerReplayState(t *testing.T) {
	entries := func(s ...string) []json.RawMessage {
		var out []json.RawMessage
		for _, e := range s {
			out = append(out, json.RawMessage(e))
		}
		return out
	}
	for _, c := range []struct {
		kind     llm.FinishKind
		in, want []json.RawMessage
		dropped  bool
	}{
		{llm.Stop, entries("1", "2", "3"), entries("1", "2", "3"), false},
		{llm.MaxTokens, entries("1", "2", "3"), entries("1", "3"), false},
		{llm.Stop, entries("1", "2"), nil, true},
		{llm.MaxTokens, nil, nil, false},
	} {
		state := &llm.ReplayState{Response: json.RawMessage(`"r"`), Blocks: c.in}
		a := assemble(t, llm.TextDelta{Index: 0, Text: "a"}, llm.ToolCallDelta{Index: 1, ID: "c"}, llm.TextDelta{Index: 2, Text: "b"},
			llm.Finish{Reason: llm.FinishReason{Kind: c.kind}, ReplayState: state})
		for range 2 {
			got := a.ReplayState()
			if (got == nil) != c.dropped || got != nil && (!reflect.DeepEqual(got.Blocks, c.want) || string(got.Response) != `"r"`) {
				t.Errorf("%s %s: %+v", c.kind, c.in, got)
			}
		}
	}
}

// M-11
func TestInterrupted(t *testing.T) {
	a := assemble(t, llm.ReasoningDelta{Index: 0, Text: "r"}, llm.TextDelta{Index: 1, Text: " \n"}, llm.TextDelta{Index: 2, Text: "open"},
		llm.ToolCallDelta{Index: 3, ID: "c"}, llm.BlockStart{Index: 4, BlockType: "video"}, llm.BlockEnd{Index: 5, Block: llm.Text{Text: "closed"}})
	if got := a.Interrupted(); !reflect.DeepEqual(got, llm.Content{llm.Reasoning{Text: "r"}, llm.Text{Text: "open"}, llm.Text{Text: "closed"}}) {
		t.Errorf("%+v", got)
	}
}

// M-12
func TestAssemblerTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(anyChunk), 0, 30).Draw(t, "chunks")
		var a llm.Assembler
		indices := map[int]bool{}
		last := llm.Stop
		for _, c := range list {
			if err := a.Add(c); err != nil {
				t.Fatal(err)
			}
			switch c := c.(type) {
			case llm.BlockStart:
				indices[c.Index] = true
			case llm.TextDelta:
				indices[c.Index] = true
			case llm.ReasoningDelta:
				indices[c.Index] = true
			case llm.ToolCallDelta:
				indices[c.Index] = true
			case llm.BlockEnd:
				indices[c.Index] = true
			case llm.Finish:
				last = c.Reason.Kind
			}
			one, err := a.Blocks()
			two, err2 := a.Blocks()
			if err != nil || err2 != nil || !reflect.DeepEqual(one, two) || len(one) > len(indices) {
				t.Fatalf("%v %v: %v, %v, %d indices", err, err2, one, two, len(indices))
			}
		}
		if a.Finish().Kind != last {
			t.Fatalf("finish %q, want %q", a.Finish().Kind, last)
		}
	})
}
