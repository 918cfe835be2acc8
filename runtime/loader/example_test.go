package loader_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/runtime/schema"
)

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "cordis.yml")
	write := func(text string) { _ = os.WriteFile(file, []byte(text), 0o600) }

	greeter := &cordis.Plugin{
		Name:   "greeter",
		Config: schema.Object(schema.Fields{"who": schema.String().Default("world"), "times": schema.Natural()}),
		Apply: func(_ *cordis.Context, cfg any) error {
			fmt.Println("hello", cfg.(map[string]any)["who"])
			return nil
		},
	}
	c := cordis.New(cordis.Options{})
	defer c.Close(ctx)
	write("- id: greet\n  name: greeter\n")
	l, _ := loader.New(c.Root(), loader.Options{
		File:     file,
		Builtins: map[string]*cordis.Plugin{"greeter": greeter},
		Report: func(f loader.Fault) {
			fmt.Printf("line %d, column %d: %v, kept: %t\n", f.Pos.Line, f.Pos.Col, f.Err, f.Kept)
		},
	})
	defer l.Close(ctx)
	_ = l.Start(ctx)
	_ = l.Settle(ctx)

	write("- id: greet\n  name: greeter\n  config: {who: reader}\n")
	_ = l.Reload(ctx)
	_ = l.Settle(ctx)

	write("- id: greet\n  name: greeter\n  config: {who: reader, times: -1}\n")
	_ = l.Reload(ctx)
	_ = l.Settle(ctx)
	fmt.Println(l.Entries()[0].State)
	// Output:
	// hello world
	// hello reader
	// line 3, column 32: config.times: must be at least 0 [INVALID_CONFIG], kept: true
	// active
}
