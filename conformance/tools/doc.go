// Package toolstest is the conformance suite of the tools seam: the registry's
// scopes and the pipeline's phases, as [tools.Registry] promises them.
//
// # Usage
//
//	checks := toolstest.Checks(func(opt tools.Options) toolstest.Registry { return tools.New(opt) })
//	failed := harness.Failing(ctx, checks)
//
// # Concurrency
//
// Checks are independent; each makes a registry of its own.
//
// # Errors
//
// A check is named by the row of the reference that it follows.
package toolstest
