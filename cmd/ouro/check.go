package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
)

// faultLine is a fault as --json prints it.
type faultLine struct {
	File    string     `json:"file"`
	Line    int        `json:"line,omitempty"`
	Col     int        `json:"col,omitempty"`
	Entry   string     `json:"entry,omitempty"`
	Warning bool       `json:"warning,omitempty"`
	Code    seams.Code `json:"code"`
	Message string     `json:"message"`
}

// check prints every fault of a composition and answers 2 if there is one that
// is not a warning.
func check(ctx context.Context, p *program, args []string) int {
	fs := flags("check [file]")
	file := fs.String("config", "", "the composition; ./"+configName+" if it is not given")
	asJSON := fs.Bool("json", false, "print the faults as JSON")
	rest, code, done := p.parse(fs, args, 1)
	if done {
		return code
	}
	if len(rest) == 1 {
		*file = rest[0]
	}
	if *file == "" {
		*file = configName
	}
	opt := p.options(p.path(*file), nil)
	opt.Fault, opt.Report = nil, nil
	faults, err := builtins.Check(ctx, opt)
	if cause := context.Cause(ctx); cause != nil {
		return p.fail(cause)
	}
	if err != nil {
		return p.fail(err)
	}
	slices.SortStableFunc(faults, func(a, b loader.Fault) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	bad := 0
	lines := []faultLine{}
	for _, f := range faults {
		if !f.Warning {
			bad++
		}
		if *asJSON {
			lines = append(lines, faultLine{f.Pos.File, f.Pos.Line, f.Pos.Col, f.Entry, f.Warning, seams.CodeOf(f.Err), f.Err.Error()})
		} else {
			fmt.Fprintln(p.stdout, p.fault(f))
		}
	}
	if *asJSON {
		_ = json.NewEncoder(p.stdout).Encode(lines)
	} else if len(faults) == 0 {
		fmt.Fprintf(p.stdout, "%s: nothing is wrong\n", *file)
	}
	if bad > 0 {
		return exitUsage
	}
	return exitDone
}
