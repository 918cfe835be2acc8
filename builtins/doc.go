// Package builtins is the composition: the table of plugins that cordis.yml may
// name, and [Open], which makes a running program of a file.
//
// Each builtin is a package below this one. They are the only rooms in which the
// container, the seams, the adapters, the agents and JavaScript meet.
//
// # Usage
//
//	r, err := builtins.Open(ctx, builtins.Options{File: "cordis.yml", Watch: true})
//	if err != nil { … }
//	defer r.Close(ctx)
//	agent, err := r.Agent("")
//	result := agent.Run(ctx, llm.UserText("hello"))
//
// # Concurrency
//
// A Runtime is safe for concurrent use.
//
// # Errors
//
// A composition that is no list of well-formed entries starts nothing and is
// Open's error (INVALID_CONFIG, NOT_FOUND, TOO_LARGE). Faults of entries are
// handed to [Options].Fault and leave the rest running.
package builtins
