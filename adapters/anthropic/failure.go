package anthropic

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"github.com/ouro-run/ouro/adapters/sse"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// problem is the object in which the API tells a failure, in a response of its
// own and within a stream alike.
type problem struct {
	Error *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// explain reads the body of a response that is no event stream.
func explain(status int, body []byte) llm.Failure {
	var p problem
	_ = json.Unmarshal(body, &p)
	success := status >= 200 && status <= 299
	if success && p.Error == nil {
		return llm.Failure{}
	}
	f := p.failure()
	if p.Error == nil {
		f.Message = cmp.Or(p.Message, string(body))
	}
	if success {
		return f
	}
	kind := ""
	if p.Error != nil {
		kind = p.Error.Type
	}
	f.Code = sse.CodeOfStatus(status, kind+" "+f.Message)
	switch {
	case kind == "billing_error":
		f.Code = seams.Quota
	case f.Code == seams.InvalidRequest && filtered(f.Message):
		f.Code = seams.ContentFilter
	}
	return f
}

// failure classifies a failure by the API's own word for it.
func (p problem) failure() llm.Failure {
	f := llm.Failure{Code: seams.Server, Message: "no more is said", RequestID: p.RequestID}
	if p.Error == nil {
		return f
	}
	f.Message = cmp.Or(p.Error.Message, p.Error.Type, f.Message)
	switch kind := p.Error.Type; {
	case kind == "billing_error", llm.IsQuotaExhausted(f.Message):
		f.Code = seams.Quota
	case kind == "rate_limit_error":
		f.Code = seams.RateLimit
	case kind == "authentication_error", kind == "permission_error":
		f.Code = seams.Auth
	case llm.IsContextOverflow(f.Message):
		f.Code = seams.ContextWindowExceeded
	case kind == "invalid_request_error" && filtered(f.Message):
		f.Code = seams.ContentFilter
	case kind == "invalid_request_error", kind == "request_too_large", kind == "not_found_error":
		f.Code = seams.InvalidRequest
	}
	return f
}

// filtered reports whether a message says that the reply was withheld.
func filtered(message string) bool {
	return strings.Contains(strings.ToLower(message), "content filtering policy")
}

// ended makes a failure of the end of a body that is not complete.
func ended(err error) error {
	if err == io.EOF {
		return llm.NewError(seams.StreamClosed, "the reply ended before it was complete")
	}
	return err
}
