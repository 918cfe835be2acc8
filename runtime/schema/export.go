package schema

import (
	"maps"
	"slices"
)

// JSONSchema returns the schema as JSON Schema (draft 2020-12): to an editor, or
// to a model as a tool's parameters. The map belongs to the caller. What null
// may stand for in a configuration is not told.
func (s *Schema) JSONSchema() map[string]any { return s.export(false) }

// export writes one node; a part of an intersection does not refuse the keys of
// the other parts.
func (s *Schema) export(part bool) map[string]any {
	out := map[string]any{}
	switch s.kind {
	case kAny:
	case kObject:
		s.exportObject(out, part)
	case kDict:
		out["type"] = "object"
		out["additionalProperties"] = s.item.export(false)
		if s.keys != nil {
			out["propertyNames"] = s.keys.export(false)
		}
	case kArray:
		out["type"] = "array"
		out["items"] = map[string]any{}
		if s.item != nil {
			out["items"] = s.item.export(false)
		}
		s.exportRange(out, "minItems", "maxItems")
	case kTuple:
		out["type"] = "array"
		out["prefixItems"] = exportAll(s.list, false)
		out["items"] = false
		least := 0
		for i, p := range s.list {
			if p.required {
				least = i + 1
			}
		}
		if least > 0 {
			out["minItems"] = float64(least)
		}
	case kUnion:
		s.exportUnion(out, part)
	case kOneOf:
		out["oneOf"] = exportAll(s.list, part)
	case kIntersect:
		out["allOf"] = exportAll(s.list, true)
		if !part {
			out["unevaluatedProperties"] = false
		}
	case kString:
		out["type"] = "string"
		s.exportRange(out, "minLength", "maxLength")
		if s.pattern != nil {
			out["pattern"] = s.pattern.String()
		}
	case kNumber, kInteger:
		out["type"] = string(s.kind)
		s.exportRange(out, "minimum", "maximum")
		// multipleOf counts from 0.
		if s.step != nil && (s.min == nil || multiple(*s.min, nil, *s.step)) {
			out["multipleOf"] = *s.step
		}
	default:
		out["type"] = string(s.kind)
	}
	if s.enum != nil {
		out["enum"] = copyOf(s.enum)
	}
	if s.isConst {
		out["const"] = copyOf(s.constant)
	}
	s.exportNotes(out)
	return out
}

func (s *Schema) exportObject(out map[string]any, part bool) {
	properties := map[string]any{}
	var required []any
	for _, n := range s.names {
		properties[n] = s.fields[n].export(false)
		if s.fields[n].required {
			required = append(required, n)
		}
	}
	out["type"] = "object"
	out["properties"] = properties
	if required != nil {
		out["required"] = required
	}
	switch {
	case s.extra == extraTaken:
		out["additionalProperties"] = true
	case s.extra == extraRefused && !part:
		out["additionalProperties"] = false
	}
}

// exportUnion writes a union of constants as one enum, which models and editors
// handle best.
func (s *Schema) exportUnion(out map[string]any, part bool) {
	var values []any
	for _, p := range s.list {
		if !p.isConst || p.description != "" {
			out["anyOf"] = exportAll(s.list, part)
			return
		}
		values = append(values, p.constant)
	}
	out["enum"] = copyOf(values)
	mixed := func(v any) bool { return kindOf(v) != kindOf(values[0]) }
	if len(values) > 0 && !slices.ContainsFunc(values, mixed) {
		out["type"] = kindOf(values[0])
	}
}

func exportAll(list []*Schema, part bool) []any {
	out := make([]any, len(list))
	for i, p := range list {
		out[i] = p.export(part)
	}
	return out
}

func (s *Schema) exportRange(out map[string]any, least, most string) {
	if s.min != nil {
		out[least] = *s.min
	}
	if s.max != nil {
		out[most] = *s.max
	}
}

func (s *Schema) exportNotes(out map[string]any) {
	for key, text := range map[string]string{"title": s.title, "description": s.description, "$comment": s.comment} {
		if text != "" {
			out[key] = text
		}
	}
	if s.hasDefault && (s.def != nil || !s.nullable) {
		out["default"] = copyOf(s.def)
	}
	if s.examples != nil {
		out["examples"] = copyOf(s.examples)
	}
	if s.role == "secret" {
		out["writeOnly"] = true
	}
}

// copyOf copies a JSON value that is part of a schema.
func copyOf(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyOf(v[i])
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		for k := range out {
			out[k] = copyOf(out[k])
		}
		return out
	}
	return v
}
