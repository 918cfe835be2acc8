// Package harness is what the conformance suites have in common: a [Check] that
// can be run against any implementation, and the smallest container that seams
// can stand in.
//
// # Usage
//
//	bus := harness.NewBus()
//	owner := bus.Owner("plugin", nil)
//	defer owner.Close(ctx)
//
// A suite is a list of checks. [Failing] runs them and returns those that fail;
// a test of the suite runs it against broken implementations and looks for the
// checks that must catch them.
//
// # Concurrency
//
// A Bus and its owners are safe for concurrent use. Owner.Close waits for the
// leases that others hold.
//
// # Errors
//
// A check that fails returns what it expected and what it got.
package harness
