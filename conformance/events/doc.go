// Package eventstest is the conformance suite of the events seam: the session
// log, its surface, its life and its repair, as [events.Store] promises them.
//
// # Usage
//
//	checks := eventstest.Checks(func(bus seams.Bus, now func() time.Time) events.Store { return … })
//	failed := harness.Failing(ctx, checks)
//
// # Concurrency
//
// Checks are independent; each makes a store of its own.
//
// # Errors
//
// A check is named by the row of the reference that it follows.
package eventstest
