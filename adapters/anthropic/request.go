package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// What stands in for content the API refuses to have empty.
const (
	emptyResult  = "(no output)"
	emptyMessage = "(no content)"
)

// budgets are the thinking tokens of an effort; the API wants 1024 at least.
var budgets = map[string]int{"low": 2048, "medium": 8192, "high": 24000}

// adaptive are the efforts that go by name.
var adaptive = []string{"low", "medium", "high", "xhigh", "max"}

type request struct {
	Model       string        `json:"model"`
	MaxTokens   int           `json:"max_tokens"`
	Stream      bool          `json:"stream"`
	System      string        `json:"system,omitempty"`
	Messages    []message     `json:"messages"`
	Tools       []tool        `json:"tools,omitempty"`
	Temperature *float64      `json:"temperature,omitempty"`
	Stop        []string      `json:"stop_sequences,omitempty"`
	Thinking    *thinking     `json:"thinking,omitempty"`
	Output      *outputConfig `json:"output_config,omitempty"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type message struct {
	Role    string `json:"role"`
	Content []part `json:"content"`
}

// part is a content block of any kind, opaque ones included.
type part struct {
	opaque
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

func (p part) isThinking() bool { return p.Type == kindThinking || p.Type == kindRedacted }

// encode writes the body of a request, or refuses what the API, as far as this
// adapter speaks it, cannot represent.
func encode(req llm.Request, compat Compat) ([]byte, error) {
	if req.Model == "" {
		return nil, llm.NewError(seams.InvalidRequest, "no model is given: name one in the agent's config or with --model")
	}
	if req.MaxTokens < 0 {
		return nil, llm.NewError(seams.UnsupportedOption, "maxTokens is %d: it must be positive", req.MaxTokens)
	}
	r := request{Model: req.Model, MaxTokens: req.MaxTokens, Stream: true, Temperature: req.Temperature, Stop: req.Stop, Messages: []message{}}
	if err := r.think(req.ReasoningEffort, compat); err != nil {
		return nil, err
	}
	system := []string{}
	if req.System != "" {
		system = append(system, req.System)
	}
	for i, m := range req.Messages {
		parts, err := encodeMessage(m)
		if err != nil {
			return nil, llm.NewError(err.Code, "messages[%d]: %s", i, err.Message)
		}
		if m.Role != llm.System {
			r.append(string(m.Role), parts)
		} else if s := m.Content.Text(); s != "" {
			system = append(system, s)
		}
	}
	r.seal()
	r.System = strings.Join(system, "\n\n")
	for i := range r.Messages {
		r.Messages[i].arrange()
	}
	for _, t := range req.Tools {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		r.Tools = append(r.Tools, tool{t.Name, t.Description, parameters})
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, llm.NewError(seams.InvalidRequest, "the request cannot be written as JSON: %w", err)
	}
	return body, nil
}

// think takes the reasoning effort.
func (r *request) think(effort string, compat Compat) error {
	budget := budgets[effort]
	switch {
	case effort == "" || effort == "off":
	case compat.AdaptiveThinking && slices.Contains(adaptive, effort):
		r.Thinking, r.Output = &thinking{Type: "adaptive"}, &outputConfig{effort}
	case compat.AdaptiveThinking:
		return llm.NewError(seams.UnsupportedReasoningEffort, "the API offers no reasoning effort %q, only off, %s", seams.Clip(effort, 60), strings.Join(adaptive, ", "))
	case budget == 0:
		return llm.NewError(seams.UnsupportedReasoningEffort, "this adapter knows no reasoning effort %q, only off, low, medium, high", seams.Clip(effort, 60))
	case budget >= r.MaxTokens:
		return llm.NewError(seams.UnsupportedReasoningEffort, "reasoning effort %q is %d thinking tokens, which maxTokens %d leaves no room for", effort, budget, r.MaxTokens)
	default:
		r.Thinking = &thinking{Type: "enabled", Budget: budget}
	}
	return nil
}

// append adds content to the last message if that has the same role, or as a
// new one.
func (r *request) append(role string, parts []part) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role != role {
		r.seal()
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, parts...)
		return
	}
	r.Messages = append(r.Messages, message{role, parts})
}

// seal takes thinking off the end of a last message of the assistant, and the
// message away if nothing is left.
func (r *request) seal() {
	n := len(r.Messages)
	if n == 0 || r.Messages[n-1].Role != string(llm.Assistant) {
		return
	}
	c := r.Messages[n-1].Content
	for len(c) > 0 && c[len(c)-1].isThinking() {
		c = c[:len(c)-1]
	}
	r.Messages[n-1].Content = c
	if len(c) == 0 {
		r.Messages = r.Messages[:n-1]
	}
}

// arrange puts tool results first: nothing may stand between a call and its
// result.
func (m *message) arrange() {
	slices.SortStableFunc(m.Content, func(a, b part) int {
		rank := func(p part) int {
			if p.Type == kindResult {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	if len(m.Content) == 0 {
		m.Content = []part{textPart(emptyMessage)}
	}
}

func textPart(s string) part { return part{opaque: opaque{Type: kindText}, Text: s} }

// encodeMessage makes the content of one message.
func encodeMessage(m llm.Message) ([]part, *llm.Error) {
	var out []part
	entries := replay(m)
	own := m.Role == llm.Assistant
	for i, b := range m.Content {
		if own {
			for _, o := range entries[i].Before {
				out = append(out, part{opaque: o})
			}
		}
		switch b := b.(type) {
		case llm.Text:
			if strings.TrimSpace(b.Text) != "" {
				out = append(out, textPart(b.Text))
			}
		case llm.Reasoning:
			if own && b.Text != "" && entries[i].Signature != "" {
				out = append(out, part{opaque: opaque{Type: kindThinking, Thinking: &b.Text, Signature: entries[i].Signature}})
			}
		case llm.ToolCall:
			if own {
				out = append(out, part{opaque: opaque{Type: kindToolUse}, ID: alphabet(b.ID), Name: alphabet(b.Name), Input: json.RawMessage(objectOr(b.Arguments))})
			}
		case llm.ToolResult:
			s, err := resultText(b.Content)
			if err != nil {
				return nil, err
			}
			out = append(out, part{opaque: opaque{Type: kindResult}, ToolUseID: alphabet(b.ToolCallID), Content: s, IsError: b.IsError})
		case llm.Image:
			return nil, noImages()
		}
	}
	return out, nil
}

func resultText(c llm.Content) (string, *llm.Error) {
	var parts []string
	for _, b := range c {
		switch b := b.(type) {
		case llm.Text:
			parts = append(parts, b.Text)
		case llm.Image:
			return "", noImages()
		}
	}
	if s := strings.Join(parts, "\n"); strings.TrimSpace(s) != "" {
		return s, nil
	}
	return emptyResult, nil
}

func noImages() *llm.Error {
	return llm.NewError(seams.UnsupportedContent, "this adapter cannot send images; declare the model's inputModalities as [text] to send a placeholder")
}

// alphabet writes an id or a name of another provider in the letters that the
// API allows, different ones differently.
func alphabet(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}

// objectOr returns arguments if they are a JSON object, else an empty one.
func objectOr(arguments string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return "{}"
	}
	return arguments
}
