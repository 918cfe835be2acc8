package script

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// maxSource bounds what is read of a source file. The compiler's own bound is
// lower and has the better message.
const maxSource = 4 << 20

// File makes a plugin of a source file, with the whole façade and the ambient
// authority of an operator's file. Path is read as it stands and shown in
// errors. The answer names the files the plugin was made of, path
// first, as they were read: who watches them knows when to ask again.
//
// Errors are NOT_FOUND (a folder, another extension, nothing there), TOO_LARGE,
// COMPILE_FAILED, MODULE_NOT_AVAILABLE, INVALID_PLUGIN, UNSUPPORTED_SCHEMA and
// what evaluation threw. Files then holds those that were read.
func (e *Engine) File(ctx context.Context, path string) (src loader.Source, err error) {
	if !slices.Contains(loader.Extensions, strings.ToLower(filepath.Ext(path))) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return src, seams.Errorf(seams.NotFound, "script.File", "%s is a folder: name the file in it, such as %s", path, filepath.Join(path, "index.ts"))
		}
		return src, seams.Errorf(seams.NotFound, "script.File", "%s is no plugin file: it must end in %s", path, strings.Join(loader.Extensions, ", "))
	}
	dir := filepath.Dir(path)
	// Imports are read through the folder's root: links do not lead out of it.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return src, unreadable(path, err)
	}
	defer root.Close()
	text, err := readSource(root, filepath.Base(path))
	if err != nil {
		return src, unreadable(path, err)
	}
	src.Files = []loader.File{{Path: path, Sum: sha256.Sum256([]byte(text))}}
	var mu sync.Mutex // the compiler imports from several goroutines
	program, err := e.compiler.Compile(compile.Source{
		Name: filepath.ToSlash(path), Text: text, Form: compile.Module,
		Import: func(name string) (string, error) {
			text, err := readSource(root, filepath.FromSlash(name))
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				file := loader.File{Path: filepath.Join(dir, filepath.FromSlash(name)), Sum: sha256.Sum256([]byte(text))}
				if !slices.Contains(src.Files, file) {
					src.Files = append(src.Files, file)
				}
			}
			return text, err
		},
	})
	if err != nil {
		return src, err
	}
	name := filepath.ToSlash(path)
	s := &source{
		e: e, name: name, program: program, facade: e.file, budgets: e.opt.Budgets,
		log:     func(level, text string) { e.opt.Log(name, level, text) },
		ambient: sandbox.Ambient{Timers: true, Env: e.opt.Env, Fetch: e.opt.Fetch},
	}
	src.Plugin, err = s.plugin(ctx)
	if err == nil && src.Plugin.Name == "" {
		src.Plugin.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return src, err
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
