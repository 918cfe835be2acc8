// Package memory is the memory seam: what outlives a session.
//
// A [Store] keeps items by key, each in one [Scope]; a search sees the items of
// a scope and of the wider ones around it, never those of another user, agent or
// session. A [WorkingStore] keeps the one state a task works with. An
// [Embedder] makes vectors of text, with which a store ranks by similarity.
//
// # Usage
//
//	scope := memory.Scope{User: "u1", Agent: "main"}
//	_, err := store.Put(ctx, memory.Item{Scope: scope, Key: "tea", Kind: memory.Fact, Text: "likes green tea"})
//	found, err := store.Search(ctx, memory.Query{Scope: scope, Text: "tea"})
//	for _, hit := range found.Hits { … }
//
// [Memory] is the store, and the working store, that lives in this process.
//
// # Concurrency
//
// All implementations are safe for concurrent use. Items are copied in and out.
//
// # Errors
//
// A failure is never shown as "nothing found": an empty result without an
// error says that there is nothing. NOT_FOUND is for one key that was asked for,
// INVALID_ARGUMENT for a scope without a user or an item out of bounds, TOO_LARGE
// for text over its bound, MEMORY_UNAVAILABLE for a store or an embedder that
// did not answer, with its cause.
package memory
