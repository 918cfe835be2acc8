// Package llm is the language-model seam: a request in, a stream of chunks out.
//
// A provider adapter implements [Adapter]. Plugins register adapters with the
// [Registry], the service under [Key]; an agent asks the registry for a stream
// and never learns which adapter answered.
//
//	call, err := reg.Prepare(ctx, scope, llm.CallConfig{Provider: "my-llm", Model: "my-model-v1"})
//	defer call.Close()
//	for chunk, err := range call.Stream(ctx, llm.Request{CallConfig: call.Config, Messages: history}) { … }
//
// # The chunk protocol
//
// A [Stream] is a sequence of [Chunk] values. A content block is opened by
// [BlockStart], filled by deltas and closed by [BlockEnd], whose block is
// authoritative; blocks have indices and may interleave. [Usage] comes at most
// once; [Finish] comes exactly once and last. Only a finish of kind "error" or
// "aborted" may leave blocks open. [Grammar] checks this strictly; [Assembler]
// is the tolerant reader that makes a message of whatever arrived.
//
// # Failures
//
// Adapters yield a non-nil error as their last element, best an [*Error] with a
// stable code. The registry makes of every failure on the adapter's side one
// terminal [Finish] (kind "aborted" or "error", with a [Failure]); an error
// that a stream of the registry yields is therefore one of the middleware
// around it (listeners of [StreamEvent]). What a request asks and an adapter
// cannot represent is refused with an UNSUPPORTED_ code before any network I/O.
// Nothing here retries.
//
// # Concurrency and ownership
//
// A Registry is safe for concurrent use. A Stream is for one goroutine; leaving
// its loop early closes the adapter's side and waits for its cleanup. Requests,
// messages, blocks and chunks are immutable once handed over: nobody writes to
// a slice or a pointer in them; who wants another value makes a copy.
package llm
