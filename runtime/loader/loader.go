package loader

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// Options configure a loader.
type Options struct {
	// File is the path of cordis.yml. Relative plugin paths start at its folder.
	File string
	// Text is the content of a composition that does not stand on disk. File
	// then only names it; plugin files are watched all the same.
	Text []byte
	// Builtins are the plugins that entries may name, by name and by alias.
	Builtins map[string]*cordis.Plugin
	// Defaults name builtins that every file holds implicitly: each is mounted
	// unless an enabled entry declares a service that it provides. The id of
	// such an entry is "default:" and the name.
	Defaults []string
	// Load makes a plugin of a source file; path is absolute, names an existing
	// file and ends in one of Extensions. It is called from several goroutines.
	// What it answers counts with an error as well: Files tells what to watch.
	// Its errors name file:line:column where they can.
	Load func(ctx context.Context, path string) (Source, error)
	// Eval evaluates a !!js expression to a JSON value; nil stands for undefined.
	Eval func(expr string) (any, error)
	// Report is told each fault once. Nil drops them.
	Report func(Fault)
	// Watch applies changes of files as they happen. Without it, Reload does.
	Watch bool
	// Quiet is how long a file that is written in place must rest, 100 ms if zero.
	Quiet time.Duration
}

// Extensions are those of plugin files.
var Extensions = []string{".js", ".mjs", ".cjs", ".ts"}

// Source is a plugin and the files it was made of.
type Source struct {
	Plugin *cordis.Plugin
	Files  []File
}

// File is a file as it was read.
type File struct {
	Path string   // absolute
	Sum  [32]byte // SHA-256 of its content; zero if it was not there
}

// Reload is the payload of ReloadEvent.
type Reload struct {
	Files []string `json:"files"` // those that have changed, absolute
}

// ReloadEvent is dispatched after changed files were applied, one at a time and
// in order; what they brought may still be loading (L-27).
var ReloadEvent = seams.Event[Reload, struct{}]{Name: "hmr/reload", Mode: seams.Emit}

// Loader keeps a container's fibers equal to a file.
type Loader struct {
	ctx    *cordis.Context
	opts   Options
	file   string // absolute
	dir    string
	watch  func() (notifier, <-chan fsnotify.Event, <-chan error, error)
	unhear seams.Undo

	run    context.Context // ends at Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	pokes  chan struct{} // the container has changed
	calls  chan func()   // carried out by the owner

	mu      sync.Mutex // of Start and Close; no call of another method takes it
	running atomic.Bool
	closed  bool

	shown atomic.Pointer[[]shown] // for Entries
	ids   sync.Map                // id -> nil, of every entry that was ever mounted

	// What follows belongs to the owner.
	tree    tree
	files   *files
	seen    []byte          // the content last read, applied or not; nil if there was none
	fatal   error           // what was wrong with it as a whole
	changes uint64          // how often the owner has changed something
	told    <-chan struct{} // closed when the last reload event has been heard
}

// New makes a loader that mounts below ctx. Nothing is read before Start.
func New(ctx *cordis.Context, opts Options) (*Loader, error) {
	file, err := filepath.Abs(opts.File)
	if err != nil || opts.File == "" {
		return nil, seams.Errorf(seams.InvalidArgument, "loader.New", "File %q is not a path", opts.File)
	}
	for _, name := range opts.Defaults {
		if opts.Builtins[name] == nil {
			return nil, seams.Errorf(seams.InvalidArgument, "loader.New", "the default %q is no builtin", name)
		}
	}
	if opts.Quiet == 0 {
		opts.Quiet = 100 * time.Millisecond
	}
	l := &Loader{
		ctx: ctx, opts: opts, file: file, dir: filepath.Dir(file), watch: newNotifier,
		pokes: make(chan struct{}, 1), calls: make(chan func()),
	}
	l.run, l.cancel = context.WithCancel(context.Background())
	told := make(chan struct{})
	close(told)
	l.told = told
	l.tree = tree{l: l, nodes: map[string]*node{}, modules: map[string]*module{}}
	return l, nil
}

// Start reads the file and mounts its entries; it does not wait for them to
// load. An error means that nothing was started, or that ctx ended: then Close
// it. That of a file wraps config.Faults, all of them, unless it could not be
// read. Faults of entries are reported, the rest runs.
func (l *Loader) Start(ctx context.Context) error {
	first, err := l.begin()
	if err != nil {
		return err
	}
	select {
	case <-first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin reads the file and starts the owner; first is closed when it has mounted
// the entries.
func (l *Loader) begin() (first chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running.Load() || l.closed {
		return nil, seams.Errorf(seams.InvalidArgument, "loader.Start", "the loader was started or closed before")
	}
	l.files = l.newFiles()
	l.files.track([]string{l.file})
	file, err := l.parse()
	if err != nil {
		return nil, errors.Join(err, l.files.close())
	}
	if l.unhear, err = cordis.StatusEvent.On(l.ctx, l.hear); err != nil {
		return nil, errors.Join(err, l.files.close())
	}
	l.running.Store(true)
	first = make(chan struct{})
	l.wg.Go(func() { l.own(file, first) })
	return first, nil
}

// hear wakes the owner when a fiber has changed.
func (l *Loader) hear(context.Context, cordis.StatusChange, func(context.Context) (struct{}, error)) (struct{}, error) {
	select {
	case l.pokes <- struct{}{}:
	default:
	}
	return struct{}{}, nil
}

// own is the owner's life.
func (l *Loader) own(file *config.File, first chan<- struct{}) {
	l.tree.set(l.run, file)
	l.tree.audit()
	l.track()
	close(first)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at, ok := l.files.next(); ok {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case <-l.run.Done():
			return
		case <-l.pokes:
			l.tree.audit()
		case call := <-l.calls:
			call()
		case ev, ok := <-l.files.events:
			l.files.event(ev, ok)
		case err, ok := <-l.files.errors:
			l.files.failed(err, ok)
		case <-due:
			_ = l.apply(l.files.take(time.Now()))
		}
	}
}

// call has the owner carry out f and answers what f does. When ctx ends, it does
// not wait for an f that was begun.
func call[T any](ctx context.Context, l *Loader, op string, f func() T) (out T, err error) {
	if !l.running.Load() {
		return out, seams.Errorf(seams.InactiveEffect, op, "the loader is not running")
	}
	done := make(chan T, 1)
	select {
	case l.calls <- func() { done <- f() }:
	case <-l.run.Done():
		return out, seams.Errorf(seams.InactiveEffect, op, "the loader was closed")
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	select {
	case out = <-done:
		return out, nil
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
}

// Reload looks at all files now and applies what has changed, whole. Its error
// is a fault of the whole file, which changes nothing, or that ctx ended: what
// was begun goes on then.
func (l *Loader) Reload(ctx context.Context) error {
	fatal, err := call(ctx, l, "loader.Reload", func() error { return l.apply(l.files.takeAll()) })
	if err != nil {
		return err
	}
	return fatal
}

// Settle waits until what was read is in force or refused, what was seen to
// change has been read, and the container is at rest. An entry that waits for a
// service is at rest. A file that was written this moment may not have been seen
// yet; see Reload.
func (l *Loader) Settle(ctx context.Context) error {
	type view struct {
		changes uint64
		moving  bool
	}
	look := func() (view, error) {
		return call(ctx, l, "loader.Settle", func() view {
			l.tree.audit()
			return view{l.changes, l.tree.busy() || l.files.pending()}
		})
	}
	before, err := look()
	if err != nil {
		return err
	}
	for {
		if err := l.ctx.Container().Settle(ctx); err != nil {
			return err
		}
		now, err := look()
		if err != nil || !now.moving && now.changes == before.changes {
			return err
		}
		before = now
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// Owns reports whether f is a version of an entry. The loader reports failures
// of its apply, with their place; who hears of them from the container as well
// leaves them to it.
func (l *Loader) Owns(f *cordis.Fiber) bool {
	_, ok := l.ids.Load(f.Entry())
	return ok
}

// Close stops watching, unmounts all entries and waits for them, at most until
// ctx ends. It joins every goroutine of the loader. Idempotent.
func (l *Loader) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	if err := l.join(ctx); err != nil {
		return err
	}
	l.closed = true
	if !l.running.Swap(false) {
		return nil
	}
	errs := []error{l.files.close(), l.unhear(ctx)}
	var gone []*cordis.Done
	for _, n := range l.tree.nodes {
		gone = append(gone, l.ctx.Entry(n.id).Unmount())
	}
	for _, d := range gone {
		errs = append(errs, d.Wait(ctx))
	}
	return errors.Join(errs...)
}

// join waits for the owner and what it has started.
func (l *Loader) join(ctx context.Context) error {
	done := make(chan struct{})
	go func() { l.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return seams.Errorf(seams.Stuck, "loader.Close", "code of a plugin has not returned: %w", context.Cause(ctx))
	}
}

// report hands a fault over.
func (l *Loader) report(f Fault) {
	if l.opts.Report != nil {
		l.opts.Report(f)
	}
}

// builtinNames lists what an entry may be told to name: aliases are left out.
func (l *Loader) builtinNames() []string {
	var out []string
	for name := range l.opts.Builtins {
		if name[0] != '@' {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
