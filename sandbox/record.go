package sandbox

import (
	"maps"
	"slices"

	"github.com/dop251/goja"
)

// Record is an object whose members cross when JavaScript first reads them: for
// what a callee is given and seldom looks at, such as an AbortSignal.
type Record map[string]any

// lazyObject is a Record in a realm.
type lazyObject struct {
	r    *Realm
	from Record
	made map[string]goja.Value // crossed or written; nil: deleted
}

func (r *Realm) giveRecord(from Record) goja.Value {
	return r.vm.NewDynamicObject(&lazyObject{r, from, map[string]goja.Value{}})
}

// Get implements goja.DynamicObject.
func (o *lazyObject) Get(key string) goja.Value {
	if v, ok := o.made[key]; ok {
		return v
	}
	x, ok := o.from[key]
	if !ok {
		return nil
	}
	w := writer{e: o.r.engine, path: "." + key}
	v := o.r.must(w.value(x, 1))
	o.made[key] = v
	return v
}

// Set implements goja.DynamicObject.
func (o *lazyObject) Set(key string, v goja.Value) bool { o.made[key] = v; return true }

// Has implements goja.DynamicObject.
func (o *lazyObject) Has(key string) bool {
	if v, ok := o.made[key]; ok {
		return v != nil
	}
	_, ok := o.from[key]
	return ok
}

// Delete implements goja.DynamicObject.
func (o *lazyObject) Delete(key string) bool { o.made[key] = nil; return true }

// Keys implements goja.DynamicObject.
func (o *lazyObject) Keys() []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(o.from)), maps.Keys(o.made))
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(k string) bool { return !o.Has(k) })
}
