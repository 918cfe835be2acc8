package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

type kind string

const (
	kAny       kind = "any"
	kNull      kind = "null"
	kBoolean   kind = "boolean"
	kNumber    kind = "number"
	kInteger   kind = "integer"
	kString    kind = "string"
	kArray     kind = "array"
	kTuple     kind = "tuple"
	kObject    kind = "object"
	kDict      kind = "dict"
	kUnion     kind = "union"     // the first alternative that fits
	kOneOf     kind = "oneOf"     // exactly one alternative fits
	kIntersect kind = "intersect" // all parts fit; an object is the sum of its parts
)

// extra says what an object does with undeclared keys.
type extra uint8

const (
	extraRefused extra = iota
	extraUnsaid        // taken, and JSON Schema does not say so
	extraTaken         // taken, and JSON Schema says so
)

// Schema describes a value. It is immutable: methods that change something
// return a changed copy. Schemas of configurations (from constructors and
// [Load]) take null for absent; those of tools do not.
type Schema struct {
	kind     kind
	fields   Fields
	names    []string // of fields, sorted
	extra    extra
	item     *Schema // array, dict
	keys     *Schema // dict: of its keys, nil for any
	list     []*Schema
	enum     []any
	constant any
	isConst  bool

	min, max, step *float64
	pattern        *regexp.Regexp

	required   bool
	nullable   bool // null is as good as absent
	fills      bool // absent is as good as empty, so that parts get their defaults
	hasDefault bool
	def        any

	title, description, comment, role string
	hidden                            bool
	examples                          []any

	faults Violations // of this node, paths within it
}

// Fields are the properties of an object.
type Fields map[string]*Schema

func config(k kind) *Schema { return &Schema{kind: k, nullable: true} }

// Object is a closed object: an undeclared key is a violation. An absent object
// is an empty one, so that its fields get their defaults; Default(nil) keeps it
// absent.
func Object(f Fields) *Schema {
	s := config(kObject)
	s.fills = true
	s.setFields(maps.Clone(f))
	return s
}

func (s *Schema) setFields(f Fields) {
	s.fields, s.names = f, slices.Sorted(maps.Keys(f))
	for _, n := range s.names {
		s.fields[n] = s.part(f[n], Path{n})
	}
}

// part guards against a nil *Schema in a constructor's argument.
func (s *Schema) part(p *Schema, at Path) *Schema {
	if p == nil {
		s.faults = append(s.faults, Violation{at, RuleSchema, "must be a schema, is nil"})
		return Any()
	}
	return p
}

// Array is a list whose elements fit item. Absent is empty, as with [Object].
func Array(item *Schema) *Schema {
	s := config(kArray)
	s.fills = true
	s.item = s.part(item, Path{"inner"})
	return s
}

// Dict is an object with any keys whose values fit value. Absent is empty, as
// with [Object].
func Dict(value *Schema) *Schema {
	s := config(kDict)
	s.fills = true
	s.item = s.part(value, Path{"inner"})
	return s
}

// Tuple is a list of exactly these items; trailing ones that are not required
// may be left out. Absent is empty, as with [Object].
func Tuple(items ...*Schema) *Schema {
	s := listOf(kTuple, items)
	s.fills = true
	return s
}

// Union fits what at least one alternative fits. Resolve takes the first.
func Union(alternatives ...*Schema) *Schema { return listOf(kUnion, alternatives) }

// Intersect fits what all parts fit. Of objects, a key is undeclared when no
// part declares it.
func Intersect(parts ...*Schema) *Schema { return listOf(kIntersect, parts) }

func listOf(k kind, list []*Schema) *Schema {
	s := config(k)
	s.list = slices.Clone(list)
	for i := range s.list {
		s.list[i] = s.part(s.list[i], Path{i})
	}
	if len(list) == 0 {
		s.fault("needs at least one member")
	}
	return s
}

// String is text. Min and Max count characters.
func String() *Schema { return config(kString) }

// Number is a finite number.
func Number() *Schema { return config(kNumber) }

// Integer is a number without fraction.
func Integer() *Schema { return config(kInteger) }

// Natural is an integer that is not negative.
func Natural() *Schema { return config(kInteger).Min(0) }

// Boolean is true or false.
func Boolean() *Schema { return config(kBoolean) }

// Any is every JSON value.
func Any() *Schema { return config(kAny) }

// Const is this one JSON value.
func Const(v any) *Schema {
	s := config(kAny)
	s.constant, s.isConst = s.data(v, Path{"value"}), true
	return s
}

// Enum is one of these JSON values.
func Enum(values ...any) *Schema {
	s := config(kAny)
	for i, v := range values {
		s.enum = append(s.enum, s.data(v, Path{i}))
	}
	if len(values) == 0 {
		s.fault("needs at least one value")
	}
	return s
}

// data takes a value that is part of a schema.
func (s *Schema) data(v any, at Path) any {
	v, bad := clone(v)
	if bad != nil {
		p := bad.vs[0]
		s.faults = append(s.faults, Violation{slices.Concat(at, p.Path), RuleSchema, p.Msg})
	}
	return v
}

func (s *Schema) fault(format string, args ...any) {
	s.faults = append(s.faults, Violation{nil, RuleSchema, fmt.Sprintf(format, args...)})
}

func (s *Schema) with(change func(c *Schema)) *Schema {
	c := *s
	c.faults = slices.Clip(s.faults)
	change(&c)
	return &c
}

// Required makes absence, and null, a violation; a default then has no effect.
func (s *Schema) Required() *Schema { return s.with(func(c *Schema) { c.required = true }) }

// Default is what Resolve puts for an absent value or null. Default(nil) takes
// back the empty default of a container.
func (s *Schema) Default(v any) *Schema {
	return s.with(func(c *Schema) { c.def, c.hasDefault = c.data(v, Path{"default"}), true })
}

// Description is for people and models.
func (s *Schema) Description(text string) *Schema {
	return s.with(func(c *Schema) { c.description = text })
}

// Comment is for whoever maintains the plugin.
func (s *Schema) Comment(text string) *Schema { return s.with(func(c *Schema) { c.comment = text }) }

// Role tells user interfaces how to show the value; "secret" is not shown.
func (s *Schema) Role(role string) *Schema { return s.with(func(c *Schema) { c.role = role }) }

// Hidden keeps the value out of user interfaces.
func (s *Schema) Hidden() *Schema { return s.with(func(c *Schema) { c.hidden = true }) }

// Min bounds a number, the characters of a string or the elements of an array
// from below.
func (s *Schema) Min(n float64) *Schema {
	return s.with(func(c *Schema) { c.min = c.bound("min", n, kNumber, kInteger, kString, kArray) })
}

// Max is the counterpart of Min.
func (s *Schema) Max(n float64) *Schema {
	return s.with(func(c *Schema) { c.max = c.bound("max", n, kNumber, kInteger, kString, kArray) })
}

// Step makes a number a multiple of n, counted from Min if there is one.
func (s *Schema) Step(n float64) *Schema {
	return s.with(func(c *Schema) {
		c.step = c.bound("step", n, kNumber, kInteger)
		if n <= 0 {
			c.fault("step must be above 0")
		}
	})
}

func (s *Schema) bound(what string, n float64, kinds ...kind) *float64 {
	if !slices.Contains(kinds, s.kind) {
		s.fault("%s does not apply to %s", what, s.kind)
	}
	if _, why := normal(n); why != "" {
		s.fault("%s is %s", what, why)
	}
	return &n
}

// Pattern makes a string match a regular expression of package regexp,
// anywhere in it. Expressions there have no lookaround and no backreferences
// and take time linear in the text.
func (s *Schema) Pattern(expr string) *Schema {
	return s.with(func(c *Schema) {
		if c.kind != kString {
			c.fault("pattern does not apply to %s", c.kind)
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			c.fault("pattern cannot be used (%s); lookaround and backreferences are not supported", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
			return
		}
		c.pattern = re
	})
}

// Open lets an object have undeclared keys, which Resolve keeps.
func (s *Schema) Open() *Schema {
	return s.with(func(c *Schema) {
		if c.kind != kObject {
			c.fault("open does not apply to %s", c.kind)
		}
		c.extra = extraTaken
	})
}

// Err reports everything that is wrong with the schema itself as
// UNSUPPORTED_SCHEMA: values that are no JSON, keywords on the wrong kind,
// patterns that do not compile, defaults that do not fit. Schemas that Load,
// Parameters and the like returned have nothing wrong.
func (s *Schema) Err() error { return s.check("schema") }

func (s *Schema) check(root string) error {
	var c collector
	s.inspect(new(frame), &c)
	return c.list.err(seams.UnsupportedSchema, root)
}

func (s *Schema) inspect(at *frame, out *collector) {
	for _, v := range s.faults {
		v.Path = slices.Concat(at.path(), v.Path)
		out.put(v)
	}
	for _, n := range s.names {
		f := at.inKey(n)
		s.fields[n].inspect(&f, out)
	}
	if s.item != nil {
		f := at.inKey("inner")
		s.item.inspect(&f, out)
	}
	if s.keys != nil {
		f := at.inKey("sKey")
		s.keys.inspect(&f, out)
	}
	for i, p := range s.list {
		f := at.at(i)
		p.inspect(&f, out)
	}
	if s.hasDefault && s.def != nil && s.nullable && len(s.faults) == 0 {
		f := at.inKey("default")
		one := *s
		one.required = false
		var bad collector
		one.verify(one.fill(s.def, false), &f, &bad, nil)
		for _, v := range bad.list {
			if v.Rule == RuleRequired {
				continue // it is for the configuration to give that part
			}
			out.put(Violation{v.Path, RuleSchema, "the default does not fit: " + v.Msg})
		}
	}
}
