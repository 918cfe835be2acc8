package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ouro-run/ouro/seams"
)

// Bounds of a value.
const (
	MaxDepth = 10_000    // containers in one another
	MaxNodes = 1_000_000 // values, keys not counted; shared parts count each time
	MaxText  = 16 << 20  // bytes of a JSON text
)

// MaxInt is the largest magnitude of an integer that a JSON number carries
// exactly whatever reads it: 2^53.
const MaxInt = 1 << 53

// Foreign stands in a value where something had no JSON form; its text says
// what was there ("a function", "an instance of Map"). Who brings values in
// from another world uses it, so that the one who checks them can name the path.
type Foreign string

// JSON returns v as a value of its own, which shares no slice or map with v.
// Integers, floats, json.Number, named types and slices and maps of other
// element types become JSON values; a nil slice or map becomes an empty one.
//
// Anything else, NaN, infinities, -0, invalid UTF-8, cycles, integers beyond
// [MaxInt] and integer literals that a float64 would change are NOT_JSON, a
// value beyond [MaxDepth] or [MaxNodes] is TOO_LARGE; both wrap one Violation
// with the path. A float64 is taken at any finite size: it loses nothing.
func JSON(v any) (any, error) {
	out, bad := clone(v)
	if bad != nil {
		return nil, &seams.Error{Code: bad.code, Msg: bad.vs.In("value"), Err: bad.vs}
	}
	return out, nil
}

func clone(v any) (any, *cloneFault) { return new(cloner).clone(v, new(frame)) }

type cloner struct{ nodes int }

type cloneFault struct {
	code seams.Code
	key  string // of the child it was found in: the smallest one is reported
	vs   Violations
}

func fail(at *frame, code seams.Code, msg string) *cloneFault {
	return &cloneFault{code: code, vs: Violations{{at.path(), RuleJSON, msg}}}
}

func (c *cloner) clone(v any, at *frame) (any, *cloneFault) {
	if c.nodes++; c.nodes > MaxNodes {
		return nil, fail(new(frame), seams.TooLarge, fmt.Sprintf("more than %d values", MaxNodes))
	}
	if at.depth > MaxDepth {
		return nil, fail(new(frame), seams.TooLarge, fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	ref := identity(v)
	if ref != 0 && at.inside(ref) {
		return nil, fail(at, seams.NotJSON, "not JSON without loss: a cycle (it contains itself)")
	}
	at.ref = ref
	var f frame // declared here, it stays on the stack
	v, why := normal(v)
	if why != "" {
		return nil, fail(at, seams.NotJSON, "not JSON without loss: "+why)
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			f = at.at(i)
			e, bad := c.clone(v[i], &f)
			if bad != nil {
				return nil, bad
			}
			out[i] = e
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		var worst *cloneFault
		for k := range v {
			f = at.inKey(k)
			var e any
			var bad *cloneFault
			if utf8.ValidString(k) {
				e, bad = c.clone(v[k], &f)
			} else {
				bad = fail(at, seams.NotJSON, "not JSON without loss: a key that is not valid UTF-8")
			}
			if bad == nil {
				out[k] = e
				continue
			}
			if bad.code == seams.TooLarge {
				return nil, bad
			}
			if bad.key = k; worst == nil || k < worst.key {
				worst = bad
			}
		}
		if worst != nil {
			return nil, worst
		}
		return out, nil
	}
	return v, nil
}

// identity is the address of a container that could contain itself, else 0.
func identity(v any) uintptr {
	switch v.(type) {
	case nil, bool, float64, string, int:
		return 0
	}
	if r := reflect.ValueOf(v); (r.Kind() == reflect.Map || r.Kind() == reflect.Slice) && r.Len() > 0 {
		return r.Pointer()
	}
	return 0
}

// normal gives v itself one of the six JSON types; its parts stay as they are.
// The second result says why that is not possible.
func normal(v any) (any, string) {
	switch x := v.(type) {
	case nil, bool:
		return x, ""
	case []any:
		if x == nil {
			return []any{}, ""
		}
		return x, ""
	case map[string]any:
		if x == nil {
			return map[string]any{}, ""
		}
		return x, ""
	case string:
		if !utf8.ValidString(x) {
			return nil, "a string that is not valid UTF-8"
		}
		return x, ""
	case float64:
		switch {
		case math.IsNaN(x):
			return nil, "NaN"
		case math.IsInf(x, 0):
			return nil, "an infinite number"
		case x == 0 && math.Signbit(x):
			return nil, "-0 (use 0)"
		}
		return x, ""
	case int:
		return integer(int64(x))
	case int64:
		return integer(x)
	case json.Number:
		return number(string(x))
	case Foreign:
		return nil, string(x)
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Bool:
		return r.Bool(), ""
	case reflect.String:
		return normal(r.String())
	case reflect.Float32, reflect.Float64:
		return normal(r.Float())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer(r.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integer(int64(min(r.Uint(), math.MaxInt64)))
	case reflect.Slice, reflect.Array:
		if r.Len() > MaxNodes {
			return nil, "a list that is too long"
		}
		out := make([]any, r.Len())
		for i := range out {
			out[i] = r.Index(i).Interface()
		}
		return out, ""
	case reflect.Map:
		if r.Type().Key().Kind() != reflect.String {
			break
		}
		out := make(map[string]any, r.Len())
		for it := r.MapRange(); it.Next(); {
			out[it.Key().String()] = it.Value().Interface()
		}
		return out, ""
	}
	return nil, fmt.Sprintf("a %T", v)
}

func integer(n int64) (any, string) {
	if n > MaxInt || n < -MaxInt {
		return nil, "an integer beyond 2^53 (carry it as a string)"
	}
	return float64(n), ""
}

// number reads a JSON number literal.
func number(s string) (any, string) {
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, "a number out of range"
	case err != nil:
		return nil, "a number that cannot be read"
	case f == 0:
		return 0.0, ""
	case math.Abs(f) >= MaxInt && !strings.ContainsAny(s, ".eE") && s != strconv.FormatFloat(f, 'f', -1, 64):
		return nil, "an integer beyond 2^53 (carry it as a string)"
	}
	return normal(f)
}

// Parse reads one JSON text of at most [MaxText] bytes. Errors are those of
// [JSON]; a text that is not JSON is NOT_JSON with line and column. A literal -0
// is 0, of equal keys the last counts.
func Parse(text []byte) (any, error) {
	if len(text) > MaxText {
		return nil, seams.Errorf(seams.TooLarge, "", "JSON text of %d bytes, at most %d are read", len(text), MaxText)
	}
	if i := invalidUTF8(text); i >= 0 {
		return nil, notJSON(text, i, "invalid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.As(err, &syntax) && strings.Contains(syntax.Error(), "max depth"):
			return nil, seams.Errorf(seams.TooLarge, "", "JSON text nested deeper than %d", MaxDepth)
		case errors.As(err, &syntax):
			return nil, notJSON(text, int(syntax.Offset)-1, syntax.Error())
		}
		return nil, notJSON(text, len(text), "the text ends before the value does")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, notJSON(text, int(d.InputOffset()), "more text after the value")
	}
	return JSON(v)
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}

func notJSON(text []byte, offset int, what string) error {
	before := text[:min(max(offset, 0), len(text))]
	line := bytes.Count(before, []byte("\n")) + 1
	col := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return seams.Errorf(seams.NotJSON, "", "not JSON at line %d, column %d: %s", line, col, what)
}

// Equal reports whether two JSON values are the same.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !Equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if e, ok := b[k]; !ok || !Equal(a[k], e) {
				return false
			}
		}
		return true
	case nil:
		return b == nil
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && a == b
	case string:
		b, ok := b.(string)
		return ok && a == b
	}
	return false
}

// Canonical returns v as JSON text that is the same for equal values: keys
// sorted, no space between tokens. Errors are those of [JSON].
func Canonical(v any) ([]byte, error) {
	v, err := JSON(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, seams.Errorf(seams.NotJSON, "", "%w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// kindOf names the kind of a value for messages.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case Foreign:
		return string(v)
	}
	return fmt.Sprintf("a %T", v)
}
