package llm_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

var valid = []llm.Chunk{
	llm.BlockStart{Index: 3, BlockType: "reasoning"},
	llm.ReasoningDelta{Index: 3, Text: "r"},
	llm.BlockStart{Index: 0, BlockType: "text"},
	llm.TextDelta{Index: 0, Text: "a"},
	llm.BlockStart{Index: 1, BlockType: "tool-call"},
	llm.ToolCallDelta{Index: 1, ID: "c", Name: "f"},
	llm.ReasoningDelta{Index: 3, Text: "s"},
	llm.BlockEnd{Index: 0, Block: llm.Text{Text: "a"}},
	llm.BlockEnd{Index: 3, Block: llm.Reasoning{Text: "rs"}},
	llm.BlockEnd{Index: 1, Block: llm.ToolCall{ID: "c", Name: "f"}},
	llm.BlockStart{Index: 7, BlockType: "video"},
	llm.BlockEnd{Index: 7, Block: llm.OtherBlock{Tag: "video"}},
	llm.Usage{},
	finish(llm.ToolCalls),
}

// M-13
func TestGrammarPassesValidStreams(t *testing.T) {
	got, _, err := drain(llm.Checked(chunks(valid...)))
	if err != nil || !reflect.DeepEqual(got, valid) {
		t.Fatalf("%v %v", got, err)
	}
	for _, kind := range []llm.FinishKind{llm.Failed, llm.Aborted} {
		if _, _, err := drain(llm.Checked(chunks(valid[0], finish(kind)))); err != nil {
			t.Errorf("an open block at %s: %v", kind, err)
		}
	}
}

// M-14: each violation with its own reason.
func TestGrammarRejects(t *testing.T) {
	start := llm.BlockStart{Index: 0, BlockType: "text"}
	end := llm.BlockEnd{Index: 0, Block: llm.Text{}}
	seen := map[string]bool{}
	for says, list := range map[string][]llm.Chunk{
		"index -1":             {llm.BlockStart{Index: -1, BlockType: "text"}},
		"safe integer":         {llm.BlockStart{Index: 1 << 53, BlockType: "text"}},
		"started twice":        {start, start},
		"block 0 is started":   {start, end, start},
		"without a block type": {llm.BlockStart{}},
		"text-delta for block": {llm.TextDelta{}},
		"which is not open":    {start, end, llm.TextDelta{}},
		`which is "text"`:      {start, llm.ReasoningDelta{}},
		"tool-call-delta of":   {start, llm.ToolCallDelta{}},
		"block-end for block":  {end},
		"block-end of kind":    {start, llm.BlockEnd{Index: 0, Block: llm.Reasoning{}}},
		"without a block":      {start, llm.BlockEnd{}},
		"second usage":         {llm.Usage{}, llm.Usage{}},
		"1 blocks are open":    {start, finish(llm.Stop)},
		"after the finish":     {finish(llm.Stop), llm.Usage{}},
		"without a finish":     {start, end},
		"unknown chunk":        {nil},
	} {
		_, _, err := drain(llm.Checked(chunks(list...)))
		if !errors.Is(err, seams.StreamProtocol) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
			continue
		}
		seen[err.Error()] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d reasons", len(seen))
	}
}

// M-15
func TestGrammarPassesErrors(t *testing.T) {
	broken := errors.New("broken")
	got, _, err := drain(llm.Checked(thenError(broken, valid[0])))
	if err != broken || len(got) != 1 {
		t.Fatalf("%v %v", got, err)
	}
}
