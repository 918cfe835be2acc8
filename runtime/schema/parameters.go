package schema

import "slices"

// Parameters reads the parameters of a tool in one of two forms:
//
//   - the parameter map {name: {type, required: true, ...}}, an open object.
//     Types are string, number, integer, boolean, null, array, object and json;
//     a node with oneOf has no type; an object states additionalProperties;
//   - JSON Schema {type: "object", properties, required}, whose root is open and
//     whose nested objects are open unless they say otherwise.
//
// nil is a tool without parameters. UNSUPPORTED_SCHEMA lists every fault below
// `parameters`, each with what to write instead (X-14, X-22, X-23, T-46).
func Parameters(v any) (*Schema, error) {
	var a author
	return a.done(a.parameters(v), "parameters")
}

func (a *author) parameters(v any) *Schema {
	if v == nil {
		v = map[string]any{}
	}
	root := new(frame)
	m, ok := a.object(v, root, "must be a parameter spec object {name: {type: ...}}")
	if !ok {
		return nil
	}
	_, typed := m["type"]
	properties, wrapped := m["properties"].(map[string]any)
	switch {
	case m["type"] == "object":
		return a.rawRoot(m, root)
	case wrapped && !typed && properties["type"] == nil && properties["oneOf"] == nil:
		a.faultIn(root, "type", `is missing: JSON Schema needs type: "object"`)
		return nil
	}
	return a.properties(m, root, a.shortProperty)
}

// rawRoot reads the JSON Schema form of a whole parameter list.
func (a *author) rawRoot(m map[string]any, root *frame) *Schema {
	if _, ok := m["properties"]; !ok {
		a.faultIn(root, "properties", "must be an object of schemas; without parameters write properties: {}")
	}
	s := a.rawObject(m, root)
	if s.extra == extraRefused {
		a.faultIn(root, "additionalProperties", "the root is open; leave it out or set it to true")
	}
	return s
}

var shortTypes = []string{"string", "number", "integer", "boolean", "null", "array", "object", "json"}

// short reads a node of the parameter map's form that is no property.
func (a *author) short(v any, at *frame) *Schema {
	m, ok := a.object(v, at, `must be a schema object such as {type: "string"}`)
	if !ok {
		return Any()
	}
	return a.shortNode(m, at)
}

// shortProperty reads a property, which alone can be required.
func (a *author) shortProperty(v any, at *frame) *Schema {
	m, ok := a.object(v, at, `must be a property object such as {type: "string"}`)
	if !ok {
		return Any()
	}
	s := a.shortNode(m, at, "required")
	switch r := m["required"].(type) {
	case nil:
		if _, ok := m["required"]; !ok {
			break
		}
		a.faultIn(at, "required", notTrue)
	case bool:
		if s.required = r; !r {
			a.faultIn(at, "required", notTrue)
		}
	case []any:
		a.faultIn(at, "required", "must be true when present; mark the properties themselves with required: true")
	default:
		a.faultIn(at, "required", notTrue)
	}
	return s
}

const notTrue = "must be true when present; leave it out for what is optional"

func (a *author) shortNode(m map[string]any, at *frame, also ...string) (s *Schema) {
	allowed := func(keys ...string) []string { return slices.Concat(keys, annotations, also) }
	t, typed := m["type"]
	alternatives, hasOneOf := m["oneOf"]
	switch {
	case hasOneOf && (!typed || t == "oneOf"):
		s = a.alternatives(alternatives, at, a.short)
		a.keys(m, at, "beside oneOf", allowed("type", "oneOf")...)
	case isScalar(t):
		s = a.scalar(m, at)
		a.keys(m, at, "for type "+string(s.kind), allowed("type", "enum", "const")...)
	case t == "array":
		s = a.array(m, at, a.short)
		a.keys(m, at, "for type array", allowed("type", "items")...)
	case t == "object":
		s = a.fieldsOf(m, at, "must be an object of property objects", a.shortProperty)
		if s.extra == extraUnsaid {
			a.faultIn(at, "additionalProperties", "must be explicit: true or false")
		}
		a.keys(m, at, "for type object", allowed("type", "properties", "additionalProperties")...)
	case t == "json":
		s = &Schema{kind: kAny}
		a.keys(m, at, "for type json", allowed("type")...)
	default:
		s = Any()
		a.badType(t, typed, at, shortTypes, ", or oneOf without type")
	}
	a.annotate(s, m, at)
	return s
}

// Output reads the schema of a tool's value: a node of the parameter map's form,
// or JSON Schema as [FromJSONSchema] takes it. Any root is allowed; nil is any
// value. UNSUPPORTED_SCHEMA lists every fault below `output.schema`.
func Output(v any) (*Schema, error) {
	if v == nil {
		return &Schema{kind: kAny}, nil
	}
	var short, raw author
	s := short.short(v, new(frame))
	if len(short.list) == 0 {
		return s, nil
	}
	// Of two forms that do not fit, the one with fewer faults was meant.
	if r := raw.raw(v, new(frame)); len(raw.list) < len(short.list) {
		return raw.done(r, "output.schema")
	}
	return short.done(s, "output.schema")
}

var rawTypes = []string{"string", "number", "integer", "boolean", "null", "array", "object"}

// FromJSONSchema reads the subset of JSON Schema that tools use: type, oneOf,
// properties, required, additionalProperties, items, enum, const and the
// annotations description, title, default and examples. Objects are open
// unless they say otherwise, a node without type is any JSON value, any root is
// allowed (T-41, T-43). UNSUPPORTED_SCHEMA lists every fault below `schema`.
func FromJSONSchema(v any) (*Schema, error) {
	var a author
	return a.done(a.raw(v, new(frame)), "schema")
}

func (a *author) raw(v any, at *frame) (s *Schema) {
	m, ok := a.object(v, at, "must be a schema object; {} is any value")
	if !ok {
		return Any()
	}
	allowed := func(keys ...string) []string { return slices.Concat(keys, annotations, []string{"required"}) }
	t, typed := m["type"]
	alternatives, hasOneOf := m["oneOf"]
	switch {
	case t == "object":
		return a.rawObject(m, at)
	case hasOneOf && !typed:
		s = a.alternatives(alternatives, at, a.raw)
		a.keys(m, at, "beside oneOf", allowed("oneOf")...)
	case !typed:
		s = &Schema{kind: kAny}
		a.choices(s, m, at)
		a.keys(m, at, "without type", allowed("enum", "const")...)
	case isScalar(t):
		s = a.scalar(m, at)
		a.keys(m, at, "for type "+string(s.kind), allowed("type", "enum", "const")...)
	case t == "array":
		s = a.array(m, at, a.raw)
		a.keys(m, at, "for type array", allowed("type", "items")...)
	case t == "json":
		s = Any()
		a.faultIn(at, "type", "json is not valid in JSON Schema; leave type out for any value")
	default:
		s = Any()
		a.badType(t, true, at, rawTypes, ", or left out for any value")
	}
	if _, ok := m["required"]; ok {
		a.faultIn(at, "required", "belongs to the containing object: list this name in its required")
	}
	a.annotate(s, m, at)
	return s
}

func (a *author) rawObject(m map[string]any, at *frame) *Schema {
	s := a.fieldsOf(m, at, "must be an object of schemas", a.raw)
	if v, ok := m["required"]; ok {
		f := at.inKey("required")
		const what = "must be a list of declared names"
		if _, flag := v.(bool); flag {
			a.fault(&f, what+"; whether this property is required belongs to the containing object")
		} else if l, ok := a.elements(v, &f, what); ok {
			for i, e := range l {
				fe := f.at(i)
				n, ok := e.(string)
				p, declared := s.fields[n]
				switch {
				case !ok:
					n, why := normal(e)
					a.fault(&fe, what+", has "+orKind(why, n))
				case !declared:
					a.fault(&fe, show(n)+" is not declared in properties")
				default:
					p.required = true
				}
			}
		}
	}
	a.keys(m, at, "for type object", slices.Concat([]string{"type", "properties", "required", "additionalProperties"}, annotations)...)
	a.annotate(s, m, at)
	return s
}

func isScalar(t any) bool {
	return t == "string" || t == "number" || t == "integer" || t == "boolean" || t == "null"
}

func (a *author) scalar(m map[string]any, at *frame) *Schema {
	s := &Schema{kind: kind(m["type"].(string))}
	a.choices(s, m, at)
	return s
}

func (a *author) array(m map[string]any, at *frame, node func(any, *frame) *Schema) *Schema {
	s := &Schema{kind: kArray}
	if items, ok := m["items"]; ok {
		f := at.inKey("items")
		s.item = node(items, &f)
	}
	return s
}

// fieldsOf reads properties and additionalProperties.
func (a *author) fieldsOf(m map[string]any, at *frame, what string, node func(any, *frame) *Schema) *Schema {
	s := &Schema{kind: kObject, extra: extraUnsaid}
	if v, ok := m["properties"]; ok {
		f := at.inKey("properties")
		if p, ok := a.object(v, &f, what); ok {
			s = a.properties(p, &f, node)
		}
	}
	v, said := m["additionalProperties"]
	open, isBool := v.(bool)
	switch {
	case !said:
	case !isBool:
		s.extra = extraTaken
		a.faultIn(at, "additionalProperties", "must be true or false")
	case open:
		s.extra = extraTaken
	default:
		s.extra = extraRefused
	}
	return s
}

// AstreusParameters reads Astreus' ToolParameter map {name: {name, type,
// description, required, enum, properties, items, default}}. Types are string,
// number, boolean, object and array; every parameter has a description; objects
// are open; null passes for a parameter that is not required (A1 to A4). nil is
// a tool without parameters. UNSUPPORTED_SCHEMA lists every fault below
// `parameters`.
func AstreusParameters(v any) (*Schema, error) {
	var a author
	if v == nil {
		v = map[string]any{}
	}
	root := new(frame)
	m, ok := a.object(v, root, "must be an object of parameters {name: {type, description}}")
	if !ok {
		return a.done(nil, "parameters")
	}
	return a.done(a.properties(m, root, a.astreusParameter), "parameters")
}

var astreusTypes = []string{"string", "number", "boolean", "object", "array"}

func (a *author) astreusParameter(v any, at *frame) *Schema {
	s, m := a.astreus(v, at)
	if s.description == "" && m != nil {
		a.faultIn(at, "description", "must have a description, a string that is not empty")
	}
	switch r := m["required"].(type) {
	case nil:
	case bool:
		s.required = r
	default:
		a.faultIn(at, "required", "must be true or false")
	}
	s.nullable = !s.required
	return s
}

func (a *author) astreus(v any, at *frame) (*Schema, map[string]any) {
	m, ok := a.object(v, at, "must be a parameter object {type, description}")
	if !ok {
		return Any(), nil
	}
	s := Any()
	t, typed := m["type"]
	switch t {
	case "string", "number", "boolean":
		s = a.scalar(m, at)
	case "object":
		s = a.fieldsOf(m, at, "must be an object of parameters", a.astreusParameter)
	case "array":
		s = a.array(m, at, func(v any, at *frame) *Schema { s, _ := a.astreus(v, at); return s })
	default:
		a.badType(t, typed, at, astreusTypes, "")
	}
	a.keys(m, at, "in a parameter", "name", "type", "description", "required", "enum", "properties", "items", "default")
	a.annotate(s, m, at)
	return s, m
}
