//go:build unix

package sandbox

import (
	"syscall"
	"time"
)

// processTime is the processor time the process has used, of all its threads. ok
// is false where the system does not tell.
func processTime() (d time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
