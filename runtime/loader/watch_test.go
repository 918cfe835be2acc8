package loader

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// step is one step of a fsw-* case.
type step struct {
	Write     string    `json:"write"`
	Append    string    `json:"append"`
	Truncate  string    `json:"truncate"`
	Content   string    `json:"content"`
	Rename    []string  `json:"rename"`
	Symlink   []string  `json:"symlink"`
	Remove    string    `json:"remove"`
	RemoveAll string    `json:"remove_all"`
	Mkdir     string    `json:"mkdir"`
	Chmod     string    `json:"chmod"`
	Start     bool      `json:"start"`
	SleepMS   int       `json:"sleep_ms"`
	Want      *expected `json:"want"`
}

type expected struct {
	V          *float64 `json:"v"`
	Reloads    *int     `json:"reloads"`
	Active     []string `json:"active"`
	UnmountsB  *int     `json:"unmounts_of_b"`
	Warning    string   `json:"warning"`
	ErrorShown string   `json:"error_shown"`
	Note       string   `json:"note"`
}

// Cases fsw-01, fsw-02, fsw-03. Their long pauses are cut to what the loader may
// take for a file that is written in place and broken, and some. A run in which
// a short pause became a long one shows nothing: it is repeated.
func TestFileWatchCases(t *testing.T) {
	const quiet = 100 * time.Millisecond
	for _, id := range []string{"fsw-01", "fsw-02", "fsw-03"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + id + ".steps.json")
			if err != nil {
				t.Fatal(err)
			}
			var steps []step
			d := json.NewDecoder(strings.NewReader(string(text)))
			d.DisallowUnknownFields()
			if err := d.Decode(&steps); err != nil {
				t.Fatal(err)
			}
			for late := true; late; {
				late = false
				w := newWorld(t, Options{Watch: true, Quiet: quiet})
				w.write("plugins/a.js", "")
				last := time.Now()
				for i := 0; i < len(steps) && !late; i++ {
					if pause := steps[i-min(i, 1)].SleepMS; steps[i].SleepMS == 0 && pause > 0 && pause < int(quiet.Milliseconds()) {
						late = time.Since(last) > quiet*8/10
					}
					if !late {
						w.step(i, steps[i])
					}
					if steps[i].SleepMS == 0 {
						last = time.Now()
					}
				}
			}
		})
	}
}

func (w *world) step(i int, s step) {
	w.t.Helper()
	at := func(name string) string { return filepath.Join(w.dir, name) }
	add := func(flag int) error {
		name := s.Write + s.Append + s.Truncate
		f, err := os.OpenFile(at(name), os.O_WRONLY|flag, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(s.Content)
		return err
	}
	var err error
	switch {
	case s.Write != "":
		err = add(os.O_CREATE | os.O_TRUNC)
	case s.Append != "":
		err = add(os.O_APPEND)
	case s.Truncate != "":
		err = add(os.O_TRUNC)
	case s.Rename != nil:
		err = os.Rename(at(s.Rename[0]), at(s.Rename[1]))
	case s.Symlink != nil:
		err = os.Symlink(s.Symlink[0], at(s.Symlink[1]))
	case s.Remove != "":
		err = os.Remove(at(s.Remove))
	case s.RemoveAll != "":
		err = os.RemoveAll(at(s.RemoveAll))
	case s.Mkdir != "":
		err = os.Mkdir(at(s.Mkdir), 0o755)
	case s.Chmod != "":
		err = os.Chmod(at(s.Chmod), 0o600)
	case s.Start:
		err = w.l.Start(context.Background())
		w.settle()
	case s.SleepMS > 0:
		time.Sleep(time.Duration(min(s.SleepMS, 700)) * time.Millisecond)
	case s.Want != nil:
		w.expect(i, s.Want)
	}
	w.ok(err)
}

func (w *world) expect(i int, want *expected) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if want.Reloads != nil && len(w.reloads) != *want.Reloads {
		w.t.Errorf("step %d: %d reloads, want %d", i, len(w.reloads), *want.Reloads)
	}
	var up string
	downs := 0
	for _, line := range w.log {
		if strings.HasPrefix(line, "up a ") {
			up = line
		}
		if strings.HasPrefix(line, "down b ") {
			downs++
		}
	}
	if want.V != nil && up != fmt.Sprintf(`up a a {"v":%v}`, *want.V) {
		w.t.Errorf("step %d: %q, want version %v; all: %q", i, up, *want.V, w.log)
	}
	if want.UnmountsB != nil && downs != *want.UnmountsB {
		w.t.Errorf("step %d: b was unmounted %d times", i, downs)
	}
	if want.Active != nil {
		var active []string
		for _, s := range w.l.Entries() {
			if s.State == "active" {
				active = append(active, s.ID)
			}
		}
		if !slices.Equal(active, want.Active) && len(active)+len(want.Active) > 0 {
			w.t.Errorf("step %d: active are %v, want %v", i, active, want.Active)
		}
	}
	if text := fmt.Sprint(w.faults); want.Warning != "" && !strings.Contains(text, "warning: the config is empty: the running one is kept") || want.ErrorShown != "" && !strings.Contains(text, "cordis.yml:5:9: ") {
		w.t.Errorf("step %d: reported %v", i, w.faults)
	}
}

// watching is a world whose files count soon after they were written in place.
func watching(t testing.TB) *world {
	w := newWorld(t, Options{Watch: true, Quiet: 20 * time.Millisecond})
	return w
}

// eventually waits for a line of the log.
func (w *world) eventually(line string) {
	w.t.Helper()
	w.until(line, func() bool { return slices.Contains(w.log, line) })
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		is := ok()
		log, faults := slices.Clone(w.log), slices.Clone(w.faults)
		w.mu.Unlock()
		if is {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s did not come; log %q, reported %v", what, log, faults)
		}
	}
}

func (w *world) blamedSoon(part string) {
	w.t.Helper()
	w.until(part, func() bool {
		return slices.ContainsFunc(w.faults, func(f Fault) bool { return strings.Contains(f.String(), part) })
	})
}

// What arrives by rename counts at once, whatever it is; also when it comes
// from a folder that is not watched.
func TestRenameCountsAtOnce(t *testing.T) {
	w := newWorld(t, Options{Watch: true, Quiet: time.Hour})
	w.write("plugins/a.js", "version 1")
	w.start("- {id: a, name: ./plugins/a.js}\n")
	w.put("plugins/a.js", "version 2")
	w.eventually("up a a2")
	w.put("cordis.yml", "- {id: a, name: ./plugins/a.js, config: {v: 3}}\n")
	w.eventually(`up a a2 {"v":3}`)
	w.write("elsewhere/a.js", "version 4")
	w.ok(os.Rename(filepath.Join(w.dir, "elsewhere/a.js"), filepath.Join(w.dir, "plugins/a.js")))
	w.eventually(`up a a4 {"v":3}`)
	w.put("plugins/a.js", "syntax")
	w.blamedSoon("a.js:1:1: syntax error")
	w.put("cordis.yml", "- [")
	w.blamedSoon("cordis.yml:1:")
	w.put("cordis.yml", "")
	w.blamedSoon("the config is empty")
	w.stands("a:active!")
}

// L-31: what is written in place within the quiet time is one reload, and what
// is written in pieces is never seen half. A run whose writes came further
// apart shows nothing: it is repeated.
func TestWritesInPlace(t *testing.T) {
	const quiet = 300 * time.Millisecond
	var w *world
	for late := true; late; {
		w = newWorld(t, Options{Watch: true, Quiet: quiet})
		w.write("a.js", "version 1")
		w.start(one)
		late = false
		last := time.Now()
		write := func(text string) {
			w.write("a.js", text)
			late = late || time.Since(last) > quiet/2
			last = time.Now()
		}
		for i := range 20 {
			write(fmt.Sprintf("version x%d", i))
			time.Sleep(time.Millisecond)
		}
		if late {
			continue
		}
		w.eventually("down a a1")
		w.happened("up a a1", "up a ax19", "down a a1")
		last = time.Now()
		write("syntax") // broken while it is being written
		time.Sleep(quiet / 3)
		write("version 2")
		if late {
			continue
		}
		w.eventually("up a a2")
		w.blames()
	}
	w.write("a.js", "syntax")
	w.blamedSoon("a.js:1:1: syntax error")
	w.ok(os.Remove(filepath.Join(w.dir, "a.js")))
	w.blamedSoon("a.js was not found")
	w.stands("a:active!")
	w.write("a.js", "version 3")
	w.eventually("up a a3")
}

// Editors' side files and a changed mode are nothing.
func TestNoiseIsIgnored(t *testing.T) {
	w := watching(t)
	w.write("a.js", "version 1")
	w.start(one)
	w.took()
	for _, name := range []string{".a.js.swp", "4913", "a.js~", "a.js.tmp", "#a.js#", ".goutputstream-X"} {
		w.write(name, "version 7")
		w.ok(os.Remove(filepath.Join(w.dir, name)))
	}
	w.ok(os.Chmod(filepath.Join(w.dir, "a.js"), 0o600))
	w.write("a.js", "version 1")
	w.put("a.js", "version 2") // comes after all that
	w.eventually("down a a1")
	w.happened("up a a2", "down a a1")
	w.blames()
	w.until("its reload event", func() bool { return len(w.reloads) > 0 })
	if len(w.reloads) != 1 {
		t.Errorf("reloads: %q", w.reloads)
	}
}

// Folders that are made later, removed, made again, swapped as a whole or
// behind a link.
func TestFolders(t *testing.T) {
	w := watching(t)
	w.start("- {id: a, name: ./plugins/deep/a.js}\n- {id: l, name: ./link/a.js}\n")
	w.blames("plugins/deep/a.js was not found", "link/a.js was not found")
	w.write("plugins/deep/a.js", "version 1")
	w.eventually("up a a1")
	at := func(name string) string { return filepath.Join(w.dir, name) }
	w.ok(os.RemoveAll(at("plugins")))
	w.blamedSoon("was not found [NOT_FOUND]; its last good version")
	w.write("plugins/deep/a.js", "version 2")
	w.eventually("up a a2")
	w.put("plugins/deep/a.js", "version 3")
	w.eventually("up a a3")
	w.write("next/deep/a.js", "version 4")
	w.ok(os.Rename(at("plugins"), at("old")))
	w.ok(os.Rename(at("next"), at("plugins")))
	w.eventually("up a a4")
	w.write("old/deep/a.js", "version 5")
	w.put("plugins/deep/a.js", "version 6")
	w.eventually("up a a6")

	w.write("v1/a.js", "version 1")
	w.write("v2/a.js", "version 2")
	w.ok(os.Symlink("v1", at("link")))
	w.eventually("up l a1")
	w.ok(os.Symlink("v2", at("link.tmp")))
	w.ok(os.Rename(at("link.tmp"), at("link")))
	w.eventually("up l a2")
	w.put("v2/a.js", "version 3")
	w.eventually("up l a3")
	if slices.Contains(w.took(), "up a a5") {
		t.Error("a folder that was moved away counted")
	}
}

// Case fsw-06: without notifications the program goes on, and says so once.
func TestWatchLimits(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(l *Loader)
		want string
	}{
		{"instances", func(l *Loader) {
			l.watch = func() (notifier, <-chan fsnotify.Event, <-chan error, error) { return nil, nil, nil, syscall.EMFILE }
		}, "max_user_instances"},
		{"watches", func(l *Loader) {
			l.watch = func() (notifier, <-chan fsnotify.Event, <-chan error, error) { return full{}, nil, nil, nil }
		}, "max_user_watches"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := watching(t)
			tc.fail(w.l)
			w.write("plugins/a.js", "version 1")
			w.start("- {id: a, name: ./plugins/a.js}\n")
			w.blames("warning: files cannot be watched…" + tc.want)
			w.write("plugins/a.js", "version 2")
			w.reload()
			w.happened("up a a1", "up a a2", "down a a1")
			w.blames()
		})
	}
}

// full is a notifier at its limit.
type full struct{}

func (full) Add(string) error    { return os.NewSyscallError("inotify_add_watch", syscall.ENOSPC) }
func (full) Remove(string) error { return nil }
func (full) Close() error        { return nil }

// Lost notifications: everything is looked at.
func TestOverflow(t *testing.T) {
	errs := make(chan error, 1)
	w := watching(t)
	w.l.watch = func() (notifier, <-chan fsnotify.Event, <-chan error, error) { return deaf{}, nil, errs, nil }
	w.write("a.js", "version 1")
	w.start(one)
	w.write("a.js", "version 2")
	errs <- fsnotify.ErrEventOverflow
	w.eventually("up a a2")
}

type deaf struct{ full }

func (deaf) Add(string) error { return nil }

// A file that changes between its being loaded and its being watched.
func TestChangeBeforeTheWatch(t *testing.T) {
	w := watching(t)
	w.write("plugins/a.js", "version 1")
	load := w.load
	w.l.opts.Load = func(ctx context.Context, path string) (Source, error) {
		src, err := load(ctx, path)
		w.write("plugins/a.js", "version 2")
		return src, err
	}
	w.start("- {id: a, name: ./plugins/a.js}\n")
	w.eventually("up a a2")
}

func TestRoute(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"base/plugins", "..v1/conf", "out"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"base/plugins/a.js", "..v1/conf/c.yml", "out/o.js"} {
		if err := os.WriteFile(at(f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"..data": "..v1", "c.yml": "..data/conf/c.yml", "self": "self", "base/up": "../out/../out/o.js", "base/abs": at("out/o.js")} {
		if err := os.Symlink(to, at(from)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{
		"base/plugins/a.js": {"base/plugins", "base/plugins/a.js"},
		"base/plugins/x.js": {"base/plugins", "base/plugins/x.js"},
		"base/none/deep/x":  {"base/none"},
		"out/o.js":          {"out/o.js"},
		"c.yml":             {"c.yml", "..data", "..v1/conf/c.yml"},
		"base/up":           {"base/up", "out/o.js"},
		"base/abs":          {"base/abs", "out/o.js"},
	} {
		via, in := route(at(path), at("base"))
		for i := range want {
			want[i] = at(want[i])
		}
		if !slices.Equal(via, want) || len(in) != len(via) {
			t.Errorf("%s goes by %v in %v, want %v", path, via, in, want)
		}
	}
	if via, _ := route(at("self"), at("base")); len(via) != maxLinks+1 {
		t.Errorf("a link to itself goes by %d names", len(via))
	}
}
