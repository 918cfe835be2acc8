package events

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

type phase uint8

const (
	prepared phase = iota
	entered
	announced
	closed
)

type session struct {
	store *Memory
	id    string
	scope *seams.Scope
	done  chan struct{} // closed when the session has ended

	mu      sync.Mutex
	log     *Log
	phase   phase
	known   bool          // was announced: observers are told
	stored  bool          // is kept when closed
	told    int           // number of events observers have been told of
	telling bool          // someone tells them
	ended   bool          // the last notice was given
	changed chan struct{} // closed and replaced when something below changes
}

func newSession(m *Memory, log *Log, scope *seams.Scope) *session {
	return &session{store: m, id: log.Header().ID, scope: scope, log: log, done: make(chan struct{}), changed: make(chan struct{})}
}

// notify wakes all who wait for a change. s.mu is held.
func (s *session) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *session) live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == entered || s.phase == announced
}

// snapshot returns a log of its own, and whether the session has ended.
func (s *session) snapshot() (*Log, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return s.log.clone(), true
	default:
		return s.log.clone(), false
	}
}

func (s *session) info() (Info, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.phase == entered || s.phase == announced
	return Info{s.log.Header(), s.log.Len(), live}, live || s.stored
}

// Header implements [Session].
func (s *session) Header() Header { return s.log.Header() }

// Enter implements [Session].
func (s *session) Enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != prepared {
		return seams.Errorf(seams.SessionNotLive, "events", "session %q was entered before", s.id)
	}
	s.phase = entered
	return nil
}

// Announce implements [Session].
func (s *session) Announce(ctx context.Context) error {
	s.mu.Lock()
	if s.phase != entered {
		s.mu.Unlock()
		return seams.Errorf(seams.SessionNotLive, "events", "session %q is not entered, or was announced before", s.id)
	}
	before := s.stored
	s.phase, s.known, s.stored, s.told = announced, true, true, s.log.Len()
	s.mu.Unlock()
	_, err := Created.Dispatch(ctx, s.store.opt.Bus, s.scope, s, nil)
	if err != nil {
		s.mu.Lock()
		s.stored = before
		s.mu.Unlock()
		_ = s.Close(context.WithoutCancel(ctx))
	}
	return err
}

func (s *session) reentrant(did string) error {
	return seams.Errorf(seams.ReentrantAppend, "events", "an observer %s session %q from within its notice; do it after the notice has returned", did, s.id)
}

// noticeKey is the key under which the context of an observer's call says, with
// an *atomic.Bool, whether the notice is still being given.
type noticeKey struct{ *session }

func (s *session) within(ctx context.Context) bool {
	giving, ok := ctx.Value(noticeKey{s}).(*atomic.Bool)
	return ok && giving.Load()
}

// Append implements [Session].
func (s *session) Append(ctx context.Context, d Draft) (Event, error) {
	if s.within(ctx) {
		return Event{}, s.reentrant("appended " + seams.Clip(d.Type, 80) + " to")
	}
	data, err := encode(d)
	if err != nil {
		return Event{}, err
	}
	s.mu.Lock()
	if s.phase == closed {
		s.mu.Unlock()
		return Event{}, notLive(s.id)
	}
	e, err := s.log.append(s.store.now(), d, data)
	if err == nil {
		s.notify()
	}
	s.mu.Unlock()
	if err == nil {
		s.tell(ctx)
	}
	return e, err
}

// tell brings observers up to date unless someone else is at it, and ends a
// closed session once they are.
func (s *session) tell(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.telling || s.ended {
		return
	}
	s.telling = true
	giving := new(atomic.Bool)
	giving.Store(true)
	defer giving.Store(false)
	ctx = context.WithValue(context.WithoutCancel(ctx), noticeKey{s}, giving)
	for s.known && s.told < s.log.Len() {
		e := s.log.events[s.told]
		s.mu.Unlock()
		_, err := Appended.Dispatch(ctx, s.store.opt.Bus, s.scope, Notice{s, e}, nil)
		s.contain(ctx, err)
		s.mu.Lock()
		s.told++
		s.notify()
	}
	if s.phase == closed {
		s.ended = true
		s.mu.Unlock()
		s.end(ctx)
		s.mu.Lock()
	}
	s.telling = false
}

// end tells that the session is closed, and forgets one that was never live or
// has no events.
func (s *session) end(ctx context.Context) {
	if s.known {
		_, err := Disposed.Dispatch(ctx, s.store.opt.Bus, s.scope, s, nil)
		s.contain(ctx, err)
	}
	if !s.stored || s.Len() == 0 {
		s.store.forget(s)
	}
	close(s.done)
}

func (s *session) contain(ctx context.Context, err error) {
	if err != nil {
		s.store.opt.Contained(ctx, err)
	}
}

// Flush implements [Session].
func (s *session) Flush(ctx context.Context) error {
	if s.within(ctx) {
		return s.reentrant("flushed")
	}
	s.mu.Lock()
	if s.phase == closed {
		s.mu.Unlock()
		return notLive(s.id)
	}
	for n := s.log.Len(); s.known && s.told < n; {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return seams.Errorf(seams.Aborted, "events", "flushing session %q: %w", s.id, ctx.Err())
		}
		s.mu.Lock()
	}
	known := s.known
	s.mu.Unlock()
	if !known {
		return nil
	}
	_, err := Flushing.Dispatch(ctx, s.store.opt.Bus, s.scope, s, nil)
	return err
}

// Close implements [Session].
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.phase != closed {
		s.phase = closed
		s.notify()
	}
	s.mu.Unlock()
	s.tell(ctx)
	select {
	case <-s.done:
		return nil
	default:
	}
	if s.within(ctx) {
		return nil // whoever tells the observers ends the session after them
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return seams.Errorf(seams.Aborted, "events", "closing session %q: %w", s.id, ctx.Err())
	}
}

// Len implements [Session].
func (s *session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Len()
}

// Events implements [Session].
func (s *session) Events(from int) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Events(from)
}

// Messages implements [Session].
func (s *session) Messages() []llm.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Messages()
}

// Surface implements [Session].
func (s *session) Surface() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Surface()
}

// State implements [Session].
func (s *session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.State()
}

// Follow implements [Session].
func (s *session) Follow(ctx context.Context, from int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		from := max(from, 0)
		for {
			s.mu.Lock()
			batch, over, changed := s.log.Events(from), s.phase == closed, s.changed
			s.mu.Unlock()
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
				from++
			}
			switch {
			case len(batch) > 0:
			case over:
				return
			default:
				select {
				case <-changed:
				case <-ctx.Done():
					yield(Event{}, seams.Errorf(seams.Aborted, "events", "following session %q: %w", s.id, ctx.Err()))
					return
				}
			}
		}
	}
}
