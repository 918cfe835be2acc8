package sandbox

import (
	"math"
	"math/big"
	"reflect"
	"strconv"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// reader copies a JavaScript value into Go. Reading a value runs the plugin's
// code (getters, proxies, toJSON), so it happens inside a turn.
type reader struct {
	r     *Realm
	live  bool // functions and objects with methods become handles
	bytes bool // binary data is allowed: at a pipe
	what  string
	nodes int
	size  int64
	path  []string
	above []*goja.Object // the objects around the current one
}

// read copies v. what names it in errors. The error is NOT_JSON or TOO_LARGE
// with the path, or what JavaScript threw.
func (r *Realm) read(v goja.Value, live bool, what string) (any, error) {
	rd := reader{r: r, live: live, what: what}
	return rd.protected(v)
}

func (rd *reader) protected(v goja.Value) (out any, err error) {
	if ex := rd.r.vm.Try(func() { out, err = rd.value(v) }); ex != nil {
		return nil, ex
	}
	return out, err
}

func (rd *reader) errorf(code seams.Code, format string, args ...any) error {
	at := rd.what
	for _, p := range rd.path {
		at += p
	}
	e := seams.Errorf(code, at, format, args...)
	return e
}

func (rd *reader) count(n int) error {
	rd.nodes++
	rd.size += int64(n)
	switch {
	case rd.nodes > maxNodes:
		return rd.errorf(seams.TooLarge, "the value has more than %d parts", maxNodes)
	case rd.size > rd.r.budgets.Value:
		return rd.errorf(seams.TooLarge, "the value has more than %d bytes", rd.r.budgets.Value)
	case len(rd.above) > maxLevels:
		return rd.errorf(seams.TooLarge, "the value is nested more than %d levels deep", maxLevels)
	}
	return nil
}

func (rd *reader) value(v goja.Value) (any, error) {
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return nil, rd.count(4)
	}
	switch x := v.(type) {
	case *goja.Object:
		return rd.object(x)
	case goja.String:
		s := x.String()
		return s, rd.count(len(s) + 2)
	case *goja.Symbol:
		return nil, rd.errorf(seams.NotJSON, "a symbol is not data: use a string")
	}
	switch x := v.Export().(type) {
	case bool:
		return x, rd.count(5)
	case int64:
		return rd.number(float64(x))
	case float64:
		return rd.number(x)
	case *big.Int:
		return nil, rd.errorf(seams.NotJSON, "a BigInt is not data: use a number up to 2^53, or a string")
	default:
		return nil, rd.errorf(seams.NotJSON, "a %T is not data", x)
	}
}

func (rd *reader) number(f float64) (any, error) {
	if err := checkNumber(f); err != "" {
		return nil, rd.errorf(seams.NotJSON, "%s", err)
	}
	return f, rd.count(8)
}

// checkNumber says what is wrong with a number as data.
func checkNumber(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN is not data: check the calculation, or use null"
	case math.IsInf(f, 0):
		return "an infinity is not data: check the calculation, or use null"
	case math.Abs(f) > 1<<53 && f == math.Trunc(f):
		return "the integer " + strconv.FormatFloat(f, 'g', -1, 64) + " is beyond 2^53 and not exact: use a string"
	}
	return ""
}

func (rd *reader) object(o *goja.Object) (any, error) {
	for _, a := range rd.above {
		if a == o {
			return nil, rd.errorf(seams.NotJSON, "the value contains itself: cut the cycle")
		}
	}
	rd.above = append(rd.above, o)
	defer func() { rd.above = rd.above[:len(rd.above)-1] }()
	if err := rd.count(2); err != nil {
		return nil, err
	}
	r := rd.r
	if callable(o) && !callable(nonNil(o.Get("toJSON"))) {
		return rd.function(o) // by its class an async arrow function would be an Object
	}
	class, t := o.ClassName(), o.ExportType()
	if t == proxyType {
		class = behind(o).ClassName()
	}
	switch class {
	case "Array":
		return rd.list(o)
	case "Error":
		return rd.fault(o)
	case "Date":
		if math.IsNaN(o.ToFloat()) {
			return nil, rd.errorf(seams.NotJSON, "an invalid Date is not data")
		}
	case "RegExp":
		return nil, rd.errorf(seams.NotJSON, "a %s is not data", class)
	case "String":
		return rd.value(o.ToString())
	case "Number", "Boolean":
		return rd.value(r.vm.ToValue(o.Export()))
	}
	switch {
	case r.context != nil && o.Prototype() == r.context:
		return nil, rd.errorf(seams.NotExposed, "a ctx is its plugin's own and is not handed over: give what the other side needs of it")
	case t == promiseType:
		return nil, rd.errorf(seams.NotJSON, "a promise is not data: await it first")
	case t == mapType:
		return nil, rd.errorf(seams.NotJSON, "a Map is not data: use Object.fromEntries(map)")
	case t == setType:
		return nil, rd.errorf(seams.NotJSON, "a Set is not data: use [...set]")
	case binary[t]:
		return rd.binary(o)
	}
	if signal, _ := r.signalOf(o); signal != nil {
		return signal, nil
	}
	if toJSON, ok := goja.AssertFunction(nonNil(o.Get("toJSON"))); ok {
		v, err := toJSON(o, r.vm.ToValue(""))
		if err != nil {
			return nil, err
		}
		if same, ok := v.(*goja.Object); !ok || same != o {
			return rd.value(v)
		}
	}
	if rd.live && isStream(r.engine, o) {
		return r.newObject(o), nil
	}
	out := map[string]any{}
	for _, key := range o.Keys() {
		member := o.Get(key)
		if member == nil || goja.IsUndefined(member) {
			continue
		}
		v, err := rd.member("."+key, len(key)+4, member)
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

// behind is what a proxy of proxies stands for.
func behind(o *goja.Object) *goja.Object {
	for o.ExportType() == proxyType {
		target := o.Export().(goja.Proxy).Target()
		if target == nil {
			break // revoked
		}
		o = target
	}
	return o
}

// member reads what stands at a step of the path.
func (rd *reader) member(step string, size int, v goja.Value) (any, error) {
	rd.path = append(rd.path, step)
	rd.size += int64(size)
	out, err := rd.value(v)
	if err != nil {
		return nil, err
	}
	rd.path = rd.path[:len(rd.path)-1]
	return out, nil
}

func (rd *reader) list(o *goja.Object) (any, error) {
	n := o.Get("length").ToInteger()
	if n > maxNodes {
		return nil, rd.errorf(seams.TooLarge, "the list has %d elements, at most %d cross", n, maxNodes)
	}
	out := make([]any, 0, n)
	for i := range n {
		key := strconv.FormatInt(i, 10)
		member := o.Get(key)
		if member == nil || goja.IsUndefined(member) {
			rd.path = append(rd.path, "["+key+"]")
			return nil, rd.errorf(seams.NotJSON, "undefined in a list is not data: use null")
		}
		v, err := rd.member("["+key+"]", 1, member)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (rd *reader) function(o *goja.Object) (any, error) {
	if !rd.live {
		return nil, rd.errorf(seams.NotJSON, "a function is not data: give its result instead")
	}
	var this goja.Value = goja.Undefined()
	if n := len(rd.above); n > 1 {
		this = rd.above[n-2]
	}
	return rd.r.newFunc(o, this), nil
}

// fault makes an Error a map of its facts.
func (rd *reader) fault(o *goja.Object) (any, error) {
	out := rd.facts(o)
	if out == nil {
		out = map[string]any{}
	}
	out["name"], out["message"] = seams.Clip(text(o.Get("name")), maxMessage), rd.r.relocate(seams.Clip(text(o.Get("message")), maxMessage))
	if code := seams.Clip(text(o.Get("code")), maxMessage); code != "" {
		out["code"] = code
	}
	return out, rd.count(len(out["message"].(string)))
}

// facts are an error's own members that are data; it may contain itself.
func (rd *reader) facts(o *goja.Object) (out map[string]any) {
	for _, key := range o.Keys() {
		switch key {
		case "name", "message", "code", "stack", "cause", "errors":
			continue
		}
		at, above := len(rd.path), len(rd.above)
		v, err := rd.member("."+key, len(key), o.Get(key))
		rd.path, rd.above = rd.path[:at], rd.above[:above]
		if err == nil && v != nil {
			if out == nil {
				out = map[string]any{}
			}
			out[key] = v
		}
	}
	return out
}

var (
	proxyType = reflect.TypeFor[goja.Proxy]()
	mapType   = reflect.TypeFor[[][2]any]()
	setType   = reflect.TypeFor[[]any]()
)

// binary holds the types of buffers and their views.
var binary = map[reflect.Type]bool{
	reflect.TypeFor[goja.ArrayBuffer](): true,
	reflect.TypeFor[[]byte]():           true, reflect.TypeFor[[]int8](): true, reflect.TypeFor[[]uint16](): true, reflect.TypeFor[[]int16](): true,
	reflect.TypeFor[[]uint32](): true, reflect.TypeFor[[]int32](): true, reflect.TypeFor[[]float32](): true, reflect.TypeFor[[]float64](): true,
	reflect.TypeFor[[]int64](): true, reflect.TypeFor[[]uint64](): true,
}

func (rd *reader) binary(o *goja.Object) (any, error) {
	var b []byte
	if rd.bytes {
		switch x := o.Export().(type) {
		case goja.ArrayBuffer:
			b = x.Bytes()
		case []byte:
			b = x
		}
	}
	if b == nil {
		return nil, rd.errorf(seams.NotJSON, "binary data crosses only as a body: use Array.from(bytes) or btoa(text)")
	}
	return append([]byte(nil), b...), rd.count(len(b))
}

func nonNil(v goja.Value) goja.Value {
	if v == nil {
		return goja.Undefined()
	}
	return v
}

// isStream reports whether o is iterated asynchronously, or is an iterator.
func isStream(e *engine, o *goja.Object) bool {
	return callable(nonNil(o.GetSymbol(e.asyncIter))) || callable(nonNil(o.GetSymbol(goja.SymIterator))) && callable(nonNil(o.Get("next")))
}

// methods lists the functions of an object and of its prototypes, constructors
// excluded; it reads no accessor.
func (e *engine) methods(o *goja.Object) []string {
	v, err := e.lib.methods(goja.Undefined(), o)
	if err != nil {
		panic(err)
	}
	list := v.(*goja.Object)
	out := make([]string, list.Get("length").ToInteger())
	for i := range out {
		out[i] = list.Get(strconv.Itoa(i)).String()
	}
	return out
}
