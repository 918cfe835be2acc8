// Package logger provides the service "logger".
//
// A [Hub] keeps the last records in a ring and hands each one to its
// [Exporter] functions. Plugins get a [Logger] that carries a name: the one that
// the contexts around the plugin intercept for the service ({name: "…"}), else
// the plugin's own (C-59). A service's methods log under its provider's name,
// whoever calls them (C-60).
//
//	root.Plugin(logger.Plugin(os.Stderr), map[string]any{"level": "debug"})
//
//	log, err := cordis.Get(ctx, logger.Key)
//	log.Info("listening on", addr)
//
// Levels are, from the most to the least important, error 0, info 1, warn 2 and
// debug 3.
//
// # Concurrency
//
// All types are safe for concurrent use. Exporters are called one at a time, in
// the order of the records, and must not log themselves.
//
// # Errors
//
// Logging does not fail. INVALID_CONFIG names a level that does not exist.
package logger
