package anthropic

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Kinds of content blocks.
const (
	kindText     = "text"
	kindThinking = "thinking"
	kindRedacted = "redacted_thinking"
	kindToolUse  = "tool_use"
	kindResult   = "tool_result"
)

// wireEvent is the object of any event; which members it has depends on Type.
type wireEvent struct {
	Type    string `json:"type"`
	Message struct {
		Usage wireUsage `json:"usage"`
	} `json:"message"`
	Index int `json:"index"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		Partial    string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage wireUsage `json:"usage"`
	problem
}

// wireUsage counts tokens; what an event leaves out stands as it was.
type wireUsage struct {
	Input      *float64 `json:"input_tokens"`
	Output     *float64 `json:"output_tokens"`
	CacheRead  *float64 `json:"cache_read_input_tokens"`
	CacheWrite *float64 `json:"cache_creation_input_tokens"`
}

// translator makes chunks of the events of one reply.
type translator struct {
	emit      func(llm.Chunk, error) bool
	left      bool // the consumer has gone
	client    *sse.Client
	requestID string

	open    []*block        // in order of their start
	ids     map[string]bool // given to calls
	entries []entry         // of the replay state, one for each block begun
	opaque  []opaque        // blocks without a text since the last of those
	usage   *llm.TokenUsage
	reason  string
	stopped bool // message_stop was seen
}

// block is an open content block.
type block struct {
	wire      int    // the service's index
	kind      string // one of the service's, known or not
	index     int    // ours, once begun
	begun     bool
	body      strings.Builder // text, thinking, or arguments
	signature string
	id, name  string
	input     json.RawMessage // the arguments, where they come with the start
}

// done reports that nothing more is to be read.
func (t *translator) done() bool { return t.stopped || t.left }

func (t *translator) send(c llm.Chunk) {
	if !t.left && !t.emit(c, nil) {
		t.left = true
	}
}

// fail closes what is open and ends with err.
func (t *translator) fail(err error) {
	t.closeAll()
	if !t.left {
		t.emit(nil, err)
	}
}

// event takes one event.
func (t *translator) event(ev sse.Event) error {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 {
		return nil
	}
	var w wireEvent
	if err := json.Unmarshal(data, &w); err != nil {
		if ev.Unfinished {
			return nil // the end of the body follows
		}
		return llm.NewError(seams.MalformedResponse, "an event of the reply is not one of the API's: %s", t.client.Clean(string(data[:min(len(data), 4*sse.MaxExcerpt)]), sse.MaxExcerpt))
	}
	switch w.Type {
	case "message_start":
		t.takeUsage(w.Message.Usage)
	case "content_block_start":
		t.start(w)
	case "content_block_delta":
		t.delta(w)
	case "content_block_stop":
		if b := t.find(w.Index); b != nil {
			t.stop(b)
		}
	case "message_delta":
		if w.Delta.StopReason != "" {
			t.reason = w.Delta.StopReason
		}
		t.takeUsage(w.Usage)
	case "message_stop":
		t.stopped = true
	case "error":
		e := t.client.InBand(w.failure())
		if e.RequestID == "" {
			e.RequestID = t.requestID
		}
		return e
	}
	return nil
}

func (t *translator) find(wire int) *block {
	for _, b := range t.open {
		if b.wire == wire {
			return b
		}
	}
	return nil
}

// start opens a block. One of text or thinking begins with its first text.
func (t *translator) start(w wireEvent) {
	if b := t.find(w.Index); b != nil {
		t.close(b)
	}
	b := &block{wire: w.Index, kind: w.Block.Type, signature: w.Block.Signature, id: w.Block.ID, name: w.Block.Name, input: w.Block.Input}
	t.open = append(t.open, b)
	switch b.kind {
	case kindText:
		t.add(b, w.Block.Text)
	case kindThinking:
		t.add(b, w.Block.Thinking)
	case kindRedacted:
		t.opaque = append(t.opaque, opaque{Type: kindRedacted, Data: w.Block.Data})
	case kindToolUse:
		if b.id == "" || t.ids[b.id] {
			b.id = "toolu_" + rand.Text()
		}
		if t.ids == nil {
			t.ids = map[string]bool{}
		}
		t.begin(b, llm.KindToolCall)
		t.ids[b.id] = true
		t.send(llm.ToolCallDelta{Index: b.index, ID: b.id, Name: b.name})
	}
}

// delta adds to an open block; one of text may come without a start.
func (t *translator) delta(w wireEvent) {
	b := t.find(w.Index)
	d := w.Delta
	if b == nil {
		switch d.Type {
		case "text_delta":
			b = &block{wire: w.Index, kind: kindText}
		case "thinking_delta":
			b = &block{wire: w.Index, kind: kindThinking}
		default:
			return
		}
		t.open = append(t.open, b)
	}
	switch {
	case d.Type == "text_delta" && b.kind == kindText:
		t.add(b, d.Text)
	case d.Type == "thinking_delta" && b.kind == kindThinking:
		t.add(b, d.Thinking)
	case d.Type == "signature_delta" && b.kind == kindThinking:
		b.signature += d.Signature
	case d.Type == "input_json_delta" && b.kind == kindToolUse:
		t.add(b, d.Partial)
	}
}

func (t *translator) begin(b *block, kind string) {
	b.begun, b.index = true, len(t.entries)
	t.entries = append(t.entries, entry{Before: t.opaque})
	t.opaque = nil
	t.send(llm.BlockStart{Index: b.index, BlockType: kind})
}

func (t *translator) add(b *block, s string) {
	if s == "" {
		return
	}
	switch b.kind {
	case kindText:
		if !b.begun {
			t.begin(b, llm.KindText)
		}
		t.send(llm.TextDelta{Index: b.index, Text: s})
	case kindThinking:
		if !b.begun {
			t.begin(b, llm.KindReasoning)
		}
		t.send(llm.ReasoningDelta{Index: b.index, Text: s})
	case kindToolUse:
		t.send(llm.ToolCallDelta{Index: b.index, ID: b.id, ArgumentsDelta: s})
	}
	b.body.WriteString(s)
}

// stop ends a block whose end the service has told.
func (t *translator) stop(b *block) {
	if b.kind == kindToolUse && b.body.Len() == 0 {
		t.add(b, objectOr(string(b.input)))
	}
	if b.kind == kindThinking && !b.begun && b.signature != "" {
		t.opaque = append(t.opaque, opaque{Type: kindThinking, Thinking: new(string), Signature: b.signature})
	}
	if b.begun {
		t.entries[b.index].Signature = b.signature
	}
	t.close(b)
}

// close ends a block as far as it came. Only one that was stopped has a
// signature in the replay state.
func (t *translator) close(b *block) {
	t.open = slices.DeleteFunc(t.open, func(o *block) bool { return o == b })
	if !b.begun {
		return
	}
	s := b.body.String()
	var whole llm.Block = llm.Text{Text: s}
	switch b.kind {
	case kindThinking:
		whole = llm.Reasoning{Text: s}
	case kindToolUse:
		whole = llm.ToolCall{ID: b.id, Name: b.name, Arguments: s}
	}
	t.send(llm.BlockEnd{Index: b.index, Block: whole})
}

func (t *translator) closeAll() {
	for len(t.open) > 0 {
		t.close(t.open[0])
	}
}

func (t *translator) takeUsage(w wireUsage) {
	take := func(into func(*llm.TokenUsage) *int64, count *float64) {
		if count == nil {
			return
		}
		if t.usage == nil {
			t.usage = &llm.TokenUsage{}
		}
		*into(t.usage) = int64(min(max(*count, 0), 1<<53-1))
	}
	take(func(u *llm.TokenUsage) *int64 { return &u.InputTokens }, w.Input)
	take(func(u *llm.TokenUsage) *int64 { return &u.OutputTokens }, w.Output)
	take(func(u *llm.TokenUsage) *int64 { return &u.CacheReadTokens }, w.CacheRead)
	take(func(u *llm.TokenUsage) *int64 { return &u.CacheWriteTokens }, w.CacheWrite)
}

// complete ends a reply that is whole.
func (t *translator) complete() error {
	t.closeAll()
	if t.usage != nil {
		t.send(llm.Usage{Usage: *t.usage})
	}
	finish := llm.Finish{ReplayState: replayState(t.entries)}
	switch t.reason {
	case "end_turn", "stop_sequence", "tool_use", "":
		switch {
		case len(t.ids) > 0:
			finish.Reason.Kind = llm.ToolCalls
		case len(t.entries) == 0:
			return llm.NewError(seams.EmptyResponse, "the service ended the reply without any content")
		default:
			finish.Reason.Kind = llm.Stop
		}
	case "max_tokens":
		finish.Reason.Kind = llm.MaxTokens
	case "refusal":
		return llm.NewError(seams.ContentFilter, "the service withheld the reply by its content rules")
	case "model_context_window_exceeded":
		return llm.NewError(seams.ContextWindowExceeded, "the reply reached the end of the model's context window")
	default:
		code := sse.ReasonCode(t.reason)
		return llm.NewError(code, "the service ended the reply with the reason %s, which is not known here", code)
	}
	t.send(finish)
	return nil
}
