package loader

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// module is a plugin file that entries name, as it was last loaded.
type module struct {
	plugin *cordis.Plugin // nil when err is not
	err    error
	files  []File
}

// stale reports which of due, if any, is a file of m with another content now.
func (m *module) stale(due map[string]bool) []string {
	var out []string
	for _, f := range m.files {
		if _, ok := due[f.Path]; ok && sum(f.Path) != f.Sum {
			out = append(out, f.Path)
		}
	}
	return out
}

// maxSource bounds what is read of a plugin file to see whether it has changed.
const maxSource = 16 << 20

// sum is the SHA-256 of a regular file's content, zero if it cannot be read.
// Others are not opened: a pipe would wait for its writer.
func sum(path string) (out [32]byte) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return out
	}
	f, err := os.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxSource)); err != nil {
		return out
	}
	return [32]byte(h.Sum(nil))
}

// isPath tells a path from the name of a builtin.
func isPath(name string) bool {
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || filepath.IsAbs(name)
}

// path is the file an entry's name means.
func (l *Loader) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(l.dir, name)
}

// plugin resolves an entry's name. Its file has been loaded.
func (t *tree) plugin(name string) (*cordis.Plugin, error) {
	if isPath(name) {
		m := t.modules[t.l.path(name)]
		return m.plugin, m.err
	}
	if p := t.l.opts.Builtins[name]; p != nil {
		return p, nil
	}
	return nil, t.l.unknown(name)
}

const nameRule = "a name is a builtin or the path of a .js, .mjs, .cjs or .ts file that begins with ./, ../ or /"

// unknown is the error for a name that is neither a builtin nor a path.
func (l *Loader) unknown(name string) error {
	if slices.Contains(Extensions, filepath.Ext(name)) {
		return seams.Errorf(seams.NotFound, "", "no builtin is called %q; for the file write \"./%s\"", name, name)
	}
	all := slices.Sorted(func(yield func(string) bool) {
		for n := range l.opts.Builtins {
			if !yield(n) {
				return
			}
		}
	})
	if near := schema.Suggest(name, all); near != "" {
		return seams.Errorf(seams.NotFound, "", "plugin %q was not found, did you mean %q? %s", name, near, nameRule)
	}
	return seams.Errorf(seams.NotFound, "", "plugin %q was not found; %s. Builtins: %s", name, nameRule, strings.Join(l.builtinNames(), ", "))
}

// load loads the files that enabled entries name and that are not loaded, and
// forgets those that none names.
func (t *tree) load(ctx context.Context) {
	named := map[string]bool{}
	for _, n := range t.order {
		if isPath(n.entry.Name) && !n.off {
			named[t.l.path(n.entry.Name)] = true
		}
	}
	var missing []string
	for path := range named {
		if t.modules[path] == nil {
			missing = append(missing, path)
		}
	}
	for path := range t.modules {
		if !named[path] {
			delete(t.modules, path)
		}
	}
	for path, m := range t.l.loadFiles(ctx, missing) {
		t.modules[path] = m
	}
}

// loadFiles loads several files at a time.
func (l *Loader) loadFiles(ctx context.Context, paths []string) map[string]*module {
	out := make(map[string]*module, len(paths))
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, path := range paths {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			m := l.loadFile(ctx, path)
			mu.Lock()
			defer mu.Unlock()
			out[path] = m
		})
	}
	wg.Wait()
	return out
}

func (l *Loader) loadFile(ctx context.Context, path string) *module {
	fail := func(code seams.Code, format string, args ...any) *module {
		return &module{err: seams.Errorf(code, "", format, args...), files: []File{{Path: path, Sum: sum(path)}}}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fail(seams.NotFound, "%s was not found%s", l.short(path), l.nearFile(path))
	case info.IsDir():
		return fail(seams.NotFound, "%s is a folder and no entry file; name a .js, .mjs, .cjs or .ts file in it", l.short(path))
	case !info.Mode().IsRegular() || !slices.Contains(Extensions, filepath.Ext(path)):
		return fail(seams.InvalidPlugin, "%s is no plugin file; %s", l.short(path), nameRule)
	case l.opts.Load == nil:
		return fail(seams.NotFound, "plugin files are not available here")
	}
	src, err := l.opts.Load(ctx, path)
	m := &module{plugin: src.Plugin, err: err, files: src.Files}
	if err == nil && src.Plugin == nil {
		m.err = seams.Errorf(seams.InvalidPlugin, "", "%s holds no plugin", l.short(path))
	}
	if !slices.ContainsFunc(m.files, func(f File) bool { return f.Path == path }) {
		m.files = append(slices.Clip(m.files), File{Path: path, Sum: sum(path)})
	}
	return m
}

// short is path as people know it: relative to the file's folder, if it is
// below that.
func (l *Loader) short(path string) string {
	if rel, err := filepath.Rel(l.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// nearFile suggests a file beside one that does not exist.
func (l *Loader) nearFile(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries[:min(len(entries), 1000)] {
		if slices.Contains(Extensions, filepath.Ext(e.Name())) {
			names = append(names, e.Name())
		}
	}
	if near := schema.Suggest(filepath.Base(path), names); near != "" {
		return ", did you mean " + l.short(filepath.Join(filepath.Dir(path), near)) + "?"
	}
	return ""
}
