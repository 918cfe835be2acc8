package loader

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// spec is one version of an entry, as the file asks for it.
type spec struct {
	entry  *config.Entry
	base   *cordis.Plugin // as its name resolves
	plugin *cordis.Plugin // as it is mounted: with the entry's needs and door
	raw    any            // its configuration, expressions without their places
	layers []layer
}

// layer is one isolation or interception, of a group or of the entry itself.
type layer struct {
	service string
	realm   string // "" for an interception
	meta    map[string]any
}

func (s *spec) equal(o *spec) bool {
	return s != nil && o != nil && s.plugin == o.plugin && reflect.DeepEqual(s.raw, o.raw) && reflect.DeepEqual(s.layers, o.layers)
}

// provides returns the services, with their realms, that the plugin declares.
func (s *spec) provides() map[slot]bool {
	if s == nil {
		return nil
	}
	out := map[slot]bool{}
	for _, name := range s.plugin.Provide {
		out[slot{name, realmOf(s.layers, name)}] = true
	}
	return out
}

// slot is a service in a realm; "" is the outermost.
type slot struct{ service, realm string }

func realmOf(layers []layer, service string) string {
	realm := ""
	for _, l := range layers {
		if l.service == service && l.realm != "" {
			realm = l.realm
		}
	}
	return realm
}

// context derives the context the entry is mounted in.
func (s *spec) context(ctx *cordis.Context) *cordis.Context {
	for _, l := range s.layers {
		if l.realm != "" {
			ctx = ctx.Isolate(l.service, l.realm)
		} else {
			ctx = ctx.Intercept(l.service, l.meta)
		}
	}
	return ctx
}

// chain returns the groups e stands in, outermost first, and e.
func chain(e *config.Entry) []*config.Entry {
	var out []*config.Entry
	for ; e != nil; e = e.Parent {
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}

// disabled reports whether e, or a group it stands in, is disabled (L-06…L-09).
// Expressions are evaluated in the loader's scope (L-56).
func (l *Loader) disabled(e *config.Entry) (bool, []Fault) {
	for _, g := range chain(e) {
		switch d := g.Disabled.(type) {
		case bool:
			if d {
				return true, nil
			}
		case config.Expr:
			v, err := l.eval(d)
			if err != nil {
				return false, faultsOf(e, d.Pos, err)
			}
			if truthy(v) {
				return true, nil
			}
		}
	}
	return false, nil
}

// truthy is JavaScript's notion of a JSON value.
func truthy(v any) bool {
	return v != nil && v != false && v != "" && v != float64(0)
}

// eval evaluates x; its error names the place.
func (l *Loader) eval(x any) (any, error) {
	return config.Interpolate(x, func(expr string) (any, error) {
		if l.opts.Eval == nil {
			return nil, seams.Errorf(seams.InvalidConfig, "!!js", "expressions are not available here")
		}
		return l.opts.Eval(expr)
	})
}

// layers collects what e and the groups it stands in isolate and intercept.
func (l *Loader) layers(e *config.Entry) ([]layer, []Fault) {
	var out []layer
	var faults []Fault
	for _, g := range chain(e) {
		for _, name := range sorted(g.Isolate) {
			realm := g.Isolate[name]
			if realm == "" {
				realm = "private to " + g.ID
			}
			out = append(out, layer{service: name, realm: realm})
		}
		for _, name := range sorted(g.Intercept) {
			meta, bad := l.meta(e, g, "intercept", name, g.Intercept[name])
			faults = append(faults, bad...)
			out = append(out, layer{service: name, meta: meta})
		}
	}
	return out, faults
}

// needs merges what e and its groups inject onto the plugin's own needs.
func (l *Loader) needs(e *config.Entry, own []cordis.Need) ([]cordis.Need, []Fault) {
	out := slices.Clone(own)
	var faults []Fault
	for _, g := range chain(e) {
		for _, name := range sorted(g.Inject) {
			meta, bad := l.meta(e, g, "inject", name, g.Inject[name])
			faults = append(faults, bad...)
			i := slices.IndexFunc(out, func(n cordis.Need) bool { return n.Name == name })
			if i < 0 {
				i = len(out)
				out = append(out, cordis.Need{Name: name})
			}
			out[i].Optional = false
			if len(meta) > 0 {
				merged := map[string]any{}
				maps.Copy(merged, out[i].Meta)
				maps.Copy(merged, meta)
				out[i].Meta = merged
			}
		}
	}
	return out, faults
}

// meta evaluates the config that g, which is e or a group it stands in, has for
// a service.
func (l *Loader) meta(e, g *config.Entry, field, service string, raw any) (map[string]any, []Fault) {
	v, err := l.eval(raw)
	meta, ok := v.(map[string]any)
	if err == nil && !ok && v != nil {
		err = seams.Errorf(seams.InvalidConfig, "", "%s.%s must be a mapping of settings", field, service)
	}
	if err != nil {
		return nil, faultsOf(e, g.Pos(field, service), err)
	}
	return meta, nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// unplaced copies a configuration without the places of its expressions, so
// that lines that have moved are no change.
func unplaced(v any) any {
	switch v := v.(type) {
	case config.Expr:
		return config.Expr{Source: v.Source}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = unplaced(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = unplaced(e)
		}
		return out
	}
	return v
}

// door is the configuration schema of a mounted plugin: it evaluates
// expressions, which the container has it do at each activation (L-54, L-55),
// asks the plugin's own schema, and gives faults their places.
type door struct {
	l    *Loader
	n    *node
	base cordis.ConfigSchema
}

// Resolve implements cordis.ConfigSchema.
func (d *door) Resolve(raw any) (any, error) {
	e := d.n.written(raw)
	if e != nil {
		raw = e.Config
	}
	return d.l.settle(e, raw, d.base)
}

// settle evaluates and validates a configuration. e, if not nil, is where it is
// written.
func (l *Loader) settle(e *config.Entry, raw any, base cordis.ConfigSchema) (any, error) {
	v, err := l.eval(raw)
	if err != nil || base == nil {
		return v, err
	}
	v, err = base.Resolve(v)
	var bad schema.Violations
	if e == nil || !errors.As(err, &bad) {
		return v, err
	}
	faults := e.Locate(err)
	return nil, &seams.Error{Code: seams.CodeOf(err), Msg: faults.Error(), Err: faults}
}
