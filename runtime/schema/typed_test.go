package schema_test

import (
	"errors"
	"testing"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

func TestTyped(t *testing.T) {
	type config struct {
		Name  string
		Tries int `json:"tries"`
	}
	s := schema.As[config](schema.Object(schema.Fields{"name": schema.String().Required(), "tries": schema.Natural().Default(2)}))
	if got, err := s.Resolve(object{"name": "n"}); err != nil || got != (config{"n", 2}) {
		t.Errorf("%#v, %v", got, err)
	}
	if got, err := s.Resolve(object{}); got != nil || !errors.Is(err, seams.InvalidConfig) {
		t.Errorf("%#v, %v", got, err)
	}
}
