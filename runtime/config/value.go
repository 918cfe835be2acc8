package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/runtime/schema"
	"gopkg.in/yaml.v3"
)

// MaxNodes bounds the values of a file after aliases are expanded; maxDepth how
// deep they stand in one another.
const (
	MaxNodes = 100_000
	maxDepth = 1000
)

// reader turns YAML nodes into entries and values and gathers what is wrong with
// them. Every alias is expanded anew, so that no two values share a part.
type reader struct {
	file   string
	faults Faults
	nodes  int
	active []*yaml.Node // the nodes around the one being read, aliases resolved
	full   bool         // a bound was hit; the rest is not read
}

func (r *reader) fault(n *yaml.Node, format string, args ...any) {
	if len(r.faults) < 10*maxFaults {
		r.faults = append(r.faults, Fault{Pos: Pos{r.file, n.Line, n.Column}, Msg: fmt.Sprintf(format, args...)})
	}
}

// enter begins to read a node and answers false if it must not be read.
func (r *reader) enter(n *yaml.Node) bool {
	to := target(n)
	switch r.nodes++; {
	case r.full:
		return false
	case r.nodes > MaxNodes:
		r.fault(n, "more than %d values; anchors and aliases that multiply each other?", MaxNodes)
		r.full = true
		return false
	case len(r.active) >= maxDepth:
		r.fault(n, "nested deeper than %d", maxDepth)
		r.full = true
		return false
	case n != to && slices.Contains(r.active, to):
		r.fault(n, "the anchor %q contains itself", brief(n.Value))
		return false
	}
	r.active = append(r.active, to)
	return true
}

func (r *reader) leave() { r.active = r.active[:len(r.active)-1] }

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// pair is one member of a mapping; node is that of its key.
type pair struct {
	key         string
	node, value *yaml.Node
}

// pairs returns the members of a mapping, its own first, then those of its merge
// key that it does not have itself; of several sources the earlier one counts
// (yml-04).
func (r *reader) pairs(n *yaml.Node) []pair {
	var out []pair
	var merge pair
	at := map[string]*yaml.Node{}
	r.nodes += len(n.Content) / 2
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" {
			if merge.node != nil {
				r.fault(k, "a second << in one mapping, the first stands in line %d; one << takes a list: <<: [*a, *b]", merge.node.Line)
				continue
			}
			merge = pair{node: k, value: v}
			continue
		}
		key, ok := r.key(k)
		if !ok {
			continue
		}
		if first := at[key]; first != nil {
			r.fault(k, "the key %q stands twice in one mapping, first in line %d", brief(key), first.Line)
			continue
		}
		at[key] = k
		out = append(out, pair{key, k, v})
	}
	if merge.node == nil {
		return out
	}
	sources := []*yaml.Node{merge.value}
	if list := target(merge.value); list.Kind == yaml.SequenceNode {
		sources = list.Content
	}
	for _, source := range sources {
		if !r.enter(source) {
			continue
		}
		if target(source).Kind == yaml.MappingNode {
			for _, p := range r.pairs(target(source)) {
				if at[p.key] == nil {
					at[p.key] = p.node
					out = append(out, p)
				}
			}
		} else {
			r.fault(source, "<< takes a mapping or a list of mappings, got %s", kindOf(target(source)))
		}
		r.leave()
	}
	return out
}

// key reads a key: text as it is written, whatever it looks like.
func (r *reader) key(k *yaml.Node) (string, bool) {
	n := target(k)
	switch {
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		r.fault(k, "expected a key, got a mapping; a text that begins with { must be quoted, as in '{{ x }}'")
	case n.Kind != yaml.ScalarNode:
		r.fault(k, "expected a key, got %s", kindOf(n))
	case n.Tag == "!!js":
		r.fault(k, "a key cannot be an expression")
	case n.Value == "" && n.Style == 0:
		r.fault(k, "expected a key before the colon")
	default:
		return n.Value, true
	}
	return "", false
}

// mapping returns the members of what must be a mapping or nothing.
func (r *reader) mapping(n *yaml.Node) []pair {
	switch {
	case isNull(n):
	case target(n).Kind == yaml.MappingNode:
		return r.pairs(target(n))
	default:
		r.fault(n, "expected a mapping, got %s", kindOf(target(n)))
	}
	return nil
}

func isNull(n *yaml.Node) bool {
	n = target(n)
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kindOf names the kind of a node for messages; values are never shown.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	case "!!js":
		return "an expression"
	}
	return "text"
}

// text reads a text field: a scalar as it is written (yml-08).
func (r *reader) text(n *yaml.Node) string {
	to := target(n)
	if to.Kind != yaml.ScalarNode || to.Tag == "!!js" || to.Tag == "!!null" || to.Value == "" {
		what := kindOf(to)
		switch {
		case to.Kind == yaml.ScalarNode && to.Value == "":
			what = "nothing"
		case to.Kind == yaml.MappingNode && to.Style&yaml.FlowStyle != 0:
			what += "; a text that begins with { must be quoted, as in '{{ x }}'"
		}
		r.fault(n, "expected text, got %s", what)
		return ""
	}
	return to.Value
}

// switchOf reads a boolean field: true or false, also yes, no, on and off when
// they are not quoted (yml-08), and an expression where one is allowed.
func (r *reader) switchOf(n *yaml.Node, expr bool) any {
	to := target(n)
	if to.Kind == yaml.ScalarNode && (to.Style == 0 || to.Tag == "!!bool") {
		switch strings.ToLower(to.Value) {
		case "true", "yes", "on":
			return true
		case "false", "no", "off":
			return false
		}
	}
	if expr && to.Tag == "!!js" {
		if e, ok := r.value(n).(Expr); ok {
			return e
		}
		return false
	}
	r.fault(n, "expected true or false without quotes, got %s", kindOf(to))
	return false
}

// value reads a node as a JSON value that may hold Expr.
func (r *reader) value(n *yaml.Node) any {
	if !r.enter(n) {
		return nil
	}
	defer r.leave()
	to := target(n)
	if to.Tag == "!!js" {
		return r.expression(n, to)
	}
	switch to.Kind {
	case yaml.MappingNode:
		if to.ShortTag() != "!!map" {
			r.fault(n, "the tag %s is not supported", brief(to.Tag))
		}
		out := map[string]any{}
		for _, p := range r.pairs(to) {
			out[p.key] = r.value(p.value)
		}
		return out
	case yaml.SequenceNode:
		if to.ShortTag() != "!!seq" {
			r.fault(n, "the tag %s is not supported", brief(to.Tag))
		}
		out := make([]any, 0, len(to.Content))
		for _, item := range to.Content {
			out = append(out, r.value(item))
		}
		return out
	}
	return r.scalar(n, to)
}

func (r *reader) expression(n, to *yaml.Node) any {
	switch {
	case to.Kind != yaml.ScalarNode:
		r.fault(n, "!!js takes an expression, got %s; put the expression in quotes", kindOf(to))
	case strings.TrimSpace(to.Value) == "":
		r.fault(n, "!!js needs an expression after it, such as !!js process.env.NAME")
	default:
		return Expr{to.Value, Pos{r.file, to.Line, to.Column}}
	}
	return nil
}

var (
	wholeNumber = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9_]+$`)
)

func (r *reader) scalar(n, to *yaml.Node) any {
	switch tag := to.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!merge":
		return to.Value
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		if tag != "!!bool" && leadingZero.MatchString(to.Value) {
			r.fault(n, "a number with a leading zero; quote it to keep it as text, or write 0o for octal")
			return nil
		}
		var v any
		if err := to.Decode(&v); err != nil {
			r.fault(n, "the value does not fit its tag %s", tag)
			return nil
		}
		if tag != "!!bool" && wholeNumber.MatchString(to.Value) {
			v = json.Number(strings.ReplaceAll(strings.TrimPrefix(to.Value, "+"), "_", ""))
		}
		if v == 0.0 {
			return 0.0 // -0.0 too
		}
		out, err := schema.JSON(v)
		if err != nil {
			r.fault(n, "a number that cannot be kept exactly; quote it to keep it as text")
		}
		return out
	case "!!js":
		return r.expression(n, to)
	default:
		r.fault(n, "the tag %s is not supported; for an expression write !!js", brief(tag))
		return nil
	}
}
