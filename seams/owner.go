package seams

import "context"

// Undo reverses an effect. It is called at most once, with a context that has
// a deadline and is not the cancelled one of its owner.
type Undo func(ctx context.Context) error

// Owner is whoever registers something: in the container, one activation of a
// plugin. What is registered becomes visible in the step in which the
// activation becomes active and is undone, last first, when it ends.
type Owner interface {
	// Effect runs setup and records its undo under label ("tools.register(x)").
	// It fails with INACTIVE_EFFECT when the activation is over; if setup has
	// already run, its undo has run before Effect returns. The returned Undo
	// undoes just this effect, once, ahead of time.
	Effect(label string, setup func(context.Context) (Undo, error)) (Undo, error)
	// On registers a listener, as an effect.
	On(event string, h Handler) (Undo, error)
	// Scope is the scope this owner registers into and dispatches from.
	Scope() *Scope
	// Claim identifies the owner to registries.
	Claim() Claim
}

// Claim is what a registry must know of the owner of an entry.
type Claim interface {
	// Visible reports whether the owner is active with all its ancestors.
	Visible() bool
	// Kin reports whether other belongs to another version of the same entry
	// of the composition: such two may hold one name at the same time, the
	// visible one counts. A claim is not its own kin.
	Kin(other Claim) bool
	// Enter takes a lease: until exit is called the owner is not undone. The
	// returned context is ctx, cancelled too when the owner's drain deadline
	// passes. It fails with INACTIVE_EFFECT when the owner is closing or gone.
	Enter(ctx context.Context) (frame context.Context, exit func(), err error)
	// String names the owner for people.
	String() string
}
