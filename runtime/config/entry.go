package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/runtime/schema"
	"gopkg.in/yaml.v3"
)

// File is a parsed cordis.yml.
type File struct {
	Name    string
	Entries []*Entry // in order of the file, without those at fault
	// Empty says that the file has no content: no bytes, or comments only. A
	// reload keeps what runs then, a first start warns (yml-10, fsw-03).
	Empty  bool
	Faults Faults // of single entries
}

// All yields the entries of the file, each group before what is in it.
func (f *File) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if f != nil {
			each(f.Entries, yield)
		}
	}
}

func each(entries []*Entry, yield func(*Entry) bool) bool {
	for _, e := range entries {
		if !yield(e) || !each(e.Entries, yield) {
			return false
		}
	}
	return true
}

// Entry is one entry of the list, immutable.
type Entry struct {
	ID        string
	Name      string            // "" only for a group
	Config    any               // map[string]any or Expr, nil when absent and for a group; values may be Expr
	Disabled  any               // bool or Expr
	Group     bool              // its config is a list of entries
	Entries   []*Entry          // of a group
	Inject    map[string]any    // service -> config for it, or nil
	Isolate   map[string]string // service -> realm, "" for one of this entry's own
	Intercept map[string]any    // service -> config, whose values may be Expr
	Parent    *Entry            // the group it stands in, nil at the root

	file string
	node *yaml.Node
}

// Pos returns the place of the value at a path that begins with a field's name:
// Pos("config", "limit"). For what does not stand in the file it is the place of
// what would hold it; Pos() is that of the entry. An entry that was not read from
// a file has no place: the zero Pos.
func (e *Entry) Pos(path ...any) Pos {
	at, _ := e.find(path)
	return e.at(at.value)
}

func (e *Entry) at(n *yaml.Node) Pos {
	if n == nil {
		return Pos{}
	}
	return Pos{e.file, n.Line, n.Column}
}

// find follows path as far as it stands in the file, and says whether that was
// to its end.
func (e *Entry) find(path []any) (pair, bool) {
	r := reader{file: e.file}
	at := pair{value: e.node}
	if e.node == nil {
		return at, false
	}
	for _, step := range path {
		n := target(at.value)
		next, ok := pair{}, false
		switch step := step.(type) {
		case int:
			if ok = n.Kind == yaml.SequenceNode && step >= 0 && step < len(n.Content); ok {
				next = pair{value: n.Content[step]}
			}
		case string:
			if n.Kind == yaml.MappingNode {
				pairs := r.pairs(n)
				i := slices.IndexFunc(pairs, func(p pair) bool { return p.key == step })
				if ok = i >= 0; ok {
					next = pairs[i]
				}
			}
		}
		if !ok {
			return at, false
		}
		at = next
	}
	return at, true
}

// Locate gives each violation that err wraps its place in the file: that of the
// value; of the key for an unknown key; of what should hold it for a missing
// value. An error without violations stands at the entry, one that has faults
// already is left as it is.
func (e *Entry) Locate(err error) Faults {
	var violations schema.Violations
	var faults Faults
	switch {
	case err == nil:
		return nil
	case errors.As(err, &faults):
		return faults
	case !errors.As(err, &violations):
		return Faults{{e.at(e.node), e.ID, err.Error()}}
	}
	for _, v := range violations {
		at, whole := e.find(append([]any{"config"}, v.Path...))
		n := at.value
		if at.node != nil && (v.Rule == schema.RuleUnknown && whole || v.Rule == schema.RuleRequired && !whole) {
			n = at.node
		}
		faults = append(faults, Fault{e.at(n), e.ID, v.Path.In("config") + ": " + v.Msg})
	}
	return faults.sorted()
}

// fields are the fields an entry can have, sorted.
var fields = []string{"config", "disabled", "group", "id", "inject", "intercept", "isolate", "name"}

// groupName is the upstream name of a plain group; an entry that has it needs no
// `group: true`.
const groupName = "cordis:group"

// entries reads a list of entries, which n must be.
func (r *reader) entries(n *yaml.Node, parent *Entry) []*Entry {
	if !r.enter(n) {
		return nil
	}
	defer r.leave()
	var out []*Entry
	for _, item := range target(n).Content {
		if r.enter(item) {
			if e := r.entry(item, parent); e != nil {
				out = append(out, e)
			}
			r.leave()
		}
	}
	return out
}

func (r *reader) entry(item *yaml.Node, parent *Entry) *Entry {
	n := target(item)
	if n.Kind != yaml.MappingNode {
		r.fault(item, "expected an entry with a name (`- name: ./plugin.js`), got %s", kindOf(n))
		return nil
	}
	e := &Entry{Disabled: false, Parent: parent, file: r.file, node: n}
	var config *pair
	named := false
	for _, p := range r.pairs(n) {
		switch p.key {
		case "id":
			if e.ID = r.text(p.value); strings.HasPrefix(e.ID, "default:") {
				r.fault(p.value, "the id %q: ids that begin with \"default:\" are those of entries that no file writes; choose another", brief(e.ID))
			}
		case "name":
			e.Name, named = r.text(p.value), true
		case "disabled":
			e.Disabled = r.switchOf(p.value, true)
		case "group":
			e.Group = r.switchOf(p.value, false) == true
		case "inject":
			e.Inject = r.inject(p.value)
		case "isolate":
			e.Isolate = r.isolate(p.value)
		case "intercept":
			e.Intercept = r.services(p.value)
		case "config":
			config = &p
		default:
			r.unknownField(p)
		}
	}
	e.Group = e.Group || e.Name == groupName
	if !named && !e.Group {
		r.fault(n, "the entry has no name: expected a builtin, a path such as ./plugin.js, or a package")
	}
	if config != nil {
		r.config(e, config.value)
	}
	return e
}

func (r *reader) unknownField(p pair) {
	near := schema.Suggest(p.key, fields)
	switch {
	case near != "":
		r.fault(p.node, "unknown field %q, did you mean %q?", brief(p.key), near)
	default:
		r.fault(p.node, "unknown field %q: settings of the plugin stand under config; an entry has id, name, config, disabled, group, inject, isolate, intercept", brief(p.key))
	}
}

func (r *reader) config(e *Entry, n *yaml.Node) {
	list := target(n).Kind == yaml.SequenceNode
	switch {
	case e.Group && list:
		e.Entries = r.entries(n, e)
	case e.Group && !isNull(n):
		r.fault(n, "the config of a group is a list of entries, got %s", kindOf(target(n)))
	case list:
		r.fault(n, "expected a mapping of settings, got a list; a list of entries needs `group: true`")
	default:
		switch v := r.value(n).(type) {
		case nil, map[string]any, Expr:
			e.Config = v
		default:
			r.fault(n, "expected a mapping of settings, got %s", kindOf(target(n)))
		}
	}
}

// inject reads a list of services, or a map from service to config.
func (r *reader) inject(n *yaml.Node) map[string]any {
	if target(n).Kind != yaml.SequenceNode {
		return r.services(n)
	}
	out := map[string]any{}
	for _, item := range target(n).Content {
		s := r.text(item)
		if _, twice := out[s]; twice && s != "" {
			r.fault(item, "%q stands twice in inject", brief(s))
		}
		out[s] = nil
	}
	return out
}

// services reads a map from service to config; null and true are no config.
func (r *reader) services(n *yaml.Node) map[string]any {
	out := map[string]any{}
	for _, p := range r.mapping(n) {
		switch v := r.value(p.value).(type) {
		case nil, map[string]any, Expr:
			out[p.key] = v
		case bool:
			if !v {
				r.fault(p.value, "expected a mapping, true or nothing, got false; leave %q out", brief(p.key))
			}
			out[p.key] = nil
		default:
			r.fault(p.value, "expected a mapping of settings for %q, got %s", brief(p.key), kindOf(target(p.value)))
		}
	}
	return out
}

func (r *reader) isolate(n *yaml.Node) map[string]string {
	out := map[string]string{}
	for _, p := range r.mapping(n) {
		v := target(p.value)
		switch {
		case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!bool" && r.switchOf(v, false) == true:
			out[p.key] = ""
		case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" && v.Value != "":
			out[p.key] = v.Value
		default:
			r.fault(p.value, "expected true (a realm of its own) or the name of a realm for %q", brief(p.key))
		}
	}
	return out
}

// settle gives every entry an id of its own and takes out the second entry of an
// id, with all that is in it.
func (r *reader) settle(f *File) {
	written := map[string]*Entry{}
	for e := range f.All() {
		if e.ID != "" && written[e.ID] == nil {
			written[e.ID] = e
		}
	}
	f.Entries = r.unique(f, f.Entries, written)
}

func (r *reader) unique(f *File, entries []*Entry, taken map[string]*Entry) []*Entry {
	var out []*Entry
	for _, e := range entries {
		if e.ID == "" {
			// Neither the config nor what stands around an entry changes its id.
			e.ID = generate(e.Parent.id(), e.Name, taken)
			taken[e.ID] = e
		}
		if first := taken[e.ID]; first != e {
			f.Faults = append(f.Faults, Fault{e.Pos("id"), e.ID, fmt.Sprintf(
				"second entry with the id %q; the first stands at %s and stays", brief(e.ID), first.Pos("id"))})
			continue
		}
		e.Entries = r.unique(f, e.Entries, taken)
		out = append(out, e)
	}
	return out
}

func (e *Entry) id() string {
	if e == nil {
		return ""
	}
	return e.ID
}

func generate(parent, name string, taken map[string]*Entry) string {
	for nth := 0; ; nth++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", parent, name, nth))
		if id := hex.EncodeToString(sum[:4]); taken[id] == nil {
			return id
		}
	}
}
