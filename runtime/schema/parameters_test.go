package schema_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"pgregory.net/rapid"
)

// T-40, X-21: the parameter map becomes JSON Schema.
func TestParameterMap(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{"properties":{},"type":"object"}`,
		`{"city":{"type":"string","required":true,"description":"where","examples":["Seoul"],"title":"City"},"days":{"type":"integer","default":3}}`: `{"properties":{"city":{"description":"where","examples":["Seoul"],"title":"City","type":"string"},"days":{"default":3,"type":"integer"}},"required":["city"],"type":"object"}`,
		`{"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}},"any":{"type":"json"},"all":{"type":"array"}}`:                          `{"properties":{"all":{"items":{},"type":"array"},"any":{},"tags":{"items":{"enum":["a","b"],"type":"string"},"type":"array"}},"type":"object"}`,
		`{"f":{"type":"object","additionalProperties":false,"properties":{"on":{"type":"boolean","required":true}}}}`:                                `{"properties":{"f":{"additionalProperties":false,"properties":{"on":{"type":"boolean"}},"required":["on"],"type":"object"}},"type":"object"}`,
		`{"f":{"type":"object","additionalProperties":true}}`:                                                                                        `{"properties":{"f":{"additionalProperties":true,"properties":{},"type":"object"}},"type":"object"}`,
		`{"x":{"oneOf":[{"type":"number"},{"type":"null"}],"description":"d","required":true}}`:                                                      `{"properties":{"x":{"description":"d","oneOf":[{"type":"number"},{"type":"null"}]}},"required":["x"],"type":"object"}`,
		`{"x":{"type":"number","const":1,"default":null}}`:                                                                                           `{"properties":{"x":{"const":1,"default":null,"type":"number"}},"type":"object"}`,
		`{"type":{"type":"string"},"properties":{"type":"number"},"required":{"type":"boolean"}}`:                                                    `{"properties":{"properties":{"type":"number"},"required":{"type":"boolean"},"type":{"type":"string"}},"type":"object"}`,
		`{"__proto__":{"type":"string","required":true},"constructor":{"type":"null"}}`:                                                              `{"properties":{"__proto__":{"type":"string"},"constructor":{"type":"null"}},"required":["__proto__"],"type":"object"}`,
		`{"x":{"type":"oneOf","oneOf":[{"type":"boolean"},{"type":"null"}]}}`:                                                                        `{"properties":{"x":{"oneOf":[{"type":"boolean"},{"type":"null"}]}},"type":"object"}`,
		// T-41: raw JSON Schema, open below unless it says otherwise.
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}},"required":["b"]},"c":{"additionalProperties":false,"type":"object"}},"required":["a"],"additionalProperties":true,"description":"d"}`: `{"additionalProperties":true,"description":"d","properties":{"a":{"properties":{"b":{}},"required":["b"],"type":"object"},"c":{"additionalProperties":false,"properties":{},"type":"object"}},"required":["a"],"type":"object"}`,
		`{"type":"object","properties":{"e":{"enum":["a",1,null]},"o":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}}`:                                                                         `{"properties":{"e":{"enum":["a",1,null]},"o":{"oneOf":[{"type":"string"},{"items":{"type":"string"},"type":"array"}]}},"type":"object"}`,
	} {
		s, err := schema.Parameters(parse(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := schema.Canonical(s.JSONSchema()); string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
	if s, err := schema.Parameters(nil); err != nil || s.CheckArgs(object{"any": 1.0}) != nil {
		t.Errorf("no parameters: %v", err)
	}
	// Go authors write other element types.
	s, err := schema.Parameters(map[string]any{"type": "object", "properties": map[string]map[string]any{"a": {"type": "string", "enum": []string{"x"}}}, "required": []string{"a"}})
	if err != nil || s.CheckArgs(object{"a": "x"}) != nil || s.CheckArgs(object{}) == nil {
		t.Error(err)
	}
}

var ring = func() object {
	r := object{"type": "array"}
	r["items"] = r
	return object{"r": r}
}()

var ringOfProperties = func() object {
	r := object{}
	r["self"] = object{"type": "object", "additionalProperties": true, "properties": r}
	return r
}()

// T-43, T-46: what is refused, by path, with the reason and,
// where the fault is one of form, what to write instead.
var malformed = []struct {
	in   any
	path string
	hint string
}{
	// not a parameter spec
	{3.0, "parameters", "must be a parameter spec object {name: {type: ...}}, is number"},
	{"city", "parameters", "must be a parameter spec object"},
	{list{object{"name": "city", "type": "string"}}, "parameters", "must be a parameter spec object"},
	{schema.Foreign("an instance of Params"), "parameters", "an instance of Params"},
	{func() {}, "parameters", "must be a parameter spec object"},
	// properties
	{object{"city": "string"}, "parameters.city", `must be a property object such as {type: "string"}, is string`},
	{object{"city": nil}, "parameters.city", "must be a property object"},
	{object{"city": list{}}, "parameters.city", "must be a property object"},
	{object{"odd key": true}, `parameters["odd key"]`, "must be a property object"},
	{object{"city": schema.Foreign("an object with symbol keys: only own enumerable string keys are taken")}, "parameters.city", "only own enumerable string keys"},
	// types
	{object{"city": object{}}, "parameters.city.type", "is missing; one of string, number"},
	{object{"city": object{"type": "str"}}, "parameters.city.type", `unknown type "str", did you mean "string"? (one of string, number, integer, boolean, null, array, object, json, or oneOf without type)`},
	{object{"city": object{"type": "int"}}, "parameters.city.type", `did you mean "integer"?`},
	{object{"city": object{"type": "String"}}, "parameters.city.type", `did you mean "string"?`},
	{object{"city": object{"type": "any"}}, "parameters.city.type", `did you mean "json"?`},
	{object{"city": object{"type": 7.0}}, "parameters.city.type", "unknown type 7"},
	{object{"city": object{"type": schema.Foreign("a function")}}, "parameters.city.type", "unknown type: a function"},
	{object{"city": object{"type": list{"string", "null"}}}, "parameters.city.type", `for several use oneOf: [{type: "string"}, {type: "null"}]`},
	// required
	{object{"city": object{"type": "string", "required": false}}, "parameters.city.required", "must be true when present; leave it out"},
	{object{"city": object{"type": "string", "required": nil}}, "parameters.city.required", "must be true when present"},
	{object{"city": object{"type": "string", "required": "true"}}, "parameters.city.required", "must be true when present"},
	{object{"f": object{"type": "object", "additionalProperties": true, "required": list{"a"}}}, "parameters.f.required", "mark the properties themselves with required: true"},
	// keys of another kind
	{object{"city": object{"type": "string", "items": object{"type": "string"}}}, "parameters.city.items", `is not supported for type string; items needs type: "array"`},
	{object{"n": object{"type": "number", "properties": object{}}}, "parameters.n.properties", `properties needs type: "object"`},
	{object{"n": object{"type": "number", "minimum": 1.0}}, "parameters.n.minimum", "is not supported for type number; say it in the description"},
	{object{"a": object{"type": "array", "enum": list{1.0}}}, "parameters.a.enum", "enum is for string"},
	{object{"a": object{"type": "json", "const": 1.0}}, "parameters.a.const", "const is for string"},
	{object{"a": object{"type": "string", "descripton": "x"}}, "parameters.a.descripton", `did you mean "description"?`},
	{object{"a": object{"type": "string", "anyOf": list{}}}, "parameters.a.anyOf", "use oneOf"},
	{object{"a": object{"type": "string", "optional": true}}, "parameters.a.optional", "what is not required is optional"},
	{object{"a": object{"type": "string", "description": 4.0}}, "parameters.a.description", "must be a string, is number"},
	{object{"a": object{"type": "string", "zzz": 4.0}}, "parameters.a.zzz", "is not supported for type string; remove it"},
	{object{"a": object{"type": "string", "oneOf": list{}}}, "parameters.a.oneOf", "oneOf stands without type"},
	// objects
	{object{"f": object{"type": "object"}}, "parameters.f.additionalProperties", "must be explicit: true or false"},
	{object{"f": object{"type": "object", "additionalProperties": object{"type": "string"}}}, "parameters.f.additionalProperties", "must be true or false"},
	{object{"f": object{"type": "object", "additionalProperties": true, "properties": list{}}}, "parameters.f.properties", "must be an object of property objects"},
	{object{"f": object{"type": "object", "additionalProperties": true, "properties": object{"a": object{"type": "array", "items": object{"type": "string", "required": true}}}}}, "parameters.f.properties.a.items.required", "is not supported for type string"},
	// raw JSON Schema
	{object{"type": "object"}, "parameters.properties", "must be an object of schemas; without parameters write properties: {}"},
	{object{"properties": object{"a": object{"type": "string"}}}, "parameters.type", `JSON Schema needs type: "object"`},
	{object{"type": "object", "properties": list{}}, "parameters.properties", "must be an object of schemas"},
	{object{"type": "object", "properties": object{}, "additionalProperties": false}, "parameters.additionalProperties", "the root is open"},
	{raw(object{"type": "object", "properties": 1.0}), "parameters.properties.x.properties", "must be an object of schemas"},
	{raw(object{"type": "object", "additionalProperties": "no"}), "parameters.properties.x.additionalProperties", "must be true or false"},
	{raw(object{"type": "object", "required": nil}), "parameters.properties.x.required", "must be a list of declared names"},
	{raw(object{"type": "object", "required": schema.Foreign("a list with holes")}), "parameters.properties.x.required", "a list with holes"},
	{raw(object{"type": "object", "required": list{1.0}}), "parameters.properties.x.required[0]", "must be a list of declared names"},
	{raw(object{"type": "object", "properties": object{"a": object{}}, "required": list{"a", "b"}}), "parameters.properties.x.required[1]", `"b" is not declared in properties`},
	{raw(object{"type": "string", "required": true}), "parameters.properties.x.required", "belongs to the containing object"},
	{raw(object{"type": "object", "required": true}), "parameters.properties.x.required", "belongs to the containing object"},
	{raw(object{"type": "json"}), "parameters.properties.x.type", "json is not valid in JSON Schema; leave type out"},
	{raw(object{"type": "integr"}), "parameters.properties.x.type", `did you mean "integer"?`},
	{raw(object{"anyOf": list{}}), "parameters.properties.x.anyOf", "use oneOf"},
	{raw(object{"$ref": "#/x"}), "parameters.properties.x.$ref", "write the schema out"},
	{raw(true), "parameters.properties.x", "must be a schema object; {} is any value, is boolean"},
	// oneOf
	{object{"x": object{"oneOf": object{}}}, "parameters.x.oneOf", "at least two schemas, is object"},
	{object{"x": object{"oneOf": list{object{"type": "string"}}}}, "parameters.x.oneOf", "at least two"},
	{object{"x": object{"oneOf": schema.Foreign("an instance of MyList")}}, "parameters.x.oneOf", "an instance of MyList"},
	{object{"x": object{"oneOf": list{object{"type": "string"}, object{"type": "string", "required": true}}}}, "parameters.x.oneOf[1].required", "is not supported"},
	{object{"x": object{"oneOf": list{object{"type": "string"}, 4.0}}}, "parameters.x.oneOf[1]", "must be a schema object"},
	// enum, const, default, examples
	{object{"x": object{"type": "string", "enum": list{}}}, "parameters.x.enum", "not empty"},
	{object{"x": object{"type": "string", "enum": "a"}}, "parameters.x.enum", "must be a list of values that is not empty, is string"},
	{object{"x": object{"type": "string", "enum": list{"a", 1.0}}}, "parameters.x.enum[1]", "does not fit type string: is number"},
	{object{"x": object{"type": "integer", "const": 1.5}}, "parameters.x.const", "does not fit type integer"},
	{object{"x": object{"type": "number", "enum": list{math.Copysign(0, -1)}}}, "parameters.x.enum[0]", "not JSON without loss: -0"},
	{object{"x": object{"type": "number", "const": math.Inf(1)}}, "parameters.x.const", "infinite"},
	{object{"x": object{"type": "json", "default": func() {}}}, "parameters.x.default", "not JSON without loss"},
	{object{"x": object{"type": "json", "default": object{"at": schema.Foreign("a Date")}}}, "parameters.x.default.at", "a Date"},
	{object{"x": object{"type": "json", "examples": list{list{math.NaN()}}}}, "parameters.x.examples[0][0]", "NaN"},
	{object{"x": object{"type": "json", "examples": "none"}}, "parameters.x.examples", "must be a list"},
	{object{"x": object{"type": "json", "default": ring}}, "parameters.x.default.r.items", "cycle"},
	// cycles
	{ring, "parameters.r.items", "circular"},
	{ringOfProperties, "parameters.self.properties", "circular"},
}

func raw(x any) any { return object{"type": "object", "properties": object{"x": x}} }

func TestParametersRefuses(t *testing.T) {
	for _, c := range malformed {
		_, err := schema.Parameters(c.in)
		var vs schema.Violations
		errors.As(err, &vs)
		if !errors.Is(err, seams.UnsupportedSchema) || len(vs) != 1 || vs[0].Path.In("parameters") != c.path || !strings.Contains(vs[0].Msg, c.hint) {
			t.Errorf("%s with %q: got %v", c.path, c.hint, err)
		}
	}
}

// T-43: all violations are reported together.
func TestParametersReportsAll(t *testing.T) {
	all := object{}
	for _, c := range malformed {
		if m, ok := c.in.(object); ok && len(m) == 1 {
			for k, v := range m {
				if k != "properties" {
					all[k+" "+c.path] = v
				}
			}
		}
	}
	_, err := schema.Parameters(all)
	var vs schema.Violations
	if errors.As(err, &vs); len(vs) != len(all)-0 {
		t.Errorf("%d violations of %d faults: %v", len(vs), len(all), err)
	}
}

// T-45: what throws when it is read arrives as Foreign and is a violation.
func TestHostileGetters(t *testing.T) {
	getter := schema.Foreign("a getter that threw")
	s, err := schema.FromJSONSchema(object{"type": "object", "properties": object{"a": object{"type": "string"}, "b": object{}}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.CheckArgs(object{"a": getter, "b": getter})
	if want := "arguments.a: expected string, got a getter that threw; arguments.b: not JSON without loss: a getter that threw [INVALID_ARGS]"; err == nil || err.Error() != want {
		t.Error(err)
	}
	for _, key := range []string{"type", "properties", "required", "additionalProperties", "oneOf", "items", "enum", "const", "default", "examples", "description"} {
		if _, err := schema.FromJSONSchema(object{"type": "object", key: getter}); !errors.Is(err, seams.UnsupportedSchema) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// T-44
func TestCheckArgs(t *testing.T) {
	s, err := schema.Parameters(parse(t, `{
		"city":{"type":"string","required":true,"enum":["Seoul","Busan"]},
		"days":{"type":"integer"},
		"flag":{"type":"boolean","const":true},
		"no":{"type":"null"},
		"tags":{"type":"array","items":{"type":"string"}},
		"closed":{"type":"object","additionalProperties":false,"properties":{"a":{"type":"number","required":true},"hasOwnProperty":{"type":"number"}}},
		"open":{"type":"object","additionalProperties":true,"properties":{"toString":{"type":"number","required":true}}},
		"one":{"oneOf":[{"type":"number"},{"type":"integer"},{"type":"string","const":"x"}]},
		"alt":{"oneOf":[{"type":"string"},{"type":"object","additionalProperties":false,"properties":{"k":{"type":"string","required":true}}}]},
		"any":{"type":"json"}}`))
	if err != nil {
		t.Fatal(err)
	}
	with := func(k string, v any) any { return object{"city": "Seoul", k: v} }
	for _, c := range []struct {
		in   any
		want string
	}{
		{object{"city": "Seoul", "undeclared": 1.0}, ""},
		{with("any", object{"deep": list{nil}}), ""},
		{with("no", nil), ""},
		{with("days", 3.0), ""},
		{with("one", 1.5), ""},
		{with("one", "x"), ""},
		{with("alt", object{"k": "v"}), ""},
		{with("open", object{"toString": 1.0, "more": nil}), ""},
		{object{}, "arguments.city: is required"},
		{object{"city": "Paris"}, `arguments.city: must be one of "Seoul", "Busan"`},
		{object{"city": nil}, `arguments.city: must be one of "Seoul", "Busan"`},
		{with("days", 3.5), "arguments.days: expected integer, got a number with a fraction"},
		{with("days", nil), "arguments.days: expected integer, got null"},
		{with("days", "3"), "arguments.days: expected integer, got string"},
		{with("flag", false), "arguments.flag: must be true"},
		{with("no", 0.0), "arguments.no: expected null, got number"},
		{with("tags", list{"a", 1.0, nil}), "arguments.tags[1]: expected string, got number; quote it if it is meant as text; arguments.tags[2]: expected string, got null"},
		{with("closed", object{"b": 1.0, "toString": 1.0}), `arguments.closed.a: is required; arguments.closed.b: unknown key; known: "a", "hasOwnProperty"; arguments.closed.toString: unknown key; known: "a", "hasOwnProperty"`},
		{with("open", object{}), "arguments.open.toString: is required"},
		{with("one", 1.0), "arguments.one: must match exactly one of 3 alternatives, matches 2"},
		{with("one", true), "arguments.one: must match exactly one of 3 alternatives, matches 0"},
		{with("alt", object{"z": 1.0}), `arguments.alt.k: is required; arguments.alt.z: unknown key; known: "k"`},
		{with("any", math.NaN()), "arguments.any: not JSON without loss: NaN"},
		{list{}, "arguments: expected object, got array"},
		{nil, "arguments: expected object, got null"},
	} {
		err := s.CheckArgs(c.in)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.in, err)
		case c.want != "" && (!errors.Is(err, seams.InvalidArgs) || err.Error() != c.want+" [INVALID_ARGS]"):
			t.Errorf("%v\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

// T-46, X-21, X-23: thousands of levels in all three forms and in the value.
func TestDeepParameters(t *testing.T) {
	short, rawForm, value := any(object{"type": "number"}), any(object{"type": "number"}), any(1.0)
	for i := range 3000 {
		if i%2 == 0 {
			short = object{"oneOf": list{object{"type": "array", "items": short}, object{"type": "null"}}}
			rawForm = object{"oneOf": list{object{"type": "array", "items": rawForm}, object{"type": "null"}}}
			value = list{value}
		} else {
			short = object{"type": "object", "additionalProperties": false, "properties": object{"x": short}}
			rawForm = object{"type": "object", "properties": object{"x": rawForm}}
			value = object{"x": value}
		}
	}
	for name, in := range map[string]any{"short": object{"p": short}, "raw": raw(rawForm)} {
		s, err := schema.Parameters(in)
		if err != nil {
			t.Fatalf("%s: %.300v", name, err)
		}
		if err := s.CheckArgs(object{"p": value, "x": value}); err != nil {
			t.Errorf("%s: %.300v", name, err)
		}
		if err := s.CheckArgs(object{"p": list{value}, "x": list{value}}); !errors.Is(err, seams.InvalidArgs) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.300v", name, err)
		}
		s.JSONSchema()
	}
	for range 20_000 {
		short = object{"type": "array", "items": short}
	}
	if _, err := schema.Parameters(object{"p": short}); !errors.Is(err, seams.UnsupportedSchema) || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("%.300v", err)
	}
}

func TestOutput(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                              `{}`,
		`{}`:                                `{}`,
		`{"type":"string"}`:                 `{"type":"string"}`,
		`{"type":"json","description":"d"}`: `{"description":"d"}`,
		`{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string","required":true}}}`: `{"additionalProperties":false,"properties":{"id":{"type":"string"}},"required":["id"],"type":"object"}`,
		`{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]}`:                      `{"properties":{"total":{"type":"number"}},"required":["total"],"type":"object"}`,
		`{"type":"array","items":{"type":"object","properties":{"a":{"enum":[1,"x"]}}}}`:                       `{"items":{"properties":{"a":{"enum":[1,"x"]}},"type":"object"},"type":"array"}`,
	} {
		s, err := schema.Output(parse(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := schema.Canonical(s.JSONSchema()); string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`"string"`:       `output.schema: must be a schema object`,
		`{"type":"str"}`: `output.schema.type: unknown type "str", did you mean "string"?`,
		`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["c"]}`: `output.schema.required[0]: "c" is not declared`,
	} {
		if _, err := schema.Output(parse(t, text)); !errors.Is(err, seams.UnsupportedSchema) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
	s, _ := schema.Output(object{"type": "object", "additionalProperties": false, "properties": object{}})
	if got := s.Check(object{"secret": 1.0}).In("value"); got != "value.secret: unknown key; none are expected here" {
		t.Error(got)
	}
}

// A1 to A4 of the Astreus reference.
func TestAstreusParameters(t *testing.T) {
	s, err := schema.AstreusParameters(parse(t, `{
		"location":{"name":"location","type":"string","description":"City","required":true},
		"units":{"name":"units","type":"string","description":"Units","required":false,"enum":["celsius","fahrenheit"],"default":"celsius"},
		"options":{"name":"options","type":"object","description":"o","properties":{"limit":{"name":"limit","type":"number","description":"l","required":true}}},
		"fields":{"name":"fields","type":"array","description":"f","items":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{` +
		`"fields":{"description":"f","items":{"type":"string"},"type":"array"},` +
		`"location":{"description":"City","type":"string"},` +
		`"options":{"description":"o","properties":{"limit":{"description":"l","type":"number"}},"required":["limit"],"type":"object"},` +
		`"units":{"default":"celsius","description":"Units","enum":["celsius","fahrenheit"],"type":"string"}},` +
		`"required":["location"],"type":"object"}`
	if got, _ := schema.Canonical(s.JSONSchema()); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, c := range []struct {
		in   any
		want string
	}{
		{object{"location": "Seoul"}, ""},
		{object{"location": "Seoul", "units": nil, "unknown": 1.0}, ""},
		{object{"units": "celsius"}, "arguments.location: is required"},
		{object{"location": nil}, "arguments.location: expected string, got null"},
		{object{"location": "x", "units": "kelvin"}, `arguments.units: must be one of "celsius", "fahrenheit"`},
		{object{"location": "x", "options": object{}}, "arguments.options.limit: is required"},
		{object{"location": "x", "fields": list{"a", nil}}, "arguments.fields[1]: expected string, got null"},
	} {
		err := s.CheckArgs(c.in)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want+" [INVALID_ARGS]") {
			t.Errorf("%v: got %v; want %s", c.in, err, c.want)
		}
	}
	// Resolve applies defaults, for callers that want Astreus' manners.
	if got, err := s.Resolve(object{"location": "Seoul"}); err != nil || !reflect.DeepEqual(got, object{"location": "Seoul", "units": "celsius"}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		`[]`:                      "parameters: must be an object of parameters",
		`{"a":"string"}`:          "parameters.a: must be a parameter object",
		`{"a":{"type":"string"}}`: "parameters.a.description: must have a description",
		`{"a":{"type":"string","description":""}}`:                                       "parameters.a.description: must have a description",
		`{"a":{"type":"integer","description":"d"}}`:                                     `parameters.a.type: unknown type "integer"`,
		`{"a":{"type":"string","description":"d","required":"yes"}}`:                     "parameters.a.required: must be true or false",
		`{"a":{"type":"array","description":"d","items":{"type":"x"}}}`:                  `parameters.a.items.type: unknown type "x"`,
		`{"a":{"type":"string","description":"d","enum":[1]}}`:                           "parameters.a.enum[0]: does not fit type string",
		`{"a":{"type":"string","description":"d","minimum":1}}`:                          "parameters.a.minimum: is not supported",
		`{"a":{"type":"object","description":"d","properties":{"b":{"type":"number"}}}}`: "parameters.a.properties.b.description: must have a description",
	} {
		if _, err := schema.AstreusParameters(parse(t, text)); !errors.Is(err, seams.UnsupportedSchema) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
	if s, err := schema.AstreusParameters(nil); err != nil || s.CheckArgs(object{}) != nil {
		t.Error(err)
	}
}

// shortNode draws a node of the parameter map.
func shortNode(t *rapid.T, depth int, property bool) object {
	n := object{}
	k := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth > 0 {
		k = rapid.IntRange(0, 8).Draw(t, "kind")
	}
	switch k {
	case 0, 1, 2, 3, 4:
		n["type"] = []string{"string", "number", "integer", "boolean", "null"}[k]
		if k == 0 && rapid.Bool().Draw(t, "enum") {
			n["enum"] = list{"a", "b"}
		}
	case 5:
		n["type"] = "json"
	case 6:
		n["type"] = "array"
		n["items"] = shortNode(t, depth-1, false)
	case 7:
		n["type"] = "object"
		n["additionalProperties"] = rapid.Bool().Draw(t, "open")
		n["properties"] = shortMap(t, depth-1)
	case 8:
		// Alternatives that exclude each other, so that a fitting value is easy to draw.
		n["oneOf"] = list{object{"type": "boolean"}, object{"type": "array", "items": shortNode(t, depth-1, false)}, object{"type": "string"}}
	}
	if property && rapid.Bool().Draw(t, "required") {
		n["required"] = true
	}
	if rapid.Bool().Draw(t, "described") {
		n["description"] = "d"
	}
	return n
}

func shortMap(t *rapid.T, depth int) object {
	out := object{}
	for range rapid.IntRange(0, 3).Draw(t, "properties") {
		out[drawKey(t)] = shortNode(t, depth, true)
	}
	return out
}

// T-47
func TestParameterLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := shortMap(t, 3)
		if m, ok := spec["properties"].(object); ok && m["type"] == nil {
			t.Skip("reads as JSON Schema")
		}
		s, err := schema.Parameters(spec)
		if err != nil {
			t.Fatal(err)
		}
		js := s.JSONSchema()
		args := drawFor(t, js, 0).(object)
		if err := s.CheckArgs(args); err != nil {
			t.Fatalf("%v does not fit %v: %v", args, js, err)
		}
		for _, k := range sorted(spec) {
			v, present := args[k]
			delete(args, k)
			err := s.CheckArgs(args)
			if required := spec[k].(object)["required"] == true; (err != nil) != required {
				t.Fatalf("without %q, required %v: %v", k, required, err)
			}
			if present {
				args[k] = v
			}
		}
		// The JSON Schema means what the map meant, and reading it changes nothing.
		again, err := schema.FromJSONSchema(js)
		if err != nil || !reflect.DeepEqual(again.JSONSchema(), js) {
			t.Fatalf("%v read again is %v, %v", js, again, err)
		}
		v := drawFor(t, js, 5)
		if one, two := s.Check(v), again.Check(v); !reflect.DeepEqual(one, two) {
			t.Fatalf("%v: %v by the map, %v by JSON Schema", v, one, two)
		}
		if _, isObject := v.(object); !isObject && s.CheckArgs(v) == nil {
			t.Fatalf("%v is no object and passes", v)
		}
	})
}

// T-47: conversion and validation are total.
func FuzzParameters(f *testing.F) {
	f.Add([]byte(`{"city":{"type":"string","required":true},"x":{"oneOf":[{"type":"null"},{"type":"array","items":{"type":"json"}}]}}`), []byte(`{"city":"Seoul"}`))
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"object","required":["b"],"properties":{"b":{}}}}}`), []byte(`{"a":{}}`))
	f.Add([]byte(`{"a":{"name":"a","type":"string","description":"d","required":false,"enum":["x"]}}`), []byte(`{"a":null}`))
	f.Fuzz(func(t *testing.T, specText, argsText []byte) {
		spec, err1 := schema.Parse(specText)
		args, err2 := schema.Parse(argsText)
		if err1 != nil || err2 != nil {
			t.Skip("not JSON")
		}
		for _, read := range []func(any) (*schema.Schema, error){schema.Parameters, schema.Output, schema.FromJSONSchema, schema.AstreusParameters} {
			s, err := read(spec)
			if err != nil {
				var vs schema.Violations
				if !errors.Is(err, seams.UnsupportedSchema) || !errors.As(err, &vs) || len(vs) == 0 {
					t.Fatal(err)
				}
				continue
			}
			if err := s.Err(); err != nil {
				t.Fatal(err)
			}
			js := s.JSONSchema()
			if _, err := json.Marshal(js); err != nil {
				t.Fatal(err)
			}
			again, err := schema.FromJSONSchema(js)
			if err != nil {
				t.Fatalf("%s becomes %v: %v", specText, js, err)
			}
			if one, two := s.Check(args), again.Check(args); len(one) != len(two) && !strings.Contains(string(argsText), "null") {
				t.Fatalf("%v and %v", one, two)
			}
			if err := s.CheckArgs(args); err != nil && !errors.Is(err, seams.InvalidArgs) {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkCheckArgs(b *testing.B) {
	s, err := schema.Parameters(object{
		"path": object{"type": "string", "required": true}, "limit": object{"type": "integer"},
		"tags": object{"type": "array", "items": object{"type": "string"}},
		"deep": object{"type": "object", "additionalProperties": false, "properties": object{"x": object{"type": "boolean"}, "y": object{"type": "null"}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	v := object{"path": "invoices/a.txt", "limit": 10.0, "tags": list{"a", "b"}, "deep": object{"x": true, "y": nil}}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.CheckArgs(v); err != nil {
			b.Fatal(err)
		}
	}
}
