package agents_test

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
)

type jsonRaw = json.RawMessage

// flaky is a store whose sessions refuse the append of a type once, after having
// taken as many as skip says, or every flush.
type flaky struct {
	events.Store
	mu     sync.Mutex
	refuse string
	skip   int
}

func (f *flaky) Prepare(ctx context.Context, s events.Spec) (events.Session, error) {
	session, err := f.Store.Prepare(ctx, s)
	return &flakySession{session, f}, err
}

func (f *flaky) refuses(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if what != f.refuse {
		return false
	}
	f.skip--
	return f.skip < 0
}

type flakySession struct {
	events.Session
	f *flaky
}

func (s *flakySession) Append(ctx context.Context, d events.Draft) (events.Event, error) {
	if s.f.refuses(d.Type) {
		s.f.mu.Lock()
		defer s.f.mu.Unlock()
		s.f.refuse = ""
		return events.Event{}, seams.Errorf(seams.InvalidEvent, "test", "refused")
	}
	return s.Session.Append(ctx, d)
}

func (s *flakySession) Flush(ctx context.Context) error {
	if s.f.refuses("flush") {
		return seams.Errorf(seams.Transport, "test", "the disk is full")
	}
	return s.Session.Flush(ctx)
}
