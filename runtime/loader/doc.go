// Package loader keeps the fibers of a container equal to cordis.yml, live.
//
// # Usage
//
//	l, err := loader.New(c.Root(), loader.Options{
//		File:     "cordis.yml",
//		Builtins: builtins,     // by name and by alias
//		Load:     script.Load,  // a plugin from a source file
//		Eval:     realm.Eval,   // !!js expressions
//		Report:   func(f loader.Fault) { log.Println(f) },
//		Watch:    true,
//	})
//	if err := l.Start(ctx); err != nil {
//		// the file is no list of well-formed entries: nothing was started
//	}
//	defer l.Close(ctx)
//	err = l.Settle(ctx)
//	for _, s := range l.Entries() { … }
//
// # Entries and groups
//
// Each enabled entry is a place of the container (cordis.Context.Entry) of the
// entry's id, directly below the loader's context. A group is structure of the
// file, not a fiber: what it isolates, intercepts, injects and disables holds
// for everything below it, the innermost first. So an entry that moves from one
// group to another restarts only if what it injects or provides stands in
// another realm there (L-10, L-18). `isolate: {x: true}` makes a realm that
// belongs to the entry's id and outlives its reloads.
//
// Expressions in config are evaluated at each activation, those in disabled and
// intercept each time the file is read; evaluation sees what Eval gives it.
//
// # Reload
//
// A change is applied entry by entry: what did not change is not touched, what
// changed is replaced without a gap, what is gone is unmounted after the others
// were mounted. An entry whose new version cannot run (its file is broken, its
// configuration invalid, its apply fails) keeps its last good version running,
// and is reported with the place in the file. A file that is no list of entries,
// or is empty, keeps everything running; `[]` is obeyed. When something has
// left, what it stood in the way of is tried again: at rest, the container runs
// what a fresh start on the same files would, wherever that is all active. One
// thing a fresh start can and a reload cannot do: hand on a service that is not
// declared with `provide` while the plugin that gives it up waits for the one
// that takes it. The fault is CLASH and names the declaration that helps.
//
// Folders are watched, not files. What arrives whole, by rename, is taken at
// once. What is written in place is taken after [Options].Quiet without a
// further write, and when it is then empty or broken, it gets four times that
// before it counts as such. A file with the same content is not read twice.
//
// # Concurrency
//
// All methods are safe for concurrent use. One goroutine owns the tree; Close
// joins it and everything it has started. Report is called from it: it must not
// call Start, Reload, Settle or Close.
//
// # Errors
//
// A fault of the whole file is the error of Start and Reload: INVALID_CONFIG,
// TOO_LARGE or NOT_FOUND. All others are [Fault] values: handed to
// [Options].Report once, and shown by [Loader.Entries] as long as they stand.
package loader
