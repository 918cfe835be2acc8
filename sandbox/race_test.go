//go:build race

package sandbox

// raced: the race detector is in this binary. It maps more memory than a child
// may have otherwise.
const raced = true
