package schema_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"pgregory.net/rapid"
)

var adapter = schema.Object(schema.Fields{
	"apiKey":  schema.String().Role("secret").Required(),
	"models":  schema.Array(schema.String().Required()).Min(1),
	"retries": schema.Natural().Max(10).Default(2),
	"mode":    schema.Union(schema.Const("fast"), schema.Const("slow")).Default("fast"),
	"limits": schema.Object(schema.Fields{
		"ratio": schema.Number().Min(0).Max(1).Step(0.1).Default(0.5),
		"name":  schema.String().Pattern("^[a-z]+$"),
	}),
	"headers": schema.Dict(schema.String()),
	"pair":    schema.Tuple(schema.String(), schema.Integer().Default(7)),
	"debug":   schema.Boolean(),
	"extra":   schema.Any(),
	"either": schema.Union(
		schema.Object(schema.Fields{"kind": schema.Const("file").Required(), "path": schema.String().Required()}),
		schema.Object(schema.Fields{"kind": schema.Const("url").Required(), "url": schema.String().Required(), "tries": schema.Natural().Default(1)}),
	),
})

func TestResolveFillsDefaults(t *testing.T) {
	raw := object{"apiKey": "k", "models": []string{"m"}, "pair": list{"x"}, "extra": nil, "debug": nil, "retries": nil,
		"either": object{"kind": "url", "url": "u"}}
	got, err := adapter.Resolve(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := object{
		"apiKey": "k", "models": list{"m"}, "retries": 2.0, "mode": "fast", "limits": object{"ratio": 0.5},
		"headers": object{}, "pair": list{"x", 7.0}, "extra": nil, "debug": nil,
		"either": object{"kind": "url", "url": "u", "tries": 1.0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if raw["retries"] != nil || len(raw["either"].(object)) != 2 {
		t.Errorf("Resolve changed its argument: %v", raw)
	}
	scribble(got)
	if again, _ := adapter.Resolve(raw); !reflect.DeepEqual(again, want) {
		t.Errorf("changing a result changed the schema: %v", again)
	}
}

func TestResolveNamesEveryViolation(t *testing.T) {
	base := func(change object) object {
		v := object{"apiKey": "k", "models": list{"m"}}
		for k, e := range change {
			if v[k] = e; e == "absent" {
				delete(v, k)
			}
		}
		return v
	}
	for _, c := range []struct {
		in    any
		wants []string // "path [rule] part of the message"
	}{
		{object{}, []string{"apiKey [required]", "models [range] at least 1 elements"}},
		{base(object{"apiKey": nil}), []string{"apiKey [required]"}},
		{base(object{"apiKey": 12}), []string{"apiKey [type] expected string, got number; quote it"}},
		{base(object{"models": "m"}), []string{"models [type] expected array, got string"}},
		{base(object{"models": list{"a", nil, 3}}), []string{"models[1] [required]", "models[2] [type]"}},
		{base(object{"retries": 1.5}), []string{"retries [type] expected integer, got a number with a fraction"}},
		{base(object{"retries": -1}), []string{"retries [range] at least 0"}},
		{base(object{"retries": 11}), []string{"retries [range] at most 10"}},
		{base(object{"mode": "fsat"}), []string{`mode [union] one of "fast", "slow"`}},
		{base(object{"limits": object{"ratio": 0.25}}), []string{"limits.ratio [range] multiple of 0.1"}},
		{base(object{"limits": object{"ratio": 0.3}}), nil},
		{base(object{"limits": object{"name": "A"}}), []string{"limits.name [range] must match"}},
		{base(object{"limits": list{}}), []string{"limits [type] expected object, got array"}},
		{base(object{"headers": object{"x": 1}}), []string{"headers.x [type]"}},
		{base(object{"pair": list{"a", 1, 2}}), []string{"pair[2] [unknown]"}},
		{base(object{"debug": "false"}), []string{"debug [type] expected boolean (true or false), got string"}},
		{base(object{"retrys": 1}), []string{`retrys [unknown] did you mean "retries"?`}},
		{base(object{"zzz": 1}), []string{`zzz [unknown] known: "apiKey", "debug"`}},
		{base(object{"either": object{"kind": "url"}}), []string{"either.url [required]"}},
		{base(object{"either": object{"kind": "odd"}}), []string{"either [union] none of 2"}},
		{base(object{"extra": func() {}}), []string{"extra [json] not JSON"}},
		{"text", []string{" [type] expected object, got string"}},
	} {
		_, err := adapter.Resolve(c.in)
		var vs schema.Violations
		errors.As(err, &vs)
		if len(vs) != len(c.wants) || (err != nil) != errors.Is(err, seams.InvalidConfig) {
			t.Errorf("%v: got %v; want %q", c.in, err, c.wants)
			continue
		}
		for i, want := range c.wants {
			path, rest, _ := strings.Cut(want, " [")
			rule, msg, _ := strings.Cut(rest, "]")
			if vs[i].Path.In("") != path || string(vs[i].Rule) != rule || !strings.Contains(vs[i].Msg, strings.TrimSpace(msg)) {
				t.Errorf("%v: got %v; want %s", c.in, vs[i], want)
			}
			if !strings.Contains(err.Error(), vs[i].Path.In("config")+": "+vs[i].Msg) {
				t.Errorf("%v does not tell %s", err, vs[i].Path.In("config"))
			}
		}
	}
}

func TestMessagesNeverShowTheValue(t *testing.T) {
	const secret = "sk-verysecret"
	for name, s := range map[string]*schema.Schema{
		"type": schema.Number(), "enum": schema.Enum("a"), "const": schema.Const("a"), "pattern": schema.String().Pattern("^x$"),
		"max": schema.String().Max(3), "union": schema.Union(schema.Number(), schema.Boolean()), "object": adapter, "intersect": schema.Intersect(adapter),
	} {
		if _, err := s.Resolve(secret); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIntersect(t *testing.T) {
	s := schema.Intersect(
		schema.Object(schema.Fields{"type": schema.Union(schema.Const("a"), schema.Const("b")).Default("a"), "common": schema.String().Default("c")}),
		schema.Union(
			schema.Object(schema.Fields{"type": schema.Const("a").Required(), "x": schema.Number().Default(1)}),
			schema.Object(schema.Fields{"type": schema.Const("b").Required(), "y": schema.String().Required()}),
		),
	)
	for _, c := range []struct {
		in   any
		want any
		err  string
	}{
		{nil, object{"type": "a", "common": "c", "x": 1.0}, ""},
		{object{"x": 5}, object{"type": "a", "common": "c", "x": 5.0}, ""},
		{object{"type": "b", "y": "z"}, object{"type": "b", "common": "c", "y": "z"}, ""},
		{object{"type": "b"}, nil, "config.y: is required"},
		{object{"type": "b", "y": "z", "x": 1}, nil, "config.x: unknown key"},
		{object{"type": "c", "y": 1}, nil, `config.type: must be one of "a", "b"; config: matches none of 2 alternatives, got object [INVALID_CONFIG]`},
		{object{"comon": "z"}, nil, `config.comon: unknown key, did you mean "common"?`},
		{3, nil, "config: expected object, got number [INVALID_CONFIG]"},
	} {
		got, err := s.Resolve(c.in)
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%v: got %v, %v; want %v, %q", c.in, got, err, c.want, c.err)
		}
	}
}

// What one pass fills in may make an earlier alternative fit.
func TestResolveIsIdempotentAcrossAlternatives(t *testing.T) {
	s := schema.Union(
		schema.Object(schema.Fields{"a": schema.String().Required(), "b": schema.Number().Default(1)}),
		schema.Object(schema.Fields{"a": schema.String().Default("x")}),
	)
	got, err := s.Resolve(object{})
	if want := (object{"a": "x", "b": 1.0}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestAbsentContainers(t *testing.T) {
	s := schema.Object(schema.Fields{
		"empty": schema.Object(schema.Fields{"a": schema.Number()}),
		"none":  schema.Object(schema.Fields{"a": schema.Number().Required()}).Default(nil),
		"open":  schema.Object(schema.Fields{}).Open(),
		"must":  schema.Object(schema.Fields{}).Required(),
	})
	got, err := s.Resolve(object{"must": object{}, "open": object{"k": 1}})
	if want := (object{"empty": object{}, "open": object{"k": 1.0}, "must": object{}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := s.Resolve(nil); err == nil || err.Error() != "config.must: is required [INVALID_CONFIG]" {
		t.Error(err)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	v := object{}
	for i := range 10_000 {
		v[strings.Repeat("k", i%40)+string(rune('가'+i%10_000))] = i
	}
	_, err := adapter.Resolve(v)
	var vs schema.Violations
	if errors.As(err, &vs); len(vs) != 65 || vs[64].Msg != "and more" || len(err.Error()) > 40_000 {
		t.Errorf("%d violations, %d bytes", len(vs), len(err.Error()))
	}
}

func TestPath(t *testing.T) {
	for want, p := range map[string]schema.Path{
		"root":                     nil,
		"root.a[3].b-c":            {"a", 3, "b-c"},
		`root["odd key"][""]["ü"]`: {"odd key", "", "ü"},
		"root.__proto__":           {"__proto__"},
	} {
		if got := p.In("root"); got != want {
			t.Errorf("%v is %s, want %s", []any(p), got, want)
		}
	}
	if got := (schema.Path{0, "a"}).In(""); got != "[0].a" {
		t.Error(got)
	}
	long := make(schema.Path, 100_000)
	for i := range long {
		long[i] = "x"
	}
	if got := long.In("root"); len(got) > 500 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestErr(t *testing.T) {
	if err := adapter.Err(); err != nil {
		t.Error(err)
	}
	for want, s := range map[string]*schema.Schema{
		"schema.a: pattern cannot be used":                         schema.Object(schema.Fields{"a": schema.String().Pattern("(?=x)")}),
		"schema.a.default: the default does not fit: expected num": schema.Object(schema.Fields{"a": schema.Number().Default("x")}),
		"schema.a.default: not JSON":                               schema.Object(schema.Fields{"a": schema.Any().Default(func() {})}),
		"schema.a: must be a schema, is nil":                       schema.Object(schema.Fields{"a": nil}),
		"schema.inner.value: not JSON":                             schema.Array(schema.Const(make(chan int))),
		"schema: min does not apply to boolean":                    schema.Boolean().Min(1),
		"schema: step must be above 0":                             schema.Number().Step(0),
		"schema: pattern does not apply to number":                 schema.Number().Pattern("x"),
		"schema: open does not apply to string":                    schema.String().Open(),
		"schema: needs at least one member":                        schema.Union(),
		"schema: needs at least one value":                         schema.Enum(),
		"schema[1]: must be a schema":                              schema.Tuple(schema.Any(), nil),
	} {
		if err := s.Err(); !errors.Is(err, seams.UnsupportedSchema) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
		if _, err := s.Resolve(nil); !errors.Is(err, seams.UnsupportedSchema) {
			t.Errorf("Resolve with it: %v", err)
		}
		s.JSONSchema()
	}
}

func TestBuildersCopy(t *testing.T) {
	s := schema.Number()
	s.Min(3).Required().Default("bad").Step(-1)
	if v, err := s.Resolve(1); err != nil || v != 1.0 {
		t.Errorf("%v, %v: a method changed its receiver", v, err)
	}
	f := schema.Fields{"a": schema.Number()}
	o := schema.Object(f)
	delete(f, "a")
	if _, err := o.Resolve(object{"a": 1}); err != nil {
		t.Errorf("the schema shares its argument: %v", err)
	}
	l := []*schema.Schema{schema.Number()}
	u := schema.Union(l...)
	l[0] = schema.String()
	if _, err := u.Resolve(1); err != nil {
		t.Errorf("the schema shares its argument: %v", err)
	}
	faulty := schema.Boolean().Min(1).Max(1).Step(1)
	one, two := faulty.Pattern("x"), faulty.Open()
	if !strings.Contains(one.Err().Error(), "pattern") || !strings.Contains(two.Err().Error(), "open") {
		t.Errorf("two copies share their faults: %v; %v", one.Err(), two.Err())
	}
}

func TestJSONSchema(t *testing.T) {
	got := adapter.JSONSchema()
	want := `{"additionalProperties":false,"properties":{` +
		`"apiKey":{"type":"string","writeOnly":true},` +
		`"debug":{"type":"boolean"},` +
		`"either":{"anyOf":[` +
		`{"additionalProperties":false,"properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["kind","path"],"type":"object"},` +
		`{"additionalProperties":false,"properties":{"kind":{"const":"url"},"tries":{"default":1,"minimum":0,"type":"integer"},"url":{"type":"string"}},"required":["kind","url"],"type":"object"}]},` +
		`"extra":{},` +
		`"headers":{"additionalProperties":{"type":"string"},"type":"object"},` +
		`"limits":{"additionalProperties":false,"properties":{"name":{"pattern":"^[a-z]+$","type":"string"},"ratio":{"default":0.5,"maximum":1,"minimum":0,"multipleOf":0.1,"type":"number"}},"type":"object"},` +
		`"mode":{"default":"fast","enum":["fast","slow"],"type":"string"},` +
		`"models":{"items":{"type":"string"},"minItems":1,"type":"array"},` +
		`"pair":{"items":false,"prefixItems":[{"type":"string"},{"default":7,"type":"integer"}],"type":"array"},` +
		`"retries":{"default":2,"maximum":10,"minimum":0,"type":"integer"}},` +
		`"required":["apiKey"],"type":"object"}`
	if text, err := schema.Canonical(got); err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s (%v)", text, want, err)
	}
	parts := schema.Intersect(schema.Object(schema.Fields{"a": schema.Any().Description("d").Comment("c")}), schema.Dict(schema.Any()))
	want = `{"allOf":[{"properties":{"a":{"$comment":"c","description":"d"}},"type":"object"},{"additionalProperties":{},"type":"object"}],"unevaluatedProperties":false}`
	if text, _ := schema.Canonical(parts.JSONSchema()); string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	noted := schema.Object(schema.Fields{"e": schema.Enum(list{1}, object{"a": 1}).Default(list{1}), "c": schema.Const(object{"a": 1})})
	for _, s := range []*schema.Schema{adapter, noted} {
		scribble(s.JSONSchema())
		if again, _ := schema.Canonical(s.JSONSchema()); strings.Contains(string(again), "changed") {
			t.Errorf("changing an export changed the schema: %s", again)
		}
	}
}

// anyRoot draws a schema as configurations have it: of objects.
func anyRoot() *rapid.Generator[*schema.Schema] {
	return rapid.Custom(func(t *rapid.T) *schema.Schema {
		switch rapid.IntRange(0, 2).Draw(t, "root") {
		case 0:
			return anyFields(t, 3)
		case 1:
			return schema.Union(anyFields(t, 1), anyFields(t, 1), anyFields(t, 1))
		}
		return schema.Intersect(anyFields(t, 1), schema.Union(anyFields(t, 1), anyFields(t, 1)), anyFields(t, 1))
	})
}

func anyFields(t *rapid.T, depth int) *schema.Schema {
	f := schema.Fields{}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		// Few names, so that the alternatives of a union meet.
		f[rapid.SampledFrom([]string{"a", "b", "__proto__"}).Draw(t, "field")] = anySchema(depth-1).Draw(t, "inner")
	}
	return schema.Object(f)
}

// anySchema draws a configuration schema without author's faults.
func anySchema(depth int) *rapid.Generator[*schema.Schema] {
	return rapid.Custom(func(t *rapid.T) *schema.Schema {
		var s *schema.Schema
		k := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth > 0 {
			k = rapid.IntRange(0, 12).Draw(t, "kind")
		}
		inner := func() *schema.Schema { return anySchema(depth-1).Draw(t, "inner") }
		members := func() []*schema.Schema {
			out := []*schema.Schema{inner()}
			for range rapid.IntRange(0, 2).Draw(t, "members") {
				out = append(out, inner())
			}
			return out
		}
		switch k {
		case 0:
			s = schema.Any()
		case 1:
			s = schema.Boolean()
		case 2:
			s = schema.Number().Max(5)
		case 3:
			s = schema.Natural()
		case 4:
			s = schema.String().Max(4)
		case 5:
			s = schema.Const(rapid.SampledFrom([]any{"a", "b", 1, true}).Draw(t, "const"))
		case 6:
			s = schema.Enum("a", 1, nil)
		case 7:
			s = schema.Array(inner())
		case 8:
			s = schema.Dict(inner())
		case 9:
			s = schema.Tuple(members()...)
		case 10:
			s = anyFields(t, depth)
		case 11:
			s = schema.Union(members()...)
		case 12:
			s = schema.Intersect(anyFields(t, depth), schema.Union(anyFields(t, depth), anyFields(t, depth)))
		}
		switch rapid.IntRange(0, 3).Draw(t, "trait") {
		case 0:
			s = s.Required()
		case 1, 2:
			if d := s.Default(rapid.SampledFrom([]any{"a", 1, true, object{}, list{}, object{"a": 1}, nil}).Draw(t, "default")); d.Err() == nil {
				s = d
			}
		}
		return s
	})
}

func TestResolveLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyRoot().Draw(t, "schema")
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		v := drawFor(t, s.JSONSchema(), 20)
		before, _ := schema.Canonical(v)
		got, err := s.Resolve(v)
		if after, _ := schema.Canonical(v); string(after) != string(before) {
			t.Fatalf("Resolve changed its argument from %s to %s", before, after)
		}
		if err != nil {
			if !errors.Is(err, seams.InvalidConfig) {
				t.Fatal(err)
			}
			return
		}
		if bad := s.Check(got); bad != nil {
			t.Fatalf("the result does not fit: %v", bad)
		}
		again, err := s.Resolve(got)
		if err != nil || !schema.Equal(again, got) {
			t.Fatalf("resolving %#v again is %#v, %v", got, again, err)
		}
		if !keeps(v, got) {
			t.Fatalf("%#v became %#v: more than absences were filled", v, got)
		}
	})
}

// keeps reports whether everything but nulls of before stands in after.
func keeps(before, after any) bool {
	switch b := before.(type) {
	case nil:
		return true
	case object:
		a, ok := after.(object)
		for k := range b {
			ok = ok && keeps(b[k], a[k])
		}
		return ok
	case list:
		a, ok := after.(list)
		ok = ok && len(a) >= len(b)
		for i := range b {
			ok = ok && keeps(b[i], a[i])
		}
		return ok
	}
	return schema.Equal(before, after)
}

func TestDeepSchemas(t *testing.T) {
	s, v := schema.Number(), any(1.0)
	for range 5_000 {
		s, v = schema.Object(schema.Fields{"x": schema.Array(s)}), object{"x": list{v}}
	}
	if _, err := s.Resolve(v); err != nil {
		t.Error(err)
	}
	s.JSONSchema()
}

func TestSuggest(t *testing.T) {
	names := []string{"config", "disabled", "group", "id", "inject", "intercept", "isolate", "name"}
	for word, want := range map[string]string{
		"nmae": "name", "Config": "config", "confg": "config", "disable": "disabled", "isolat": "isolate", "injects": "inject",
		"model": "", "x": "", "": "", "workspaceContext": "", "ID": "id", strings.Repeat("n", 1000): "",
	} {
		if got := schema.Suggest(word, names); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}
