package schema_test

import (
	"fmt"

	"github.com/ouro-run/ouro/runtime/schema"
)

func Example() {
	config := schema.Object(schema.Fields{
		"apiKey":  schema.String().Role("secret").Required(),
		"retries": schema.Natural().Max(10).Default(2),
	})
	fmt.Println(config.Resolve(map[string]any{"apiKey": "k"}))
	_, err := config.Resolve(map[string]any{"retrys": 3})
	fmt.Println(err)
	// Output:
	// map[apiKey:k retries:2] <nil>
	// config.apiKey: is required; config.retrys: unknown key, did you mean "retries"? [INVALID_CONFIG]
}

func ExampleParameters() {
	params, err := schema.Parameters(map[string]any{
		"city": map[string]any{"type": "string", "required": true},
		"days": map[string]any{"type": "integer"},
	})
	fmt.Println(err)
	fmt.Println(params.CheckArgs(map[string]any{"days": 1.5}))
	_, err = schema.Parameters(map[string]any{"city": map[string]any{"type": "str"}})
	fmt.Println(err)
	// Output:
	// <nil>
	// arguments.city: is required; arguments.days: expected integer, got a number with a fraction [INVALID_ARGS]
	// parameters.city.type: unknown type "str", did you mean "string"? (one of string, number, integer, boolean, null, array, object, json, or oneOf without type) [UNSUPPORTED_SCHEMA]
}
