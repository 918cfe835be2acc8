package sandbox

import (
	"context"
	"sync"
)

// Spare keeps one guarded VM ready, so that a mount does not wait for it.
type Spare struct {
	mu      sync.Mutex
	ready   *engine
	closed  bool
	warming bool
	tasks   sync.WaitGroup
}

// NewSpare begins to prepare a VM.
func NewSpare() *Spare {
	s := &Spare{}
	s.warm()
	return s
}

// New is [New] on the prepared VM, if it is ready, and begins the next one.
func (s *Spare) New(ctx context.Context, o Options) (*Realm, error) {
	s.mu.Lock()
	e := s.ready
	s.ready = nil
	s.mu.Unlock()
	s.warm()
	if e == nil {
		return New(ctx, o)
	}
	return newRealm(ctx, o, e)
}

// Close joins the preparation and drops what it made. New may still be called.
func (s *Spare) Close() {
	s.mu.Lock()
	s.closed = true
	s.ready = nil
	s.mu.Unlock()
	s.tasks.Wait()
}

func (s *Spare) warm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.warming || s.ready != nil {
		return
	}
	s.warming = true
	s.tasks.Go(func() {
		e, err := newEngine()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warming = false
		if err == nil && !s.closed {
			s.ready = e
		}
	})
}
