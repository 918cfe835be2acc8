// Package tools is the tools seam: definitions, the registry of what an agent
// may call, and the one pipeline through which every call goes.
//
// # Usage
//
//	undo, err := registry.Register(owner, tools.Definition{
//		Name:        "add",
//		Description: "Adds two numbers.",
//		Parameters:  params, // *schema.Schema
//		Execute: func(ctx context.Context, exec *tools.Exec, args any) (any, error) {
//			a := args.(map[string]any)
//			return a["a"].(float64) + a["b"].(float64), nil
//		},
//	})
//	result := registry.Execute(ctx, tools.Call{ID: "c1", Name: "add", Arguments: args})
//
// A call goes through these phases, in this order:
//
//  1. the arguments are copied and checked to be JSON
//  2. a caller that has already cancelled ends the call
//  3. [PreExecute] allows, denies or asks; asking goes to the [Approver]
//  4. guards: the first reason denies
//  5. [Around] wraps the dispatch: lookup, argument check, barrier, body,
//     output check, rendering
//  6. [PostExecute] accepts or blocks what came of it
//  7. the definition's FinalizeContent
//  8. [Results] tells observers
//
// A call whose arguments are no JSON, or that was cancelled before phase 3, or
// in which a listener of phase 3 or 5 failed, goes from there to phase 7.
// Execute has no error result: a failed call is a [Result] the model can read.
//
// # Concurrency
//
// A Registry is safe for concurrent use; no lock is held while a listener, a
// guard or a body runs. The lease of a definition's owner is entered before its
// arguments are checked and left after phase 7: a call in flight ends on the
// code it began with, and its owner is not undone before that.
//
// Arguments, values and content are shared by all who see a call and must not
// be modified; whoever changes one changes a copy.
//
// # Errors
//
// Registration fails with INVALID_ARGUMENT, DUPLICATE, NOT_FOUND or what
// the schema says. The codes of failed calls are in the const block
// seams.UnknownTool and below.
package tools
