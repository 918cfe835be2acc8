// Package memorytest is the conformance suite of the memory seam: stores,
// working stores and embedders.
//
// # Usage
//
//	checks := memorytest.StoreChecks(func(now func() time.Time) memory.Store { return … })
//	failed := harness.Failing(ctx, checks)
//
// # Concurrency
//
// Checks are independent; each of a store makes one of its own.
//
// # Errors
//
// A check that fails returns what it expected and what it got.
package memorytest
