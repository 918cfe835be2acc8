package sandbox

import (
	"context"
	"sync"
	"time"
)

// borrowed is the context of host calls made within one entry. While the entry
// is unsettled it is its caller's; from then on it is the realm's, so that what
// was started and not awaited goes on, and nothing of the caller's context is
// touched after its call has returned.
type borrowed struct {
	realm context.Context

	mu     sync.Mutex
	caller context.Context // nil once it was given back
	own    context.Context // made when Done is first asked for
	cancel context.CancelCauseFunc
	unlink func() bool // own from caller
}

// Deadline implements context.Context.
func (b *borrowed) Deadline() (time.Time, bool) { return b.now().Deadline() }

// Value implements context.Context.
func (b *borrowed) Value(k any) any { return b.now().Value(k) }

func (b *borrowed) now() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.caller != nil {
		return b.caller
	}
	return b.realm
}

// Done implements context.Context.
func (b *borrowed) Done() <-chan struct{} { return b.owned().Done() }

// Err implements context.Context.
func (b *borrowed) Err() error { return b.owned().Err() }

// AfterFunc keeps package context from watching Done with a goroutine.
func (b *borrowed) AfterFunc(f func()) func() bool { return context.AfterFunc(b.owned(), f) }

func (b *borrowed) owned() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.make()
	return b.own
}

func (b *borrowed) make() {
	if b.own != nil {
		return
	}
	b.own, b.cancel = context.WithCancelCause(b.realm)
	if caller := b.caller; caller != nil {
		b.unlink = context.AfterFunc(caller, func() { b.cancel(context.Cause(caller)) })
	}
}

// giveBack ends the use of the caller's context. If that has ended, so have the
// host calls that were made in it.
func (b *borrowed) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.caller == nil {
		return
	}
	if b.caller.Err() != nil {
		b.make()
		b.cancel(context.Cause(b.caller))
	}
	if b.unlink != nil {
		b.unlink()
	}
	b.caller = nil
}
