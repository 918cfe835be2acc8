package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
)

// Pos is a place in a file. Line and Col count from 1, Col in characters.
type Pos struct {
	File      string
	Line, Col int
}

// String renders file:line:col.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Fault is one thing that is wrong, and where.
type Fault struct {
	Pos   Pos
	Entry string // id of the entry at fault, "" where that is not known
	Msg   string // what was expected, and what to do where that is known
}

// String renders file:line:col: message.
func (f Fault) String() string { return f.Pos.String() + ": " + f.Msg }

// Faults are all that was found, in order of place.
type Faults []Fault

// Error renders one fault per line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// maxFaults bounds what one reading reports.
const maxFaults = 100

// sorted returns the faults in order of place, each once.
func (fs Faults) sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	fs = slices.Compact(fs)
	return fs[:min(len(fs), maxFaults)]
}

// err makes an error of the faults, nil for none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	fs = fs.sorted()
	return &seams.Error{Code: seams.InvalidConfig, Msg: fs.Error(), Err: fs}
}
