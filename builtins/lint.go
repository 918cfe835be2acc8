package builtins

import (
	"net"
	"net/url"
	"os"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
)

// lint warns of what is legal and likely wrong: a key in clear text for a
// service on another machine.
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
	for e := range file.All() {
		if cfg, _ := e.Config.(map[string]any); exposesKey(cfg) {
			out = append(out, loader.Fault{Pos: e.Pos("config", "apiKey"), Entry: e.ID, Warning: true,
				Err: seams.Errorf(seams.InvalidConfig, "", "the key stands in the file; write !!js process.env.NAME instead")})
		}
	}
	return out
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
