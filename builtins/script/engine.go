package script

import (
	"slices"
	"sync"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams/llm"
)

// Options configure an Engine.
type Options struct {
	// Env is process.env of files and of expressions. Mounts have none.
	Env map[string]string
	// Fetch is the global fetch of files, nil for none. Mounts inject http.
	Fetch sandbox.Fetch
	// Identity is what attributionHeaders() tells providers.
	Identity llm.Identity
	// Budgets bound every realm that states none of its own.
	Budgets sandbox.Budgets
	// Log gets what plugins write to the console, and to a logger that nobody
	// provides. Plugin is the source's name; of a mount it is [cordis:<id>], and
	// each line is a call. Level is "debug", "info", "warn" or "error". Nil drops
	// it.
	Log func(plugin, level, text string)
	// Report is told, once, each error that no caller is answered with: uncaught
	// errors, unhandled rejections, and why a realm died. It is called from any
	// goroutine. Nil drops it.
	Report func(cordis.Report)
}

// Engine makes plugins of JavaScript sources. Close it after the container.
type Engine struct {
	opt         Options
	attribution map[string]string
	compiler    *sandbox.Compiler
	spare       *sandbox.Spare
	table       map[string]*method // by "service.method"
	events      map[string]event   // declared ones, by name
	file, mount *sandbox.Facade

	mu     sync.Mutex
	read   []*reading     // realms that read a declaration and were not taken yet, oldest first
	eval   *sandbox.Realm // of expressions; nil until one is needed
	turn   chan struct{}  // held while an expression is evaluated
	closed bool
	ending sync.WaitGroup // realms of expressions that died
}

const (
	// closeGrace is how long a realm may take to end. It is less than the
	// deadline of an undo, so that the realm says what holds it.
	closeGrace = 4 * time.Second
	// maxRead bounds the realms kept for a first activation.
	maxRead = 16
)

// New makes an engine and begins to prepare a realm.
func New(opt Options) *Engine {
	if opt.Log == nil {
		opt.Log = func(string, string, string) {}
	}
	if opt.Report == nil {
		opt.Report = func(cordis.Report) {}
	}
	e := &Engine{
		opt: opt, attribution: opt.Identity.Headers(),
		compiler: sandbox.NewCompiler(), spare: sandbox.NewSpare(),
		table: map[string]*method{}, turn: make(chan struct{}, 1), events: map[string]event{},
	}
	all, vs := services(), verbs()
	for _, s := range all {
		for i := range s.methods {
			e.table[s.Name+"."+s.methods[i].Name] = &s.methods[i]
		}
	}
	for i := range vs {
		e.table["."+vs[i].Name] = &vs[i]
	}
	for _, ev := range declaredEvents() {
		e.events[ev.Name] = ev
	}
	e.file = facade(all, vs, false)
	e.mount = facade(all, vs, true)
	return e
}

// Close ends the realms that no activation has taken. Those of running plugins
// end with their fibers. Idempotent.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	read, eval := e.read, e.eval
	e.read, e.eval = nil, nil
	e.mu.Unlock()
	var first error
	for _, r := range read {
		if err := r.realm.Close(closeGrace); first == nil {
			first = err
		}
	}
	if eval != nil {
		if err := eval.Close(closeGrace); first == nil {
			first = err
		}
	}
	e.ending.Wait()
	e.spare.Close()
	return first
}

// keep holds a realm for the first activation of what it has read. The oldest
// ones make room: their plugins read themselves anew.
func (e *Engine) keep(r *reading) {
	e.mu.Lock()
	e.read = append(e.read, r)
	var out []*reading
	if n := len(e.read) - maxRead; n > 0 {
		out = slices.Clone(e.read[:n])
		e.read = slices.Delete(e.read, 0, n)
	}
	if e.closed {
		out, e.read = append(out, e.read...), nil
	}
	e.mu.Unlock()
	for _, r := range out {
		_ = r.realm.Close(closeGrace)
	}
}

// take gives the first kept realm that is the one wanted, nil if there is none.
func (e *Engine) take(wanted func(*reading) bool) *reading {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.read, wanted)
	if i < 0 {
		return nil
	}
	r := e.read[i]
	e.read = slices.Delete(e.read, i, i+1)
	return r
}
