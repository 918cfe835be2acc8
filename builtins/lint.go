package builtins

import (
	"iter"
	"net"
	"net/url"
	"os"
	"regexp"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
)

// lint warns of what is legal and likely wrong: a key in clear text for a
// service on another machine, and an environment variable that is not set.
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
	for e := range file.All() {
		if cfg, _ := e.Config.(map[string]any); exposesKey(cfg) {
			warn(e, []any{"apiKey"}, "the key stands in the file; write !!js process.env.NAME instead")
		}
		for path, expr := range expressions(e.Config, nil) {
			if m := variable.FindStringSubmatch(expr.Source); m != nil && r.opt.Env[m[1]] == "" {
				warn(e, path, "the environment variable %s is not set", m[1])
			}
		}
	}
	return out
}

var variable = regexp.MustCompile(`^\s*process\.env\.([A-Za-z_]\w*)\s*$`)

// expressions yields the expressions below v with their paths.
func expressions(v any, path []any) iter.Seq2[[]any, config.Expr] {
	return func(yield func([]any, config.Expr) bool) { walk(v, path, yield) }
}

func walk(v any, path []any, yield func([]any, config.Expr) bool) bool {
	switch v := v.(type) {
	case config.Expr:
		return yield(path, v)
	case map[string]any:
		for k, e := range v {
			if !walk(e, append(path[:len(path):len(path)], k), yield) {
				return false
			}
		}
	case []any:
		for i, e := range v {
			if !walk(e, append(path[:len(path):len(path)], i), yield) {
				return false
			}
		}
	}
	return true
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
