package cordis

import (
	"context"
	"sync"
	"sync/atomic"
)

// gate counts the frames of plugin code that run for one activation: listeners
// and calls. Listeners have two counters, one for each phase, so that a barrier
// can wait for those that were inside when it came without waiting for later
// ones, nor for calls, which may take as long as they like.
//
// word: bit 63 closed, bit 62 waited for, bit 61 phase, then 20 bits for each count.
type gate struct {
	word atomic.Uint64
	ep   *episode // told, from any goroutine, when its closed gate becomes empty

	mu   sync.Mutex    // guards wake and turn
	wake chan struct{} // closed when a frame leaves while somebody waits
	turn chan struct{} // one barrier at a time
}

const (
	gateClosed = 1 << 63
	gateWaited = 1 << 62
	gatePhase  = 1 << 61
	gateShift  = 20
	gateCount  = 1<<gateShift - 1
	gateInside = 1<<(3*gateShift) - 1
)

// ticket is the proof of an entered gate: the phase a listener has entered in, or
// that it is a call.
type ticket uint8

const callTicket ticket = 2

func (t ticket) delta() uint64 { return 1 << (t * gateShift) }

func phaseOf(w uint64) ticket { return ticket(w >> 61 & 1) }

func countOf(w uint64, t ticket) uint64 { return w >> (t * gateShift) & gateCount }

// enter takes a lease for a listener. It fails on a closed gate.
func (g *gate) enter() (ticket, bool) { return g.take(phaseOf(g.word.Load())) }

// call takes a lease for a call.
func (g *gate) call() (ticket, bool) { return g.take(callTicket) }

func (g *gate) take(t ticket) (ticket, bool) {
	if g.word.Add(t.delta())&gateClosed != 0 {
		g.exit(t)
		return 0, false
	}
	return t, true
}

func (g *gate) exit(t ticket) {
	w := g.word.Add(-t.delta())
	if w&gateClosed != 0 && w&gateInside == 0 {
		g.ep.f.c.post(&event{kind: evDrained, ep: g.ep})
	}
	if w&gateWaited != 0 {
		g.mu.Lock()
		if g.wake != nil {
			close(g.wake)
			g.wake = nil
		}
		g.mu.Unlock()
	}
}

// close refuses further frames and reports whether none is inside.
func (g *gate) close() bool {
	return g.word.Or(gateClosed)&gateInside == 0
}

func (g *gate) empty() bool {
	return g.word.Load()&gateInside == 0
}

// alone reports whether no listener is inside but own (phase by phase): those
// whose frames the caller itself stands in.
func (g *gate) alone(own [2]uint64) bool {
	w := g.word.Load()
	return countOf(w, 0) <= own[0] && countOf(w, 1) <= own[1]
}

// barrier waits until every listener that is inside now has left, but for own.
func (g *gate) barrier(ctx context.Context, own [2]uint64) error {
	g.mu.Lock()
	if g.turn == nil {
		g.turn = make(chan struct{}, 1)
	}
	turn := g.turn
	g.mu.Unlock()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// New frames enter in the other phase: those that a barrier which gave up has
	// left there go first, then everybody who is inside.
	old := phaseOf(g.word.Load())
	if err := g.left(ctx, 1-old, own); err != nil {
		return err
	}
	if old == 0 {
		g.word.Or(gatePhase)
	} else {
		g.word.And(^uint64(gatePhase))
	}
	return g.left(ctx, old, own)
}

// left waits until no listener is inside in phase t but for own.
func (g *gate) left(ctx context.Context, t ticket, own [2]uint64) error {
	defer g.word.And(^uint64(gateWaited))
	for {
		g.mu.Lock()
		g.word.Or(gateWaited)
		if countOf(g.word.Load(), t) <= own[t] {
			g.mu.Unlock()
			return nil
		}
		if g.wake == nil {
			g.wake = make(chan struct{})
		}
		wake := g.wake
		g.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
