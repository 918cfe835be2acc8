package loader

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a container with a loader on a folder of its own. Its plugin files
// hold one directive a line:
//
//	version TEXT      shown in the log
//	inject NAME       needs a service
//	provide NAME      declares and provides it, with the version as value
//	bind NAME         provides it without declaring it
//	import ./FILE     reads another file of directives
//	need KEY          its config must have the text KEY
//	take              takes changed configurations in place
//	exclusive
//	hold NAME         takes a resource of the world that one at a time can have
//	fail TEXT         apply fails
//	syntax            the file cannot be loaded
type world struct {
	t    tb
	dir  string
	c    *cordis.Container
	l    *Loader
	env  map[string]any
	opts Options

	mu      sync.Mutex
	log     []string
	live    map[*string]string // what is up now: the rest of its line in log
	faults  []Fault
	reports []cordis.Report
	held    map[string]string
	reloads []Reload
	loads   map[string]int
}

// tb is what a world wants of a test; property tests have it too.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func newWorld(t testing.TB, opts Options) *world {
	w := makeWorld(t, t.TempDir(), opts)
	t.Cleanup(w.close)
	return w
}

func (w *world) close() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.l.Close(ctx); err != nil {
		w.t.Errorf("close the loader: %v", err)
	}
	if err := w.c.Close(ctx); err != nil {
		w.t.Errorf("close the container: %v", err)
	}
}

func makeWorld(t tb, dir string, opts Options) *world {
	w := &world{t: t, dir: dir, env: map[string]any{}, live: map[*string]string{}, held: map[string]string{}, loads: map[string]int{}}
	w.c = cordis.New(cordis.Options{Report: func(r cordis.Report) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reports = append(w.reports, r)
	}})
	opts.File = filepath.Join(w.dir, "cordis.yml")
	if opts.Load == nil {
		opts.Load = w.load
	}
	opts.Report = func(f Fault) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faults = append(w.faults, f)
	}
	opts.Eval = func(expr string) (any, error) {
		name, ok := strings.CutPrefix(expr, "process.env.")
		if !ok {
			return nil, seams.Errorf(seams.ScriptError, "", "%s is not defined", expr)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.env[name], nil
	}
	w.opts = opts
	_, err := ReloadEvent.On(w.c.Root(), func(_ context.Context, r Reload, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reloads = append(w.reloads, r)
		return struct{}{}, nil
	})
	w.ok(err)
	w.l, err = New(w.c.Root(), opts)
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// write writes a file in place.
func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.ok(os.MkdirAll(filepath.Dir(path), 0o755))
	w.ok(os.WriteFile(path, []byte(text), 0o644))
}

// put brings a file in by rename.
func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.ok(os.MkdirAll(filepath.Dir(path), 0o755))
	w.ok(os.WriteFile(path+".tmp", []byte(text), 0o644))
	w.ok(os.Rename(path+".tmp", path))
}

func (w *world) start(yml string) {
	w.t.Helper()
	w.write("cordis.yml", yml)
	w.ok(w.l.Start(context.Background()))
	w.settle()
}

func (w *world) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.ok(w.l.Settle(ctx))
}

// edit changes cordis.yml, and has the loader look.
func (w *world) edit(yml string) {
	w.t.Helper()
	w.write("cordis.yml", yml)
	w.reload()
}

func (w *world) reload() {
	w.t.Helper()
	w.ok(w.l.Reload(context.Background()))
	w.settle()
}

// took returns what has happened since it was last asked, in order.
func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.log
	w.log = nil
	return out
}

func (w *world) blamed() []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.faults
	w.faults = nil
	return out
}

// happened asserts what has happened since it was last asked, in any order.
func (w *world) happened(want ...string) {
	w.t.Helper()
	got := w.took()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Fatalf("happened:\n got %q\nwant %q", got, want)
	}
}

// blames asserts the faults reported since it was last asked: each holds the
// texts of want, in order of place, which are separated by "…".
func (w *world) blames(want ...string) {
	w.t.Helper()
	got := w.blamed()
	slices.SortStableFunc(got, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	bad := len(got) != len(want)
	for i := range min(len(got), len(want)) {
		text := got[i].String()
		for part := range strings.SplitSeq(want[i], "…") {
			_, rest, ok := strings.Cut(text, part)
			bad = bad || !ok
			text = rest
		}
	}
	if bad {
		w.t.Fatalf("reported:\n got %q\nwant %q", got, want)
	}
}

// states renders the entries as "id:state", "id:state!" where the file's
// version does not run.
func (w *world) states() string {
	var out []string
	for _, s := range w.l.Entries() {
		bad := ""
		if len(s.Faults) > 0 {
			bad = "!"
		}
		out = append(out, s.ID+":"+s.State+bad)
	}
	return strings.Join(out, " ")
}

func (w *world) stands(want string) {
	w.t.Helper()
	if got := w.states(); got != want {
		w.t.Fatalf("entries are %s\nwant        %s", got, want)
	}
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// runs notes that an activation is up, or with an empty text that it is not.
func (w *world) runs(activation *string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == "" {
		delete(w.live, activation)
	} else {
		w.live[activation] = text
	}
}

// load is the loader's view of plugin files.
func (w *world) load(_ context.Context, path string) (Source, error) {
	w.mu.Lock()
	w.loads[path]++
	w.mu.Unlock()
	var src Source
	var lines []string
	var read func(path string) error
	read = func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			src.Files = append(src.Files, File{Path: path})
			return seams.Errorf(seams.NotFound, "", "%s was not found", path)
		}
		src.Files = append(src.Files, File{Path: path, Sum: sha256.Sum256(text)})
		for i, line := range strings.Split(string(text), "\n") {
			if name, ok := strings.CutPrefix(line, "import "); ok {
				if err := read(filepath.Join(filepath.Dir(path), name)); err != nil {
					return err
				}
			} else if line == "syntax" {
				return seams.Errorf(seams.CompileFailed, "", "%s:%d:1: syntax error", path, i+1)
			} else {
				lines = append(lines, line)
			}
		}
		return nil
	}
	if err := read(path); err != nil {
		return src, err
	}
	src.Plugin = w.plugin(strings.TrimSuffix(filepath.Base(path), ".js"), lines...)
	return src, nil
}

// plugin makes a plugin of directives.
func (w *world) plugin(name string, lines ...string) *cordis.Plugin {
	p := &cordis.Plugin{Name: name}
	version := ""
	for _, line := range lines {
		what, arg, _ := strings.Cut(line, " ")
		switch what {
		case "version":
			version = arg
		case "inject":
			p.Inject = append(p.Inject, cordis.Need{Name: arg})
		case "provide":
			p.Provide = append(p.Provide, arg)
		case "exclusive":
			p.Exclusive = true
		case "need":
			p.Config = schema.Object(schema.Fields{arg: schema.String().Required(), "v": schema.Any(), "none": schema.Any()})
		}
	}
	p.Apply = func(ctx *cordis.Context, cfg any) error {
		id := ctx.Fiber().Entry()
		up := fmt.Sprintf("%s %s%s", id, name, version)
		shown := func(cfg any) string {
			if m, ok := cfg.(map[string]any); ok && len(m) > 0 {
				text, _ := json.Marshal(m)
				return " " + string(text)
			}
			return ""
		}
		for _, line := range lines {
			what, arg, _ := strings.Cut(line, " ")
			switch what {
			case "inject":
				v, err := cordis.Get(ctx, seams.Key[string]{Name: arg})
				if err != nil {
					return err
				}
				up += " " + arg + "=" + v
				if meta := ctx.Meta(arg); meta != nil {
					text, _ := json.Marshal(meta)
					up += string(text)
				}
			case "provide", "bind":
				if _, err := cordis.Provide(ctx, seams.Key[string]{Name: arg}, id+version); err != nil {
					return err
				}
			case "hold":
				if err := w.hold(ctx, id, arg); err != nil {
					return err
				}
			case "take":
				if err := ctx.OnUpdate(func(cfg any) (bool, error) {
					w.say("take %s%s", up, shown(cfg))
					return true, nil
				}); err != nil {
					return err
				}
			case "sleep":
				ms, _ := strconv.Atoi(arg)
				time.Sleep(time.Duration(ms) * time.Millisecond)
			case "fail":
				return fmt.Errorf("%s", arg)
			}
		}
		_, err := ctx.Effect("log", func(context.Context) (seams.Undo, error) {
			w.say("up %s%s", up, shown(cfg))
			w.runs(&up, up+shown(cfg))
			return func(context.Context) error { w.runs(&up, ""); w.say("down %s", up); return nil }, nil
		})
		return err
	}
	return p
}

// hold takes a resource outside of the container.
func (w *world) hold(ctx *cordis.Context, id, name string) error {
	_, err := ctx.Effect("hold", func(context.Context) (seams.Undo, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if by := w.held[name]; by != "" {
			return nil, fmt.Errorf("%s is in use", name)
		}
		w.held[name] = id
		return func(context.Context) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.held, name)
			return nil
		}, nil
	})
	return err
}
