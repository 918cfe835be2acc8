package events

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// Options is what a [Memory] needs.
type Options struct {
	Bus seams.Bus
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Contained is told what listeners of Appended and Disposed failed with.
	Contained func(ctx context.Context, err error)
	// Enforce makes sessions refuse events that break [Grammar].
	Enforce bool
}

// Memory is the [Store] that keeps its sessions in this process: Flush has
// nothing to do but to ask those who listen to [Flushing].
type Memory struct {
	opt Options

	mu       sync.Mutex
	sessions []*session // the newest of each id, in order of creation
}

// NewMemory makes a store.
func NewMemory(opt Options) *Memory {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Contained == nil {
		opt.Contained = func(context.Context, error) {}
	}
	return &Memory{opt: opt}
}

func (m *Memory) now() int64 { return m.opt.Now().UnixMilli() }

// Prepare implements [Store].
func (m *Memory) Prepare(_ context.Context, spec Spec) (Session, error) {
	if spec.Header.CreatedAt == 0 {
		spec.Header.CreatedAt = m.now()
	}
	log, err := NewLog(spec.Header, spec.Seed, m.now())
	if err != nil {
		return nil, err
	}
	return m.add(log, spec.Scope)
}

func (m *Memory) add(log *Log, scope *seams.Scope) (Session, error) {
	if m.opt.Enforce {
		if err := log.Enforce(); err != nil {
			return nil, err
		}
	}
	s := newSession(m, log, scope)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.index(s.id) >= 0 {
		return nil, exists(s.id)
	}
	m.sessions = append(m.sessions, s)
	return s, nil
}

// Resume implements [Store].
func (m *Memory) Resume(_ context.Context, id string, scope *seams.Scope) (Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.index(id)
	if i < 0 {
		return nil, notFound(id)
	}
	old := m.sessions[i]
	log, closed := old.snapshot()
	if !closed {
		return nil, seams.Errorf(seams.SessionAlreadyLive, "events", "session %q is live or being prepared", id)
	}
	if err := log.EndSeed(m.now()); err != nil {
		return nil, err
	}
	if m.opt.Enforce {
		if err := log.Enforce(); err != nil {
			return nil, err
		}
	}
	s := newSession(m, log, scope)
	s.stored = true
	m.sessions[i] = s
	return s, nil
}

// Fork implements [Store].
func (m *Memory) Fork(ctx context.Context, source string, spec ForkSpec) (Session, error) {
	m.mu.Lock()
	i, taken := m.index(source), m.index(spec.ID) >= 0
	var s *session
	if i >= 0 {
		s = m.sessions[i]
	}
	m.mu.Unlock()
	switch {
	case s == nil:
		return nil, notFound(source)
	case !s.live():
		return nil, notLive(source)
	case taken:
		return nil, exists(spec.ID)
	}
	log, _ := s.snapshot()
	seed, err := log.Cut(spec.Boundary)
	if err != nil {
		return nil, err
	}
	h := log.Header()
	return m.Prepare(ctx, Spec{
		Header: Header{ID: spec.ID, ParentSession: source, CWD: h.CWD, AgentPreset: h.AgentPreset},
		Seed:   seed,
		Scope:  spec.Scope,
	})
}

// Get implements [Store].
func (m *Memory) Get(id string) (Session, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.index(id); i >= 0 && m.sessions[i].live() {
		return m.sessions[i], true
	}
	return nil, false
}

// List implements [Store]. It lists what there is when it begins; sessions that
// were never live are not among them.
func (m *Memory) List(context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		m.mu.Lock()
		all := slices.Clone(m.sessions)
		m.mu.Unlock()
		for _, s := range all {
			if info, ok := s.info(); ok && !yield(info, nil) {
				return
			}
		}
	}
}

func (m *Memory) index(id string) int {
	return slices.IndexFunc(m.sessions, func(s *session) bool { return s.id == id })
}

func (m *Memory) forget(s *session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = slices.DeleteFunc(m.sessions, func(o *session) bool { return o == s })
}

func exists(id string) error {
	return seams.Errorf(seams.SessionAlreadyExists, "events", "a session %q exists; resume it, or choose another id", seams.Clip(id, 80))
}

func notFound(id string) error {
	return seams.Errorf(seams.SessionNotFound, "events", "no session %q", seams.Clip(id, 80))
}

func notLive(id string) error {
	return seams.Errorf(seams.SessionNotLive, "events", "session %q is not live; resume it", seams.Clip(id, 80))
}
