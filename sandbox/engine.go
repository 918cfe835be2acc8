package sandbox

import (
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

//go:embed prelude/guard.js
var guardSource string

//go:embed prelude/base.js
var baseSource string

//go:embed prelude/events.js
var eventsSource string

//go:embed prelude/fetch.js
var fetchSource string

//go:embed prelude/modules.js
var modulesSource string

//go:embed prelude/node.js
var nodeSource string

// preludeName stands before the frames of the prelude in stacks.
const preludeName = "ouro:"

// matchTimeout bounds one match of the backtracking regular-expression
// matcher, which sees no interrupt. The engine reports a match over it as none.
const matchTimeout = 250 * time.Millisecond

type preludeSet struct{ guard, base, events, fetch, modules, node *goja.Program }

// preludes compiles the prelude once for all VMs.
var preludes = sync.OnceValue(func() preludeSet {
	regexp2.DefaultMatchTimeout = matchTimeout
	c := func(name, src string) *goja.Program { return goja.MustCompile(preludeName+name, src, true) }
	return preludeSet{c("guard", guardSource), c("base", baseSource), c("events", eventsSource), c("fetch", fetchSource), c("modules", modulesSource), c("node", nodeSource)}
})

// engine is one guarded VM with the parts of it that Go holds. Everything in
// it belongs to one goroutine at a time. It can be made before its realm.
type engine struct {
	vm      *goja.Runtime
	realm   *Realm // nil until a realm takes it
	started time.Time

	object, function *goja.Object // prototypes
	asyncIter        *goja.Symbol
	lib              library
	// Parts of the prelude, made when they are first asked for.
	events, fetch, modules, node func() *goja.Object
	signals                      bool // events is made, so there may be signals
	typed                        bool // the typed arrays are guarded
}

// library holds the prelude's helpers.
type library struct {
	effect, finish, methods, await, iterate, stream, fail, show goja.Callable
}

func newEngine() (*engine, error) {
	pre := preludes()
	e := &engine{vm: goja.New(), started: time.Now()}
	vm := e.vm
	vm.SetMaxCallStackSize(defaultBudgets.Depth)
	vm.SetParserOptions(parser.WithDisableSourceMaps) // else a comment in evaluated code reads files (pitfall 11)
	e.object = vm.NewObject().Prototype()
	err := e.protect(func() error {
		native := vm.NewObject()
		for name, f := range map[string]func(goja.FunctionCall) goja.Value{
			"parse": e.parseJSON, "classes": e.classes,
			"log": e.log, "now": e.now, "btoa": e.btoa, "atob": e.atob, "uuid": e.uuid, "random": e.random,
			"encode": e.encode, "decode": e.decode, "library": e.library, "tame": e.tame, "url": e.url, "report": e.report, "after": e.after,
		} {
			native.Set(name, e.native(name, f))
		}
		native.Set("origin", float64(e.started.UnixMicro())/1000)
		guard, err := e.start(pre.guard, native)
		if err != nil {
			return err
		}
		base, err := e.start(pre.base, native)
		if err != nil {
			return err
		}
		lib := base.ToObject(vm)
		for name, f := range map[string]*goja.Callable{
			"effect": &e.lib.effect, "finish": &e.lib.finish, "methods": &e.lib.methods, "await": &e.lib.await,
			"iterate": &e.lib.iterate, "stream": &e.lib.stream, "fail": &e.lib.fail, "show": &e.lib.show,
		} {
			*f, _ = goja.AssertFunction(lib.Get(name))
		}
		for _, name := range []string{"fail", "show", "format"} {
			native.Set(name, lib.Get(name))
		}
		symbols := vm.Get("Symbol").ToObject(vm)
		e.asyncIter, _ = symbols.Get("asyncIterator").(*goja.Symbol)
		e.function = vm.Get("Function").ToObject(vm).Get("prototype").ToObject(vm)
		typed, _ := goja.AssertFunction(guard.ToObject(vm).Get("typed"))
		e.guard(typed)
		e.globals(native)
		return nil
	})
	if err != nil {
		return nil, seams.Errorf(seams.Panicked, "sandbox", "the prelude does not start: %w", err)
	}
	return e, nil
}

// start runs a prelude program, a function, with its natives.
func (e *engine) start(p *goja.Program, native goja.Value) (goja.Value, error) {
	v, err := e.vm.RunProgram(p)
	if err != nil {
		return nil, err
	}
	f, _ := goja.AssertFunction(v)
	return f(goja.Undefined(), native)
}

// part makes a part of the prelude that most plugins do without, once. prepare
// adds to its natives.
func (e *engine) part(p *goja.Program, native *goja.Object, prepare func(native *goja.Object)) func() *goja.Object {
	var made *goja.Object
	return func() *goja.Object {
		if made == nil {
			own := e.vm.CreateObject(native)
			if prepare != nil {
				prepare(own)
			}
			made = e.must(e.start(p, own)).ToObject(e.vm)
		}
		return made
	}
}

// globals defines what is made when it is first read.
func (e *engine) globals(native *goja.Object) {
	vm, pre := e.vm, preludes()
	e.events = e.part(pre.events, native, func(*goja.Object) { e.signals = true })
	e.fetch = e.part(pre.fetch, native, func(n *goja.Object) { n.Set("limit", e.realm.budgets.Body) })
	e.modules = e.part(pre.modules, native, func(n *goja.Object) {
		n.Set("attribution", e.must(e.toJS(e.realm.options.Attribution)))
	})
	e.node = e.part(pre.node, native, nil)
	e.lazily(e.events, "Event", "CustomEvent", "EventTarget", "AbortSignal", "AbortController")
	e.lazily(e.fetch, "Headers", "Request", "Response")
	e.lazily(func() *goja.Object { return e.node().Get("url").ToObject(vm) }, "URL", "URLSearchParams")
	e.lazily(func() *goja.Object {
		o := vm.NewObject()
		o.Set("harness", e.modules().Get("harness"))
		return o
	}, "harness")
}

// lazily defines globals that make makes when one of them is first read. What a
// plugin puts in the place of one stays.
func (e *engine) lazily(make func() *goja.Object, names ...string) {
	global := e.vm.GlobalObject()
	define := func(name string, v goja.Value) {
		global.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	replaced := map[string]bool{}
	for _, name := range names {
		global.DefineAccessorProperty(name, e.named(name, func(goja.FunctionCall) goja.Value {
			made := make()
			for _, n := range names {
				if !replaced[n] {
					define(n, made.Get(n))
				}
			}
			return made.Get(name)
		}), e.named(name, func(c goja.FunctionCall) goja.Value {
			replaced[name] = true
			define(name, c.Argument(0))
			return goja.Undefined()
		}), goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
}

// require serves the modules of package compile; everything else is refused
// with what to use instead.
func (e *engine) require(c goja.FunctionCall) goja.Value {
	name := strings.TrimPrefix(c.Argument(0).String(), "node:")
	switch {
	case name == "url" || name == "util" || name == "buffer" && e.realm.options.Ambient.Env != nil:
		return e.node().Get(name)
	case name != "buffer" && slices.Contains(compile.Modules, name):
		return e.modules().Get(name)
	}
	panic(e.toError(&seams.Error{Code: seams.ModuleNotAvailable, Msg: compile.Refusal(name)}))
}

// native makes a JavaScript function of a Go one. A Go panic in it becomes a
// JavaScript error, the engine's own pass.
func (e *engine) native(name string, f func(goja.FunctionCall) goja.Value) goja.Value {
	return e.named(name, func(c goja.FunctionCall) (out goja.Value) {
		defer func() {
			if x := recover(); x != nil && !ofEngine(x) {
				panic(e.toError(panicked(name, x)))
			} else if x != nil {
				panic(x)
			}
		}()
		if out = f(c); out == nil {
			return goja.Undefined() // a nil value from a promise reaction ends the process (pitfall 8)
		}
		return out
	})
}

// named makes a function that has a name of JavaScript's, not of Go's.
func (e *engine) named(name string, f func(goja.FunctionCall) goja.Value) goja.Value {
	v := e.vm.ToValue(f)
	v.(*goja.Object).DefineDataProperty("name", e.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return v
}

// ofEngine reports whether a recovered value is one that the engine throws.
func ofEngine(x any) bool {
	switch x.(type) {
	case goja.Value, *goja.Exception:
		return true
	}
	t := reflect.TypeOf(x)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "github.com/dop251/goja"
}

// fatal reports whether the engine stopped in a way after which its VM must
// not run again: its microtasks are gone.
func fatal(err error) bool {
	var i *goja.InterruptedError
	var s *goja.StackOverflowError
	return errors.As(err, &i) || errors.As(err, &s)
}

// must throws err into JavaScript.
func (e *engine) must(v goja.Value, err error) goja.Value {
	if err == nil {
		return v
	}
	if ex := (*goja.Exception)(nil); errors.As(err, &ex) {
		panic(ex.Value())
	}
	if fatal(err) {
		panic(err)
	}
	panic(e.toError(err))
}

// protect runs f, which may read values of the plugin and so run its code, and
// turns every way in which the engine panics into an error (pitfall 7).
func (e *engine) protect(f func() error) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case *goja.Exception:
			err = x
		case error:
			if err = x; !fatal(x) {
				err = panicked("sandbox", x)
			}
		default:
			err = panicked("sandbox", x)
		}
	}()
	var inner error
	if ex := e.vm.Try(func() { inner = f() }); ex != nil {
		return ex
	}
	return inner
}

func (e *engine) now(goja.FunctionCall) goja.Value {
	return e.vm.ToValue(float64(time.Since(e.started).Nanoseconds()) / 1e6)
}

func (e *engine) btoa(c goja.FunctionCall) goja.Value {
	return e.vm.ToValue(base64.StdEncoding.EncodeToString([]byte(c.Argument(0).String())))
}

func (e *engine) atob(c goja.FunctionCall) goja.Value {
	s := strings.TrimRight(strings.Join(strings.Fields(c.Argument(0).String()), ""), "=")
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		panic(e.toError(seams.Errorf(seams.InvalidArgument, "atob", "the text is not base64")))
	}
	return e.vm.ToValue(string(b))
}

func (e *engine) uuid(goja.FunctionCall) goja.Value {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return e.vm.ToValue(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

func (e *engine) random(c goja.FunctionCall) goja.Value {
	b := make([]byte, min(max(c.Argument(0).ToInteger(), 0), 65536))
	rand.Read(b)
	return e.vm.ToValue(e.vm.NewArrayBuffer(b))
}

func (e *engine) encode(c goja.FunctionCall) goja.Value {
	return e.vm.ToValue(e.vm.NewArrayBuffer([]byte(c.Argument(0).String())))
}

// decode answers [text, bytes used]. With stream, an unfinished sequence at
// the end is left.
func (e *engine) decode(c goja.FunctionCall) goja.Value {
	b, _ := c.Argument(0).Export().([]byte)
	used := len(b)
	if c.Argument(2).ToBoolean() {
		for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
			if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					used -= n
				}
				break
			}
		}
	}
	if c.Argument(1).ToBoolean() && !utf8.Valid(b[:used]) {
		panic(e.vm.NewTypeError("the bytes are not UTF-8"))
	}
	return e.vm.NewArray(strings.ToValidUTF8(string(b[:used]), "\uFFFD"), used)
}

func (e *engine) log(c goja.FunctionCall) goja.Value {
	if e.realm != nil {
		e.realm.console(c.Argument(0).String(), c.Argument(1).String())
	}
	return nil
}

func (e *engine) report(c goja.FunctionCall) goja.Value {
	e.realm.report(e.realm.fromError(c.Argument(0)))
	return nil
}

func (e *engine) after(c goja.FunctionCall) goja.Value {
	f, _ := goja.AssertFunction(c.Argument(1))
	return e.must(e.realm.setTimer(f, nil, c.Argument(0).ToInteger(), false))
}
