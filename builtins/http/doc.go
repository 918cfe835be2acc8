// Package http provides the service "http": fetch, within limits.
//
// A [Client] carries out the requests of JavaScript: those of the fetch that
// ctx.http has, and, where the program hands its Fetch to package script, those
// of the global fetch of plugin files too.
//
//	client := http.New(http.Config{})
//	defer client.Close()
//	root.Plugin(http.Plugin(), nil)
//
// Limits: only http and https, also behind redirects, of which there are at
// most 10; time until the headers are there; time between two pieces of a body;
// bytes of a body. A redirect to another host takes no header along but those
// that describe content. Proxies are those of the environment.
//
// # Concurrency
//
// A Client is safe for concurrent use. A response's body is for one goroutine
// and must be closed.
//
// # Errors
//
// INVALID_ARGUMENT for a request that cannot be sent, TRANSPORT, TIMEOUT,
// ABORTED, TOO_LARGE. They name method, host and path: never a query, a header
// or a body.
package http
