// Package config reads cordis.yml: a list of entries, each with the place of
// everything that stands in it.
//
// # Usage
//
//	file, err := config.Parse("cordis.yml", data)
//	if err != nil {
//		// the file is no list of well-formed entries: nothing starts
//	}
//	for _, f := range file.Faults {
//		// a fault of one entry: that entry does not start, the rest does
//	}
//	for _, e := range file.Entries {
//		cfg, err := config.Interpolate(e.Config, eval) // evaluates !!js
//		cfg, err = pluginSchema.Resolve(cfg)           // runtime/schema
//		if err != nil {
//			faults := e.Locate(err) // file:line:col of each violation
//		}
//	}
//
// An entry has the fields id, name, config, disabled, group, inject, isolate
// and intercept. An entry with `group: true` has a list of entries as its
// config. `!!js <expression>` makes an [Expr] anywhere in config and as the
// value of disabled; this package never evaluates one itself.
//
// # YAML
//
// Text fields take a plain scalar as it is written (`id: no` is "no", `0123`
// keeps its zero). disabled and group take true and false, and yes, no, on, off
// when not quoted. Within config yes and no and dates are text, only true and
// false are booleans; a number that would not be kept as it is written (0123,
// an integer beyond 2^53) is a fault that asks for quotes. Keys are text.
// Anchors, aliases and merge keys work, each use is a copy. One document per
// file, UTF-8 with or without a byte-order mark, at most [MaxFile] bytes and
// [MaxNodes] values after aliases are expanded.
//
// # Concurrency
//
// A File and what hangs on it is immutable after Parse and safe for concurrent
// use. The caller must not modify Config and other maps in place.
//
// # Errors
//
// Everything that is wrong is a [Fault] `file:line:col: what was expected`. An
// error of this package is INVALID_CONFIG, or TOO_LARGE for a file beyond its
// bounds, and wraps all [Faults] that were found.
package config
