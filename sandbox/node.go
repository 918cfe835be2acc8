package sandbox

import (
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/dop251/goja"
	nodebuffer "github.com/dop251/goja_nodejs/buffer"
	nodeurl "github.com/dop251/goja_nodejs/url"
)

// library answers the exports of a module of goja_nodejs, which belong to the
// prelude alone. The loaders run without the library's require: that resolves
// names in the file system of the host and stands on globalThis.
func (e *engine) library(c goja.FunctionCall) goja.Value {
	load := map[string]func(*goja.Runtime, *goja.Object){"buffer": nodebuffer.Require, "url": nodeurl.Require}[c.Argument(0).String()]
	exports, module := e.vm.NewObject(), e.vm.NewObject()
	module.Set("exports", exports)
	load(e.vm, module)
	return exports
}

var bytesType = reflect.TypeFor[[]byte]()

// tame answers (name, function of goja_nodejs, bytes) as a function that plugins
// may call: it has a name of JavaScript's, a Go panic in it is an error, and what
// it throws carries no function of the library. With bytes, this and every
// object among the arguments are arrays of bytes; the library would read
// anything else to its end.
func (e *engine) tame(c goja.FunctionCall) goja.Value {
	name, bytes := c.Argument(0).String(), c.Argument(2).ToBoolean()
	f, ok := c.Argument(1).Export().(func(goja.FunctionCall) goja.Value)
	if !ok {
		return c.Argument(1) // a constructor, which the prelude replaces
	}
	return e.native(name, func(c goja.FunctionCall) goja.Value {
		if bytes {
			for _, v := range append([]goja.Value{c.This}, c.Arguments...) {
				if o, isObject := v.(*goja.Object); isObject && o.ExportType() != bytesType || !isObject && v == c.This {
					panic(e.vm.NewTypeError("%s works on Buffer and Uint8Array", name))
				}
			}
		}
		defer func() {
			if x := recover(); x != nil {
				if o, thrown := x.(*goja.Object); thrown {
					o.Delete("toString")
				}
				panic(x)
			}
		}()
		return f(c)
	})
}

var badEscape = regexp.MustCompile(`%(?:[^0-9a-fA-F]|[0-9a-fA-F][^0-9a-fA-F]|.?$)`)

// url parses (input, base) into the parts of a URL; undefined if it is none.
func (e *engine) url(c goja.FunctionCall) goja.Value {
	escape := func(s string) string {
		return badEscape.ReplaceAllStringFunc(strings.TrimSpace(s), func(m string) string { return "%25" + m[1:] })
	}
	u, err := url.Parse(escape(c.Argument(0).String()))
	if err == nil && !goja.IsUndefined(c.Argument(1)) {
		var base *url.URL
		if base, err = url.Parse(escape(c.Argument(1).String())); err == nil && base.IsAbs() {
			u = base.ResolveReference(u)
		}
	}
	if err != nil || !u.IsAbs() {
		return nil
	}
	ports := map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "file": ""}
	port, special := ports[u.Scheme]
	if special && u.Scheme != "file" && u.Hostname() == "" {
		return nil
	}
	if u.Port() != port {
		port = u.Port()
	} else {
		port = ""
	}
	host := u.Hostname()
	if special {
		host = strings.ToLower(host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	pathname := u.Opaque
	if pathname == "" {
		pathname = (&url.URL{}).ResolveReference(u).EscapedPath() // without dot segments
	}
	if special && pathname == "" {
		pathname = "/"
	}
	password, _ := u.User.Password()
	o := e.vm.NewObject()
	for k, v := range map[string]string{"protocol": u.Scheme + ":", "username": url.PathEscape(u.User.Username()), "password": url.PathEscape(password),
		"hostname": host, "port": port, "pathname": pathname, "search": prefixed("?", strings.ReplaceAll(u.RawQuery, " ", "%20")), "hash": prefixed("#", u.EscapedFragment())} {
		o.Set(k, v)
	}
	o.Set("slashes", u.Opaque == "" && (special || u.Host != ""))
	return o
}

func prefixed(mark, s string) string {
	if s == "" {
		return ""
	}
	return mark + s
}
