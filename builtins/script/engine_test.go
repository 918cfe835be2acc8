package script_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A plugin file is named with its extension; a folder, another extension and
// what is not there are told apart.
func TestFileNames(t *testing.T) {
	w := newWorld(t)
	for _, ext := range loader.Extensions {
		source := "export function apply() {}"
		if ext == ".cjs" {
			source = "exports.apply = () => {}"
		}
		if src, err := w.engine.File(w.Context(), w.write("ok"+ext, source)); err != nil || len(src.Files) != 1 {
			t.Errorf("%s: %v %v", ext, src.Files, err)
		}
	}
	w.write("folder/index.ts", "export function apply() {}")
	w.write("folder.ts/x.ts", "")
	for _, c := range []struct {
		path, says string
		code       seams.Code
	}{
		{"folder", "is a folder: name the file in it", seams.NotFound},
		{"folder.ts", "is no file", seams.NotFound},
		{"nosuch.ts", "does not exist", seams.NotFound},
		{"plugin.py", "must end in .js, .mjs, .cjs, .ts", seams.NotFound},
		{"plugin", "must end in", seams.NotFound},
	} {
		_, err := w.engine.File(w.Context(), filepath.Join(w.dir, c.path))
		if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.path, err, c.says)
		}
	}
	big := w.write("big.js", "//"+strings.Repeat("x", 5<<20))
	if _, err := w.engine.File(w.Context(), big); !errors.Is(err, seams.TooLarge) {
		t.Errorf("big: %v", err)
	}
}

// The files a plugin was made of are named, imports and broken ones included,
// and imports do not leave the folder.
func TestFileImports(t *testing.T) {
	w := newWorld(t)
	w.write("lib/helper.ts", "export const word: string = 'hi'")
	w.write("data.json", `{"n": 3}`)
	main := w.write("main.ts", `import { word } from './lib/helper'
import data from './data.json'
export function apply() { console.log(word, data.n) }`)
	src, err := w.engine.File(w.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	files := paths(src)
	slices.Sort(files)
	want := []string{filepath.Join(w.dir, "data.json"), filepath.Join(w.dir, "lib/helper.ts"), main}
	if !slices.Equal(files, want) {
		t.Errorf("files = %v, want %v", files, want)
	}
	w.mount(src.Plugin, nil)
	w.expect("hi 3")

	w.write("lib/helper.ts", "export const word = ")
	src, err = w.engine.File(w.Context(), main)
	files = paths(src)
	if !errors.Is(err, seams.CompileFailed) || !strings.Contains(err.Error(), "lib/helper.ts:1:") || !slices.Contains(files, filepath.Join(w.dir, "lib/helper.ts")) {
		t.Errorf("broken import: %v, files %v", err, files)
	}

	secret := filepath.Join(t.TempDir(), "secret.js")
	if err := os.WriteFile(secret, []byte("module.exports = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(w.dir, "link.js")); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{"./link.js", "../secret.js", secret} {
		_, err := w.engine.File(w.Context(), w.write("out.js", "require("+fmt.Sprintf("%q", path)+"); exports.apply = () => {}"))
		if err == nil {
			t.Errorf("%s was imported", path)
		}
	}
}

func TestFileEnvironment(t *testing.T) {
	w := newWorld(t)
	w.js("env.ts", `export function apply() { console.log(process.env.WHO, process.env.NOSUCH === undefined, typeof setTimeout, typeof Buffer) }`)
	w.expect("world true function function")
}

func TestEval(t *testing.T) {
	w := newWorld(t)
	for expr, want := range map[string]any{
		"process.env.WHO": "world", "process.env.NOSUCH": nil, "process.env.NOSUCH ?? 'none'": "none", "1 + 2": 3.0,
		"({ a: [process.env.WHO] })": map[string]any{"a": []any{"world"}}, "{ a: 1 }": map[string]any{"a": 1.0}, "process.env.WHO as string": "world",
	} {
		if got, err := w.engine.Eval(w.Context(), expr); err != nil || !equal(got, want) {
			t.Errorf("%s = %v, %v; want %v", expr, got, err, want)
		}
	}
	for expr, code := range map[string]seams.Code{
		"": seams.CompileFailed, "1 +": seams.CompileFailed, "nosuch": seams.ScriptError, "() => 1": seams.NotJSON, "require('fs')": seams.ModuleNotAvailable,
	} {
		if _, err := w.engine.Eval(w.Context(), expr); !errors.Is(err, code) {
			t.Errorf("%s: %v, want %s", expr, err, code)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if got, err := w.engine.Eval(w.Context(), fmt.Sprint(i)); err != nil || got != float64(i) {
				t.Errorf("%d = %v, %v", i, got, err)
			}
		})
	}
	wg.Wait()
}

// An expression that does not end costs its own entry; the next one has a new
// realm.
func TestEvalDies(t *testing.T) {
	w := newWorld(t, func(o *script.Options) { o.Budgets.Turn = 30 * time.Millisecond })
	if _, err := w.engine.Eval(w.Context(), "(() => { for (;;) {} })()"); !errors.Is(err, seams.OverBudget) {
		t.Errorf("err = %v", err)
	}
	if got, err := w.engine.Eval(w.Context(), "1"); err != nil || got != 1.0 {
		t.Errorf("then: %v, %v", got, err)
	}
}

// More declarations than realms are kept are read anew when they start.
func TestDeclarationsOutliveTheirRealms(t *testing.T) {
	w := newWorld(t)
	var plugins []*cordis.Plugin
	for i := range 20 {
		plugins = append(plugins, w.file(fmt.Sprintf("p%d.js", i), fmt.Sprintf("module.exports = () => { console.log(%d) }", i)))
	}
	var want []string
	for i, p := range plugins {
		w.mount(p, nil)
		want = append(want, fmt.Sprint(i))
	}
	w.expect(want...)
}

// The cycle of a mounted tool leaves nothing behind: no goroutine, no memory.
func TestCyclesLeaveNothing(t *testing.T) {
	w := newWorld(t)
	const code = `return { name: 'cycle', inject: ['tools'], apply(ctx) {
  ctx.tools.register(harness.defineTool({ name: 'cycle', description: 'd', execute: ({ n }) => n + 1 }))
  ctx.on('tools/result', () => {})
  ctx.effect(() => () => {})
} }`
	cycle := func(n int) {
		for i := range n {
			f, err := w.mounted(fmt.Sprintf("dyn-%d", i), code)
			if err != nil {
				t.Fatal(err)
			}
			if r := w.tools.Execute(w.Context(), callTool("cycle", map[string]any{"n": 1.0})); r.Value != 2.0 {
				t.Fatalf("result = %+v", r)
			}
			w.dispose(f)
		}
	}
	heap := func() uint64 {
		for range 3 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	cycle(20)
	goroutines, before := runtime.NumGoroutine(), heap()
	cycle(100)
	after := heap()
	for deadline := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if grown := int64(after) - int64(before); grown > int64(before)/20 {
		t.Errorf("the heap grew by %d of %d bytes", grown, before)
	}
	if s := w.c.Inspect(); len(s.Events) != 0 {
		t.Errorf("listeners are left: %v", s.Events)
	}
}
