package sandbox

import "fmt"

// console passes a console call on, within the log budget.
func (r *Realm) console(level, text string) {
	if r.options.Log == nil {
		return
	}
	text = r.relocate(text)
	r.mu.Lock()
	before := r.logged.used
	fits := r.logged.add(int64(len(text)), r.budgets.Log)
	first := !fits && (before <= r.budgets.Log || r.logged.used <= int64(len(text)))
	if fits {
		r.usage.Log += int64(len(text))
	}
	r.mu.Unlock()
	switch {
	case fits:
		r.options.Log(level, text)
	case first:
		r.options.Log("warn", fmt.Sprintf("console output is over %d bytes within a minute; the rest of this minute is dropped", r.budgets.Log))
	}
}
