package openai

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// wireChunk is one event's object. Members that dialects fill in several ways
// are left raw.
type wireChunk struct {
	Choices []wireChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type wireChoice struct {
	Index        int             `json:"index"`
	Delta        wireDelta       `json:"delta"`
	FinishReason string          `json:"finish_reason"`
	Usage        json.RawMessage `json:"usage"`
}

type wireDelta struct {
	Content          json.RawMessage `json:"content"`
	Refusal          json.RawMessage `json:"refusal"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	ToolCalls        []wireCall      `json:"tool_calls"`
}

type wireCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// translator makes chunks of the events of one reply.
type translator struct {
	emit         func(llm.Chunk, error) bool
	left         bool // the consumer has gone
	a            *Adapter
	toolsOffered bool

	think   thinkTags
	next    int     // index of the next block
	prose   *prose  // the open text or reasoning block
	calls   []*call // all, open until the end
	touched *call   // the last one a fragment went to
	closed  bool    // the calls are closed
	usage   *llm.TokenUsage
	reason  string // the first finish reason
	marked  bool   // the end mark was seen
	markup  bool   // text with tool markup was seen
}

// prose is an open block of text or reasoning.
type prose struct {
	index     int
	reasoning bool
	text      strings.Builder
}

// call is a tool call that is being told.
type call struct {
	index int
	wire  *int   // the service's index, if it gives one
	id    string // the service's id, if it gives one
	shown string // the id given out: the service's or one made up
	name  string
	args  strings.Builder
}

// done reports that nothing more is to be read.
func (t *translator) done() bool { return t.marked || t.left }

func (t *translator) send(c llm.Chunk) {
	if !t.left && !t.emit(c, nil) {
		t.left = true
	}
}

// fail closes what is open and ends with err.
func (t *translator) fail(err error) {
	t.closeBlocks()
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
	if string(data) == "[DONE]" {
		t.marked = true
		return nil
	}
	var w wireChunk
	if err := json.Unmarshal(data, &w); err != nil {
		if ev.Unfinished || t.reason != "" {
			return nil // the end of the body decides
		}
		return llm.NewError(seams.MalformedResponse, "an event of the reply is not a chunk: %s", t.a.client.Clean(string(data[:min(len(data), 4*sse.MaxExcerpt)]), sse.MaxExcerpt))
	}
	if given(w.Usage) {
		t.takeUsage(w.Usage)
	}
	for _, c := range w.Choices {
		if c.Index == 0 {
			t.choice(c)
		}
	}
	if given(w.Error) {
		return t.a.client.InBand(parseError(w.Error).inBand())
	}
	return nil
}

func (t *translator) choice(c wireChoice) {
	if given(c.Usage) {
		t.takeUsage(c.Usage)
	}
	if t.reason != "" {
		return
	}
	d := c.Delta
	if s := text(d.ReasoningContent); s != "" {
		t.addProse(s, true)
	} else if s := text(d.Reasoning); s != "" {
		t.addProse(s, true)
	}
	t.content(d.Content)
	if s := text(d.Refusal); s != "" {
		t.addProse(s, false)
	}
	for _, w := range d.ToolCalls {
		t.call(w)
	}
	if c.FinishReason != "null" {
		t.reason = c.FinishReason
	}
}

// text returns the string a raw member holds, "" for anything else.
func text(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// content takes a content that is a string, or a list of parts.
func (t *translator) content(raw json.RawMessage) {
	if s := text(raw); s != "" {
		t.addText(s)
		return
	}
	if len(raw) == 0 || raw[0] != '[' {
		return
	}
	type part struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			t.addText(p.Text)
		case "thinking":
			if s := text(p.Thinking); s != "" {
				t.addProse(s, true)
			}
			var inner []part
			_ = json.Unmarshal(p.Thinking, &inner)
			for _, p := range inner {
				t.addProse(p.Text, true)
			}
		}
	}
}

func (t *translator) addText(s string) {
	if t.a.cfg.Compat.KeepThinkTags {
		t.addProse(s, false)
		return
	}
	t.think.split(s, t.addProse)
}

// addProse adds to the open block of its kind, or closes another and opens one.
func (t *translator) addProse(s string, reasoning bool) {
	if s == "" {
		return
	}
	if t.prose != nil && t.prose.reasoning != reasoning {
		t.closeProse()
	}
	if t.prose == nil {
		t.prose = &prose{index: t.next, reasoning: reasoning}
		t.next++
		kind := llm.KindText
		if reasoning {
			kind = llm.KindReasoning
		}
		t.send(llm.BlockStart{Index: t.prose.index, BlockType: kind})
	}
	t.prose.text.WriteString(s)
	if reasoning {
		t.send(llm.ReasoningDelta{Index: t.prose.index, Text: s})
	} else {
		t.send(llm.TextDelta{Index: t.prose.index, Text: s})
	}
}

func (t *translator) closeProse() {
	p := t.prose
	if p == nil {
		return
	}
	t.prose = nil
	s := p.text.String()
	if p.reasoning {
		t.send(llm.BlockEnd{Index: p.index, Block: llm.Reasoning{Text: s}})
		return
	}
	t.markup = t.markup || strings.Contains(s, "<｜DSML｜") || strings.Contains(s, "<｜tool▁call") || strings.Contains(s, "<tool_call>")
	t.send(llm.BlockEnd{Index: p.index, Block: llm.Text{Text: s}})
}

// call takes a fragment of a tool call.
func (t *translator) call(w wireCall) {
	c := t.find(w)
	fresh := c == nil
	if fresh {
		t.flushText()
		t.closeProse()
		c = &call{index: t.next, wire: w.Index, id: w.ID, shown: w.ID}
		if c.shown == "" {
			c.shown = "call_" + rand.Text()
		}
		t.next++
		t.calls = append(t.calls, c)
		t.send(llm.BlockStart{Index: c.index, BlockType: llm.KindToolCall})
	}
	t.touched = c
	if c.id == "" {
		c.id = w.ID
	}
	nameless := c.name == ""
	c.takeName(w.Function.Name)
	d := llm.ToolCallDelta{Index: c.index, ID: c.shown, ArgumentsDelta: arguments(w.Function.Arguments)}
	if nameless {
		d.Name = c.name
	}
	c.args.WriteString(d.ArgumentsDelta)
	if fresh || d.Name != "" || d.ArgumentsDelta != "" {
		t.send(d)
	}
}

// find returns the call a fragment belongs to, nil for a new one. An id that is
// not known begins a call, whatever its index, unless the call at that index
// has none yet; without an id the index counts, and a fragment with neither
// goes to the call touched last.
func (t *translator) find(w wireCall) *call {
	if w.ID == "" && w.Index == nil {
		return t.touched
	}
	for _, c := range slices.Backward(t.calls) {
		sameIndex := w.Index != nil && c.wire != nil && *c.wire == *w.Index
		if w.ID != "" && c.id == w.ID || sameIndex && (w.ID == "" || c.id == "") {
			return c
		}
	}
	return nil
}

// takeName adds to the name. Services repeat it, some cut it in pieces.
func (c *call) takeName(name string) {
	switch {
	case name == "" || name == c.name:
	case strings.HasPrefix(name, c.name):
		c.name = name
	case c.args.Len() == 0:
		c.name += name
	}
}

// arguments returns the fragment; some services send an object, not its text.
func arguments(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '{' {
		return string(raw)
	}
	return text(raw)
}

func (t *translator) takeUsage(raw json.RawMessage) {
	var w struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		Hit        float64 `json:"prompt_cache_hit_tokens"`
		Details    struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if json.Unmarshal(raw, &w) != nil || w.Prompt+w.Completion <= 0 {
		return
	}
	count := func(f float64) int64 { return int64(min(max(f, 0), 1<<53-1)) }
	cached := min(max(count(w.Hit), count(w.Details.Cached)), count(w.Prompt))
	t.usage = &llm.TokenUsage{
		InputTokens:     count(w.Prompt) - cached,
		OutputTokens:    count(w.Completion),
		CacheReadTokens: cached,
		ReasoningTokens: count(w.Output.Reasoning),
	}
}

func (t *translator) flushText() { t.think.flush(t.addProse) }

// closeBlocks ends every open block.
func (t *translator) closeBlocks() {
	t.flushText()
	t.closeProse()
	if t.closed {
		return
	}
	t.closed = true
	for _, c := range t.calls {
		t.send(llm.BlockEnd{Index: c.index, Block: llm.ToolCall{ID: c.shown, Name: c.name, Arguments: c.args.String()}})
	}
}

// end judges the end of the body or a failed read: with a finish reason seen
// the reply is complete all the same.
func (t *translator) end(err error) error {
	switch {
	case t.reason != "" && !errors.Is(err, sse.ErrTooLarge):
		return t.complete()
	case err != io.EOF:
		return err
	}
	return llm.NewError(seams.StreamClosed, "the reply ended without a finish reason or an end mark")
}

// complete ends a reply that is whole.
func (t *translator) complete() error {
	t.closeBlocks()
	if t.usage != nil {
		t.send(llm.Usage{Usage: *t.usage})
	}
	if t.markup && t.toolsOffered && len(t.calls) == 0 && t.a.cfg.Warn != nil {
		t.a.cfg.Warn("the answer's text looks like tool calls that the server did not parse; nothing was run")
	}
	finish := llm.FinishReason{}
	switch t.reason {
	case "stop", "tool_calls", "function_call", "end_turn", "eos", "":
		finish.Kind = llm.Stop
		if len(t.calls) > 0 {
			finish.Kind = llm.ToolCalls
		} else if t.next == 0 {
			return llm.NewError(seams.EmptyResponse, "the service ended the reply without any content")
		}
	case "length", "max_tokens":
		finish.Kind = llm.MaxTokens
	case "content_filter":
		return llm.NewError(seams.ContentFilter, "the service withheld the reply by its content rules")
	case "error":
		return llm.NewError(seams.Server, "the service ended the reply with an error and said no more")
	default:
		code := sse.ReasonCode(t.reason)
		return llm.NewError(code, "the service ended the reply with the unknown reason %s", code)
	}
	t.send(llm.Finish{Reason: finish})
	return nil
}
