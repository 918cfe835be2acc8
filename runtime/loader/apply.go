package loader

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/ouro-run/ouro/runtime/config"
	"github.com/ouro-run/ouro/seams"
)

// parse reads the file for the first time.
func (l *Loader) parse() (*config.File, error) {
	text, err := l.text()
	if err != nil {
		return nil, err
	}
	file, err := config.Parse(l.opts.File, text)
	if err != nil {
		return nil, err
	}
	l.seen = text
	if file.Empty {
		l.warnEmpty("no entries; nothing is started")
	}
	return file, nil
}

func (l *Loader) warnEmpty(what string) {
	l.report(Fault{Pos: config.Pos{File: l.opts.File}, Warning: true, Err: seams.Errorf(seams.InvalidConfig, "", "the config is empty: %s", what)})
}

// text reads the composition, one byte beyond its bound at most.
func (l *Loader) text() ([]byte, error) {
	if l.opts.Text != nil {
		return l.opts.Text, nil
	}
	f, err := os.Open(l.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, seams.Errorf(seams.NotFound, "", "%s does not exist", l.opts.File)
	} else if err != nil {
		return nil, seams.Errorf(seams.InvalidConfig, "", "%s cannot be read: %w", l.opts.File, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, config.MaxFile+1))
	if err != nil {
		return nil, seams.Errorf(seams.InvalidConfig, "", "%s cannot be read: %w", l.opts.File, err)
	}
	return text, nil
}

// reread reads the file again. It answers nil when nothing is to be applied: the
// content is the same, or keeps what runs. whole says whether a content that is
// empty or broken counts; else it is looked at again later. The error is that of
// the content as a whole, reported once and answered while it stands.
func (l *Loader) reread(whole bool) (*config.File, error) {
	text, err := l.text()
	if err == nil && l.seen != nil && bytes.Equal(text, l.seen) {
		return nil, l.fatal
	}
	var file *config.File
	if err == nil {
		file, err = config.Parse(l.opts.File, text)
	}
	if (err != nil || file.Empty) && !whole {
		l.files.doubt(l.file)
		return nil, nil
	}
	l.changes++
	known := err != nil && l.fatal != nil && err.Error() == l.fatal.Error()
	l.seen, l.fatal = text, err
	if err != nil {
		if !known {
			for _, f := range faultsOf(&config.Entry{}, config.Pos{File: l.opts.File}, err) {
				f.Kept = true
				l.report(f)
			}
		}
		return nil, err
	}
	if file.Empty {
		l.warnEmpty("the running one is kept; write [] to stop all entries")
		return nil, nil
	}
	return file, nil
}

// apply looks at the files that are due and applies what has changed. The error
// is that of cordis.yml as a whole; it was reported.
func (l *Loader) apply(due map[string]bool) error {
	if len(due) == 0 {
		return nil
	}
	file := l.tree.file
	var changed []string
	var fatal error
	if whole, ok := due[l.file]; ok {
		var next *config.File
		if next, fatal = l.reread(whole); next != nil {
			file = next
			changed = append(changed, l.file)
		}
	}
	changed = append(changed, l.reload(due)...)
	if len(changed) > 0 {
		l.changes++
		l.tree.set(l.run, file)
		l.tree.audit()
	}
	l.track()
	if len(changed) > 0 {
		slices.Sort(changed)
		l.tell(Reload{Files: slices.Compact(changed)})
	}
	return fatal
}

// tell dispatches a reload when the one before it has been heard. It does not
// wait: a listener may call the loader.
func (l *Loader) tell(r Reload) {
	before, heard := l.told, make(chan struct{})
	l.told = heard
	l.wg.Go(func() {
		defer close(heard)
		<-before
		_, _ = ReloadEvent.Dispatch(l.run, l.ctx, nil, r, nil)
	})
}

// reload loads those plugin files again that have changed, and answers the
// files that were to blame. One that is broken but may still be being written
// keeps its last version for a while.
func (l *Loader) reload(due map[string]bool) []string {
	stale := map[string][]string{}
	var paths []string
	for path, m := range l.tree.modules {
		if files := m.stale(due); len(files) > 0 {
			stale[path] = files
			paths = append(paths, path)
		}
	}
	var changed []string
	for path, m := range l.loadFiles(l.run, paths) {
		whole := !slices.ContainsFunc(stale[path], func(f string) bool { return !due[f] })
		if m.err != nil && !whole {
			l.files.doubt(stale[path]...)
			continue
		}
		l.tree.modules[path] = m
		changed = append(changed, stale[path]...)
	}
	return changed
}

// track follows the files that count now. What happened to a file between its
// being loaded and its being watched is made up for.
func (l *Loader) track() {
	var paths []string
	if l.opts.Text == nil {
		paths = append(paths, l.file)
	}
	read := map[string][32]byte{}
	for _, m := range l.tree.modules {
		for _, f := range m.files {
			if _, ok := read[f.Path]; !ok {
				paths = append(paths, f.Path)
			}
			read[f.Path] = f.Sum
		}
	}
	for _, path := range l.files.track(paths) {
		if was, ok := read[path]; ok && sum(path) != was {
			l.files.now(path)
		}
	}
}
