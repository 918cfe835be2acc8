package sandbox

import (
	"math"
	"strings"

	"github.com/dop251/goja"
)

// Caps of single native operations.
const (
	capItems  = 5e6     // elements that a native function walks
	capText   = 1 << 26 // characters that it makes
	capArgs   = 1e5
	capDigits = 1e5  // of a text that is read as a BigInt
	capChain  = 1000 // prototypes
)

// typedNames are the typed arrays; guarding one costs memory, so each is guarded
// when it is first used.
var typedNames = []string{"Uint8Array", "Int8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
	"Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"}

// guard bounds the native functions of the VM, beside guard.js. typed replaces
// the constructor of one typed array.
func (e *engine) guard(typed goja.Callable) {
	vm := e.vm
	get := func(path ...string) *goja.Object {
		o := vm.GlobalObject()
		for _, p := range path {
			o = o.Get(p).ToObject(vm)
		}
		return o
	}
	items := func(what string, limit float64) func(goja.FunctionCall) {
		return func(c goja.FunctionCall) {
			if length(c.This) > limit {
				e.over(what)
			}
		}
	}
	argument := func(i int) func(goja.FunctionCall) {
		return func(c goja.FunctionCall) {
			if length(c.Argument(i)) > capArgs {
				e.over("argument count")
			}
		}
	}
	chain := func(i int) func(goja.FunctionCall) {
		return func(c goja.FunctionCall) {
			n := 0
			for p, _ := c.Argument(i).(*goja.Object); p != nil; p = p.Prototype() {
				if n++; n > capChain {
					e.over("prototype chain")
				}
			}
		}
	}

	array := get("Array", "prototype")
	e.bound(array, items("array length", capItems), "copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach",
		"includes", "indexOf", "lastIndexOf", "map", "reduce", "reduceRight", "reverse", "shift", "slice", "some", "sort", "splice", "toReversed",
		"toSorted", "toSpliced", "unshift", "with")
	e.bound(array, func(c goja.FunctionCall) {
		n := length(c.This)
		for _, a := range c.Arguments {
			if o, isObject := a.(*goja.Object); isObject { // any other is one element
				n += length(o)
			}
		}
		if n > capItems {
			e.over("array length")
		}
	}, "concat")

	for _, name := range typedNames {
		native := vm.Get(name)
		e.lazily(func() *goja.Object {
			vm.GlobalObject().DefineDataProperty(name, native, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
			made := vm.NewObject()
			e.must(typed(goja.Undefined(), vm.ToValue(name)))
			e.guardTyped(vm.Get(name).ToObject(vm))
			made.Set(name, vm.Get(name))
			return made
		}, name)
	}

	objects := func(c goja.FunctionCall) {
		for _, a := range c.Arguments {
			// Of any other object length is a member like others.
			if o, isObject := a.(*goja.Object); isObject && (o.ClassName() == "Array" || binary[o.ExportType()]) && length(o) > capItems {
				e.over("object size")
			}
			if s, isText := a.(goja.String); isText && s.Length() > capItems {
				e.over("object size")
			}
		}
	}
	e.bound(get("Object"), objects, "assign", "entries", "freeze", "fromEntries", "getOwnPropertyDescriptors", "getOwnPropertyNames", "keys", "seal", "values")
	e.bound(get("Object"), chain(1), "setPrototypeOf")
	e.bound(get("Object"), chain(0), "create")
	e.bound(get("Reflect"), objects, "ownKeys")
	e.bound(get("Reflect"), chain(1), "setPrototypeOf")
	e.bound(get("Reflect"), argument(2), "apply")
	e.bound(get("Reflect"), argument(1), "construct")
	e.bound(e.function, argument(1), "apply")

	str := get("String", "prototype")
	// count reads the first argument once: the native function would ask again.
	count := func(c goja.FunctionCall) float64 {
		if len(c.Arguments) == 0 {
			return 0
		}
		n := c.Argument(0).ToNumber()
		c.Arguments[0] = n
		return n.ToFloat()
	}
	e.bound(str, func(c goja.FunctionCall) {
		if textLength(c.This)*count(c) > capText {
			e.over("string length")
		}
	}, "repeat")
	e.bound(str, func(c goja.FunctionCall) {
		if count(c) > capText {
			e.over("string length")
		}
	}, "padStart", "padEnd")
	e.bound(str, func(c goja.FunctionCall) {
		n, made := textLength(c.This), 0.0
		if with := c.Argument(1); len(c.Arguments) > 1 && !callable(with) {
			c.Arguments[1] = with.ToString() // read once
			s := c.Arguments[1].String()
			around := strings.Count(s, "$`") + strings.Count(s, "$'") // each holds the rest of the text
			made = n * (float64(len(s)) + n*float64(around))
		}
		if n > capText/4 || made > capText {
			e.over("string length")
		}
	}, "replace", "replaceAll")
	e.bound(str, func(c goja.FunctionCall) {
		if textLength(c.This) > 2*capItems {
			e.over("string length")
		}
	}, "match", "matchAll", "normalize", "search", "split")

	e.bound(str, func(c goja.FunctionCall) {
		n := textLength(c.This)
		for _, a := range c.Arguments {
			n += textLength(a)
		}
		if n > capText {
			e.over("string length")
		}
	}, "concat")

	e.bound(get("BigInt"), func(c goja.FunctionCall) {
		text, isText := c.Argument(1).(goja.String)
		if count(c) > 1e6 || isText && text.Length() > capDigits {
			e.over("BigInt width")
		}
	}, "asIntN", "asUintN")
	e.bound(get("JSON"), func(c goja.FunctionCall) { e.measure(c.Argument(0)) }, "stringify")
}

// guardTyped bounds the methods that all typed arrays share, once.
func (e *engine) guardTyped(constructor *goja.Object) {
	if e.typed {
		return
	}
	e.typed = true
	e.bound(constructor.Get("prototype").ToObject(e.vm).Prototype(), func(c goja.FunctionCall) {
		if length(c.This) > capItems {
			e.over("typed array length")
		}
	}, "copyWithin", "fill", "filter", "forEach", "includes", "indexOf", "join", "lastIndexOf", "map", "reduce", "reduceRight", "reverse", "set",
		"slice", "sort", "toReversed", "toSorted", "with")
}

// bound puts check before native methods of o.
func (e *engine) bound(o *goja.Object, check func(goja.FunctionCall), names ...string) {
	for _, name := range names {
		v := o.Get(name)
		if v == nil {
			continue
		}
		f, ok := v.Export().(func(goja.FunctionCall) goja.Value)
		if !ok {
			panic("guard: " + name + " is not native")
		}
		o.DefineDataProperty(name, e.named(name, func(c goja.FunctionCall) goja.Value {
			check(c)
			return f(c)
		}), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
}

func (e *engine) over(what string) {
	panic(e.rangeError(what + " exceeds the limit of plugins"))
}

// length is what a native function takes v's length to be.
func length(v goja.Value) float64 {
	switch x := v.(type) {
	case *goja.Object:
		if n := nonNil(x.Get("length")).ToFloat(); n > 0 {
			return n
		}
	case goja.String:
		return float64(x.Length())
	}
	return 0
}

func textLength(v goja.Value) float64 {
	if s, ok := v.(goja.String); ok {
		return float64(s.Length())
	}
	if v == nil || goja.IsUndefined(v) || goja.IsNull(v) {
		return math.NaN()
	}
	return float64(v.ToString().(goja.String).Length())
}
