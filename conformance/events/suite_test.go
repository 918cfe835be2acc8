package eventstest_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	eventstest "github.com/ouro-run/ouro/conformance/events"
	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func memory(bus seams.Bus, now func() time.Time) events.Store {
	return events.NewMemory(events.Options{Bus: bus, Now: now})
}

func TestMemoryConforms(t *testing.T) {
	for _, c := range eventstest.Checks(memory) {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// broken is a store with one promise left out.
type broken struct {
	events.Store
	prepare func(*events.Spec)
	fork    func(*events.ForkSpec)
	resume  bool // resume makes a fresh session of the events, unrepaired
	all     bool // get finds prepared sessions
	list    bool // list omits closed sessions
	session func(*session)
	made    map[string]events.Session
}

func (b *broken) wrap(s events.Session, err error) (events.Session, error) {
	if err != nil {
		return nil, err
	}
	w := &session{Session: s}
	if b.session != nil {
		b.session(w)
	}
	b.made[s.Header().ID] = w
	return w, nil
}

func (b *broken) Prepare(ctx context.Context, spec events.Spec) (events.Session, error) {
	if b.prepare != nil {
		b.prepare(&spec)
	}
	return b.wrap(b.Store.Prepare(ctx, spec))
}

func (b *broken) Resume(ctx context.Context, id string, scope *seams.Scope) (events.Session, error) {
	if b.resume && b.made[id] != nil {
		return b.wrap(b.Store.Prepare(ctx, events.Spec{Header: events.Header{ID: id + "'"}, Seed: b.made[id].Events(0)}))
	}
	return b.wrap(b.Store.Resume(ctx, id, scope))
}

func (b *broken) Fork(ctx context.Context, source string, spec events.ForkSpec) (events.Session, error) {
	if b.fork != nil {
		b.fork(&spec)
	}
	return b.wrap(b.Store.Fork(ctx, source, spec))
}

func (b *broken) Get(id string) (events.Session, bool) {
	s, ok := b.Store.Get(id)
	if b.all && b.made[id] != nil {
		return b.made[id], true
	}
	return s, ok
}

func (b *broken) List(ctx context.Context) iter.Seq2[events.Info, error] {
	return func(yield func(events.Info, error) bool) {
		for i, err := range b.Store.List(ctx) {
			if b.list && !i.Live {
				continue
			}
			if !yield(i, err) {
				return
			}
		}
	}
}

type session struct {
	events.Session
	draft    func(*events.Draft)
	event    func(*events.Event)
	messages func([]llm.Message) []llm.Message
	flush    bool // flush does nothing
	close    bool // close does nothing
	follow   bool // follow does not wait
}

func (s *session) Append(ctx context.Context, d events.Draft) (events.Event, error) {
	if s.draft != nil {
		s.draft(&d)
	}
	e, err := s.Session.Append(ctx, d)
	if s.event != nil {
		s.event(&e)
	}
	return e, err
}

func (s *session) Events(from int) []events.Event {
	es := s.Session.Events(from)
	if s.event != nil {
		for i := range es {
			s.event(&es[i])
		}
	}
	return es
}

func (s *session) Messages() []llm.Message {
	if s.messages != nil {
		return s.messages(s.Session.Messages())
	}
	return s.Session.Messages()
}

func (s *session) Flush(ctx context.Context) error {
	if s.flush {
		return nil
	}
	return s.Session.Flush(ctx)
}

func (s *session) Close(ctx context.Context) error {
	if s.close {
		return nil
	}
	return s.Session.Close(ctx)
}

func (s *session) Follow(ctx context.Context, from int) iter.Seq2[events.Event, error] {
	if !s.follow {
		return s.Session.Follow(ctx, from)
	}
	return func(yield func(events.Event, error) bool) {
		for _, e := range s.Session.Events(from) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// tampering is a bus that changes dispatches.
type tampering struct {
	seams.Bus
	change func(*seams.Dispatch) (drop bool)
}

func (b tampering) Dispatch(ctx context.Context, d seams.Dispatch) (any, error) {
	if b.change(&d) {
		return nil, nil
	}
	return b.Bus.Dispatch(ctx, d)
}

type maker = func(seams.Bus, func() time.Time) events.Store

func TestSuiteCatchesBrokenImplementations(t *testing.T) {
	store := func(b broken) maker {
		return func(bus seams.Bus, now func() time.Time) events.Store {
			b := b
			b.Store, b.made = memory(bus, now), map[string]events.Session{}
			return &b
		}
	}
	sess := func(f func(*session)) maker { return store(broken{session: f}) }
	bus := func(change func(*seams.Dispatch) bool) maker {
		return func(b seams.Bus, now func() time.Time) events.Store { return memory(tampering{b, change}, now) }
	}
	drop := func(event string) maker {
		return bus(func(d *seams.Dispatch) bool { return d.Event == event })
	}
	for _, c := range []struct {
		name   string
		make   maker
		caught string // the check that must fail, by the beginning of its name
	}{
		{"seq from 1", sess(func(s *session) { s.event = func(e *events.Event) { e.Seq++ } }), "envelope"},
		{"no clock", func(b seams.Bus, _ func() time.Time) events.Store {
			return memory(b, func() time.Time { return time.UnixMilli(1) })
		}, "envelope"},
		{"system role derived", sess(func(s *session) {
			s.messages = func(ms []llm.Message) []llm.Message { return ms[:max(0, len(ms)-1)] }
		}), "E-01"},
		{"seed unmarked", store(broken{prepare: func(s *events.Spec) { s.Seed = nil }}), "E-02"},
		{"seed mended", store(broken{prepare: func(s *events.Spec) {
			if len(s.Seed) > 0 && s.Seed[0].Seq != 0 {
				s.Seed = nil
			}
		}}), "E-03"},
		{"data shared", sess(func(s *session) {
			s.event = func(e *events.Event) {
				e.Data = json.RawMessage(strings.Replace(string(e.Data), "[1", `["changed"`, 1))
			}
		}), "E-04"},
		{"surfaceOp guessed", sess(func(s *session) {
			s.draft = func(d *events.Draft) {
				if d.Type == events.UserMessage.Name && d.SurfaceOp == nil {
					d.SurfaceOp = &events.SurfaceOp{}
				}
			}
		}), "E-05"},
		{"header mended", store(broken{prepare: func(s *events.Spec) { s.Header.Version = 0 }}), "E-06"},
		{"prepared is live", store(broken{all: true}), "E-07 prepare"},
		{"close does nothing", sess(func(s *session) { s.close = true }), "E-07 prepare"},
		{"no disposal", drop("session/disposed"), "E-08"},
		{"no creation", drop("session/created"), "E-08"},
		{"no notices", drop("session/event"), "E-09"},
		{"no flushing", drop("session/flush"), "E-21 flush"},
		{"flush does nothing", sess(func(s *session) { s.flush = true }), "E-21 flush"},
		{"flush does not wait", sess(func(s *session) { s.flush = true }), "flush comes after"},
		{"no scope", bus(func(d *seams.Dispatch) bool { d.Scope = nil; return false }), "E-21 bus"},
		{"todos ignored", sess(func(s *session) {
			s.draft = func(d *events.Draft) {
				if d.Type == events.TodoWrite.Name {
					d.Type = "x/y"
				}
			}
		}), "E-10"},
		{"replace appends", sess(func(s *session) {
			s.draft = func(d *events.Draft) {
				if d.SurfaceOp != nil {
					d.SurfaceOp = &events.SurfaceOp{}
				}
			}
		}), "E-11"},
		{"results replaced freely", sess(func(s *session) {
			s.draft = func(d *events.Draft) {
				if d.SurfaceOp != nil && d.SurfaceOp.Replace && d.Type == events.ToolResult.Name {
					d.SurfaceOp = &events.SurfaceOp{}
				}
			}
		}), "E-12"},
		{"stale cache", sess(func(s *session) {
			var first []llm.Message
			s.messages = func(ms []llm.Message) []llm.Message {
				if first == nil {
					first = ms
				}
				return first
			}
		}), "E-14"},
		{"fork anywhere", store(broken{fork: func(f *events.ForkSpec) { f.Boundary = 0 }}), "E-15"},
		{"no repair", store(broken{resume: true}), "E-16"},
		{"follow does not wait", sess(func(s *session) { s.follow = true }), "follow"},
		{"closed unlisted", store(broken{list: true}), "list"},
		{"messages out of order", sess(func(s *session) {
			s.messages = func(ms []llm.Message) []llm.Message { slices.Reverse(ms); return ms }
		}), "agt-05"},
		{"notices repeated", bus2(), "E-22"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checks := slices.DeleteFunc(eventstest.Checks(c.make), func(k harness.Check) bool { return !strings.HasPrefix(k.Name, c.caught) })
			if len(harness.Failing(context.Background(), checks)) == 0 {
				t.Errorf("no check beginning with %q failed", c.caught)
			}
		})
	}
}

// twice is a bus that dispatches notices twice.
type twice struct{ seams.Bus }

func (b twice) Dispatch(ctx context.Context, d seams.Dispatch) (any, error) {
	if d.Event == "session/event" {
		_, _ = b.Bus.Dispatch(ctx, d)
	}
	return b.Bus.Dispatch(ctx, d)
}

func bus2() maker {
	return func(b seams.Bus, now func() time.Time) events.Store { return memory(twice{b}, now) }
}
