package scripted

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/ouro-run/ouro/seams"
)

const (
	maxFile  = 1 << 20
	maxRules = 1000
	maxExpr  = 8 << 10 // bytes of one expression
	maxDelay = 10 * time.Second
)

// Scenario is a checked scenario. It is immutable.
type Scenario struct {
	models []string
	delay  time.Duration
	rules  []rule
}

type rule struct {
	label   string // for messages: name and place
	user    *regexp.Regexp
	result  *regexp.Regexp
	tool    string
	failed  *bool
	offered []string
	missing []string
	cond    *located
	let     []binding

	reasoning, text template
	calls           []call
}

type binding struct {
	name string
	located
}

type call struct {
	tool string
	args template // an object
}

// located is an expression with its place for messages.
type located struct {
	eval  expr
	place string
}

// template makes a value of JSON's kinds, nil for none.
type template func(*env) (any, error)

// Parse reads a scenario. name is the file's name for messages.
func Parse(name string, data []byte) (*Scenario, error) {
	d := &decoder{file: name}
	if len(data) > maxFile {
		return nil, seams.Errorf(seams.TooLarge, "scripted", "%s: the scenario has %d bytes, more than %d", name, len(data), maxFile)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, seams.Errorf(seams.InvalidScenario, "scripted", "%s: %w", name, err)
	}
	if len(doc.Content) != 1 {
		return nil, seams.Errorf(seams.InvalidScenario, "scripted", "%s: the scenario is empty, expected a mapping with rules", name)
	}
	s := &Scenario{models: []string{"scripted"}}
	err := d.guard(func() { d.scenario(doc.Content[0], s) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// decoder walks the nodes of one file. Its methods stop at the first fault by
// a panic that guard catches.
type decoder struct {
	file  string
	depth int
}

func (d *decoder) guard(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*seams.Error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	f()
	return nil
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	panic(seams.Errorf(seams.InvalidScenario, "scripted", "%s: %s", d.place(n), fmt.Sprintf(format, args...)))
}

func (d *decoder) place(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", d.file, n.Line, n.Column)
}

// mapping calls f with the place of each key and its value. Unknown keys are
// faults; known lists them.
func (d *decoder) mapping(n *yaml.Node, known []string, f func(key string, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "expected a mapping with %s", strings.Join(known, ", "))
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if known != nil && !slices.Contains(known, k.Value) {
			d.fail(k, "unknown key %q, expected one of %s", k.Value, strings.Join(known, ", "))
		}
		if seen[k.Value] {
			d.fail(k, "key %q is given twice", k.Value)
		}
		seen[k.Value] = true
		f(k.Value, v)
	}
}

func (d *decoder) str(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
		d.fail(n, "expected a string that is not empty")
	}
	return n.Value
}

func (d *decoder) strs(n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "expected a list of strings")
	}
	var out []string
	for _, c := range n.Content {
		out = append(out, d.str(c))
	}
	return out
}

func (d *decoder) regexp(n *yaml.Node) *regexp.Regexp {
	re, err := regexp.Compile(d.str(n))
	if err != nil {
		d.fail(n, "%v", err)
	}
	return re
}

func (d *decoder) scenario(n *yaml.Node, s *Scenario) {
	d.mapping(n, []string{"models", "delayMs", "rules"}, func(key string, v *yaml.Node) {
		switch key {
		case "models":
			s.models = d.strs(v)
		case "delayMs":
			var ms int
			if v.Decode(&ms) != nil || ms < 0 || time.Duration(ms)*time.Millisecond > maxDelay {
				d.fail(v, "expected a number of milliseconds from 0 to %d", maxDelay.Milliseconds())
			}
			s.delay = time.Duration(ms) * time.Millisecond
		case "rules":
			if v.Kind != yaml.SequenceNode || len(v.Content) > maxRules {
				d.fail(v, "expected a list of at most %d rules", maxRules)
			}
			for i, r := range v.Content {
				s.rules = append(s.rules, d.rule(r, i))
			}
		}
	})
	if len(s.rules) == 0 {
		d.fail(n, "expected at least one rule under rules")
	}
}

// basics are the names every expression may read.
var basics = []string{"user", "turn", "step", "tool", "result", "text", "failed", "tools"}

func (d *decoder) rule(n *yaml.Node, index int) rule {
	r := rule{label: fmt.Sprintf("rule %d at %s", index+1, d.place(n))}
	names := map[string]bool{}
	for _, b := range basics {
		names[b] = true
	}
	parts := map[string]*yaml.Node{}
	d.mapping(n, []string{"name", "when", "let", "reasoning", "text", "calls"}, func(key string, v *yaml.Node) { parts[key] = v })
	if v := parts["name"]; v != nil {
		r.label = fmt.Sprintf("rule %q at %s", d.str(v), d.place(n))
	}
	if v := parts["when"]; v != nil {
		d.when(v, &r, names)
	}
	if v := parts["let"]; v != nil {
		d.mapping(v, nil, func(key string, v *yaml.Node) {
			if !isName(key) || slices.Contains(basics, key) || key == "it" {
				d.fail(v, "%q cannot be the name of a value", key)
			}
			r.let = append(r.let, binding{key, d.expr(v, names)})
			names[key] = true
		})
	}
	if v := parts["reasoning"]; v != nil {
		r.reasoning = d.template(v, d.str(v), names)
	}
	if v := parts["text"]; v != nil {
		r.text = d.template(v, d.str(v), names)
	}
	if v := parts["calls"]; v != nil {
		if v.Kind != yaml.SequenceNode {
			d.fail(v, "expected a list of calls")
		}
		for _, c := range v.Content {
			r.calls = append(r.calls, d.call(c, names))
		}
	}
	if r.text == nil && r.reasoning == nil && len(r.calls) == 0 {
		d.fail(n, "expected a text, a reasoning or calls")
	}
	return r
}

func isName(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

func (d *decoder) when(n *yaml.Node, r *rule, names map[string]bool) {
	var cond *yaml.Node
	d.mapping(n, []string{"user", "tool", "result", "failed", "offered", "missing", "if"}, func(key string, v *yaml.Node) {
		switch key {
		case "user":
			r.user = d.regexp(v)
		case "result":
			r.result = d.regexp(v)
		case "tool":
			r.tool = d.str(v)
		case "failed":
			b := v.Value == "true"
			if v.Tag != "!!bool" {
				d.fail(v, "expected true or false")
			}
			r.failed = &b
		case "offered":
			r.offered = d.strs(v)
		case "missing":
			r.missing = d.strs(v)
		case "if":
			cond = v
		}
	})
	for _, re := range [...]*regexp.Regexp{r.user, r.result} {
		if re == nil {
			continue
		}
		for _, g := range re.SubexpNames() {
			if slices.Contains(basics, g) {
				d.fail(n, "a group cannot be named %q, that name is taken", g)
			}
			if g != "" {
				names[g] = true
			}
		}
	}
	if cond != nil {
		e := d.expr(cond, names)
		r.cond = &e
	}
}

func (d *decoder) call(n *yaml.Node, names map[string]bool) call {
	var c call
	d.mapping(n, []string{"tool", "args"}, func(key string, v *yaml.Node) {
		switch key {
		case "tool":
			c.tool = d.str(v)
		case "args":
			if v.Kind != yaml.MappingNode {
				d.fail(v, "expected a mapping of arguments")
			}
			c.args = d.value(v, names)
		}
	})
	if c.tool == "" {
		d.fail(n, "expected the name of a tool under tool")
	}
	if c.args == nil {
		c.args = func(*env) (any, error) { return map[string]any{}, nil }
	}
	return c
}

func (d *decoder) expr(n *yaml.Node, names map[string]bool) located {
	if n.Kind != yaml.ScalarNode || n.Value == "" || len(n.Value) > maxExpr {
		d.fail(n, "expected an expression of at most %d bytes", maxExpr)
	}
	return d.compile(n, n.Value, 0, names)
}

// compile compiles src, which stands at a byte offset in the text of n.
func (d *decoder) compile(n *yaml.Node, src string, offset int, names map[string]bool) located {
	e, err := compile(src, maps.Clone(names))
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		d.fail(n, "in the expression %q, at character %d: %s", seams.Clip(strings.TrimSpace(src), 60), syntax.at+1, syntax.msg)
	}
	place := d.place(n)
	if offset > 0 || strings.Contains(n.Value, "{{") {
		place += fmt.Sprintf(", in {{%s}}", seams.Clip(strings.TrimSpace(src), 60))
	}
	return located{e, place}
}

// value makes a template of any node.
func (d *decoder) value(n *yaml.Node, names map[string]bool) template {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		d.fail(n, "nested deeper than %d", maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		keys := []string{}
		parts := []template{}
		d.mapping(n, nil, func(key string, v *yaml.Node) {
			keys, parts = append(keys, key), append(parts, d.value(v, names))
		})
		return func(e *env) (any, error) {
			out := make(map[string]any, len(keys))
			for i, k := range keys {
				v, err := parts[i](e)
				if err != nil {
					return nil, err
				}
				out[k] = v
			}
			return out, nil
		}
	case yaml.SequenceNode:
		var parts []template
		for _, c := range n.Content {
			parts = append(parts, d.value(c, names))
		}
		return func(e *env) (any, error) {
			out := make([]any, len(parts))
			for i, p := range parts {
				v, err := p(e)
				if err != nil {
					return nil, err
				}
				out[i] = v
			}
			return out, nil
		}
	case yaml.ScalarNode:
		if n.Tag == "!!str" {
			return d.template(n, n.Value, names)
		}
		var v any
		if err := n.Decode(&v); err != nil {
			d.fail(n, "%v", err)
		}
		switch x := v.(type) {
		case nil, bool, float64:
		case int:
			v = float64(x)
		default:
			d.fail(n, "expected a value of JSON, put quotes around a text")
		}
		return func(*env) (any, error) { return v, nil }
	}
	d.fail(n, "aliases are not supported")
	return nil
}

// template compiles a text with {{expressions}}. One that is a single
// expression keeps its type.
func (d *decoder) template(n *yaml.Node, s string, names map[string]bool) template {
	var texts []string
	var parts []located
	rest, at := s, 0
	for {
		before, after, found := strings.Cut(rest, "{{")
		texts = append(texts, before)
		if !found {
			break
		}
		end := closing(after)
		if end < 0 {
			d.fail(n, "a {{ is not closed by }}; write {{\"{{\"}} for the braces themselves")
		}
		at += len(before) + 2
		parts = append(parts, d.compile(n, after[:end], at, names))
		rest, at = after[end+2:], at+end+2
	}
	if len(parts) == 1 && texts[0] == "" && texts[1] == "" {
		return parts[0].value
	}
	return func(e *env) (any, error) {
		var b strings.Builder
		for i, t := range texts {
			b.WriteString(t)
			if i < len(parts) {
				v, err := parts[i].value(e)
				if err != nil {
					return nil, err
				}
				b.WriteString(show(v))
			}
		}
		return b.String(), nil
	}
}

// closing finds the }} that ends an expression, not one in a string of it.
func closing(s string) int {
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.HasPrefix(s[i:], "}}"):
			return i
		}
	}
	return -1
}

func (l located) value(e *env) (any, error) {
	v, err := l.eval(e)
	if err != nil {
		return nil, seams.Errorf(seams.InvalidScenario, "scripted", "%s: %w", l.place, err)
	}
	return v, nil
}
