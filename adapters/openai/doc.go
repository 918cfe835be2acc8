// Package openai is an adapter for services that speak the OpenAI chat format:
// OpenAI itself, its many imitations, and local servers.
//
//	a, err := openai.New(openai.Config{
//		BaseURL:  "https://api.openai.com/v1",
//		APIKey:   key,
//		Models:   []llm.ModelInfo{{ID: "my-model"}},
//		Identity: llm.Ouro(version),
//	})
//	defer a.Close()
//
// Requests are built on the types of go-openai. Replies are decoded here: the
// field is full of dialects, and what this package makes of them is fixed by
// the inputs in testdata. The choices where several are possible:
//
//   - Reasoning is read from reasoning_content or reasoning, from thinking parts
//     of a content list, and from text between <think> and </think> at the start
//     of the answer; line breaks after either tag are trimmed, tags anywhere
//     else stay text (Compat.KeepThinkTags leaves all of it text).
//   - A reply is complete once its finish reason or its end mark was seen. A
//     body that ends with neither is STREAM_CLOSED, whatever came before; a
//     connection that breaks is TRANSPORT. After a finish reason, usage and the
//     end mark are awaited for ten seconds at most.
//   - retry-after-ms wins over retry-after; both are bounded at 2147483647 ms.
//   - Of a list of a message's blocks, unknown kinds are skipped. Tool results
//     go before other text of the same message, as the format demands.
//   - Tool-call arguments of the history that are not a JSON object are sent as
//     {}: one broken call must not spoil every later request.
//   - Text that looks like tool markup the server failed to parse stays text,
//     whole, and Config.Warn is told.
//
// There is no limit on the total time of a reply but the caller's context:
// Config.Timeout bounds the wait for the response's head, Config.IdleTimeout
// the silence between two reads, comments of the event stream counting as life.
//
// An Adapter is safe for concurrent use. Its failures are *llm.Error values.
// Neither the key nor a configured header value stands in any of them.
package openai
