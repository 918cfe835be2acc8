package seams

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Code is a stable UPPER_SNAKE name of a kind of failure. The same text is
// JavaScript's err.code, the JSON error.code and the key of `ouro explain`.
// A Code is an error so that errors.Is(err, code) asks for it.
type Code string

// Error returns the code's text.
func (c Code) Error() string { return string(c) }

// Error is a failure with a code. Msg names what is wrong, where, and the next
// step; it never holds a secret, a header value or a long body. Op is the
// operation that failed, as its caller knows it ("cordis.Provide", "llm.stream").
type Error struct {
	Code Code
	Op   string
	Msg  string
	Err  error // the cause, nil if none
}

// Errorf makes an *Error. The format follows fmt.Errorf: an operand of %w
// becomes the cause.
func Errorf(code Code, op, format string, args ...any) *Error {
	e := fmt.Errorf(format, args...)
	return &Error{Code: code, Op: op, Msg: e.Error(), Err: errors.Unwrap(e)}
}

// Error renders "op: message [CODE]".
func (e *Error) Error() string {
	s := e.Msg
	if s == "" && e.Err != nil {
		s = e.Err.Error()
	}
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	return s + " [" + string(e.Code) + "]"
}

// Is reports whether target is this error's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the outermost code in err's chain: "" for nil, Unknown when
// no error of the chain has one.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	return Unknown
}

// CodeInfo describes a code for people: what it means and what to do next.
type CodeInfo struct {
	Code    Code
	Meaning string
	Next    string
}

// Codes returns the table of all codes, sorted by code.
func Codes() []CodeInfo {
	out := append([]CodeInfo(nil), codes...)
	sort.Slice(out, func(i, j int) bool { return out[i].Code < out[j].Code })
	return out
}

// Explain returns the row of one code. Codes of the form HTTP_<status> have one
// in common.
func Explain(c Code) (CodeInfo, bool) {
	if status, ok := strings.CutPrefix(string(c), "HTTP_"); ok {
		return CodeInfo{c, "the provider answered with the HTTP status " + status, "check the address and the model's name; the provider's documentation explains the status"}, true
	}
	for _, i := range codes {
		if i.Code == c {
			return i, true
		}
	}
	return CodeInfo{}, false
}

// Clip shortens a text for a message to at most that many bytes, and an ellipsis
// that says so. It cuts no character in two.
func Clip(s string, bytes int) string {
	if len(s) <= bytes {
		return s
	}
	return strings.ToValidUTF8(s[:bytes], "") + "…"
}
