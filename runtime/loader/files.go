package loader

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/seams"
)

// files knows which files count, and which of them must be looked at, when. It
// belongs to the owner.
type files struct {
	l       *Loader
	watch   notifier
	events  <-chan fsnotify.Event
	errors  <-chan error
	tracked map[string]*tracked
	folders map[string]bool
	last    fsnotify.Event
	warned  bool
}

// notifier watches folders.
type notifier interface {
	Add(folder string) error
	Remove(folder string) error
	Close() error
}

// tracked is one file that counts.
type tracked struct {
	via   []string  // the names that lead to it: links, folders, and itself
	due   time.Time // when to look at it; zero: no need
	whole bool      // what is there then counts, also if it is empty or broken
}

// gather is how long the first write to a new file may be behind its creation.
// A file that is moved in from an unwatched folder looks like a created one
// until then.
const gather = time.Millisecond

func newNotifier() (notifier, <-chan fsnotify.Event, <-chan error, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, nil, err
	}
	return w, w.Events, w.Errors, nil
}

func (l *Loader) newFiles() *files {
	fs := &files{l: l, tracked: map[string]*tracked{}, folders: map[string]bool{}}
	if l.opts.Watch {
		var err error
		if fs.watch, fs.events, fs.errors, err = l.watch(); err != nil {
			fs.watch = nil
			fs.warn(err)
		}
	}
	return fs
}

func (fs *files) close() error {
	if fs.watch == nil {
		return nil
	}
	return fs.watch.Close()
}

// warn says, once, that changes are not seen.
func (fs *files) warn(err error) {
	if fs.warned {
		return
	}
	fs.warned = true
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOSPC):
		hint = "; the limit is fs.inotify.max_user_watches, raise it with sysctl"
	case errors.Is(err, syscall.EMFILE):
		hint = "; the limit is fs.inotify.max_user_instances, or that of open files (ulimit -n)"
	}
	fs.l.report(Fault{Pos: config.Pos{File: fs.l.opts.File}, Warning: true, Err: seams.Errorf(seams.NotWatched, "",
		"files cannot be watched, changes take effect at the next start: %w%s", err, hint)})
}

// track sets which files count. It answers those that are new or are reached by
// another way than before: what happened to them until now was not seen.
func (fs *files) track(paths []string) (fresh []string) {
	folders := map[string]bool{}
	for _, path := range paths {
		via, in := route(path, fs.l.dir)
		t := fs.tracked[path]
		if t == nil {
			t = &tracked{}
			fs.tracked[path] = t
		}
		if !slices.Equal(t.via, via) {
			t.via = via
			fresh = append(fresh, path)
		}
		for _, folder := range in {
			folders[folder] = true
		}
	}
	for path := range fs.tracked {
		if !slices.Contains(paths, path) {
			delete(fs.tracked, path)
		}
	}
	if fs.watch == nil {
		return fresh
	}
	for folder := range folders {
		// Again also for known ones: a folder that was replaced is another one.
		if err := fs.watch.Add(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			fs.warn(err)
		}
	}
	for folder := range fs.folders {
		if !folders[folder] {
			_ = fs.watch.Remove(folder) // it may be gone
		}
	}
	fs.folders = folders
	return fresh
}

// maxLinks bounds how many symbolic links lead to a file.
const maxLinks = 40

// route follows a path to its file. via are the names whose change may change
// what is found: symbolic links, the folders below base, the first name that is
// missing, and the file; in are the folders those names stand in.
func route(path, base string) (via, in []string) {
	cur := filepath.VolumeName(path) + string(filepath.Separator)
	rest := split(path[len(filepath.VolumeName(path)):])
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		info, err := os.Lstat(next)
		link := err == nil && info.Mode()&os.ModeSymlink != 0
		if link || err != nil || len(rest) == 0 || within(cur, base) {
			via = append(via, next)
			in = append(in, cur)
		}
		switch {
		case err != nil:
			return via, in
		case link:
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return via, in
			}
			if filepath.IsAbs(target) {
				cur = filepath.VolumeName(target) + string(filepath.Separator)
			}
			rest = append(split(target), rest...)
		default:
			cur = next
		}
	}
	return via, in
}

func split(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(s string) bool { return s == "" || s == "." })
}

// within reports whether path is base or lies below it.
func within(path, base string) bool {
	rel, err := filepath.Rel(base, path)
	return err == nil && filepath.IsLocal(rel)
}

// event notes what has happened to a name in a watched folder.
func (fs *files) event(ev fsnotify.Event, ok bool) {
	if !ok {
		fs.events = nil
		return
	}
	// A file that is moved within watched folders shows as two events in a row.
	moved := ev.Has(fsnotify.Create) && fs.last.Has(fsnotify.Rename) && fs.last.Name != ev.Name
	fs.last = ev
	if ev.Op == fsnotify.Chmod {
		return
	}
	for _, t := range fs.tracked {
		if !slices.Contains(t.via, ev.Name) {
			continue
		}
		now := time.Now()
		switch {
		case moved:
			t.due, t.whole = now, true
		case ev.Has(fsnotify.Create):
			t.due, t.whole = now.Add(gather), false
		default:
			t.due, t.whole = now.Add(fs.l.opts.Quiet), false
		}
	}
}

// failed notes an error of the watcher. When it has lost events, everything is
// looked at.
func (fs *files) failed(err error, ok bool) {
	switch {
	case !ok:
		fs.errors = nil
	case errors.Is(err, fsnotify.ErrEventOverflow):
		for _, t := range fs.tracked {
			t.due, t.whole = time.Now().Add(fs.l.opts.Quiet), false
		}
	default:
		fs.warn(err)
	}
}

// next is when the next file must be looked at.
func (fs *files) next() (at time.Time, ok bool) {
	for _, t := range fs.tracked {
		if !t.due.IsZero() && (!ok || t.due.Before(at)) {
			at, ok = t.due, true
		}
	}
	return at, ok
}

func (fs *files) pending() bool {
	_, ok := fs.next()
	return ok
}

// take returns the files that are due, and whether what is there counts
// whatever it is.
func (fs *files) take(now time.Time) map[string]bool {
	out := map[string]bool{}
	for path, t := range fs.tracked {
		if !t.due.IsZero() && !t.due.After(now) {
			out[path] = t.whole
			t.due = time.Time{}
		}
	}
	return out
}

// takeAll returns all files as whole.
func (fs *files) takeAll() map[string]bool {
	out := map[string]bool{}
	for path, t := range fs.tracked {
		out[path] = true
		t.due = time.Time{}
	}
	return out
}

// doubt gives files that were written in place and are broken more time.
func (fs *files) doubt(paths ...string) {
	for _, path := range paths {
		if t := fs.tracked[path]; t != nil && t.due.IsZero() {
			t.due, t.whole = time.Now().Add(4*fs.l.opts.Quiet), true
		}
	}
}

// now has files looked at at once.
func (fs *files) now(paths ...string) {
	for _, path := range paths {
		if t := fs.tracked[path]; t != nil {
			t.due, t.whole = time.Now(), false
		}
	}
}
