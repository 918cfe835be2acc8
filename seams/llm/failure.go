package llm

import (
	"context"
	"errors"
	"fmt"

	"github.com/ouro-run/ouro/seams"
)

// Failure is what is known of a failed request: plain data for the session
// log, for retry policies and for people.
type Failure struct {
	Message string     `json:"message"`
	Code    seams.Code `json:"code"`
	// Status is the HTTP status, 100–599, or 0.
	Status int `json:"status,omitempty"`
	// ProviderRetryAfterMs is the wait the provider asked for, at least 0;
	// nil when it asked for none.
	ProviderRetryAfterMs *int64 `json:"providerRetryAfterMs,omitempty"`
	RequestID            string `json:"requestId,omitempty"`
}

// Error is the failure of a request to a model. errors.Is(err, code) asks for
// its code, seams.CodeOf returns it.
type Error struct {
	Failure
	Err error // the cause, nil if none
}

// NewError makes an *Error of a code and a formatted message; an operand of %w
// becomes the cause.
func NewError(code seams.Code, format string, args ...any) *Error {
	e := fmt.Errorf(format, args...)
	return &Error{Failure{Message: e.Error(), Code: code}, errors.Unwrap(e)}
}

// Error renders "message [CODE]".
func (e *Error) Error() string { return e.Message + " [" + string(e.Code) + "]" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(seams.Code)
	return ok && c == e.Code
}

// As lets errors.As find this failure as a *seams.Error.
func (e *Error) As(target any) bool {
	t, ok := target.(**seams.Error)
	if ok {
		*t = &seams.Error{Code: e.Code, Op: "llm", Msg: e.Message, Err: e.Err}
	}
	return ok
}

// FailureOf makes plain data of any error. The outermost code of the chain
// counts, ABORTED for a context's error, else UNKNOWN; the facts of an *Error
// count if they are valid and its code is that one. The message is the *Error's
// own or the rendered chain (M-20, M-43, M-51).
func FailureOf(err error) Failure {
	f := Failure{Message: ErrorChain(err)}
	walk(err, 0, func(e error) bool {
		switch e := e.(type) {
		case *Error:
			if f.Code == "" {
				f.Code, f.Message = e.Code, e.Message
			}
			if e.Code == f.Code {
				f.takeFacts(e.Failure)
			}
			return true
		case *seams.Error:
			if f.Code == "" {
				f.Code = e.Code
			}
		case seams.Code:
			if f.Code == "" {
				f.Code = e
			}
		}
		if f.Code == "" && (e == context.Canceled || e == context.DeadlineExceeded) {
			f.Code = seams.Aborted
		}
		return false
	})
	if f.Code == "" {
		f.Code = seams.Unknown
	}
	return f
}

func (f *Failure) takeFacts(from Failure) {
	if from.Status >= 100 && from.Status <= 599 {
		f.Status = from.Status
	}
	if ms := from.ProviderRetryAfterMs; ms != nil && *ms >= 0 {
		f.ProviderRetryAfterMs = ms
	}
	f.RequestID = from.RequestID
}
