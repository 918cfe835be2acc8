package schema

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/ouro-run/ouro/seams"
)

// Resolve validates a configuration and returns a copy in which absent values
// and nulls have their defaults. What it returns fits the schema, and resolving
// that again changes nothing. INVALID_CONFIG wraps all violations, with paths
// below the configuration; UNSUPPORTED_SCHEMA is the schema's own fault.
func (s *Schema) Resolve(v any) (any, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	v, bad := clone(v)
	if bad != nil {
		code := seams.InvalidConfig
		if bad.code == seams.TooLarge {
			code = bad.code
		}
		return nil, bad.vs.err(code, "config")
	}
	// What one part of an intersection fills in may open another alternative of
	// a union. Filling only ever replaces nulls and absences, so this ends.
	for {
		filled := s.fill(v, false)
		if Equal(filled, v) {
			break
		}
		v = filled
	}
	var c collector
	s.verify(v, new(frame), &c, nil)
	if err := c.list.err(seams.InvalidConfig, "config"); err != nil {
		return nil, err
	}
	return v, nil
}

// fill returns v with defaults; containers that change are copied. A part of an
// intersection leaves the keys of v that it does not declare to the other parts.
func (s *Schema) fill(v any, part bool) any {
	if v == nil {
		switch {
		case s.required:
			return nil
		case s.hasDefault && s.def == nil:
			return nil
		case s.hasDefault:
			v, _ = clone(s.def)
		case s.fills && (s.kind == kArray || s.kind == kTuple):
			v = []any{}
		case s.fills:
			v = map[string]any{}
		case s.kind != kIntersect:
			return nil
		}
	}
	switch s.kind {
	case kObject:
		if m, ok := v.(map[string]any); ok {
			out := maps.Clone(m)
			for _, n := range s.names {
				if e := s.fields[n].fill(m[n], false); e != nil {
					out[n] = e
				}
			}
			return out
		}
	case kDict:
		if m, ok := v.(map[string]any); ok {
			out := make(map[string]any, len(m))
			for k, e := range m {
				out[k] = s.item.fill(e, false)
			}
			return out
		}
	case kArray:
		if l, ok := v.([]any); ok && s.item != nil {
			out := make([]any, len(l))
			for i, e := range l {
				out[i] = s.item.fill(e, false)
			}
			return out
		}
	case kTuple:
		if l, ok := v.([]any); ok {
			out := slices.Clone(l)
			for i, p := range s.list {
				var e any
				if i < len(l) {
					e = l[i]
				}
				if e = p.fill(e, false); e == nil {
					continue
				}
				for len(out) <= i {
					out = append(out, nil)
				}
				out[i] = e
			}
			return out
		}
	case kUnion:
		for _, p := range s.list {
			var known *keyset
			if part {
				known = &keyset{}
			}
			if f := p.fill(v, part); p.fits(f, known) {
				return f
			}
		}
	case kIntersect:
		for _, p := range s.list {
			v = p.fill(v, true)
		}
	}
	return v
}

// Check compares a JSON value with the schema and changes nothing; defaults are
// not applied. No violations mean that the value fits.
func (s *Schema) Check(v any) Violations {
	var c collector
	s.verify(v, new(frame), &c, nil)
	return c.list
}

// CheckArgs is [Schema.Check] for a tool's arguments: INVALID_ARGS lists every
// violation below `arguments` (T-43, T-44).
func (s *Schema) CheckArgs(v any) error { return s.Check(v).err(seams.InvalidArgs, "arguments") }

// keyset gathers which keys of an object the parts of an intersection declare.
type keyset struct {
	names map[string]bool
	all   bool
}

func (k *keyset) add(names ...string) {
	if k.names == nil {
		k.names = map[string]bool{}
	}
	for _, n := range names {
		k.names[n] = true
	}
}

func (s *Schema) fits(v any, known *keyset) bool {
	var c collector
	s.verify(v, new(frame), &c, known)
	return len(c.list) == 0
}

// verify reports how v does not fit. With known, undeclared keys of v itself
// are no violation; the declared ones are added to it.
func (s *Schema) verify(v any, at *frame, out *collector, known *keyset) {
	if v == nil && s.nullable {
		if s.required {
			out.add(at, RuleRequired, "is required")
		}
		return
	}
	switch s.kind {
	case kAny, kDict:
		if known != nil {
			known.all = true
		}
	}
	if s.isConst && !Equal(v, s.constant) {
		out.add(at, RuleConst, "must be "+show(s.constant))
		return
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, func(e any) bool { return Equal(e, v) }) {
		out.add(at, RuleEnum, "must be one of "+showAll(s.enum))
		return
	}
	switch s.kind {
	case kAny:
		if _, foreign := normal(v); foreign != "" {
			out.add(at, RuleJSON, "not JSON without loss: "+foreign)
		}
	case kUnion, kOneOf:
		s.verifyUnion(v, at, out, known)
	case kIntersect:
		s.verifyParts(v, at, out, known)
	default:
		if !s.kind.is(v) {
			out.add(at, RuleType, s.wrongType(v))
			return
		}
		s.verifyKind(v, at, out, known)
	}
}

// is reports whether a value is of this kind, parts not looked at.
func (k kind) is(v any) bool {
	switch v := v.(type) {
	case nil:
		return k == kNull
	case bool:
		return k == kBoolean
	case string:
		return k == kString
	case float64:
		return k == kNumber || k == kInteger && v == math.Trunc(v)
	case []any:
		return k == kArray || k == kTuple
	case map[string]any:
		return k == kObject || k == kDict
	}
	return false
}

func (s *Schema) wrongType(v any) string {
	want, got, hint := string(s.kind), kindOf(v), ""
	switch s.kind {
	case kTuple:
		want = "array"
	case kDict:
		want = "object"
	case kBoolean:
		want = "boolean (true or false)"
	case kInteger:
		if got == "number" {
			got = "a number with a fraction"
		}
	case kString:
		if got == "number" || got == "boolean" {
			hint = "; quote it if it is meant as text"
		}
	}
	return "expected " + want + ", got " + got + hint
}

func (s *Schema) verifyKind(v any, at *frame, out *collector, known *keyset) {
	switch v := v.(type) {
	case float64:
		s.verifyRange(v, "", at, out)
		if s.step != nil && !multiple(v, s.min, *s.step) {
			out.add(at, RuleRange, "must be a multiple of "+show(*s.step)+from(s.min))
		}
	case string:
		if s.min != nil || s.max != nil {
			s.verifyRange(float64(utf8.RuneCountInString(v)), " characters", at, out)
		}
		if s.pattern != nil && !s.pattern.MatchString(v) {
			out.add(at, RuleRange, "must match "+seams.Clip(s.pattern.String(), maxShown))
		}
	case []any:
		s.verifyRange(float64(len(v)), " elements", at, out)
		if s.kind == kTuple {
			s.verifyTuple(v, at, out)
		} else if s.item != nil {
			var f frame
			for i, e := range v {
				f = at.at(i)
				s.item.verify(e, &f, out, nil)
			}
		}
	case map[string]any:
		if s.kind == kDict {
			s.verifyDict(v, at, out)
		} else {
			s.verifyObject(v, at, out, known)
		}
	}
}

func (s *Schema) verifyRange(n float64, unit string, at *frame, out *collector) {
	if s.min != nil && n < *s.min {
		out.add(at, RuleRange, fmt.Sprintf("must be at least %v%s", *s.min, unit))
	}
	if s.max != nil && n > *s.max {
		out.add(at, RuleRange, fmt.Sprintf("must be at most %v%s", *s.max, unit))
	}
}

// multiple allows for decimal steps that binary fractions only approach.
func multiple(v float64, min *float64, step float64) bool {
	if min != nil {
		v -= *min
	}
	q := v / step
	return math.Abs(q-math.Round(q)) <= 1e-9*math.Max(1, math.Abs(q))
}

func from(min *float64) string {
	if min == nil || *min == 0 {
		return ""
	}
	return " counted from " + show(*min)
}

func (s *Schema) verifyTuple(l []any, at *frame, out *collector) {
	var f frame
	for i, p := range s.list {
		f = at.at(i)
		if i < len(l) {
			p.verify(l[i], &f, out, nil)
		} else if p.required {
			out.add(&f, RuleRequired, "is required")
		}
	}
	if len(l) > len(s.list) {
		f = at.at(len(s.list))
		out.add(&f, RuleUnknown, fmt.Sprintf("there are only %d elements", len(s.list)))
	}
}

func (s *Schema) verifyDict(m map[string]any, at *frame, out *collector) {
	var f frame
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f = at.inKey(k)
		if s.keys != nil {
			var c collector
			s.keys.verify(k, &f, &c, nil)
			for _, v := range c.list {
				out.add(&f, v.Rule, "the key "+v.Msg)
			}
		}
		s.item.verify(m[k], &f, out, nil)
	}
}

func (s *Schema) verifyObject(m map[string]any, at *frame, out *collector, known *keyset) {
	var f frame
	for _, n := range s.names {
		f = at.inKey(n)
		if e, ok := m[n]; ok {
			s.fields[n].verify(e, &f, out, nil)
		} else if s.fields[n].required {
			out.add(&f, RuleRequired, "is required")
		}
	}
	switch {
	case known != nil && s.extra != extraRefused:
		known.all = true
	case known != nil:
		known.add(s.names...)
	case s.extra == extraRefused:
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if _, ok := s.fields[k]; !ok {
				undeclared(k, s.names, at, out)
			}
		}
	}
}

func undeclared(k string, names []string, at *frame, out *collector) {
	f := at.inKey(k)
	msg := "unknown key"
	if near := Suggest(k, names); near != "" {
		msg += ", did you mean " + show(near) + "?"
	} else if len(names) > 0 {
		all := make([]any, len(names))
		for i, n := range names {
			all[i] = n
		}
		msg += "; known: " + showAll(all)
	} else {
		msg += "; none are expected here"
	}
	out.add(&f, RuleUnknown, msg)
}

func (s *Schema) verifyUnion(v any, at *frame, out *collector, known *keyset) {
	matches := 0
	tried := make([]collector, len(s.list))
	for i, p := range s.list {
		// Keys that a failed alternative declares are not declared.
		var k *keyset
		if known != nil {
			k = &keyset{}
		}
		// Once for each alternative: twice would be exponential in their nesting.
		if p.verify(v, at, &tried[i], k); len(tried[i].list) > 0 {
			continue
		}
		matches++
		if known != nil {
			known.all = known.all || k.all
			for n := range k.names {
				known.add(n)
			}
		}
		if s.kind == kUnion {
			return
		}
	}
	switch {
	case matches == 1:
	case matches > 1:
		out.add(at, RuleUnion, fmt.Sprintf("must match exactly one of %d alternatives, matches %d", len(s.list), matches))
	default:
		if known != nil {
			known.all = true // whatever was meant, it would declare keys
		}
		if i := s.meant(v); i >= 0 {
			for _, bad := range tried[i].list {
				out.put(bad)
			}
			return
		}
		out.add(at, RuleUnion, s.noMatch(v))
	}
}

// meant is the index of the one alternative that v was probably meant for: the
// only one of its kind, or the only one with the same constant in a property; -1
// if there is none.
func (s *Schema) meant(v any) int {
	var ofKind, tagged []int
	for i, p := range s.list {
		if p.kind == kAny || !p.kind.is(v) {
			continue
		}
		ofKind = append(ofKind, i)
		m, _ := v.(map[string]any)
		for _, n := range p.names {
			if e, ok := m[n]; ok && p.fields[n].isConst && Equal(e, p.fields[n].constant) {
				tagged = append(tagged, i)
				break
			}
		}
	}
	switch {
	case len(ofKind) == 1:
		return ofKind[0]
	case len(tagged) == 1:
		return tagged[0]
	}
	return -1
}

func (s *Schema) noMatch(v any) string {
	var constants []any
	var kinds []string
	for _, p := range s.list {
		if p.isConst {
			constants = append(constants, p.constant)
		} else if !slices.Contains(kinds, string(p.kind)) {
			kinds = append(kinds, string(p.kind))
		}
	}
	switch {
	case len(kinds) == 0:
		return "must be one of " + showAll(constants)
	case s.kind == kOneOf:
		return fmt.Sprintf("must match exactly one of %d alternatives, matches 0", len(s.list))
	}
	return fmt.Sprintf("matches none of %d alternatives, got %s", len(s.list), kindOf(v))
}

func (s *Schema) verifyParts(v any, at *frame, out *collector, known *keyset) {
	own := known == nil
	if own {
		known = &keyset{}
	}
	for _, p := range s.list {
		before := len(out.list)
		p.verify(v, at, out, known)
		if len(out.list) > before && p.kind == kObject && !kObject.is(v) {
			return // the other parts would say the same
		}
	}
	m, ok := v.(map[string]any)
	if !own || known.all || !ok {
		return
	}
	names := slices.Sorted(maps.Keys(known.names))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !known.names[k] {
			undeclared(k, names, at, out)
		}
	}
}
