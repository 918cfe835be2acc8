// Package stream is the conformance suite of the chunk protocol: laws that
// every llm.Adapter keeps, whatever it speaks to.
//
//	func TestMyAdapter(t *testing.T) {
//		stream.Run(t, stream.Subject{
//			Adapter: a,
//			Cases: []stream.Case{
//				{Name: "text", Request: ask, Want: stream.Want{Text: "hello", Finish: llm.Stop}},
//				{Name: "wrong key", Request: denied, Want: stream.Want{Code: seams.Auth}},
//			},
//			Refused: []llm.Request{withStopWords},
//		})
//	}
//
// A subject is an adapter with requests whose outcome is known, because a
// server that the author scripted stands behind it. Each case is read to its
// end, twice and by several readers at once, left after every chunk, and
// cancelled before the first and after every chunk. The laws are those of
// [Rules]; P1 to P9 are llm.Grammar's, S1 to S17 this package's.
//
// The suite does not import package testing: [T] is the part of *testing.T that
// it needs, and [Check] returns the findings to programs. It reads streams in
// goroutines of its own and joins them; only one that hangs for longer than
// Subject.Limit is left behind, and told.
package stream
