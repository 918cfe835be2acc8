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

type object = map[string]any
type list = []any

// anyJSON draws a JSON value.
func anyJSON() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.IntRange(-3, 3), func(n int) any { return float64(n) }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f + 0 }).Filter(func(v any) bool {
			f := v.(float64)
			return !math.IsNaN(f) && !math.IsInf(f, 0) && !(f == 0 && math.Signbit(f))
		}),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b", "가나", "x\"y", "\u2028", "<&>"}), func(s string) any { return s }),
		rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "") }),
	)
	return rapid.Custom(func(t *rapid.T) any { return drawJSON(t, leaf, 4) })
}

func drawJSON(t *rapid.T, leaf *rapid.Generator[any], depth int) any {
	switch k := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case depth > 0 && k == 0:
		out := list{}
		for range rapid.IntRange(0, 4).Draw(t, "len") {
			out = append(out, drawJSON(t, leaf, depth-1))
		}
		return out
	case depth > 0 && k <= 2:
		out := object{}
		for range rapid.IntRange(0, 4).Draw(t, "len") {
			out[drawKey(t)] = drawJSON(t, leaf, depth-1)
		}
		return out
	}
	return leaf.Draw(t, "leaf")
}

// keys are few, so that schemas and values meet, and nasty.
var keys = []string{"a", "b", "c", "type", "properties", "required", "__proto__", "constructor", "odd key", ""}

func drawKey(t *rapid.T) string { return rapid.SampledFrom(keys).Draw(t, "key") }

func TestJSONLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyJSON().Draw(t, "v")
		c, err := schema.JSON(v)
		if err != nil {
			t.Fatal(err)
		}
		if !schema.Equal(v, c) || !reflect.DeepEqual(v, c) {
			t.Fatalf("copy of %#v is %#v", v, c)
		}
		text, err := schema.Canonical(v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := schema.Parse(text)
		if err != nil || !schema.Equal(back, v) {
			t.Fatalf("%s came back as %#v, %v", text, back, err)
		}
		w := anyJSON().Draw(t, "w")
		other, _ := schema.Canonical(w)
		if (string(text) == string(other)) != schema.Equal(v, w) || schema.Equal(v, w) != schema.Equal(w, v) {
			t.Fatalf("%s and %s: texts and Equal disagree", text, other)
		}
		scribble(c)
		if again, _ := schema.Canonical(v); string(again) != string(text) {
			t.Fatalf("changing the copy changed the value: %s, was %s", again, text)
		}
	})
}

// scribble changes every container of a value.
func scribble(v any) {
	switch v := v.(type) {
	case list:
		for i := range v {
			scribble(v[i])
			v[i] = "changed"
		}
	case object:
		for _, e := range v {
			scribble(e)
		}
		v["changed"] = true
	}
}

func TestJSONConverts(t *testing.T) {
	type name string
	type names []name
	for _, c := range []struct{ in, want any }{
		{1, 1.0}, {int8(-1), -1.0}, {uint64(7), 7.0}, {int64(1 << 53), float64(1 << 53)}, {float32(0.5), 0.5},
		{json.Number("12"), 12.0}, {json.Number("-0"), 0.0}, {json.Number("1e300"), 1e300}, {1e300, 1e300},
		{json.Number("9007199254740994"), 9007199254740994.0},
		{name("x"), "x"}, {names{"a"}, list{"a"}}, {[2]bool{true, false}, list{true, false}},
		{[]string(nil), list{}}, {map[string]int(nil), object{}}, {list(nil), list{}}, {object(nil), object{}},
		{map[name][]int{"k": {1}}, object{"k": list{1.0}}},
	} {
		if got, err := schema.JSON(c.in); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("JSON(%#v) = %#v, %v; want %#v", c.in, got, err, c.want)
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	type node map[string]any
	ring := object{}
	ring["x"] = list{ring}
	selfList := list{nil}
	selfList[0] = selfList
	named := node{}
	named["self"] = named
	shared := object{"k": 1.0}
	if _, err := schema.JSON(list{shared, shared}); err != nil {
		t.Errorf("a part used twice is no cycle: %v", err)
	}
	for _, c := range []struct {
		in         any
		path, hint string
	}{
		{math.NaN(), "value", "NaN"},
		{list{math.Inf(-1)}, "value[0]", "infinite"},
		{object{"a": math.Copysign(0, -1)}, "value.a", "-0"},
		{object{"b": int64(1<<53 + 1)}, "value.b", "2^53"},
		{uint64(math.MaxUint64), "value", "2^53"},
		{json.Number("9007199254740993"), "value", "2^53"},
		{json.Number("1e400"), "value", "out of range"},
		{json.Number("zwei"), "value", "number"},
		{"\xff", "value", "UTF-8"},
		{object{"\xff": 1}, "value", "UTF-8"},
		{object{"odd key": func() {}}, `value["odd key"]`, "func()"},
		{struct{ A int }{1}, "value", "struct"},
		{map[int]string{1: "a"}, "value", "map[int]string"},
		{list{object{"f": schema.Foreign("a getter that threw")}}, "value[0].f", "a getter that threw"},
		{ring, "value.x[0]", "cycle"},
		{selfList, "value[0]", "cycle"},
		{named, "value.self", "cycle"},
	} {
		_, err := schema.JSON(c.in)
		if !errors.Is(err, seams.NotJSON) || !strings.HasPrefix(err.Error(), c.path+": ") || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%T: got %v; want NOT_JSON at %s with %q", c.in, err, c.path, c.hint)
		}
	}
}

func TestJSONTellsTheFirstFaultByName(t *testing.T) {
	for range 50 {
		_, err := schema.JSON(object{"z": math.NaN(), "a": "ok", "m": math.NaN(), "k": math.NaN(), "x": object{"a": math.NaN()}})
		if err == nil || !strings.HasPrefix(err.Error(), "value.k: ") {
			t.Fatal(err)
		}
	}
}

func TestJSONBounds(t *testing.T) {
	nest := func(n int) any {
		var v any = "x"
		for range n {
			v = list{v}
		}
		return v
	}
	if _, err := schema.JSON(nest(schema.MaxDepth)); err != nil {
		t.Error(err)
	}
	// What a cycle longer than the walk looks back for ends at.
	for name, v := range map[string]any{"deep": nest(200_000), "bomb": bomb()} {
		if _, err := schema.JSON(v); !errors.Is(err, seams.TooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"deep": strings.Repeat("[", schema.MaxDepth+2) + strings.Repeat("]", schema.MaxDepth+2),
		"long": `"` + strings.Repeat("x", schema.MaxText) + `"`,
	} {
		if _, err := schema.Parse([]byte(text)); !errors.Is(err, seams.TooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// bomb is a small graph that is huge when written out.
func bomb() any {
	var v any = "x"
	for range 12 {
		v = list{v, v, v, v, v, v, v, v, v, v}
	}
	return v
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "line 1, column 1",
		"  ":                         "line 1, column 3",
		"{\n \"a\": }":               "line 2, column 7",
		"[1, 2":                      "line 1, column 6",
		"{} {}":                      "more text",
		"\"\xff\"":                   "line 1, column 2: invalid UTF-8",
		"[1e400]":                    "value[0]",
		"{\"id\":12345678901234567}": "value.id",
		"NaN":                        "line 1, column 1",
	} {
		if _, err := schema.Parse([]byte(text)); !errors.Is(err, seams.NotJSON) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want NOT_JSON with %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0,1e300,"x",null,true]}`, `[[[]]]`, `{"a":1,"a":2}`, "\ufeff1", `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := schema.Parse(text)
		if err != nil {
			if c := seams.CodeOf(err); c != seams.NotJSON && c != seams.TooLarge {
				t.Fatal(err)
			}
			return
		}
		canonical, err := schema.Canonical(v)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := schema.Parse(canonical); err != nil || !schema.Equal(v, back) {
			t.Fatalf("%q: %s came back as %#v, %v", text, canonical, back, err)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	v := object{"path": "invoices/a.txt", "limit": 10.0, "tags": list{"a", "b"}, "deep": object{"x": true, "y": nil}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.JSON(v); err != nil {
			b.Fatal(err)
		}
	}
}
