package script

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// Extensions are those of the files that can be plugins.
var Extensions = []string{".js", ".mjs", ".cjs", ".ts"}

// maxSource bounds what is read of a source file. The compiler's own bound is
// lower and has the better message.
const maxSource = 4 << 20

// File makes a plugin of a source file, with the whole façade and the ambient
// authority of an operator's file. Path is read as it stands and shown in
// errors. Files are those that the plugin was made of, path first: who watches
// them knows when to ask again.
//
// Errors are NOT_FOUND (a folder, another extension, nothing there), TOO_LARGE,
// COMPILE_FAILED, MODULE_NOT_AVAILABLE, INVALID_PLUGIN, UNSUPPORTED_SCHEMA and
// what evaluation threw. Files then holds those that were read.
func (e *Engine) File(ctx context.Context, path string) (plugin *cordis.Plugin, files []string, err error) {
	if !slices.Contains(Extensions, strings.ToLower(filepath.Ext(path))) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, nil, seams.Errorf(seams.NotFound, "script.File", "%s is a folder: name the file in it, such as %s", path, filepath.Join(path, "index.ts"))
		}
		return nil, nil, seams.Errorf(seams.NotFound, "script.File", "%s is no plugin file: it must end in %s", path, strings.Join(Extensions, ", "))
	}
	dir := filepath.Dir(path)
	// Imports are read through the folder's root: links do not lead out of it.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	defer root.Close()
	text, err := readSource(root, filepath.Base(path))
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	files = []string{path}
	var mu sync.Mutex // the compiler imports from several goroutines
	program, err := e.compiler.Compile(compile.Source{
		Name: filepath.ToSlash(path), Text: text, Form: compile.Module,
		Import: func(name string) (string, error) {
			text, err := readSource(root, filepath.FromSlash(name))
			if file := filepath.Join(dir, filepath.FromSlash(name)); err == nil {
				mu.Lock()
				defer mu.Unlock()
				if !slices.Contains(files, file) {
					files = append(files, file)
				}
			}
			return text, err
		},
	})
	if err != nil {
		return nil, files, err
	}
	name := filepath.ToSlash(path)
	s := &source{
		e: e, name: name, program: program, facade: e.file, budgets: e.opt.Budgets,
		log:     func(level, text string) { e.opt.Log(name, level, text) },
		ambient: sandbox.Ambient{Timers: true, Env: e.opt.Env, Fetch: e.opt.Fetch},
	}
	plugin, err = s.plugin(ctx)
	return plugin, files, err
}

func readSource(root *os.Root, name string) (string, error) {
	info, err := root.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		// A folder is "not there", so that an import finds its index file.
		return "", &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(text) > maxSource {
		err = seams.Errorf(seams.TooLarge, "script.File", "the file has more than %d bytes", maxSource)
	}
	return string(text), err
}

func unreadable(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return seams.Errorf(seams.NotFound, "script.File", "%s does not exist, or is no file", path)
	}
	return seams.Errorf(seams.CodeOf(err), "script.File", "%s: %w", path, err)
}
