package config_test

import (
	"fmt"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/schema"
)

func Example() {
	file, err := config.Parse("cordis.yml", []byte(`
- id: llm
  name: openai
  config:
    apiKey: !!js process.env.KEY
    retries: many
- id: llm
  name: scripted
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(file.Faults)
	plugin := schema.Object(schema.Fields{"apiKey": schema.String().Required(), "retries": schema.Natural().Default(2)})
	for e := range file.All() {
		cfg, err := config.Interpolate(e.Config, func(source string) (any, error) { return "value of " + source, nil })
		if err == nil {
			cfg, err = plugin.Resolve(cfg)
		}
		fmt.Println(cfg, e.Locate(err))
	}
	// Output:
	// cordis.yml:7:7: second entry with the id "llm"; the first stands at cordis.yml:2:7 and stays
	// <nil> cordis.yml:6:14: config.retries: expected integer, got string
}
