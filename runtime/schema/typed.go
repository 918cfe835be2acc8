package schema

import "encoding/json"

// Typed is a schema whose values Go code reads as a C. C's json tags name the
// fields; the schema decides what is right and what the defaults are.
type Typed[C any] struct{ *Schema }

// As gives a schema a Go type.
func As[C any](s *Schema) Typed[C] { return Typed[C]{s} }

// Resolve validates v, fills its defaults and returns a C. A value that is right
// by the schema and does not fit C is a fault of the program and panics.
func (t Typed[C]) Resolve(v any) (any, error) {
	v, err := t.Schema.Resolve(v)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var c C
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	return c, nil
}
