package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ouro": main})
}

// The command line, as people use it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, p := range providers {
				e.Setenv(p.key, "")
				if p.base != "" {
					e.Setenv(p.base, "")
				}
			}
			return nil
		},
	})
}
