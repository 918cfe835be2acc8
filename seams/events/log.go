package events

import (
	"encoding/json"
	"slices"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Log is a session's log without its life: it checks events, numbers them and
// keeps what they add up to. It does no I/O and is not safe for concurrent use;
// a failed call leaves it as it was.
type Log struct {
	header  Header
	events  []Event
	surface []Node
	state   State
	grammar *Grammar // nil: not enforced
}

// State is what the events that are not on the surface add up to.
type State struct {
	// Turn is the number of the last turn, Step of its last step; 0 before the
	// first.
	Turn, Step int
	// InTurn and InStep say that they are open.
	InTurn, InStep bool
	// TurnSeq is the seq of the last turn/start, -1 before the first.
	TurnSeq int
	// Boundary is the seq after the last turn/end or session/end-seed, 0 before
	// the first: where the log can be cut.
	Boundary int
	// Header and Context are the last ones logged, nil before the first.
	Header  *Envelope
	Context *ModelContext
	// Todos is the last list written.
	Todos []Todo
	// EndSeed is the seq of the last session/end-seed, -1 if none. Brackets
	// opened before it belong to an earlier life of the session.
	EndSeed int
}

// NewLog makes a log that begins with a seed, whose events must have their
// numbers. The log of a seed that is not nil ends with session/end-seed, written
// at time now if it is not there, and its header's SeedLength is its length.
// A seed that breaks a rule is INVALID_EVENT (E-02, E-03).
func NewLog(h Header, seed []Event, now int64) (*Log, error) {
	h.SeedLength = 0
	l, err := ReadLog(h, seed)
	if err != nil || seed == nil {
		return l, err
	}
	if err := l.EndSeed(now); err != nil {
		return nil, err
	}
	l.header.SeedLength = len(l.events)
	return l, nil
}

// ReadLog makes the log of a header and events that were stored. INVALID_EVENT
// names the first that breaks a rule.
func ReadLog(h Header, events []Event) (*Log, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	l := &Log{header: h, state: State{TurnSeq: -1, EndSeed: -1}}
	return l, l.replay(events)
}

func (l *Log) replay(events []Event) error {
	for _, e := range events {
		if e.Seq != len(l.events) {
			return invalid(e, "seq", "is %d; expected %d", e.Seq, len(l.events))
		}
		if e.Time < 0 {
			return invalid(e, "time", "is negative")
		}
		if _, err := l.Append(e.Time, Draft{e.Type, e.Data, e.SurfaceOp, e.SourceEventSeqs, e.Ignorable}); err != nil {
			return err
		}
	}
	return nil
}

// EndSeed ends what is from an earlier life of the session: an open turn is
// closed by [Repair], and the end is marked, if it is not already.
func (l *Log) EndSeed(now int64) error {
	drafts, err := Repair(l)
	for _, d := range drafts {
		if err == nil {
			_, err = l.Append(now, d)
		}
	}
	if err != nil {
		return err
	}
	if n := len(l.events); n > 0 && l.state.EndSeed == n-1 {
		return nil
	}
	_, err = l.Append(now, EndSeed.New(Nothing{}))
	return err
}

// Enforce makes the log refuse from now on what breaks [Grammar]. INVALID_EVENT
// when it holds such an event already.
func (l *Log) Enforce() error {
	g := NewGrammar()
	for _, e := range l.events {
		if err := g.Commit(e); err != nil {
			return err
		}
	}
	l.grammar = g
	return nil
}

// Append checks a draft against the log, copies its data, and commits it as the
// next event, made at time now (milliseconds since 1970). INVALID_EVENT or
// NOT_JSON.
func (l *Log) Append(now int64, d Draft) (Event, error) {
	data, err := encode(d)
	if err != nil {
		return Event{}, err
	}
	return l.append(now, d, data)
}

// append is Append of a draft whose data was encoded.
func (l *Log) append(now int64, d Draft, data json.RawMessage) (Event, error) {
	e := Event{len(l.events), d.Type, now, data, nil, slices.Clone(d.SourceEventSeqs), d.Ignorable}
	if d.SurfaceOp != nil {
		op := *d.SurfaceOp
		e.SurfaceOp = &op
	}
	commit, err := l.check(e, d.Data)
	if err == nil && l.grammar != nil {
		err = l.grammar.Commit(e)
	}
	if err != nil {
		return Event{}, err
	}
	l.events = append(l.events, e)
	commit()
	return e, nil
}

// Header returns the log's header.
func (l *Log) Header() Header { return l.header }

// Len returns the number of events.
func (l *Log) Len() int { return len(l.events) }

// Events returns the events from seq on; the slice belongs to the caller.
func (l *Log) Events(from int) []Event {
	return slices.Clone(l.events[min(max(from, 0), len(l.events)):])
}

// State returns what the log's other events add up to.
func (l *Log) State() State { return l.state }

// Surface returns the nodes in order; the slice belongs to the caller.
func (l *Log) Surface() []Node { return slices.Clone(l.surface) }

// Messages derives what a model sees; the slice belongs to the caller.
func (l *Log) Messages() []llm.Message { return messages(l.surface) }

// Cut returns a copy of the events before boundary, the seed of a fork; 0 is the
// log's own [State].Boundary. INVALID_BOUNDARY outside of the log or inside a closed
// turn, OPEN_TURN inside the open one or if it leaves no boundary (E-15).
func (l *Log) Cut(boundary int) ([]Event, error) {
	st := l.state
	if boundary == 0 {
		boundary = st.Boundary
		if boundary == 0 && st.InTurn {
			return nil, seams.Errorf(seams.OpenTurn, "events", "session %q has no closed turn yet", l.header.ID)
		}
	}
	if boundary < 0 || boundary > len(l.events) {
		return nil, seams.Errorf(seams.InvalidBoundary, "events", "boundary %d is not in 1 to %d", boundary, len(l.events))
	}
	if st.InTurn && boundary > st.TurnSeq {
		return nil, seams.Errorf(seams.OpenTurn, "events", "boundary %d is inside turn %d, which is open; the last place to cut is %d", boundary, st.Turn, st.Boundary)
	}
	inside := false
	for _, e := range l.events[:boundary] {
		switch e.Type {
		case TurnStart.Name:
			inside = true
		case TurnEnd.Name, EndSeed.Name:
			inside = false
		}
	}
	if inside {
		return nil, seams.Errorf(seams.InvalidBoundary, "events", "boundary %d is inside a turn", boundary)
	}
	return append([]Event{}, l.events[:boundary]...), nil
}

// clone returns a log of the same events that is changed by itself.
func (l *Log) clone() *Log {
	c := *l
	c.events, c.surface, c.grammar = slices.Clip(l.events), slices.Clip(l.surface), nil
	return &c
}

// Derive computes from events alone what [Log.Messages] keeps (E-14).
func Derive(events []Event) ([]llm.Message, error) {
	l, err := ReadLog(Header{ID: "derive"}, events)
	if err != nil {
		return nil, err
	}
	return l.Messages(), nil
}
