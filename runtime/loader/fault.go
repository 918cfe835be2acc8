package loader

import (
	"errors"
	"strings"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/seams"
)

// Fault is one thing that is wrong with the file, with an entry, or with what
// an entry names.
type Fault struct {
	Pos     config.Pos // Line 0: the file as such
	Entry   string     // id of the entry, "" if it is nobody's
	Err     error      // coded; its text names the next step
	Kept    bool       // the last good version goes on running
	Warning bool       // nothing fails because of it
}

// String renders "file:line:col: warning: entry id: message [CODE]; …".
func (f Fault) String() string {
	var b strings.Builder
	if f.Pos.Line > 0 {
		b.WriteString(f.Pos.String())
	} else {
		b.WriteString(f.Pos.File)
	}
	b.WriteString(": ")
	if f.Warning {
		b.WriteString("warning: ")
	}
	if f.Entry != "" {
		b.WriteString("entry " + f.Entry + ": ")
	}
	b.WriteString(f.Err.Error())
	if f.Kept {
		b.WriteString("; its last good version goes on running")
	}
	return b.String()
}

// faultsOf makes faults of err: one for each place it names, else one at the
// place of fallback.
func faultsOf(e *config.Entry, fallback config.Pos, err error) []Fault {
	var placed config.Faults
	if !errors.As(err, &placed) {
		return []Fault{{Pos: fallback, Entry: e.ID, Err: err}}
	}
	out := make([]Fault, len(placed))
	for i, p := range placed {
		out[i] = Fault{Pos: p.Pos, Entry: e.ID, Err: &seams.Error{Code: seams.CodeOf(err), Msg: p.Msg}}
	}
	return out
}

// taken are the codes of an apply, or a mount, that failed because somebody
// else holds a name. It may leave, and then the entry is tried again.
func taken(err error) bool {
	return errors.Is(err, seams.Clash) || errors.Is(err, seams.Duplicate) || errors.Is(err, seams.DuplicateAdapter)
}
