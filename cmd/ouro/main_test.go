package main

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/ouro-run/ouro/seams"
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

// What an error code tells people to run or to read exists.
func TestAdviceExists(t *testing.T) {
	word, page := regexp.MustCompile("`ouro ([a-z]+)"), regexp.MustCompile(`docs/\S+\.md`)
	for _, i := range seams.Codes() {
		for _, m := range word.FindAllStringSubmatch(i.Next, -1) {
			if !slices.ContainsFunc(commands(), func(c command) bool { return c.name == m[1] }) {
				t.Errorf("%s: there is no command %s", i.Code, m[1])
			}
		}
		for _, name := range page.FindAllString(i.Next, -1) {
			if _, err := os.Stat("../../" + name); err != nil {
				t.Errorf("%s: %v", i.Code, err)
			}
		}
	}
}
