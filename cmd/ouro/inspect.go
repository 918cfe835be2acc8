package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// inspect starts a composition, prints the container it makes and stops it.
func inspect(ctx context.Context, p *program, args []string) int {
	fs := flags("inspect [file]")
	file := fs.String("config", "", "the composition; ./"+configName+" if it is not given")
	asJSON := fs.Bool("json", false, "print the graph as JSON")
	rest, code, done := p.parse(fs, args, 1)
	if done {
		return code
	}
	if len(rest) == 1 {
		*file = rest[0]
	}
	path, text, note, err := p.composition(*file)
	if err != nil {
		return p.fail(err)
	}
	if note != "" {
		fmt.Fprintln(p.stderr, "ouro:", note)
	}
	r, err := builtins.Open(ctx, p.options(path, text))
	if err != nil {
		return p.fail(err)
	}
	defer r.Close(context.WithoutCancel(ctx))
	s := r.Container().Inspect()
	for _, e := range r.Loader().Entries() { // which knows also the builtin that would help
		i := slices.IndexFunc(s.Fibers, func(f cordis.FiberInfo) bool { return f.Entry == e.ID })
		if i >= 0 && e.Waiting != nil {
			s.Fibers[i].Waiting = e.Waiting
		}
	}
	if *asJSON {
		_ = json.NewEncoder(p.stdout).Encode(s)
		return exitDone
	}
	printGraph(p.stdout, s)
	return exitDone
}

// printGraph prints the tree of fibers with what each one waits for, and the
// services.
func printGraph(w io.Writer, s cordis.Snapshot) {
	children := map[uint64][]cordis.FiberInfo{}
	for _, f := range s.Fibers {
		if f.ID != 0 {
			children[f.Parent] = append(children[f.Parent], f)
		}
	}
	var tree func(id uint64, depth int)
	tree = func(id uint64, depth int) {
		for _, f := range children[id] {
			name := f.Name
			if f.Entry != "" && f.Entry != f.Name {
				name += " (" + f.Entry + ")"
			}
			line := fmt.Sprintf("%s%s [%s]", strings.Repeat("  ", depth), name, f.State)
			if len(f.Provides) > 0 {
				line += " provides " + strings.Join(f.Provides, ", ")
			}
			fmt.Fprintln(w, line)
			for _, why := range f.Waiting {
				fmt.Fprintf(w, "%s  · %s\n", strings.Repeat("  ", depth), why)
			}
			tree(f.ID, depth+1)
		}
	}
	tree(0, 0)
}

// explain prints the row of one error code, or the list of all.
func explain(_ context.Context, p *program, args []string) int {
	args, code, done := p.parse(flags("explain [CODE]"), args, 1)
	if done {
		return code
	}
	if len(args) == 0 {
		for _, i := range seams.Codes() {
			fmt.Fprintf(p.stdout, "%-28s %s\n", i.Code, i.Meaning)
		}
		return exitDone
	}
	i, ok := seams.Explain(seams.Code(strings.ToUpper(args[0])))
	if !ok {
		fmt.Fprintf(p.stderr, "ouro: there is no error code %s; `ouro explain` lists those there are\n", strings.ToUpper(args[0]))
		return exitUsage
	}
	fmt.Fprintf(p.stdout, "%s\n\n  what it means: %s\n  what to do:    %s\n", i.Code, i.Meaning, i.Next)
	return exitDone
}
