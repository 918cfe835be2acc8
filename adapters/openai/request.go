package openai

import (
	"encoding/json"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// emptyResult stands in for a tool result without text: services refuse a
// tool message that has none.
const emptyResult = "(no output)"

// request shadows the fields of the library's type whose zero value has a
// meaning here.
type request struct {
	openai.ChatCompletionRequest
	Messages    []message `json:"messages"`
	Temperature *float64  `json:"temperature,omitempty"`
}

// message is a chat message. The library's type leaves empty content out.
type message struct {
	Role             string            `json:"role"`
	Content          string            `json:"content"`
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	ToolCalls        []openai.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID       string            `json:"tool_call_id,omitempty"`
}

// encode writes the body of a request, or refuses what the format, as far as
// this adapter speaks it, cannot represent.
func encode(req llm.Request, compat Compat) ([]byte, error) {
	if req.Model == "" {
		return nil, llm.NewError(seams.InvalidRequest, "no model is given: name one in the agent's config or with --model")
	}
	if req.MaxTokens < 0 {
		return nil, llm.NewError(seams.UnsupportedOption, "maxTokens is %d: it must be positive", req.MaxTokens)
	}
	r := request{
		ChatCompletionRequest: openai.ChatCompletionRequest{
			Model:           req.Model,
			MaxTokens:       req.MaxTokens, //lint:ignore SA1019 what most services of this format read
			Stop:            req.Stop,
			ReasoningEffort: req.ReasoningEffort,
			Stream:          true,
			StreamOptions:   &openai.StreamOptions{IncludeUsage: true},
		},
		Messages:    []message{},
		Temperature: req.Temperature,
	}
	if req.System != "" {
		r.Messages = append(r.Messages, message{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for i, m := range req.Messages {
		list, err := encodeMessage(m, compat)
		if err != nil {
			return nil, llm.NewError(err.Code, "messages[%d]: %s", i, err.Message)
		}
		r.Messages = append(r.Messages, list...)
	}
	for _, t := range req.Tools {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		r.Tools = append(r.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: parameters,
		}})
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, llm.NewError(seams.InvalidRequest, "the request cannot be written as JSON: %w", err)
	}
	return body, nil
}

// encodeMessage makes the chat messages of one message: tool results first,
// for nothing may stand between a call and its result.
func encodeMessage(m llm.Message, compat Compat) ([]message, *llm.Error) {
	own := message{Role: string(m.Role)}
	var results []message
	var text, reasoning []string
	for _, b := range m.Content {
		switch b := b.(type) {
		case llm.Text:
			text = append(text, b.Text)
		case llm.Reasoning:
			reasoning = append(reasoning, b.Text)
		case llm.ToolCall:
			own.ToolCalls = append(own.ToolCalls, openai.ToolCall{ID: b.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: b.Name, Arguments: objectOr(b.Arguments)}})
		case llm.ToolResult:
			s, err := resultText(b.Content)
			if err != nil {
				return nil, err
			}
			results = append(results, message{Role: openai.ChatMessageRoleTool, ToolCallID: b.ToolCallID, Content: s})
		case llm.Image:
			return nil, noImages()
		}
	}
	if m.Role != llm.Assistant {
		own.ToolCalls = nil
		own.Content = strings.Join(text, "\n")
		if len(results) > 0 && len(text) == 0 {
			return results, nil
		}
		return append(results, own), nil
	}
	own.Content = strings.Join(text, "")
	if compat.SendReasoning && (len(reasoning) > 0 || len(own.ToolCalls) > 0) {
		s := strings.Join(reasoning, "")
		own.ReasoningContent = &s
	}
	return append(results, own), nil
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
	if s := strings.Join(parts, "\n"); s != "" {
		return s, nil
	}
	return emptyResult, nil
}

func noImages() *llm.Error {
	return llm.NewError(seams.UnsupportedContent, "this adapter cannot send images; declare the model's inputModalities as [text] to send a placeholder")
}

// objectOr returns arguments if they are a JSON object, else an empty one.
func objectOr(arguments string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return "{}"
	}
	return arguments
}
