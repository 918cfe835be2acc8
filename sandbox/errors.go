package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// Thrown is what JavaScript threw, or what is to be thrown into it. As an error
// from a realm it is the cause of a *seams.Error with the same code.
type Thrown struct {
	Name    string // "TypeError", "LlmError"; "" if what was thrown is no Error
	Message string
	Code    string // "" for none
	Stack   string // lines of "at function (file:line:column)", original places
	// Data holds the error's other own members that are data, such as status.
	Data  map[string]any
	Cause error
}

// Error renders "Name: message".
func (t *Thrown) Error() string {
	if t.Name == "" {
		return t.Message
	}
	return t.Name + ": " + t.Message
}

// Unwrap returns the cause.
func (t *Thrown) Unwrap() error { return t.Cause }

const (
	maxCauses  = 8
	maxMessage = 4096 // bytes of a message or a stack that crosses
)

var (
	codeForm  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,63}$`)
	stackLine = regexp.MustCompile(`^\s*at (?:(.*?) \()?(.*?):(\d+):(\d+)\(\d+\)\)?$`)
	helper    = regexp.MustCompile(`(?m)^\s*at [^\n]*(?:\bouro:|\bplugin\.js:|\(native\))[^\n]*\n?`)
	place     = regexp.MustCompile(`\bp(\d+):m(\d+):(\d+):(\d+)(?:\(\d+\))?`)
)

// coded makes an error of a realm one that its callers may see.
func (r *Realm) coded(err error) error {
	if ex := (*goja.Exception)(nil); errors.As(err, &ex) {
		return r.thrown(ex)
	}
	return err
}

// thrown makes an error of an exception.
func (r *Realm) thrown(ex *goja.Exception) error {
	err := r.fromError(ex.Value())
	t := (*Thrown)(nil)
	if errors.As(err, &t) && t.Stack == "" {
		var b strings.Builder
		for _, f := range ex.Stack() {
			p := f.Position()
			fmt.Fprintf(&b, "\n\tat %s (%s:%d:%d(0))", f.FuncName(), p.Filename, p.Line, p.Column)
		}
		t.Stack = r.places(b.String())
		return r.wrap(t)
	}
	return err
}

// fromError makes an error of any value that was thrown. It runs the plugin's
// code and never fails.
func (r *Realm) fromError(v goja.Value) error {
	t := &Thrown{Message: "an error that cannot be read"}
	if ex := r.vm.Try(func() { t = r.readThrown(v) }); ex != nil {
		t.Code = ""
	}
	return r.wrap(t)
}

func (r *Realm) wrap(t *Thrown) error {
	code := seams.ScriptError
	if codeForm.MatchString(t.Code) {
		code = seams.Code(t.Code)
	}
	msg := t.Error()
	if at, _, _ := strings.Cut(t.Stack, "\n"); at != "" {
		if i := strings.LastIndexByte(at, '('); i >= 0 {
			at = strings.TrimSuffix(at[i+1:], ")")
		}
		msg += " (" + strings.TrimPrefix(at, "at ") + ")"
	}
	return &seams.Error{Code: code, Op: r.options.Name, Msg: msg, Err: t}
}

// readThrown reads an error's facts; it may throw.
func (r *Realm) readThrown(v goja.Value) *Thrown { return r.readCause(v, 0) }

func (r *Realm) readCause(v goja.Value, depth int) *Thrown {
	o, ok := v.(*goja.Object)
	if !ok || o.ClassName() != "Error" && !isErrorLike(o) {
		s := "undefined"
		if v != nil {
			if shown, err := r.lib.show(goja.Undefined(), v, r.vm.ToValue(0), r.vm.NewArray()); err == nil {
				s = shown.String()
			}
		}
		return &Thrown{Message: seams.Clip(s, maxMessage)}
	}
	t := &Thrown{
		Name:    seams.Clip(text(o.Get("name")), maxMessage),
		Message: seams.Clip(text(o.Get("message")), maxMessage),
		Code:    seams.Clip(text(o.Get("code")), maxMessage),
		Stack:   r.places(text(o.Get("stack"))),
	}
	t.Message = r.relocate(t.Message)
	if name, ok := strings.CutSuffix(t.Message, " is not defined"); ok && t.Name == "ReferenceError" && undefined[name] != "" {
		t.Message += ": " + undefined[name]
	}
	facts := &reader{r: r, above: []*goja.Object{o}}
	t.Data = facts.facts(o)
	if r.spend(facts.size) != nil {
		t.Data = nil // over the budget its text alone is handed over
	}
	if cause := o.Get("cause"); cause != nil && !goja.IsUndefined(cause) && !goja.IsNull(cause) && depth < maxCauses {
		t.Cause = r.readCause(cause, depth+1)
	}
	return t
}

// undefined says what to write for globals that plugins take for granted.
var undefined = map[string]string{
	"process":      "a plugin has no environment, write the value into its code",
	"Buffer":       "use btoa and atob, TextEncoder and TextDecoder, or a Uint8Array",
	"__dirname":    "a plugin has no folder, inject the fs service: inject: ['fs'], then ctx.fs",
	"window":       "there is no page, use globalThis",
	"document":     "there is no page",
	"localStorage": "inject the memory service: inject: ['memory'], then ctx.memory",
	"ctx":          "ctx is the argument of apply(ctx)",
	"config":       "config is the second argument of apply(ctx, config)",
	"defineTool":   "write harness.defineTool",
	"registerTool": "write harness.registerTool",
	"tools":        "write ctx.tools, with inject: ['tools']",
	"Schema":       "write const { Schema } = require('ouro')",
	"z":            "describe parameters as {name: {type: 'string', required: true}}",
}

func isErrorLike(o *goja.Object) bool {
	return goja.IsString(nonNil(o.Get("message"))) && goja.IsString(nonNil(o.Get("name")))
}

func text(v goja.Value) string {
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return ""
	}
	return v.String()
}

// places turns an engine's stack into lines of original places, without the
// frames of helpers.
func (r *Realm) places(stack string) string {
	var out []string
	for line := range strings.Lines(stack) {
		m := stackLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		file, row, ok := r.original(m[2], m[3])
		if !ok {
			continue
		}
		at := file + ":" + row + ":" + m[4]
		if m[1] != "" && m[1] != "<anonymous>" {
			at = m[1] + " (" + at + ")"
		}
		out = append(out, "at "+at)
	}
	return seams.Clip(strings.Join(out, "\n"), maxMessage)
}

// relocate replaces the inner names of source files in a text, and drops the
// stack lines of helpers.
func (r *Realm) relocate(s string) string {
	if !strings.Contains(s, ":m") {
		return s
	}
	s = helper.ReplaceAllString(s, "")
	return place.ReplaceAllStringFunc(s, func(at string) string {
		m := place.FindStringSubmatch(at)
		file, row, ok := r.original("p"+m[1]+":m"+m[2], m[3])
		if !ok {
			return at
		}
		return file + ":" + row + ":" + m[4]
	})
}

// original finds a file and line by the inner name of a source.
func (r *Realm) original(inner, row string) (string, string, bool) {
	id, file, ok := strings.Cut(strings.TrimPrefix(inner, "p"), ":m")
	n, err1 := strconv.ParseUint(id, 10, 64)
	i, err2 := strconv.Atoi(file)
	p := r.programs[n]
	if !ok || err1 != nil || err2 != nil || p == nil || i >= len(p.files) {
		return "", "", false
	}
	if line, err := strconv.Atoi(row); err == nil && i == 0 {
		row = strconv.Itoa(line - p.script.Head)
	}
	return p.files[i], row, true
}

// toError makes a JavaScript Error of a Go one: its message, code and causes,
// never the Go value (pitfall 12).
func (e *engine) toError(err error) goja.Value { return e.toCause(err, 0) }

func (e *engine) toCause(err error, depth int) goja.Value {
	if ex := (*goja.Exception)(nil); errors.As(err, &ex) {
		return ex.Value()
	}
	t := e.describe(err)
	cause := goja.Value(goja.Undefined())
	if t.Cause != nil && depth < maxCauses {
		cause = e.toCause(t.Cause, depth+1)
	}
	data, dataErr := e.toJS(t.Data)
	if dataErr != nil {
		data = goja.Undefined()
	}
	stack := ""
	if t.Stack != "" {
		stack = t.Error() + "\n    " + strings.ReplaceAll(t.Stack, "\n", "\n    ")
	}
	to := e.vm.ToValue
	v, failed := e.lib.fail(goja.Undefined(), to(t.Name), to(t.Message), to(t.Code), to(stack), data, cause)
	if failed != nil {
		panic(failed)
	}
	return v
}

// describe says how a Go error looks in JavaScript.
func (e *engine) describe(err error) *Thrown {
	var t *Thrown
	var c *seams.Error
	switch {
	case errors.As(err, &c):
		out := Thrown{Name: "Error", Message: c.Msg, Code: string(c.Code), Cause: c.Err}
		if _, ok := c.Err.(*panicStack); ok {
			out.Cause = nil
		}
		if thrown, ok := c.Err.(*Thrown); ok {
			out = *thrown
			out.Code = string(c.Code)
		} else if c.Op != "" {
			out.Message = c.Op + ": " + c.Msg
		}
		switch c.Code {
		case seams.NotJSON, seams.NotInjected, seams.NotExposed, seams.ReadOnly, seams.NotAvailable, seams.InvalidPlugin:
			out.Name = "TypeError"
		case seams.Aborted:
			out.Name = "AbortError"
		case seams.Timeout:
			out.Name = "TimeoutError"
		}
		return &out
	case errors.As(err, &t):
		return t
	case errors.Is(err, context.Canceled):
		return &Thrown{Name: "AbortError", Message: "This operation was aborted", Code: string(seams.Aborted)}
	case errors.Is(err, context.DeadlineExceeded):
		return &Thrown{Name: "TimeoutError", Message: "The operation timed out", Code: string(seams.Timeout)}
	}
	out := &Thrown{Name: "Error", Message: err.Error(), Cause: errors.Unwrap(err)}
	if code := seams.CodeOf(err); code != seams.Unknown {
		out.Code = string(code)
	}
	return out
}

// panicked makes an error of a recovered Go panic.
func panicked(op string, x any) error {
	if err, ok := x.(error); ok && errors.Is(err, seams.Panicked) {
		return err
	}
	return &seams.Error{Code: seams.Panicked, Op: op, Msg: fmt.Sprintf("panic: %v", x), Err: &panicStack{debug.Stack()}}
}

// panicStack keeps a panic's Go stack for the log; JavaScript does not see it.
type panicStack struct{ stack []byte }

func (p *panicStack) Error() string { return string(p.stack) }
