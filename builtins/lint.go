package builtins

import (
	"iter"
	"net"
	"net/url"
	"os"
	"slices"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// lint warns of what is legal and likely wrong: a key in clear text for a
// service on another machine, and an agent whose provider is no entry.
func (r *Runtime) lint() (out []loader.Fault) {
	text := r.opt.Text
	if text == nil {
		var err error
		if text, err = os.ReadFile(r.opt.File); err != nil {
			return nil // the loader has said so
		}
	}
	file, err := config.Parse(r.opt.File, text)
	if err != nil {
		return nil
	}
	warn := func(e *config.Entry, path []any, format string, args ...any) {
		out = append(out, loader.Fault{Pos: e.Pos(append([]any{"config"}, path...)...), Entry: e.ID, Warning: true,
			Err: seams.Errorf(seams.InvalidConfig, "", format, args...)})
	}
	var ids []string
	for e := range file.All() {
		ids = append(ids, e.ID)
	}
	for e := range file.All() {
		if e.Name == "agent-loop" || aliases[e.Name] == "agent-loop" {
			for path, provider := range providers(e) {
				if !slices.Contains(ids, provider) {
					hint := ""
					if near := schema.Suggest(provider, ids); near != "" {
						hint = " (did you mean " + near + "?)"
					}
					warn(e, path, "no entry has the id %q%s; a provider is the id of an entry, or a route that a plugin registers", provider, hint)
				}
			}
		}
		if cfg, _ := e.Config.(map[string]any); exposesKey(cfg) {
			warn(e, []any{"apiKey"}, "the key stands in the file; write !!js process.env.NAME instead")
		}
	}
	return out
}

// providers yields the providers that an agent loop's configuration names, with
// their paths.
func providers(e *config.Entry) iter.Seq2[[]any, string] {
	return func(yield func([]any, string) bool) {
		cfg, _ := e.Config.(map[string]any)
		if p, ok := cfg["provider"].(string); ok && !yield([]any{"provider"}, p) {
			return
		}
		list, _ := cfg["agents"].([]any)
		for i, a := range list {
			agent, _ := a.(map[string]any)
			if p, ok := agent["provider"].(string); ok && !yield([]any{"agents", i, "provider"}, p) {
				return
			}
		}
	}
}

// exposesKey reports whether a configuration carries a key in clear text for a
// service that is not on this machine.
func exposesKey(cfg map[string]any) bool {
	key, literal := cfg["apiKey"].(string)
	address, there := cfg["baseURL"].(string)
	return literal && key != "" && there && !loopback(address)
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
