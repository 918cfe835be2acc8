package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// explain reads the body of a response that is no event stream.
func explain(status int, body []byte) llm.Failure {
	if status < 200 || status > 299 {
		p := parseProblem(body)
		return llm.Failure{Code: codeOfStatus(status, p), Message: p.message}
	}
	var w struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &w) != nil || !given(w.Error) {
		return llm.Failure{}
	}
	return parseError(w.Error).inBand()
}

// problem is what a service says of a failure, in whatever form.
type problem struct {
	message string
	code    string // of "code" or, without one, "type"
	status  int    // a numeric code
}

// parseProblem reads the body of a failed response.
func parseProblem(body []byte) problem {
	var w struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &w) != nil {
		return problem{message: string(body)}
	}
	if given(w.Error) {
		return parseError(w.Error)
	}
	if w.Message == "" && given(w.Detail) {
		return problem{message: string(w.Detail)}
	}
	if w.Message == "" {
		return problem{message: string(body)}
	}
	return problem{message: w.Message}
}

// parseError reads the value of an "error" member.
func parseError(raw json.RawMessage) problem {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return problem{message: text}
	}
	var w struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Status  json.RawMessage `json:"status"`
	}
	if json.Unmarshal(raw, &w) != nil {
		return problem{message: string(raw)}
	}
	p := problem{message: w.Message}
	if p.message == "" {
		p.message = string(raw)
	}
	for _, code := range [...]json.RawMessage{w.Code, w.Status} {
		s := strings.Trim(string(code), `"`)
		if n, err := strconv.Atoi(s); err == nil && p.status == 0 {
			p.status = n
		} else if p.code == "" && given(code) {
			p.code = s
		}
	}
	if p.code == "" {
		p.code = w.Type
	}
	return p
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// codeOfStatus classifies an HTTP status with what the body says.
func codeOfStatus(status int, p problem) seams.Code {
	code := sse.CodeOfStatus(status, p.code+" "+p.message)
	if status == 400 && code == seams.InvalidRequest && strings.Contains(p.code, "content_filter") {
		return seams.ContentFilter
	}
	return code
}

// inBand classifies an error that arrives in a reply of success.
func (p problem) inBand() llm.Failure {
	return llm.Failure{Code: inBandCode(p), Message: p.message, Status: p.status}
}

func inBandCode(p problem) seams.Code {
	if p.status >= 400 && p.status <= 599 {
		return codeOfStatus(p.status, p)
	}
	text := p.code + " " + p.message
	says := func(marks ...string) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(p.code, m) })
	}
	switch {
	case llm.IsQuotaExhausted(text):
		return seams.Quota
	case llm.IsContextOverflow(text):
		return seams.ContextWindowExceeded
	case says("rate_limit"):
		return seams.RateLimit
	case says("content_filter"):
		return seams.ContentFilter
	case says("invalid_api_key", "authentication", "permission"):
		return seams.Auth
	case says("invalid_request"):
		return seams.InvalidRequest
	}
	return seams.Server
}
