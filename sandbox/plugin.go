package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/dop251/goja"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// Plugin is a declaration as a realm evaluated it.
type Plugin struct {
	Name      string // "" for an anonymous one
	Inject    []Inject
	Provide   []string
	Config    any // the schema as JSON, nil when none is declared
	Exclusive bool

	r  *Realm
	id uint64 // of the plugin value
}

// Inject is a service that a plugin declares, in order of declaration.
type Inject struct {
	Name   string
	Config any // intercept config, JSON-shaped, nil for none
}

// Activation is one run of a plugin.
type Activation struct {
	Host Host
	// Inject lists the services that ctx gives; nil: those of the declaration.
	Inject []string
	Config any // JSON-shaped
}

// Load evaluates a program and reads the plugin it declares; apply does not
// run. INVALID_PLUGIN says what was exported or returned and shows the forms.
func (r *Realm) Load(ctx context.Context, p *Program) (*Plugin, error) {
	v, err := r.evaluate(ctx, p, func(exports goja.Value) (any, error) {
		plugin, meta, err := r.narrow(p, exports)
		if err != nil {
			return nil, err
		}
		return r.declare(plugin, meta, p.Name())
	})
	if err != nil {
		return nil, err
	}
	return v.(*Plugin), nil
}

// Eval evaluates a program and returns what it exports as data.
func (r *Realm) Eval(ctx context.Context, p *Program) (any, error) {
	return r.evaluate(ctx, p, func(exports goja.Value) (any, error) { return r.output(exports, false, p.Name()) })
}

// evaluate runs a program's code and reads its exports.
func (r *Realm) evaluate(ctx context.Context, p *Program, read func(goja.Value) (any, error)) (any, error) {
	var module, exports *goja.Object
	return r.call(ctx, entry{
		frame: r.frameOf(ctx), last: true,
		begin: func() (goja.Value, error) {
			r.programs[p.script.ID] = p
			v, err := r.vm.RunProgram(p.run)
			if err != nil {
				return nil, err
			}
			run, _ := goja.AssertFunction(v)
			module, exports = r.vm.NewObject(), r.vm.NewObject()
			module.Set("exports", exports)
			if _, err := run(goja.Undefined(), module, exports, r.native("require", r.engine.require)); err != nil {
				return nil, err
			}
			if p.script.Form != compile.Body {
				return goja.Undefined(), nil
			}
			body, _ := goja.AssertFunction(module.Get("exports"))
			module.Set("exports", exports)
			return body(goja.Undefined(), module, exports)
		},
		read: func(returned goja.Value) (v any, err error) {
			out := module.Get("exports")
			if p.script.Form == compile.Body {
				if same, _ := out.(*goja.Object); same == exports && len(exports.Keys()) == 0 || !goja.IsUndefined(returned) {
					out = returned
				}
			}
			if ex := r.vm.Try(func() { v, err = read(out) }); ex != nil {
				err = ex
			}
			return v, r.coded(err)
		},
	})
}

// unwrap follows default exports, also those of a module that was compiled
// twice.
func (r *Realm) unwrap(v goja.Value) goja.Value {
	for range 2 {
		o, ok := v.(*goja.Object)
		if !ok || callable(o) || callable(nonNil(o.Get("apply"))) {
			return v
		}
		inner := o.Get("default")
		if inner == nil || goja.IsUndefined(inner) {
			return v
		}
		v = inner
	}
	return v
}

// narrow finds the plugin among the exports, and what holds its metadata
// beside it.
func (r *Realm) narrow(p *Program, exports goja.Value) (plugin, meta goja.Value, err error) {
	v := r.unwrap(exports)
	o, ok := v.(*goja.Object)
	if ok && (callable(o) || callable(nonNil(o.Get("apply")))) {
		return v, exports, nil
	}
	const forms = "a function (ctx, config) => {…}, or an object { name, inject: ['tools'], apply(ctx, config) {…} }, which may inject services"
	switch {
	case p.script.Form == compile.Body && ok && (callable(nonNil(o.Get("execute"))) || callable(nonNil(o.Get("handler")))):
		err = seams.Errorf(seams.InvalidPlugin, p.Name(), "the code returned a tool, not a plugin. Return a plugin that registers it: return { inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({…})) } }")
	case p.script.Form == compile.Body && goja.IsUndefined(v):
		err = seams.Errorf(seams.InvalidPlugin, p.Name(), "the code returned nothing: a `return` is missing. Return %s", forms)
	case p.script.Form == compile.Body:
		err = seams.Errorf(seams.InvalidPlugin, p.Name(), "the code returned %s, which is not a plugin. Return %s", r.shown(v), forms)
	default:
		err = seams.Errorf(seams.InvalidPlugin, p.Name(), "the file exports %s, which is not a plugin. Export apply(ctx, config), or as default %s", r.shown(v), forms)
	}
	return nil, nil, err
}

func (r *Realm) shown(v goja.Value) string {
	s, err := r.lib.show(goja.Undefined(), nonNil(v), r.vm.ToValue(1), r.vm.NewArray())
	if err != nil {
		return "a value that cannot be shown"
	}
	if t := s.String(); len(t) > 120 {
		return strings.ToValidUTF8(t[:120], "") + "…"
	}
	return s.String()
}

// declare reads a plugin's metadata: from the plugin, else from the module
// around it.
func (r *Realm) declare(plugin, meta goja.Value, what string) (*Plugin, error) {
	o, ok := plugin.(*goja.Object)
	if !ok || !callable(o) && !callable(nonNil(o.Get("apply"))) {
		return nil, seams.Errorf(seams.InvalidPlugin, what, "%s is not a plugin: expected a function, a class or an object with apply", r.shown(plugin))
	}
	field := func(names ...string) goja.Value {
		for _, holder := range []goja.Value{plugin, meta} {
			if h, ok := holder.(*goja.Object); ok {
				for _, n := range names {
					if v := h.Get(n); v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
						return v
					}
				}
			}
		}
		return goja.Undefined()
	}
	p := &Plugin{r: r, Exclusive: field("exclusive").ToBoolean()}
	invalid := func(member, format string, args ...any) error {
		return seams.Errorf(seams.InvalidPlugin, what+" "+member, format, args...)
	}
	name := field("name")
	if beside, ok := meta.(*goja.Object); ok && callable(o) && goja.IsString(nonNil(beside.Get("name"))) {
		name = beside.Get("name") // says more than a function's own
	}
	switch {
	case goja.IsUndefined(name):
	case !goja.IsString(name):
		return nil, invalid("name", "expected a string, got %s", r.shown(name))
	case name.String() != "apply" && !compile.Unnamed(name.String()):
		p.Name = name.String()
	}
	var err error
	if p.Inject, err = r.readInject(field("inject"), invalid); err != nil {
		return nil, err
	}
	if p.Provide, err = r.readNames(field("provide"), func(got string) error {
		return invalid("provide", "expected a name or a list of names, got %s", got)
	}); err != nil {
		return nil, err
	}
	if schema := field("Config", "config"); !goja.IsUndefined(schema) {
		if p.Config, err = r.read(schema, false, what+" Config"); err != nil {
			return nil, invalid("Config", "expected a schema, such as Schema.object({…}) of schemastery or a JSON Schema object: %w", r.coded(err))
		}
	}
	p.id = hold(r, p, plugin)
	return p, nil
}

func (r *Realm) readNames(v goja.Value, invalid func(got string) error) ([]string, error) {
	if goja.IsUndefined(v) {
		return nil, nil
	}
	if goja.IsString(v) {
		return []string{v.String()}, nil
	}
	read, err := r.read(v, false, "list")
	list, ok := read.([]any)
	if err != nil || !ok {
		return nil, invalid(r.shown(v))
	}
	var out []string
	for _, item := range list {
		name, ok := item.(string)
		if !ok || name == "" {
			return nil, invalid(r.shown(v))
		}
		out = append(out, name)
	}
	return out, nil
}

// readInject takes a list of names, or a map of names to intercept configs.
func (r *Realm) readInject(v goja.Value, invalid func(member, format string, args ...any) error) ([]Inject, error) {
	o, isObject := v.(*goja.Object)
	if !isObject || o.ClassName() == "Array" {
		names, err := r.readNames(v, func(got string) error {
			return invalid("inject", "expected a list of service names such as ['tools'], got %s", got)
		})
		var out []Inject
		for _, n := range names {
			out = append(out, Inject{Name: n})
		}
		return out, err
	}
	var out []Inject
	for _, name := range o.Keys() {
		config, err := r.read(o.Get(name), false, "inject."+name)
		if err != nil {
			return nil, invalid("inject."+name, "expected an intercept config or null: %w", r.coded(err))
		}
		out = append(out, Inject{Name: name, Config: config})
	}
	return out, nil
}

// Apply runs the plugin: a function or an object's apply is called, a class
// constructed, with (ctx, config). It returns when the result has settled and
// every disposer that it yielded or returned stands with the Host as an effect.
// On failure the effects that were registered are the Host's to undo; the
// disposers of an unfinished generator have run.
func (p *Plugin) Apply(ctx context.Context, a Activation) error {
	r := p.r
	inject := a.Inject
	if inject == nil {
		for _, i := range p.Inject {
			inject = append(inject, i.Name)
		}
	}
	_, err := r.call(ctx, entry{
		frame: r.frameOf(ctx), last: true,
		begin: func() (goja.Value, error) {
			plugin, ok := r.handles[p.id].(*goja.Object)
			if !ok {
				return nil, seams.Errorf(seams.Unloaded, r.options.Name, "the plugin is gone")
			}
			ctx, f := r.newContext(a.Host, inject)
			config, err := r.toJS(a.Config)
			if err != nil {
				return nil, fmt.Errorf("config: %w", err)
			}
			result, err := r.run(plugin, ctx, config)
			if err != nil {
				return nil, err
			}
			return r.lib.finish(goja.Undefined(), result, f.own())
		},
		read: func(goja.Value) (any, error) { return nil, nil },
	})
	return err
}

// run calls the plugin in its form.
func (r *Realm) run(plugin *goja.Object, ctx, config goja.Value) (goja.Value, error) {
	apply, isObject := goja.AssertFunction(nonNil(plugin.Get("apply")))
	if f, ok := goja.AssertFunction(plugin); ok && (!isObject || isFunctionApply(r, plugin)) {
		if !r.isClass(plugin) {
			return f(goja.Undefined(), ctx, config)
		}
		made, err := r.vm.New(plugin, ctx, config)
		if err != nil {
			return nil, err
		}
		init, ok := goja.AssertFunction(nonNil(made.GetSymbol(r.initSymbol())))
		if !ok {
			return goja.Undefined(), nil
		}
		return init(made)
	}
	return apply(plugin, ctx, config)
}

// isFunctionApply reports whether a function's apply is the one that every
// function has.
func isFunctionApply(r *Realm, f *goja.Object) bool {
	return nonNil(f.Get("apply")).SameAs(nonNil(r.function.Get("apply")))
}

// isClass tells a class from a function: by its source, or by what stands on
// its prototype.
func (r *Realm) isClass(f *goja.Object) bool {
	proto, ok := nonNil(f.Get("prototype")).(*goja.Object)
	if !ok || f.ClassName() != "Function" {
		return false
	}
	return strings.HasPrefix(f.String(), "class") || len(proto.GetOwnPropertyNames()) > 1
}

// initSymbol is Service.init of the cordis module.
func (r *Realm) initSymbol() *goja.Symbol {
	s, _ := r.modules().Get("cordis").ToObject(r.vm).Get("Service").ToObject(r.vm).Get("init").(*goja.Symbol)
	return s
}
