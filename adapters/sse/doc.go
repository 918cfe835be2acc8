// Package sse reads event streams (the text/event-stream format) byte by byte
// as they arrive, and asks model services for them.
//
// Lines end in LF, CRLF or CR, also where a CR and its LF come in different
// reads; a leading byte order mark is skipped; comments and fields other than
// "event" and "data" are ignored; the data lines of one event join with a line
// feed. Text is never decoded piecewise, so a character cut between two reads
// comes out whole. Unlike a browser, a [Reader] hands out the event that stands
// unfinished at a clean end of the body, marked as such: whether it is of use
// is for the caller to say.
//
//	r := sse.NewReader(sse.Idle(body, limit, cancel), sse.DefaultMaxEvent)
//	for {
//		ev, err := r.Next()
//		…
//	}
//
// A [Client] is what the adapters of such services have in common: it posts a
// request with the headers of its configuration, bounds every wait, follows no
// redirect, tells an event stream from other answers, and gives every failure a
// code of the language-model seam and a text without secrets.
//
//	reply, err := client.Post(ctx, body)
//	…
//	defer reply.Close()
//	for {
//		ev, err := reply.Next()
//		…
//	}
//
// A Client is safe for concurrent use; a [Reply] is for one goroutine, and its
// failures are *llm.Error values.
//
// A Reader is for one goroutine. It fails with [ErrTooLarge] or with what the
// underlying reader fails with; io.EOF is the clean end.
package sse
