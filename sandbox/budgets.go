package sandbox

import (
	"time"

	"github.com/ouro-run/ouro/seams"
)

// Budgets bound one realm. A zero field means its default, a negative one is
// INVALID_ARGUMENT. "Fatal" budgets end the realm, the others fail the
// operation that would pass them.
type Budgets struct {
	// Turn is the time of one synchronous turn: of what runs between two
	// moments in which the realm waits. Time inside synchronous host methods
	// does not count, nor, where the system tells, time in which the machine ran
	// other processes. Fatal. Default 1 s.
	Turn time.Duration
	// Minute is the sum of all turns within a minute. Fatal. Default 20 s.
	Minute time.Duration
	// Heap is how many bytes the process heap may grow while a turn of the
	// realm runs, once garbage is collected. Fatal. Default 256 MiB.
	Heap int64
	// Depth is the number of nested calls. Fatal. Default 500.
	Depth int
	// Timers is the number of timers at a time. Default 256.
	Timers int
	// Pending is the number of asynchronous host calls in flight. Default 256.
	Pending int
	// Calls is the number of host calls within a minute. Fatal. Default 100,000.
	Calls int64
	// Value is the size of one value that crosses, in bytes of its text; a
	// value has at most 100,000 nodes in 64 levels besides. Default 8 MiB.
	Value int64
	// Output is the sum of the values handed to the host within a minute, in
	// bytes. Fatal. Default 64 MiB.
	Output int64
	// Log is the number of bytes logged within a minute; what is over it is
	// dropped, with one line that says so. Default 256 KiB.
	Log int64
	// Body is the size of a fetched body that is read whole, in bytes. A body
	// read in pieces is not bounded. Default 32 MiB.
	Body int64
}

const (
	maxNodes  = 100_000
	maxLevels = 64
)

var defaultBudgets = Budgets{
	Turn: time.Second, Minute: 20 * time.Second, Heap: 256 << 20, Depth: 500,
	Timers: 256, Pending: 256, Calls: 100_000,
	Value: 8 << 20, Output: 64 << 20, Log: 256 << 10, Body: 32 << 20,
}

func (b Budgets) filled() (Budgets, error) {
	d := defaultBudgets
	return b, firstError(
		fill("turn", &b.Turn, d.Turn), fill("minute", &b.Minute, d.Minute), fill("heap", &b.Heap, d.Heap), fill("depth", &b.Depth, d.Depth),
		fill("timers", &b.Timers, d.Timers), fill("pending", &b.Pending, d.Pending), fill("calls", &b.Calls, d.Calls),
		fill("value", &b.Value, d.Value), fill("output", &b.Output, d.Output), fill("log", &b.Log, d.Log), fill("body", &b.Body, d.Body),
	)
}

func fill[T int | int64 | time.Duration](name string, v *T, def T) error {
	if *v < 0 {
		return seams.Errorf(seams.InvalidArgument, "sandbox", "budget %s is %v: it must not be negative", name, *v)
	}
	if *v == 0 {
		*v = def
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// perMinute counts against a budget that begins anew every minute.
type perMinute struct {
	began time.Time
	used  int64
}

// left is what of the limit is not used.
func (p *perMinute) left(limit int64) int64 {
	if now := time.Now(); now.Sub(p.began) >= time.Minute {
		p.began, p.used = now, 0
	}
	return limit - p.used
}

// add reports whether n more fit.
func (p *perMinute) add(n, limit int64) bool {
	fits := p.left(limit) >= n
	p.used += n
	return fits
}

func overBudget(format string, args ...any) error {
	return seams.Errorf(seams.OverBudget, "sandbox", format, args...)
}
