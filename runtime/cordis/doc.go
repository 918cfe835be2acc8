// Package cordis is the service container: plugins whose registrations are
// undone exactly, which run while the services they declare are there.
//
// A plugin is mounted as a [Fiber]. While every service it injects is published
// by an active fiber it is loaded: Apply runs with a [Context] that is bound to
// this one activation, and what it registers through that context (services,
// listeners, child plugins, goroutines, timers, effects) belongs to it. When
// Apply has returned, all of it becomes visible in one step. When a service it
// relies on leaves, or it is disposed, all of it is undone, last first.
//
// # Guarantees
//
//   - Undo is exact: last first, one at a time, exactly once, all attempted.
//   - The unload guard: no undo of a provider starts while an installed
//     consumer is committed to it, one that is being retired included.
//   - Nothing fires after dispose has returned: listeners, calls and timers
//     enter through a lease of their owner.
//   - No lock is held while plugin code runs; a plugin that blocks holds up
//     nobody but those that wait for it by name.
//   - A wait that would wait for itself answers WOULD_DEADLOCK.
//   - An entry (see [Context.Entry]) is replaced without a gap: the new version
//     loads hidden beside the old one and takes its names over in the step in
//     which it becomes active. If it fails, nobody else noticed.
//   - The cost of an operation depends on the fibers it affects, not on how
//     many live.
//
// # Usage
//
//	c := cordis.New(cordis.Options{})
//	defer c.Close(ctx)
//	db := cordis.Define("db", func(ctx *cordis.Context, cfg Config) error {
//		_, err := cordis.Provide(ctx, dbKey, open(cfg))
//		return err
//	})
//	f, err := c.Root().Plugin(db, Config{})
//
// # Concurrency
//
// Every method may be called from any goroutine, from plugin code and from
// listeners included. Inside plugin code a lifecycle call is a request: nothing
// waits unless it says so ([Done.Wait], [Fiber.Settle], [Container.Settle]).
// Plugin code is called from goroutines that the container owns and joins in
// [Container.Close], or from the goroutine that dispatches an event.
//
// # Errors
//
// Errors are *seams.Error: INACTIVE_EFFECT, CLASH, NOT_INJECTED, NOT_PROVIDED,
// NOT_OWNER, WRONG_TYPE, INVALID_PLUGIN, APPLY_FAILED, UNDO_FAILED, STUCK,
// WOULD_DEADLOCK, NEXT_TWICE, PANICKED. What fails outside of a caller's call
// (an apply, an undo, a timer) is handed to [Options].Report, once.
package cordis
