package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// arg is the i-th argument, nil where there is none.
func arg(args []any, i int) any {
	if 0 <= i && i < len(args) {
		return args[i]
	}
	return nil
}

func text(args []any, i int) string {
	s, _ := arg(args, i).(string)
	return s
}

// textArg is a string that must be there.
func textArg(op string, args []any, i int, what string) (string, error) {
	s, ok := arg(args, i).(string)
	if !ok || s == "" {
		return "", seams.Errorf(seams.InvalidArgument, op, "argument %d: expected %s, a string, got %s", i+1, what, kind(arg(args, i)))
	}
	return s, nil
}

func funcArg(op string, args []any, i int, what string) (*sandbox.Func, error) {
	f, ok := arg(args, i).(*sandbox.Func)
	if !ok {
		return nil, seams.Errorf(seams.InvalidArgument, op, "argument %d: expected %s, a function, got %s", i+1, what, kind(arg(args, i)))
	}
	return f, nil
}

// maxDelay is the most milliseconds that a timer of the language takes.
const maxDelay = 1<<31 - 1

// delay reads a time in milliseconds.
func delay(op string, args []any, i int) (time.Duration, error) {
	ms, ok := arg(args, i).(float64)
	if arg(args, i) == nil {
		ms, ok = 0, true
	}
	if !ok || ms < 0 || ms > maxDelay {
		return 0, seams.Errorf(seams.InvalidArgument, op, "argument %d: expected milliseconds from 0 to %d, got %s", i+1, maxDelay, kind(arg(args, i)))
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// kind names the kind of a value that came from JavaScript.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case *sandbox.Func:
		return "a function"
	case *sandbox.Object:
		return "an object with methods"
	case *sandbox.Plugin:
		return "a plugin"
	}
	return "something else"
}

// decode reads data of JavaScript as a Go type that has JSON. Members that the
// type does not have are refused when strict. The error is of code and says
// what op got.
func decode[T any](code seams.Code, op string, v any, strict bool) (out T, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return out, seams.Errorf(code, op, "not data: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(&out); err != nil {
		return out, seams.Errorf(code, op, "%s", reason(err))
	}
	return out, nil
}

// reason is why JSON does not fit a Go type, in words for authors.
func reason(err error) string {
	var wrong *json.UnmarshalTypeError
	var coded *seams.Error
	switch {
	case errors.As(err, &coded):
		return coded.Msg
	case errors.As(err, &wrong) && wrong.Field != "":
		return wrong.Field + ": got " + wrong.Value
	case errors.As(err, &wrong):
		return "got " + wrong.Value
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// encode makes JSON-shaped data of a Go value that has JSON. A list without
// elements is one.
func encode(v any) (any, error) {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.IsNil() {
		return []any{}, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return schema.Parse(raw)
}

// encodeObject is encode for what is an object.
func encodeObject(v any) (map[string]any, error) {
	out, err := encode(v)
	if err != nil {
		return nil, err
	}
	m, ok := out.(map[string]any)
	if !ok {
		return nil, seams.Errorf(seams.WrongType, "script", "a %T is no object in JSON", v)
	}
	return m, nil
}
