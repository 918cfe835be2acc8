// Package script makes container plugins of JavaScript and TypeScript.
//
// An [Engine] compiles sources, keeps their programs by content, and gives each
// activation of a plugin a realm of its own (package sandbox). It has three
// doors:
//
//   - [Engine.File] makes a plugin of a source file that the operator named;
//   - [Engine.Mount] makes one of code that an agent wrote;
//   - [Engine.Eval] evaluates an expression of cordis.yml.
//
// # Usage
//
//	engine := script.New(script.Options{Env: env, Fetch: client.Fetch, Report: report})
//	defer engine.Close()
//	plugin, files, err := engine.File(ctx, "plugins/hello.ts")
//	fiber, err := root.Plugin(plugin, config)
//
// # The table
//
// What JavaScript can reach is one table ([Services], [Verbs], [Events],
// [Shapes]): of each row come the façade of ctx, the binding to the seam's key,
// what cordis_inspect tells of it, its part of ouro.d.ts ([Declarations]) and
// its name in a grant. What is not in the table does not exist for JavaScript,
// but for services that another JavaScript plugin provides: those are objects
// whose methods answer promises, or copies of data.
//
// A file's ctx has all verbs, and it finds timers, fetch and process.env as in
// Node. A mount's ctx has few verbs, no ambient authority, and asks its
// [Mount].Permit before it injects a service or wraps a waterfall. Both are
// hosts of the same table.
//
// # Life of a realm
//
// The declaration (name, inject, provide, Config) is read once, in the realm
// that the first activation then takes over. Closing the realm is the first
// effect of an activation and so the last that is undone: disposers run in it,
// and when the undo has returned nothing of the plugin runs any more. A realm
// that dies, because a budget was passed, takes its fiber with it: the fiber
// fails while it loads, and is disposed later; [Options].Report is told.
//
// # Concurrency
//
// An Engine may be used from any goroutine. Entries into one realm run one at a
// time. A synchronous method of a service runs on the realm's goroutine and
// never enters a realm itself, so what it registers is announced to JavaScript
// listeners afterwards, in order.
//
// # Errors
//
// Errors are those of package sandbox and of the seams. Whatever comes from
// JavaScript is checked when it arrives: INVALID_ARGUMENT, INVALID_PLUGIN,
// INVALID_TOOL_OUTPUT, MALFORMED_RESPONSE, WRONG_TYPE and NOT_JSON name the
// plugin, the place and what was expected.
package script
