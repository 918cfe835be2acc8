// Package anthropic is an adapter for the Anthropic Messages API and services
// that imitate it.
//
//	a, err := anthropic.New(anthropic.Config{
//		BaseURL:  "https://api.anthropic.com/v1",
//		APIKey:   key,
//		Models:   []llm.ModelInfo{{ID: "my-model", MaxTokens: 64000}},
//		Identity: llm.Ouro(version),
//	})
//	defer a.Close()
//
// The choices where several are possible:
//
//   - The API demands a limit of output tokens: the request's, else the model's,
//     else DefaultMaxTokens; ResolveModel reports which.
//   - Neighbouring messages of one role are sent as one, tool results first;
//     system messages of the history follow Request.System; blank texts are left
//     out, a user message that has nothing else says "(no content)".
//   - A reasoning effort is a budget of thinking tokens: low 2048, medium 8192,
//     high 24000, off none. With Compat.AdaptiveThinking it is low, medium, high,
//     xhigh or max and the model decides. Any other is
//     UNSUPPORTED_REASONING_EFFORT, and so is a budget that leaves nothing of the
//     output limit.
//   - Signatures of thinking, redacted thinking and thinking that the service
//     keeps the text of travel in the replay state and go back as they came.
//     Reasoning without one is not sent. An assistant message never ends in
//     thinking: the API refuses that.
//   - Ids and names of calls in the history are brought into the API's alphabet;
//     arguments that are not a JSON object are sent as {}.
//   - A reply is complete once its message_stop was seen. A body that ends
//     without is STREAM_CLOSED, whatever came before; a connection that breaks is
//     TRANSPORT.
//   - A call without arguments has {}. Blocks and deltas of unknown kinds are
//     skipped. A stop reason that says the context window is full is
//     CONTEXT_WINDOW_EXCEEDED; another unknown one is its own code.
//
// There is no limit on the total time of a reply but the caller's context:
// Config.Timeout bounds the wait for the response's head, Config.IdleTimeout
// the silence between two reads, pings and comments counting as life.
//
// An Adapter is safe for concurrent use. Its failures are *llm.Error values.
// Neither the key nor a configured header value stands in any of them.
package anthropic
