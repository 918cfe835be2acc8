// Package seams holds what every room of Ouro shares and nothing else: service
// keys, event names with their dispatch modes, coded errors, scopes, and the
// layered registry. It imports the standard library only.
//
// A seam is a named place in the container that some plugin fills. The four
// seams (llm, tools, events, memory) live in packages below this one; each has
// a [Key], an interface with its contract, and an in-memory implementation.
//
// # Usage
//
// Rooms that must not know the container (agents, seams/tools, seams/llm) reach
// it through three small interfaces which the container implements:
//
//   - [Bus]: dispatch an event;
//   - [Owner]: register something that is undone when its owner goes;
//   - [Claim]: ask a registration's owner whether it may be seen, and enter it.
//
// # Concurrency
//
// All types are safe for concurrent use unless their comment says otherwise.
//
// # Errors
//
// Errors are [*Error] values with a [Code]. A Code is itself an error, so
// errors.Is(err, seams.InactiveEffect) asks for the code of any error in a
// chain. [Codes] is the one table of all codes.
package seams
