// Package compile lowers the source of a plugin to one script that the engine
// can run.
//
// [Build] takes .js, .mjs, .cjs and .ts alike, as ES module, as CommonJS, as the
// body of an async function that returns a plugin, or as one expression. It
// bundles relative imports through the reader of the [Source], leaves the
// modules that the realm serves to its require, and refuses every other import
// with the place of the import and what to use instead.
//
// Size and nesting are bounded before any parser sees the text, because neither
// parser bounds its recursion or can be cancelled.
//
// # Concurrency
//
// Build may be called from any goroutine.
//
// # Errors
//
// COMPILE_FAILED with every fault as file:line:column and its source line,
// MODULE_NOT_AVAILABLE, TOO_LARGE.
package compile
