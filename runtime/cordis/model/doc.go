// Package model is the reference of the service container: the rules by which
// fibers begin, publish, leave and are undone, executable and without any
// concurrency, and what follows from declarations alone.
//
// # Usage
//
// A [Script] declares a plugin as data, a [Plan] a composition and what is done
// to it. A [World] is a registry of fibers. Each rule is a method that carries
// the rule out and notes in [World.Violations] what made it illegal: so a world
// can be driven by itself, choosing among legal moves, or beside a real
// container, which makes the moves and has to name them. After each event
// [World.Settle] checks what must have been done in it.
//
// [Fixpoint] computes from declarations which fibers must be active when
// nothing moves, and against which providers; it looks at no state.
//
// The rules are the nine of the theory, its failure extension, a child that is
// waited for at its place in its parent's order of undoing, and replacement
// without a gap (N1…N7); keys are names in realms; mounts may wait to be
// announced; calls in flight hold up undoing; listeners are heard from the first
// moment of visibility until undoing begins or a newer version takes over.
//
// # Concurrency
//
// A World is for one goroutine at a time.
//
// # Errors
//
// None: a broken rule is a violation, a text that begins with the property's
// name.
package model
