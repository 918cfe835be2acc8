//go:build !unix

package sandbox

import "time"

// processTime is the processor time the process has used, of all its threads. ok
// is false where the system does not tell.
func processTime() (d time.Duration, ok bool) { return 0, false }
