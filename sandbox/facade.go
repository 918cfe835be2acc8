package sandbox

import (
	"context"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/seams"
)

// Facade is what ctx gives. A plugin may read what the table names, and get and
// effect; nothing of ctx can be written.
type Facade struct {
	// Verbs are ctx's own methods. "inject" among them is made of "plugin":
	// inject(names, callback) sends plugin with a *Plugin. "effect" runs its
	// setup in the realm and sends the disposer alone.
	Verbs    []Method
	Services []Service
	// OptionalGet lets ctx.get(name) read services that are not injected; else
	// it refuses them as ctx.name does.
	OptionalGet bool
}

// Service is a row of the table. ctx has it when it is injected. A service
// that is injected but has no row is what the host's get answers: a value, or
// the object of another plugin.
type Service struct {
	Name    string
	Open    bool // there without being injected, such as the logger
	Methods []Method
}

// Method is a method of a service or a verb. A dot in Name makes a member of a
// member ("working.get"); a method named "" makes the service callable.
type Method struct {
	Name  string
	Async bool // runs off the realm's goroutine and answers a promise
	// Fetch gives the method fetch's signature: the host gets one *Request and
	// answers a *Response. It implies Async.
	Fetch bool
	Args  []Kind // beyond its end: Any
	Needs string // verbs: the service that must be injected, "" for none
}

// Kind says how an argument crosses.
type Kind uint8

const (
	// Any is data in which functions are handles.
	Any Kind = iota
	// Data is data alone; a function in it is NOT_JSON with its path.
	Data
	// Instance is an *Object if the value is an object with methods, a *Func if
	// it is a function, else data.
	Instance
	// Child is a plugin: the host gets a *Plugin.
	Child
)

// facade is the ctx of one activation.
type facade struct {
	r      *Realm
	host   Host
	inject []string
	made   map[string]goja.Value // verbs and services
}

// newContext makes the ctx object of an activation: a proxy, so that reading
// what is not there can teach.
func (r *Realm) newContext(host Host, inject []string) (goja.Value, *facade) {
	f := &facade{r: r, host: host, inject: inject, made: map[string]goja.Value{}}
	proto := r.modules().Get("ouro").ToObject(r.vm).Get("Context").ToObject(r.vm).Get("prototype").ToObject(r.vm)
	r.context = proto
	readOnly := func(name string) {
		panic(r.toError(seams.Errorf(seams.ReadOnly, "ctx."+name, "ctx is read-only: publish a value with ctx.provide(%q, value), keep your own in a variable", name)))
	}
	return r.vm.ToValue(r.vm.NewProxy(r.vm.CreateObject(proto), &goja.ProxyTrapConfig{
		Get:               func(_ *goja.Object, name string, _ goja.Value) goja.Value { return f.member(name) },
		GetSym:            func(*goja.Object, *goja.Symbol, goja.Value) goja.Value { return goja.Undefined() },
		Has:               func(_ *goja.Object, name string) bool { return f.has(name) },
		HasSym:            func(*goja.Object, *goja.Symbol) bool { return false },
		Set:               func(_ *goja.Object, name string, _, _ goja.Value) bool { readOnly(name); return false },
		DefineProperty:    func(_ *goja.Object, name string, _ goja.PropertyDescriptor) bool { readOnly(name); return false },
		DeleteProperty:    func(_ *goja.Object, name string) bool { readOnly(name); return false },
		SetPrototypeOf:    func(*goja.Object, *goja.Object) bool { readOnly("__proto__"); return false },
		PreventExtensions: func(*goja.Object) bool { return false },
	})), f
}

func (f *facade) verb(name string) (Method, bool) {
	for _, m := range f.r.options.Facade.Verbs {
		if m.Name == name && (m.Needs == "" || slices.Contains(f.inject, m.Needs)) {
			return m, true
		}
	}
	return Method{Name: name}, name == "get" || name == "effect"
}

func (f *facade) row(name string) (Service, bool) {
	for _, s := range f.r.options.Facade.Services {
		if s.Name == name {
			return s, true
		}
	}
	return Service{Name: name}, false
}

func (f *facade) declared(name string) bool {
	row, _ := f.row(name)
	return row.Open || slices.Contains(f.inject, name)
}

func (f *facade) has(name string) bool {
	_, isVerb := f.verb(name)
	return isVerb || f.declared(name)
}

// plain reports whether a name is read by the language itself, or by tools
// that probe objects; those see nothing.
func plain(name string) bool {
	switch name {
	case "then", "toJSON", "constructor", "prototype", "valueOf", "toString", "hasOwnProperty":
		return true
	}
	return name == "" || strings.HasPrefix(name, "_") || '0' <= name[0] && name[0] <= '9'
}

// member is ctx.name.
func (f *facade) member(name string) goja.Value {
	if v, ok := f.made[name]; ok {
		return v
	}
	if m, ok := f.verb(name); ok {
		f.made[name] = f.makeVerb(m)
		return f.made[name]
	}
	switch {
	case f.declared(name):
		return f.service(name)
	case plain(name):
		return goja.Undefined()
	}
	panic(f.r.toError(f.refusal(name)))
}

// service is a declared service: the object that the table describes, made
// once, or what the host has under the name now.
func (f *facade) service(name string) goja.Value {
	row, ok := f.row(name)
	if !ok {
		return f.value(name)
	}
	f.made[name] = f.makeService(row)
	return f.made[name]
}

// value is a service without a row. It is there, so nothing is null.
func (f *facade) value(name string) goja.Value {
	if v := f.call("", "get", name); !goja.IsUndefined(v) {
		return v
	}
	return goja.Null()
}

// call is a synchronous call of the façade's own.
func (f *facade) call(target, method string, args ...any) goja.Value {
	return f.r.must(f.r.callNow(label(target, method), func(ctx context.Context) (any, error) {
		return f.host.Call(ctx, target, method, args)
	}))
}

func label(target, method string) string {
	switch {
	case target == "":
		return "ctx." + method
	case method == "":
		return "ctx." + target
	}
	return "ctx." + target + "." + method
}

// withheld names the members of the framework that plugins of other versions
// know. They are refused like unknown ones, with the reason.
var withheld = []string{"root", "parent", "scope", "fiber", "reflect", "registry", "events", "extend", "isolate", "intercept", "plugin", "set", "mixin",
	"accessor", "runtime", "lifecycle", "loader"}

// elsewhere says what to write for members that plugins look for on ctx.
var elsewhere = map[string]string{
	"registerTool": registering, "tool": registering, "addTool": registering, "defineTool": registering, "register": registering,
	"log": "write console.log", "console": "console is a global",
}

const registering = "write harness.registerTool(ctx, harness.defineTool({…})), with inject: ['tools']"

// refusal says why ctx.name cannot be read and what to do.
func (f *facade) refusal(name string) error {
	live, err := guardCall("services", func() (any, error) { return f.host.Call(f.r.here(), "", "services", nil) })
	names, _ := live.([]string)
	for _, m := range f.r.options.Facade.Verbs {
		if m.Name == name && m.Needs != "" {
			return seams.Errorf(seams.NotInjected, label("", name), "ctx.%s needs the %s service: add it to the plugin, inject: ['%s']", name, m.Needs, m.Needs)
		}
	}
	if err == nil && slices.Contains(names, name) {
		return seams.Errorf(seams.NotInjected, label("", name), "the service %q runs but this plugin does not declare it: add it, inject: ['%s'], so that the plugin waits for it and is parked when it goes", name, name)
	}
	if _, ok := f.row(name); ok {
		return seams.Errorf(seams.NotInjected, label("", name), "the service %q is not declared by this plugin and nothing provides it now: add inject: ['%s'], and the plugin waits for it", name, name)
	}
	why := "no such member"
	if slices.Contains(withheld, name) {
		why = "the internals of the container are withheld on purpose"
	} else if instead := elsewhere[name]; instead != "" {
		why = instead
	}
	return seams.Errorf(seams.NotExposed, label("", name), "not exposed to plugins: %s. ctx has %s; services that can be injected: %s", why, listed(f.names()), listed(names))
}

// names lists what ctx has.
func (f *facade) names() []string {
	out := []string{"get", "effect"}
	for _, m := range f.r.options.Facade.Verbs {
		if _, ok := f.verb(m.Name); ok && !slices.Contains(out, m.Name) {
			out = append(out, m.Name)
		}
	}
	for _, s := range f.r.options.Facade.Services {
		if s.Open {
			out = append(out, s.Name)
		}
	}
	return append(out, f.inject...)
}

func (f *facade) makeVerb(m Method) goja.Value {
	r := f.r
	switch m.Name {
	case "get":
		return r.native("get", func(c goja.FunctionCall) goja.Value { return f.get(c.Argument(0).String()) })
	case "effect":
		return r.native("effect", func(c goja.FunctionCall) goja.Value {
			name := "anonymous"
			if goja.IsString(c.Argument(1)) {
				name = c.Argument(1).String()
			}
			if !callable(c.Argument(0)) {
				panic(r.vm.NewTypeError("ctx.effect(setup, label?): setup is a function that answers a disposer"))
			}
			return r.must(r.lib.effect(goja.Undefined(), c.Argument(0), r.vm.ToValue(name), f.own()))
		})
	case "inject":
		return r.native("inject", func(c goja.FunctionCall) goja.Value {
			child := r.vm.NewObject()
			child.Set("inject", c.Argument(0))
			child.Set("apply", c.Argument(1))
			p, err := r.declare(child, child, "ctx.inject")
			if err != nil {
				return r.must(nil, err)
			}
			return f.call("", "plugin", p)
		})
	}
	return f.makeMethod("", m)
}

// own is the effect verb as the prelude uses it.
func (f *facade) own() goja.Value {
	return f.r.native("own", func(c goja.FunctionCall) goja.Value {
		dispose := f.r.newFunc(c.Argument(1).ToObject(f.r.vm), goja.Undefined())
		return f.call("", "effect", c.Argument(0).String(), dispose)
	})
}

func (f *facade) get(name string) goja.Value {
	if f.declared(name) {
		if v, ok := f.made[name]; ok {
			return v
		}
		return f.service(name)
	}
	if !f.r.options.Facade.OptionalGet {
		panic(f.r.toError(f.refusal(name)))
	}
	live, _ := guardCall("services", func() (any, error) { return f.host.Call(f.r.here(), "", "services", nil) })
	if names, _ := live.([]string); !slices.Contains(names, name) {
		return goja.Undefined()
	}
	if row, ok := f.row(name); ok {
		return f.makeService(row)
	}
	return f.value(name)
}

// makeMethod makes the function that sends one method.
func (f *facade) makeMethod(target string, m Method) goja.Value {
	r := f.r
	what := label(target, m.Name)
	if m.Fetch {
		send := func(ctx context.Context, req *Request) (*Response, error) {
			v, err := f.host.Call(ctx, target, m.Name, []any{req})
			if err != nil {
				return nil, err
			}
			resp, ok := v.(*Response)
			if !ok {
				return nil, seams.Errorf(seams.WrongType, what, "the host answered %T, not a response", v)
			}
			return resp, nil
		}
		return r.must(r.fetchFunc(send))
	}
	return r.native(m.Name, func(c goja.FunctionCall) goja.Value {
		args, err := r.arguments(what, m.Args, c.Arguments)
		if err != nil {
			return r.must(nil, err)
		}
		call := func(ctx context.Context) (any, error) { return f.host.Call(ctx, target, m.Name, args) }
		if m.Async {
			return r.must(r.async(r.here(), call))
		}
		return r.must(r.callNow(what, call))
	})
}

// makeService makes the object of a table row, a proxy for the same reason as
// ctx.
func (f *facade) makeService(s Service) goja.Value {
	r := f.r
	base := r.vm.NewObject()
	var names []string
	var self goja.Value
	for _, m := range s.Methods {
		if m.Name == "" {
			self = f.makeMethod(s.Name, m)
			continue
		}
		at := base
		steps := strings.Split(m.Name, ".")
		for _, step := range steps[:len(steps)-1] {
			if inner, ok := at.Get(step).(*goja.Object); ok {
				at = inner
			} else {
				inner := r.vm.NewObject()
				at.Set(step, inner)
				at = inner
			}
		}
		at.Set(steps[len(steps)-1], f.makeMethod(s.Name, m))
		names = append(names, m.Name)
	}
	if self != nil {
		for _, k := range base.Keys() {
			self.(*goja.Object).Set(k, base.Get(k))
		}
		return self // a callable proxy would break instanceof (pitfall 15)
	}
	readOnly := func(name string) {
		panic(r.toError(seams.Errorf(seams.ReadOnly, label(s.Name, name), "services are read-only")))
	}
	return r.vm.ToValue(r.vm.NewProxy(base, &goja.ProxyTrapConfig{
		Get: func(target *goja.Object, name string, _ goja.Value) goja.Value {
			if v := target.Get(name); v != nil || plain(name) {
				return nonNil(v)
			}
			panic(r.toError(seams.Errorf(seams.NotExposed, label(s.Name, name), "the %s service has no such method; it has %s", s.Name, listed(names))))
		},
		Set:            func(_ *goja.Object, name string, _, _ goja.Value) bool { readOnly(name); return false },
		DefineProperty: func(_ *goja.Object, name string, _ goja.PropertyDescriptor) bool { readOnly(name); return false },
		DeleteProperty: func(_ *goja.Object, name string) bool { readOnly(name); return false },
		SetPrototypeOf: func(*goja.Object, *goja.Object) bool { readOnly("__proto__"); return false },
	}))
}
