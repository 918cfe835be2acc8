package events

import (
	"context"
	"iter"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Key is the service a composition keeps its sessions in.
var Key = seams.Key[Store]{Name: "events"}

// Bus events of sessions, dispatched in the session's scope.
var (
	// Created says that a session is live. An error of a listener undoes it;
	// Disposed then follows.
	Created = seams.Event[Session, struct{}]{Name: "session/created", Mode: seams.Emit}
	// Disposed says that a session is no longer live.
	Disposed = seams.Event[Session, struct{}]{Name: "session/disposed", Mode: seams.Emit}
	// Appended follows each commit of a live session. Errors of listeners are
	// contained.
	Appended = seams.Event[Notice, struct{}]{Name: "session/event", Mode: seams.Emit}
	// Flushing asks all who keep something of the session to make it durable;
	// Flush returns when all have, with their errors.
	Flushing = seams.Event[Session, struct{}]{Name: "session/flush", Mode: seams.Parallel}
)

// Notice is what [Appended] carries.
type Notice struct {
	Session Session `json:"-"`
	Event   Event   `json:"event"`
}

// Store keeps sessions. At most one session of an id is live or being prepared.
type Store interface {
	// Prepare makes a session nobody sees yet and reserves its id:
	// SESSION_ALREADY_EXISTS when the store has it, live or closed. A seed is
	// checked like events that are appended.
	Prepare(ctx context.Context, spec Spec) (Session, error)
	// Resume makes a session of one that was closed or whose process died, to be
	// entered like a prepared one. An open turn is closed by [Repair], and
	// session/end-seed marks the end of what is from before.
	// SESSION_NOT_FOUND, or SESSION_ALREADY_LIVE.
	Resume(ctx context.Context, id string, scope *seams.Scope) (Session, error)
	// Fork prepares a session that begins with the events of a live one before
	// a boundary.
	Fork(ctx context.Context, source string, spec ForkSpec) (Session, error)
	// Get returns the live session of an id.
	Get(id string) (Session, bool)
	// List yields what the store has, live and closed, in order of creation.
	List(ctx context.Context) iter.Seq2[Info, error]
}

// Spec describes a new session.
type Spec struct {
	// Header.CreatedAt 0 is now; SeedLength is set by the store.
	Header Header
	// Seed is what the log begins with, in a session of a history. Nil is a
	// fresh session; an empty seed that is not nil is marked like any other.
	Seed  []Event
	Scope *seams.Scope // where the session's bus events are dispatched
}

// ForkSpec says where to cut and what to make.
type ForkSpec struct {
	// Boundary is the seq of the first event not taken; 0 is the end of the
	// last closed turn. INVALID_BOUNDARY when it is outside the log or in a turn,
	// OPEN_TURN when it is 0 and no turn was closed.
	Boundary int
	ID       string // of the child
	Scope    *seams.Scope
}

// Info is what a listing tells of a session.
type Info struct {
	Header Header `json:"header"`
	Length int    `json:"length"` // events
	Live   bool   `json:"live"`
}

// Session is one log with its life: prepared, live, closed.
type Session interface {
	Header() Header
	// Enter makes a prepared session live: [Store.Get] finds it. It is not
	// announced yet.
	Enter() error
	// Announce dispatches [Created]. If that fails the session is closed, with
	// [Disposed], and the error returned.
	Announce(ctx context.Context) error
	// Append commits one event and returns it; see the package comment.
	// INVALID_EVENT, REENTRANT_APPEND, SESSION_NOT_LIVE (closed).
	Append(ctx context.Context, d Draft) (Event, error)
	// Flush returns when all that was appended before is acknowledged. An
	// error says that it is not known to be.
	Flush(ctx context.Context) error
	// Len returns the number of events.
	Len() int
	// Events returns the events from seq on; the slice belongs to the caller.
	Events(from int) []Event
	// Follow yields the events from seq on, waits for more, and ends when the
	// session is closed or, with the error, when ctx is done. It sees a
	// prepared session's events too.
	Follow(ctx context.Context, from int) iter.Seq2[Event, error]
	// Messages derives what a model sees; the slice belongs to the caller.
	Messages() []llm.Message
	// Surface returns the nodes the messages come of.
	Surface() []Node
	// State returns what the log's other events add up to.
	State() State
	// Close ends the session: no Append succeeds any more, observers have been
	// told of all events, then [Disposed] is dispatched if it was announced. A
	// session that was never announced, or has no events, is forgotten and its
	// id is free; others are kept as closed. Idempotent.
	Close(ctx context.Context) error
}

// Create prepares a session, enters and announces it.
func Create(ctx context.Context, st Store, spec Spec) (Session, error) {
	s, err := st.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := s.Enter(); err != nil {
		return nil, err
	}
	return s, s.Announce(ctx)
}
