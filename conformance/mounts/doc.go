// Package mounts is the corpus of the mistakes that models make when they write
// a plugin to mount: another module system, types, a member or a schema dialect
// of another framework, an API of Node, a forgotten await.
//
// Each case is the code as a model wrote it, a call of the tool that it brings,
// and what comes of it: the code is accepted and the tool answers, or it is
// refused, when it is mounted or when the tool is called, with an error that
// says what to change. Then the case holds that one change, and the suite makes
// it and sees that the code is accepted and the tool answers.
//
// # Usage
//
//	checks, err := mounts.Checks(runtime)
//	failed := harness.Failing(ctx, checks)
//
// # Cases
//
// A case is a file of cases/, .js or .ts alike. It begins with comment lines:
//
//	// What the mistake is.
//	// call: add {"a": 1, "b": 2}
//	// answer: 3
//	// refused: INVALID_ARGUMENT
//	// says: write parameters
//	// change: inputSchema: --> parameters:
//
// The lines of refused, says and change are left out when the code is accepted.
// Change may stand several times: all are parts of the one change; \n in it is a
// line break. The rest of the file is the code.
//
// # Concurrency
//
// Checks of one runtime are made one at a time.
//
// # Errors
//
// A check is named by its case's file.
package mounts
