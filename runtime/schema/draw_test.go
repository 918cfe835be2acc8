package schema_test

import (
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// drawFor draws a value for an exported JSON Schema. With junk 0 it fits,
// except for intersections, whose parts may contradict each other; with a
// higher one, one of so many parts of it is any value.
func drawFor(t *rapid.T, js object, junk int) any {
	if junk > 0 && rapid.IntRange(1, junk).Draw(t, "junk") == 1 {
		return anyJSON().Draw(t, "any")
	}
	if c, ok := js["const"]; ok {
		return c
	}
	if e, ok := js["enum"].(list); ok {
		return rapid.SampledFrom(e).Draw(t, "enum")
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if l, ok := js[key].(list); ok {
			return drawFor(t, rapid.SampledFrom(l).Draw(t, key).(object), junk)
		}
	}
	if l, ok := js["allOf"].(list); ok {
		out := object{}
		for _, p := range l {
			if m, ok := drawFor(t, p.(object), junk).(object); ok {
				for k, v := range m {
					out[k] = v
				}
			}
		}
		return out
	}
	switch js["type"] {
	case "null":
		return nil
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "number":
		return float64(rapid.IntRange(-9, 10).Draw(t, "number")) / 2
	case "integer":
		return float64(rapid.IntRange(0, 9).Draw(t, "integer"))
	case "string":
		return strings.Repeat("x", rapid.IntRange(0, 4).Draw(t, "length"))
	case "array":
		return drawArray(t, js, junk)
	case "object":
		return drawObject(t, js, junk)
	}
	return anyJSON().Draw(t, "any")
}

func drawArray(t *rapid.T, js object, junk int) any {
	out := list{}
	if items, ok := js["prefixItems"].(list); ok {
		least, _ := js["minItems"].(float64)
		for _, p := range items[:rapid.IntRange(int(least), len(items)).Draw(t, "items")] {
			out = append(out, drawFor(t, p.(object), junk))
		}
		return out
	}
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		out = append(out, drawFor(t, js["items"].(object), junk))
	}
	return out
}

func drawObject(t *rapid.T, js object, junk int) any {
	out := object{}
	properties, _ := js["properties"].(object)
	required, _ := js["required"].(list)
	if rest := js["additionalProperties"]; rest != false {
		value, _ := rest.(object)
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			out[drawKey(t)] = drawFor(t, value, junk)
		}
	}
	for _, k := range sorted(properties) {
		delete(out, k)
		if slices.Contains(required, any(k)) || rapid.Bool().Draw(t, "present") {
			out[k] = drawFor(t, properties[k].(object), junk)
		}
	}
	return out
}

func sorted(m object) []string {
	out := []string{}
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
