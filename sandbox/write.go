package sandbox

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// toJS makes a JavaScript value of a Go one: a copy, never a view. At the top
// nil is undefined, inside it is null.
func (e *engine) toJS(v any) (goja.Value, error) {
	if v == nil {
		return goja.Undefined(), nil
	}
	w := writer{e: e}
	return w.value(v, 0)
}

type writer struct {
	e     *engine
	nodes int
	size  int64
	path  string
}

func (w *writer) errorf(code seams.Code, format string, args ...any) error {
	return seams.Errorf(code, "value"+w.path, format, args...)
}

func (w *writer) value(v any, level int) (goja.Value, error) {
	w.nodes++
	switch limit := w.e.limit(); {
	case w.nodes > maxNodes:
		return nil, w.errorf(seams.TooLarge, "the value has more than %d parts", maxNodes)
	case w.size > limit:
		return nil, w.errorf(seams.TooLarge, "the value has more than %d bytes", limit)
	case level > maxLevels:
		return nil, w.errorf(seams.TooLarge, "the value is nested more than %d levels deep, or contains itself", maxLevels)
	}
	vm := w.e.vm
	switch x := v.(type) {
	case nil:
		return goja.Null(), nil
	case bool:
		return vm.ToValue(x), nil
	case string:
		w.size += int64(len(x))
		return vm.ToValue(x), nil
	case float64:
		return w.number(x)
	case int:
		return w.number(float64(x))
	case json.Number:
		f, err := strconv.ParseFloat(string(x), 64)
		if err != nil {
			return nil, w.errorf(seams.NotJSON, "%q is not a number", string(x))
		}
		return w.number(f)
	case map[string]any:
		return w.object(x, level)
	case []any:
		return w.list(len(x), func(i int) any { return x[i] }, level)
	}
	if handle, ok, err := w.e.realm.give(v); ok {
		return handle, err
	}
	return w.reflected(reflect.ValueOf(v), level)
}

func (w *writer) number(f float64) (goja.Value, error) {
	if err := checkNumber(f); err != "" {
		return nil, w.errorf(seams.NotJSON, "%s", err)
	}
	if i := int64(f); float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return w.e.vm.ToValue(i), nil
	}
	return w.e.vm.ToValue(f), nil
}

func (w *writer) object(m map[string]any, level int) (goja.Value, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	o := w.e.vm.NewObject()
	at := w.path
	for _, k := range keys {
		w.path = at + "." + k
		w.size += int64(len(k))
		v, err := w.value(m[k], level+1)
		if err != nil {
			return nil, err
		}
		if k == "__proto__" {
			o.DefineDataProperty(k, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		} else {
			o.Set(k, v)
		}
	}
	w.path = at
	return o, nil
}

func (w *writer) list(n int, item func(int) any, level int) (goja.Value, error) {
	if n > maxNodes {
		return nil, w.errorf(seams.TooLarge, "the list has %d elements, at most %d cross", n, maxNodes)
	}
	items := make([]any, n)
	at := w.path
	for i := range n {
		w.path = at + "[" + strconv.Itoa(i) + "]"
		v, err := w.value(item(i), level+1)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	w.path = at
	return w.e.vm.NewArray(items...), nil
}

// reflected takes the named and typed relatives of the JSON shapes. Structs,
// pointers and channels do not cross: they would show what nobody meant to.
func (w *writer) reflected(v reflect.Value, level int) (goja.Value, error) {
	switch v.Kind() {
	case reflect.Bool:
		return w.e.vm.ToValue(v.Bool()), nil
	case reflect.String:
		return w.value(v.String(), level)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if i := v.Int(); i > 1<<53 || i < -1<<53 {
			return nil, w.errorf(seams.NotJSON, "the integer %d is beyond 2^53: use a string", i)
		}
		return w.number(float64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if i := v.Uint(); i > 1<<53 {
			return nil, w.errorf(seams.NotJSON, "the integer %d is beyond 2^53: use a string", i)
		}
		return w.number(float64(v.Uint()))
	case reflect.Float32, reflect.Float64:
		return w.number(v.Float())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil, w.errorf(seams.NotJSON, "bytes cross only as a body")
		}
		return w.list(v.Len(), func(i int) any { return v.Index(i).Interface() }, level)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			m := make(map[string]any, v.Len())
			for k, x := range v.Seq2() {
				m[k.String()] = x.Interface()
			}
			return w.object(m, level)
		}
	}
	return nil, w.errorf(seams.NotJSON, "a %s does not cross into JavaScript", v.Type())
}

func (e *engine) limit() int64 {
	if e.realm == nil {
		return defaultBudgets.Value
	}
	return e.realm.budgets.Value
}

// give makes the JavaScript side of a handle. ok is false when v is none.
func (r *Realm) give(v any) (out goja.Value, ok bool, err error) {
	switch x := v.(type) {
	case HostFunc:
		return r.hostFunc(x), true, nil
	case AsyncFunc:
		return r.asyncFunc(x), true, nil
	case Record:
		return r.giveRecord(x), true, nil
	case Callable:
		f := r.hostFunc(x.Call).(*goja.Object)
		members, err := r.toJS(x.Members)
		if err != nil {
			return nil, true, err
		}
		for _, k := range members.(*goja.Object).Keys() {
			f.Set(k, members.(*goja.Object).Get(k))
		}
		return f, true, nil
	case Later:
		out, err = r.async(r.here(), func(ctx context.Context) (any, error) { return x(ctx) })
		return out, true, err
	case *Func:
		out, err = r.giveFunc(x)
		return out, true, err
	case *Object:
		out, err = r.giveObject(x)
		return out, true, err
	case iter.Seq2[any, error]:
		out, err = r.giveStream(x)
		return out, true, err
	case func(func(any, error) bool):
		out, err = r.giveStream(x)
		return out, true, err
	case context.Context:
		out, err = r.giveSignal(x)
		return out, true, err
	case error:
		return r.toError(x), true, nil
	}
	return nil, false, nil
}
