package schema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

func parse(t testing.TB, text string) any {
	t.Helper()
	v, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What Schema.object({...}) of a JavaScript plugin looks like as JSON.
const pluginConfig = `{"type":"object","meta":{"default":{}},"dict":{
	"apiKey":{"type":"string","meta":{"required":true,"role":"secret"}},
	"models":{"type":"array","inner":{"type":"string","meta":{}},"meta":{"default":[],"required":true}},
	"retries":{"type":"number","meta":{"step":1,"min":0,"default":2,"description":{"":"how often","de":"wie oft"}}},
	"size":{"type":"natural","meta":{"max":9,"badges":[],"link":"x","collapse":true}},
	"mode":{"type":"union","list":["fast",{"type":"const","value":"slow","meta":{"required":true}}],"meta":{"default":"fast"}},
	"word":{"type":"string","meta":{"pattern":{"source":"^[\\u0041-z]+\\/$","flags":"i"}}},
	"headers":{"type":"dict","sKey":{"type":"string","meta":{"pattern":{"source":"^x-","flags":""}}},"inner":{"type":"string"}},
	"pair":{"type":"tuple","list":[{"type":"number"},{"type":"boolean"}]},
	"both":{"type":"intersect","list":[{"type":"object","dict":{"a":{"type":"number","meta":{"default":1}}}},{"type":"object","dict":{"b":null}}]},
	"none":{"type":"object","dict":{"a":{"type":"number"}},"meta":{"default":null}},
	"null":{"type":"const","value":null}
}}`

func TestLoad(t *testing.T) {
	s, err := schema.Load(parse(t, pluginConfig))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Resolve(object{"apiKey": "k", "models": list{"m"}, "word": "ABC/", "headers": object{"x-a": "1"}, "null": 4})
	want := object{"apiKey": "k", "models": list{"m"}, "retries": 2.0, "mode": "fast", "word": "ABC/", "headers": object{"x-a": "1"},
		"pair": list{}, "both": object{"a": 1.0}, "null": 4.0}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
	_, err = s.Resolve(object{"retries": 0.5, "size": 10, "mode": "odd", "word": "1", "headers": object{"y": "1"}, "both": object{"c": 1}})
	const all = `config.apiKey: is required; config.both.c: unknown key; known: "a", "b"; config.headers.y: the key must match ^x-; ` +
		`config.mode: must be one of "fast", "slow"; config.models: is required; config.retries: must be a multiple of 1; ` +
		`config.size: must be at most 9; config.word: must match (?i)^[\x{0041}-z]+\/$ [INVALID_CONFIG]`
	if err == nil || err.Error() != all {
		t.Errorf("got  %v\nwant %s", err, all)
	}
	if d := s.JSONSchema()["properties"].(object)["retries"].(object)["description"]; d != "how often" {
		t.Errorf("description %v", d)
	}
	if d, ok := s.JSONSchema()["default"]; ok {
		t.Errorf("the empty default of a container is shown: %v", d)
	}
	for _, simple := range []any{nil, object{"type": "any"}} {
		if s, err := schema.Load(simple); err != nil || s.Check(object{"x": 1.0}) != nil {
			t.Errorf("Load(%v): %v", simple, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:               "Config: must be a schema such as Schema.string(), is array",
		`{}`:               "Config: type null is not supported; use one of any",
		`{"type":"sting"}`: `Config: type "sting" is not supported, did you mean "string"?`,
		`{"type":"transform","inner":{"type":"string"}}`: `Config: type "transform" is not supported; use one of`,
		`{"type":"object","properties":{}}`:              "Config: is JSON Schema; write Schema.object({...})",
		`{"type":"object"}`:                              "Config: an object needs dict",
		`{"type":"union"}`:                               "Config: union needs list",
		`{"type":"object","dict":{"a":{"type":"string","meta":{"pattern":{}}}}}`:          "Config.a: meta.pattern cannot be object",
		`{"type":"object","dict":{"a":{"type":"string","meta":{"min":"1"}}}}`:             "Config.a: meta.min cannot be string",
		`{"type":"object","dict":{"a":{"type":"string","meta":{"required":1}}}}`:          "Config.a: meta.required cannot be number",
		`{"type":"object","dict":{"a":{"type":"string","meta":{"default":1}}}}`:           "Config.a.default: the default does not fit: expected string, got number",
		`{"type":"object","dict":{"a":{"type":"string","meta":3}}}`:                       "Config.a: meta must be an object, is number",
		`{"type":"array","inner":{"type":"x"}}`:                                           "Config.inner: type \"x\" is not supported",
		`{"type":"object","dict":{"b":{"type":"x"},"a":{"type":"y"}}}`:                    "Config.a: type \"y\" is not supported; use one of any, array, boolean, const, dict, intersect, natural, number, object, string, tuple, union; Config.b: type",
		`{"type":"string","meta":{"pattern":{"source":"(?<!a)b","flags":""}}}`:            "lookaround and backreferences are not supported",
		`{"type":"tuple","list":[{"type":"string"},{"type":"boolean","meta":{"max":1}}]}`: "Config[1]: max does not apply to boolean",
	} {
		if _, err := schema.Load(parse(t, text)); !errors.Is(err, seams.UnsupportedSchema) || !strings.HasPrefix(err.Error(), "Config") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	ring := object{"type": "object"}
	ring["dict"] = object{"self": ring}
	if _, err := schema.Load(ring); !errors.Is(err, seams.UnsupportedSchema) || !strings.Contains(err.Error(), "cycle") {
		t.Error(err)
	}
	if _, err := schema.Load(object{"type": schema.Foreign("a function")}); !errors.Is(err, seams.UnsupportedSchema) || !strings.Contains(err.Error(), "a function") {
		t.Error(err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(pluginConfig), []byte(`{"apiKey":"k","models":["m"]}`))
	f.Add([]byte(`{"type":"union","list":["a",1,true,null]}`), []byte(`"a"`))
	f.Fuzz(func(t *testing.T, schemaText, valueText []byte) {
		form, err1 := schema.Parse(schemaText)
		v, err2 := schema.Parse(valueText)
		if err1 != nil || err2 != nil {
			t.Skip("not JSON")
		}
		s, err := schema.Load(form)
		if err != nil {
			if !errors.Is(err, seams.UnsupportedSchema) {
				t.Fatal(err)
			}
			return
		}
		if _, err := json.Marshal(s.JSONSchema()); err != nil {
			t.Fatal(err)
		}
		got, err := s.Resolve(v)
		if err != nil {
			if !errors.Is(err, seams.InvalidConfig) {
				t.Fatal(err)
			}
			return
		}
		if again, err := s.Resolve(got); err != nil || !schema.Equal(again, got) {
			t.Fatalf("resolving %#v again is %#v, %v", got, again, err)
		}
	})
}
