// Package fs provides the service "fs": the files of one folder, and nothing
// above it.
//
// Paths are relative to the folder, with slashes. Links are followed only as
// long as they stay inside.
//
//	root.Plugin(fs.Plugin(dir), map[string]any{"root": "./data"})
//
//	files, err := cordis.Get(ctx, fs.Key)
//	text, err := files.ReadText("notes/today.md")
//
// Nothing is written unless the configuration says `write: true`.
//
// # Concurrency
//
// A Folder is safe for concurrent use. A file that is written is replaced in one
// step: who reads it meanwhile sees the old text or the new one.
//
// # Errors
//
// NOT_FOUND, ACCESS_DENIED for what lies outside or must not be written,
// INVALID_ARGUMENT for what is no regular file or no text, TOO_LARGE.
package fs
