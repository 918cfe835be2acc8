package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// Path leads from a value to a part of it: a string is a key, an int an index.
type Path []any

// In renders the path below root: `arguments.tags[0]`, `config["odd key"]`.
func (p Path) In(root string) string {
	var b strings.Builder
	b.WriteString(root)
	for _, step := range p {
		switch step := step.(type) {
		case int:
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(step))
			b.WriteByte(']')
		case string:
			switch {
			case !plain(step):
				b.WriteByte('[')
				b.WriteString(show(step))
				b.WriteByte(']')
			case b.Len() == 0:
				b.WriteString(step)
			default:
				b.WriteByte('.')
				b.WriteString(step)
			}
		}
		if b.Len() > maxPathText {
			return b.String()[:maxPathText] + "…"
		}
	}
	return b.String()
}

// plain reports whether a key can follow a dot.
func plain(key string) bool {
	for _, r := range key {
		if r != '_' && r != '$' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return key != ""
}

// Bounds of what a message holds.
const (
	maxPathText   = 400 // bytes of a rendered path
	maxShown      = 60  // bytes of a name or a schema's own value
	maxViolations = 64
)

// show renders a name, or a value that a schema's author wrote, for a message.
func show(v any) string {
	if f, ok := v.(Foreign); ok {
		return string(f)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return kindOf(v)
	}
	return seams.Clip(string(b), maxShown)
}

// showAll renders a list of names or values, cut where it grows long.
func showAll(vs []any) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > 4*maxShown {
			b.WriteString("…")
			break
		}
		b.WriteString(show(v))
	}
	return b.String()
}

// Rule names the kind of a violation.
type Rule string

// The rules a value or a schema can break.
const (
	RuleRequired Rule = "required" // the path is that of the absent value
	RuleType     Rule = "type"
	RuleEnum     Rule = "enum"
	RuleConst    Rule = "const"
	RuleUnion    Rule = "union"   // the wrong number of alternatives fits
	RuleUnknown  Rule = "unknown" // an undeclared key of a closed object; the path ends with it
	RuleRange    Rule = "range"   // min, max, step, pattern
	RuleJSON     Rule = "json"    // no JSON form without loss
	RuleSchema   Rule = "schema"  // a fault of a schema, not of a value
)

// Violation is one way in which a value, or a schema, is not as it should be.
type Violation struct {
	Path Path
	Rule Rule
	Msg  string // what was expected, and what to do where that is known
}

// Violations are what was found, in the order found; after 64 the last one says
// that there are more.
type Violations []Violation

// Error renders the violations without a root.
func (vs Violations) Error() string { return vs.In("") }

// In renders the violations below root, with "; " between them.
func (vs Violations) In(root string) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		if at := v.Path.In(root); at != "" {
			parts[i] = at + ": " + v.Msg
		} else {
			parts[i] = v.Msg
		}
	}
	return strings.Join(parts, "; ")
}

// err makes an error of code that lists the violations below root, nil for none.
func (vs Violations) err(code seams.Code, root string) error {
	if len(vs) == 0 {
		return nil
	}
	return &seams.Error{Code: code, Msg: vs.In(root), Err: vs}
}

// frame is one place of a walk. The frames of a walk are linked upwards on the
// stack, the root being the zero frame; a path is made of them only when there
// is something to report.
type frame struct {
	up    *frame
	key   string
	index int // -1: key counts
	depth int
	ref   uintptr // identity of the container at this place, 0 if none
}

func (f *frame) inKey(k string) frame { return frame{up: f, key: k, index: -1, depth: f.depth + 1} }
func (f *frame) at(i int) frame       { return frame{up: f, index: i, depth: f.depth + 1} }

// cycleReach bounds how far up a walk looks for the container it is in. A
// longer cycle ends at MaxDepth instead.
const cycleReach = 256

// inside reports whether ref is the container of an enclosing frame.
func (f *frame) inside(ref uintptr) bool {
	for i := 0; f != nil && i < cycleReach; f, i = f.up, i+1 {
		if f.ref == ref {
			return true
		}
	}
	return false
}

func (f *frame) path() Path {
	p := make(Path, 0, f.depth)
	for ; f.up != nil; f = f.up {
		if f.index >= 0 {
			p = append(p, f.index)
		} else {
			// A copy, so that escape analysis keeps frames on the stack.
			p = append(p, strings.Clone(f.key))
		}
	}
	slices.Reverse(p)
	return p
}

// collector gathers violations up to a bound.
type collector struct{ list Violations }

func (c *collector) add(at *frame, rule Rule, msg string) {
	if len(c.list) <= maxViolations {
		c.put(Violation{at.path(), rule, msg})
	}
}

func (c *collector) put(v Violation) {
	switch n := len(c.list); {
	case n < maxViolations:
		c.list = append(c.list, v)
	case n == maxViolations:
		c.list = append(c.list, Violation{nil, v.Rule, "and more"})
	}
}
