package cordis

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// Need is one service a plugin injects.
type Need struct {
	Name string
	// Optional needs never decide whether the plugin runs; they only permit
	// reading the service while it is there.
	Optional bool
	// Meta is merged over what the contexts above intercept for this service.
	Meta map[string]any
}

// Inject makes required needs of names.
func Inject(names ...string) []Need {
	out := make([]Need, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// ConfigSchema validates a raw configuration and fills its defaults. It must not
// keep or change raw. runtime/schema implements it.
type ConfigSchema interface {
	Resolve(raw any) (any, error)
}

// Plugin declares a unit of behaviour. It is immutable once mounted; the same
// Plugin may be mounted any number of times (C-30…C-32).
type Plugin struct {
	// Name is for people; empty means that of the nearest named ancestor (C-34).
	Name   string
	Inject []Need
	// Provide names the services Apply will provide. A clash with another
	// entry is then seen when the plugin is mounted and not in its Apply.
	Provide []string
	// Exclusive asks to be replaced with a gap: the old version is gone before
	// the new one begins. For a plugin that holds a port or a lock.
	Exclusive bool
	// ApplyTimeout bounds Apply; after it the activation's context is cancelled.
	// Zero is no bound.
	ApplyTimeout time.Duration
	Config       ConfigSchema
	// Apply runs once for each activation. Its error fails the plugin; what it
	// had registered is undone. Exactly one of Apply and Steps is set.
	Apply func(ctx *Context, cfg any) error
	// Steps is Apply as a sequence: each element is an undo (nil for none) that
	// is recorded when it is yielded, and between elements the activation is
	// abandoned if what it relies on has changed (C-03, C-07…C-14).
	Steps func(ctx *Context, cfg any) iter.Seq2[seams.Undo, error]
}

// Define makes a plugin whose Apply takes a typed configuration. A raw
// configuration of another type is an error of the activation, unless it is nil
// and C is not an interface: then Apply gets C's zero value.
func Define[C any](name string, apply func(ctx *Context, cfg C) error, needs ...Need) *Plugin {
	return &Plugin{Name: name, Inject: needs, Apply: func(ctx *Context, raw any) error {
		cfg, ok := raw.(C)
		if !ok && raw != nil {
			return seams.Errorf(seams.WrongType, "cordis.Define", "plugin %s wants its configuration as %s, not %T", name, reflect.TypeFor[C](), raw)
		}
		return apply(ctx, cfg)
	}}
}

func (p *Plugin) check() error {
	if p == nil || (p.Apply == nil) == (p.Steps == nil) {
		return seams.Errorf(seams.InvalidPlugin, "cordis.Plugin", "a plugin needs exactly one of Apply and Steps; got %s", describe(p))
	}
	seen := make([]string, 0, len(p.Inject))
	for _, n := range p.Inject {
		if n.Name == "" || slices.Contains(seen, n.Name) {
			return seams.Errorf(seams.InvalidPlugin, "cordis.Plugin", "plugin %q injects %q, which is empty or named twice", p.Name, n.Name)
		}
		seen = append(seen, n.Name)
	}
	return nil
}

func describe(p *Plugin) string {
	if p == nil {
		return "nil"
	}
	return fmt.Sprintf("%q with both or none", p.Name)
}
