package schema

import (
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// author compiles what the author of a tool wrote. Whatever form it has, every
// fault is collected with the path in the author's own text.
type author struct {
	collector
	nodes int
}

// done gives the schema, or all faults below root as the error.
func (a *author) done(s *Schema, root string) (*Schema, error) {
	if err := a.list.err(seams.UnsupportedSchema, root); err != nil {
		return nil, err
	}
	return s, nil
}

func (a *author) fault(at *frame, msg string) { a.add(at, RuleSchema, msg) }

func (a *author) faultIn(at *frame, key, msg string) {
	f := at.inKey(key)
	a.fault(&f, msg)
}

// object takes v as an object; what says what it must be. It guards every
// descent against cycles and hostile size.
func (a *author) object(v any, at *frame, what string) (map[string]any, bool) {
	if a.nodes++; a.nodes > MaxNodes || at.depth > MaxDepth {
		a.fault(new(frame), "is too large or too deep")
		return nil, false
	}
	ref := identity(v)
	if ref != 0 && at.inside(ref) {
		a.fault(at, "is circular: it contains itself")
		return nil, false
	}
	n, why := normal(v)
	m, ok := n.(map[string]any)
	if !ok {
		a.fault(at, what+", is "+orKind(why, n))
		return nil, false
	}
	at.ref = ref
	return m, true
}

func orKind(why string, v any) string {
	if why != "" {
		return why
	}
	return kindOf(v)
}

// elements takes v as a dense list.
func (a *author) elements(v any, at *frame, what string) ([]any, bool) {
	n, why := normal(v)
	l, ok := n.([]any)
	if !ok {
		a.fault(at, what+", is "+orKind(why, n))
	}
	return l, ok
}

// data takes a value that is part of the schema: it must be JSON without loss.
func (a *author) data(v any, at *frame) (any, bool) {
	c := cloner{nodes: a.nodes}
	out, bad := c.clone(v, new(frame))
	a.nodes = c.nodes
	if bad != nil {
		p := bad.vs[0]
		a.put(Violation{slices.Concat(at.path(), p.Path), RuleSchema, p.Msg})
		return nil, false
	}
	return out, true
}

// annotations are the keys that describe and do not constrain.
var annotations = []string{"description", "title", "default", "examples"}

func (a *author) annotate(s *Schema, m map[string]any, at *frame) {
	a.text(&s.description, m, "description", at)
	a.text(&s.title, m, "title", at)
	if v, ok := m["default"]; ok {
		f := at.inKey("default")
		s.def, s.hasDefault = a.data(v, &f)
	}
	if v, ok := m["examples"]; ok {
		f := at.inKey("examples")
		if l, ok := a.elements(v, &f, "must be a list"); ok {
			if d, ok := a.data(l, &f); ok {
				s.examples = d.([]any)
			}
		}
	}
}

func (a *author) text(into *string, m map[string]any, key string, at *frame) {
	v, ok := m[key]
	if !ok {
		return
	}
	n, why := normal(v)
	if *into, ok = n.(string); !ok {
		a.faultIn(at, key, "must be a string, is "+orKind(why, n))
	}
}

// choices reads enum and const, which must fit the node's kind.
func (a *author) choices(s *Schema, m map[string]any, at *frame) {
	fits := func(v any) bool { return s.kind == kAny || s.kind.is(v) }
	if v, ok := m["enum"]; ok {
		f := at.inKey("enum")
		l, ok := a.elements(v, &f, "must be a list of values that is not empty")
		if ok && len(l) == 0 {
			a.fault(&f, "must be a list of values that is not empty")
		}
		for i, e := range l {
			fe := f.at(i)
			if e, ok := a.data(e, &fe); ok {
				if !fits(e) {
					a.fault(&fe, "does not fit type "+string(s.kind)+": is "+kindOf(e))
				}
				s.enum = append(s.enum, e)
			}
		}
	}
	if v, ok := m["const"]; ok {
		f := at.inKey("const")
		if v, ok := a.data(v, &f); ok {
			if !fits(v) {
				a.fault(&f, "does not fit type "+string(s.kind)+": is "+kindOf(v))
			}
			s.constant, s.isConst = v, true
		}
	}
}

// alternatives reads a oneOf.
func (a *author) alternatives(v any, at *frame, node func(any, *frame) *Schema) *Schema {
	s := &Schema{kind: kOneOf}
	f := at.inKey("oneOf")
	const what = "must be a list of at least two schemas"
	l, ok := a.elements(v, &f, what)
	if ok && len(l) < 2 {
		a.fault(&f, what)
	}
	for i, e := range l {
		fe := f.at(i)
		s.list = append(s.list, node(e, &fe))
	}
	return s
}

// properties reads a map from name to schema, the fields of an open object.
func (a *author) properties(m map[string]any, at *frame, node func(any, *frame) *Schema) *Schema {
	fields := make(Fields, len(m))
	for _, k := range sortedKeys(m) {
		f := at.inKey(k)
		fields[k] = node(m[k], &f)
	}
	s := &Schema{kind: kObject, extra: extraUnsaid}
	s.setFields(fields)
	return s
}

// keys reports the keys of a node that do not belong there.
func (a *author) keys(m map[string]any, at *frame, where string, allowed ...string) {
	for _, k := range sortedKeys(m) {
		if slices.Contains(allowed, k) {
			continue
		}
		msg := "is not supported " + where
		if advice, ok := advised[k]; ok {
			msg += "; " + advice
		} else if near := Suggest(k, allowed); near != "" {
			msg += ", did you mean " + show(near) + "?"
		} else {
			msg += "; remove it"
		}
		a.faultIn(at, k, msg)
	}
}

// advised maps what authors bring from other dialects to what to write here.
var advised = map[string]string{
	"anyOf":            "use oneOf, whose alternatives exclude each other",
	"allOf":            "merge the schemas into one",
	"$ref":             "write the schema out in its place",
	"nullable":         `use oneOf: [{type: "null"}, ...]`,
	"optional":         "leave it out: what is not required is optional",
	"format":           "say it in the description",
	"pattern":          "say it in the description",
	"minimum":          "say it in the description",
	"maximum":          "say it in the description",
	"exclusiveMinimum": "say it in the description",
	"exclusiveMaximum": "say it in the description",
	"multipleOf":       "say it in the description",
	"minLength":        "say it in the description",
	"maxLength":        "say it in the description",
	"minItems":         "say it in the description",
	"maxItems":         "say it in the description",
	"uniqueItems":      "say it in the description",
	"min":              "say it in the description",
	"max":              "say it in the description",
	"oneOf":            "oneOf stands without type",
	"items":            `items needs type: "array"`,
	"properties":       `properties needs type: "object"`,
	"enum":             "enum is for string, number, integer, boolean and null",
	"const":            "const is for string, number, integer, boolean and null",
}

// otherNames maps names that types have elsewhere to those they have here.
var otherNames = map[string]string{
	"int": "integer", "int32": "integer", "int64": "integer", "long": "integer",
	"float": "number", "double": "number", "decimal": "number", "bool": "boolean",
	"str": "string", "text": "string", "date": "string", "list": "array", "tuple": "array",
	"dict": "object", "map": "object", "record": "object", "any": "json", "unknown": "json", "mixed": "json",
	"none": "null", "undefined": "null", "nil": "null",
}

func (a *author) badType(t any, has bool, at *frame, valid []string, none string) {
	f := at.inKey("type")
	if !has {
		a.fault(&f, "is missing; one of "+strings.Join(valid, ", ")+none)
		return
	}
	if l, ok := t.([]any); ok {
		alternatives := make([]string, 0, len(l))
		for _, e := range l {
			alternatives = append(alternatives, "{type: "+show(e)+"}")
		}
		a.fault(&f, "must be one type name; for several use oneOf: ["+seams.Clip(strings.Join(alternatives, ", "), 2*maxShown)+"]")
		return
	}
	n, why := normal(t)
	name, _ := n.(string)
	near := otherNames[strings.ToLower(name)]
	if !slices.Contains(valid, near) {
		near = Suggest(name, valid)
	}
	msg := "unknown type " + show(n)
	if why != "" {
		msg = "unknown type: " + why
	}
	if near != "" {
		msg += ", did you mean " + show(near) + "?"
	}
	a.fault(&f, msg+" (one of "+strings.Join(valid, ", ")+none+")")
}
