package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Expr is a `!!js` expression that has not been evaluated.
type Expr struct {
	Source string // never blank
	Pos    Pos
}

// Interpolate returns a copy of v in which each [Expr] is replaced by what eval
// answers for its source, which must be JSON without loss; nil stands for
// undefined. All expressions are evaluated, in order of their keys, each time.
// The error lists each that failed with its place.
func Interpolate(v any, eval func(source string) (any, error)) (any, error) {
	var faults Faults
	out := interpolate(v, eval, &faults)
	if err := faults.err(); err != nil {
		return nil, err
	}
	return out, nil
}

func interpolate(v any, eval func(string) (any, error), faults *Faults) any {
	switch v := v.(type) {
	case Expr:
		out, err := eval(v.Source)
		if err == nil {
			out, err = schema.JSON(out)
		}
		if err != nil {
			*faults = append(*faults, Fault{Pos: v.Pos, Msg: fmt.Sprintf("!!js %s: %s", brief(v.Source), err)})
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = interpolate(v[i], eval, faults)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[k] = interpolate(v[k], eval, faults)
		}
		return out
	}
	return v
}

// brief makes one short line of a text, for a message.
func brief(s string) string {
	return strings.Join(strings.Fields(seams.Clip(s, 60)), " ")
}
