// Package llmretry is the builtin "llm-retry": it has failed requests to models
// made again, within the step that made them.
//
//	root.Plugin(llmretry.Plugin(), nil)
//
// It answers agent/request-error. Which failures are worth another try, how often
// and after which wait, is the policy of the route that failed
// ([llm.RetryPolicy]): the plugin itself has no configuration. Each retry is in
// the session's log twice: [Scheduled] before the wait, [Started] after it. So a
// session that is resumed counts those it had, and a reader of the log sees what
// a step has waited for. What came of a failed attempt stays in its step and is in
// no later request.
//
// # Concurrency
//
// Requests of several agents wait side by side. A wait ends without a retry when
// the turn is cancelled or the plugin leaves.
//
// # Errors
//
// A configuration is INVALID_CONFIG. An error of the session's log is the error
// of the dispatch, and the request fails with what it failed with.
package llmretry
