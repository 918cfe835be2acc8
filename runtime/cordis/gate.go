package cordis

import (
	"context"
	"sync"
	"sync/atomic"
)

// gate counts the frames of plugin code that run for one activation. It has two
// counters, one for each phase, so that a barrier can wait for the frames that
// were inside when it came without waiting for later ones.
//
// word: bit 63 closed, bit 62 waited for, bit 61 phase, then 30 bits for each count.
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
	gateShift  = 30
	gateCount  = 1<<gateShift - 1
)

// ticket is the proof of an entered gate: the phase it was entered in.
type ticket uint64

func (t ticket) delta() uint64 {
	if t == 0 {
		return 1
	}
	return 1 << gateShift
}

func phaseOf(w uint64) ticket {
	if w&gatePhase != 0 {
		return 1
	}
	return 0
}

func countOf(w uint64, t ticket) uint64 {
	if t == 0 {
		return w & gateCount
	}
	return w >> gateShift & gateCount
}

// enter takes a lease. It fails on a closed gate.
func (g *gate) enter() (ticket, bool) {
	t := phaseOf(g.word.Load())
	if g.word.Add(t.delta())&gateClosed != 0 {
		g.exit(t)
		return 0, false
	}
	return t, true
}

func (g *gate) exit(t ticket) {
	w := g.word.Add(-t.delta())
	if w&gateClosed != 0 && countOf(w, 0)+countOf(w, 1) == 0 {
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
	w := g.word.Or(gateClosed) | gateClosed
	return countOf(w, 0)+countOf(w, 1) == 0
}

func (g *gate) empty() bool {
	w := g.word.Load()
	return countOf(w, 0)+countOf(w, 1) == 0
}

// alone reports whether nobody is inside but own (phase by phase): the frames the
// caller itself stands in.
func (g *gate) alone(own [2]uint64) bool {
	w := g.word.Load()
	return countOf(w, 0) <= own[0] && countOf(w, 1) <= own[1]
}

// barrier waits until every frame that is inside now has left, but for own.
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

// left waits until no frame is inside in phase t but for own.
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
