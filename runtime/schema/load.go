package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// schemasteryTypes are the node types of a Config that Load takes.
var schemasteryTypes = []string{"any", "array", "boolean", "const", "dict", "intersect", "natural", "number", "object", "string", "tuple", "union"}

// Load reads the JSON form of a schemastery schema, as a JavaScript plugin's
// Config has it: {type, dict, inner, sKey, list, value, meta}. In place of a
// schema, null stands for any value and a string, number or boolean for that
// constant. Members of meta that only tell a user interface something are left
// out. UNSUPPORTED_SCHEMA lists all that cannot be used, by the path of the
// configuration value it would describe.
func Load(v any) (*Schema, error) {
	doc, bad := clone(v)
	if bad != nil {
		return nil, bad.vs.err(seams.UnsupportedSchema, "Config")
	}
	s := load(doc)
	if err := s.check("Config"); err != nil {
		return nil, err
	}
	return s, nil
}

func load(v any) *Schema {
	m, ok := v.(map[string]any)
	switch v.(type) {
	case nil:
		return Any()
	case string, float64, bool:
		return Const(v).Required()
	}
	if !ok {
		s := Any()
		s.fault("must be a schema such as Schema.string(), is %s", kindOf(v))
		return s
	}
	s := loadNode(m)
	meta, ok := m["meta"].(map[string]any)
	if m["meta"] != nil && !ok {
		s.fault("meta must be an object, is %s", kindOf(m["meta"]))
	}
	return s.with(func(c *Schema) { c.loadMeta(meta) })
}

func loadNode(m map[string]any) *Schema {
	switch t := m["type"]; t {
	case "any":
		return Any()
	case "string":
		return String()
	case "number":
		return Number()
	case "natural":
		return Natural()
	case "boolean":
		return Boolean()
	case "const":
		if m["value"] == nil {
			return Any()
		}
		return Const(m["value"])
	case "object":
		dict, ok := m["dict"].(map[string]any)
		if !ok {
			s := Any()
			if m["properties"] != nil {
				s.fault("is JSON Schema; write Schema.object({...}) with a schema for each key")
			} else {
				s.fault("an object needs dict, an object of schemas")
			}
			return s
		}
		f := make(Fields, len(dict))
		for k, e := range dict {
			f[k] = load(e)
		}
		return Object(f)
	case "array":
		return Array(load(m["inner"]))
	case "dict":
		s := Dict(load(m["inner"]))
		if m["sKey"] != nil {
			s.keys = load(m["sKey"])
		}
		return s
	case "tuple", "union", "intersect":
		members, ok := m["list"].([]any)
		list := make([]*Schema, len(members))
		for i, e := range members {
			list[i] = load(e)
		}
		s := listOf(kind(t.(string)), list)
		s.fills = t == "tuple"
		if !ok {
			s.faults = nil
			s.fault("%s needs list, a list of schemas", t)
		}
		return s
	default:
		s := Any()
		name, _ := t.(string)
		if near := Suggest(name, schemasteryTypes); near != "" {
			s.fault("type %s is not supported, did you mean %q?", show(t), near)
		} else {
			s.fault("type %s is not supported; use one of %s", show(t), strings.Join(schemasteryTypes, ", "))
		}
		return s
	}
}

func (s *Schema) loadMeta(meta map[string]any) {
	for _, k := range sortedKeys(meta) {
		v := meta[k]
		if v == nil && k != "default" {
			continue
		}
		ok := true
		var n float64
		switch k {
		case "required":
			s.required, ok = v.(bool)
		case "hidden":
			s.hidden, ok = v.(bool)
		case "default":
			// Schemastery gives every container its empty default; s.fills is that.
			if !s.fills || !emptyContainer(v) {
				s.def, s.hasDefault = v, true
			}
		case "description":
			s.description, ok = localised(v)
		case "comment":
			s.comment, ok = v.(string)
		case "role":
			s.role, ok = v.(string)
		case "min":
			if n, ok = v.(float64); ok {
				*s = *s.Min(n)
			}
		case "max":
			if n, ok = v.(float64); ok {
				*s = *s.Max(n)
			}
		case "step":
			if n, ok = v.(float64); ok {
				*s = *s.Step(n)
			}
		case "pattern":
			var expr string
			if expr, ok = jsPattern(v); ok {
				*s = *s.Pattern(expr)
			}
		}
		if !ok {
			s.fault("meta.%s cannot be %s", k, kindOf(v))
		}
	}
}

func emptyContainer(v any) bool {
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// localised takes a text, or the text of a map from locale to text.
func localised(v any) (string, bool) {
	if m, ok := v.(map[string]any); ok {
		for _, k := range append([]string{"", "en", "en-US"}, sortedKeys(m)...) {
			if t, ok := m[k].(string); ok {
				return t, true
			}
		}
		return "", len(m) == 0
	}
	t, ok := v.(string)
	return t, ok
}

var unicodeEscape = regexp.MustCompile(`\\u([0-9a-fA-F]{4})|\\u\{([0-9a-fA-F]+)\}`)

// jsPattern turns a JavaScript regular expression, text or {source, flags}, into
// one of package regexp.
func jsPattern(v any) (string, bool) {
	source, ok := v.(string)
	flags := ""
	if m, isMap := v.(map[string]any); isMap {
		source, ok = m["source"].(string)
		flags, _ = m["flags"].(string)
	}
	keep := ""
	for _, f := range "ims" {
		if strings.ContainsRune(flags, f) {
			keep += string(f)
		}
	}
	if keep != "" {
		keep = fmt.Sprintf("(?%s)", keep)
	}
	return keep + unicodeEscape.ReplaceAllString(source, `\x{$1$2}`), ok
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
