package compile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/seams"
)

// files is a folder for Import.
type files map[string]string

func (f files) read(path string) (string, error) {
	if text, ok := f[path]; ok {
		return text, nil
	}
	return "", fs.ErrNotExist
}

func wantError(t *testing.T, err error, code seams.Code, parts ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}

func TestImports(t *testing.T) {
	folder := files{
		"helper.ts": `export const h: number = 1`, "lib/index.js": `export { deep } from './deep.mjs'; export { h } from '../helper'`, "lib/deep.mjs": `import data from "../data.json"; export const deep = data.n`,
		"data.json": `{"n": 7}`, "named.ts": `export const n = 2`, "cjs.cjs": `module.exports = { c: 3 }`, "bad.ts": "export const x = 1\nexport const y = (", "ring.js": `import './ring2'; export const r = 1`, "ring2.js": `import './ring'`,
	}
	s, err := Build(Source{Name: "plugins/main.ts", Import: folder.read, Text: `
import { h } from './helper'
import { deep } from './lib'
import { n } from './named.js'
import { c } from './cjs.cjs'
import './ring.js'
export const apply = () => [h, deep, n, c]`})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(slices.Values(s.Files)); strings.Join(got, " ") != "plugins/cjs.cjs plugins/data.json plugins/helper.ts plugins/lib/deep.mjs plugins/lib/index.js plugins/main.ts plugins/named.ts plugins/ring.js plugins/ring2.js" {
		t.Error(got)
	}
	if s.Files[0] != "plugins/main.ts" || s.Paths[0] != "" || len(s.Paths) != len(s.Files) {
		t.Error(s.Files, s.Paths)
	}
	for text, parts := range map[string][]string{
		`import '../outside'`:          {"plugins/main.ts:1:8", "outside the plugin's folder"},
		`import './lib/../../outside'`: {"outside"},
		`import '/etc/passwd'`:         {"/etc/passwd", "not available"},
		`import 'file:///etc/passwd'`:  {"not available"},
		`import './none'`:              {"does not exist", "none.ts"},
		`import 'node:fs'`:             {"fs", "inject: ['fs']"},
		`export * from 'react'`:        {"react", "schemastery"},
		`import 'https://host/x.js'`:   {"not available"},
		`import './helper?raw'`:        {"does not exist"},
		`import '#private'`:            {"not available"},
		"import 'a'\nimport 'b'":       {":1:8", ":2:8"},
	} {
		_, err := Build(Source{Name: "plugins/main.ts", Text: text, Import: folder.read})
		wantError(t, err, seams.ModuleNotAvailable, parts...)
	}
	_, err = Build(Source{Name: "plugins/main.ts", Text: `import './bad'`, Import: folder.read})
	wantError(t, err, seams.CompileFailed, "plugins/bad.ts:2:19")
	_, err = Build(Source{Name: "plugins/main.ts", Text: `import './x'`, Import: func(string) (string, error) { return "", fs.ErrPermission }})
	wantError(t, err, seams.ModuleNotAvailable, "cannot be read")
	_, err = Build(Source{Name: "plugins/main.ts", Text: `import './big'`, Import: func(string) (string, error) { return strings.Repeat("x;", maxText), nil }})
	wantError(t, err, seams.ModuleNotAvailable, "bytes")
	_, err = Build(Source{Name: "plugins/main.ts", Text: `import './f0'`, Import: func(p string) (string, error) { return "import './" + strings.TrimSuffix(p, ".ts") + "0'", nil }})
	wantError(t, err, seams.ModuleNotAvailable, "at most 64 are bundled")
}

func TestRefusedSources(t *testing.T) {
	for _, c := range []struct {
		src   Source
		code  seams.Code
		parts []string
	}{
		{Source{Name: "a.tsx", Text: "1"}, seams.CompileFailed, []string{".tsx"}},
		{Source{Name: "a.jsx", Text: "1"}, seams.CompileFailed, []string{".jsx"}},
		{Source{Name: "a.ts", Text: strings.Repeat(" ", maxText+1)}, seams.TooLarge, []string{"262144"}},
		{Source{Name: "a.ts", Text: "\xff"}, seams.CompileFailed, []string{"UTF-8"}},
		{Source{Name: "a.ts", Text: "\n\n" + strings.Repeat("[", 300)}, seams.TooLarge, []string{"a.ts:3", "nested"}},
		{Source{Name: "a.ts", Text: "const x =\n  y +\n"}, seams.CompileFailed, []string{"a.ts:3:1", "end of file"}},
		{Source{Name: "a.js", Text: "const x: number = 1"}, seams.CompileFailed, []string{"a.js:1:8", "^", ".ts"}},
		{Source{Name: "a.js", Text: "const \t가나 = ) 1"}, seams.CompileFailed, []string{"a.js:1:13"}},
		{Source{Name: "a.js", Text: "const s = 1 +" + strings.Repeat(" ", 500) + ";" + strings.Repeat("x", 500)}, seams.CompileFailed, []string{"a.js:1:514", "^"}},
		{Source{Name: "a.ts", Text: "export const a = await 1"}, seams.CompileFailed, []string{"await inside apply"}},
		{Source{Name: "e", Form: Expression, Text: "a; b"}, seams.CompileFailed, []string{"e:1:2"}},
		{Source{Name: "b", Form: Body, Text: "return {"}, seams.CompileFailed, []string{"body of an async function"}},
	} {
		_, err := Build(c.src)
		wantError(t, err, c.code, c.parts...)
		if err != nil && len(err.Error()) > 1200 {
			t.Errorf("%d bytes of message", len(err.Error()))
		}
	}
}

// A comment that names a source map must not make the compiler read that file.
func TestSourceMapCommentIsNotFollowed(t *testing.T) {
	at := filepath.Join(t.TempDir(), "x.map")
	if err := os.WriteFile(at, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1\n//# sourceMappingURL=file://" + at, "1\n//@ sourceMappingURL=" + at, "1\n/*# sourceMappingURL=" + at + " */", "1\n//# sourceMappingURL=data:application/json;base64,e30="} {
		if _, err := Build(Source{Name: "a.js", Text: text}); err != nil {
			t.Error(text, err)
		}
	}
}

// Ordinary code passes the caps: long lists, long chains of calls, deep JSON.
func TestScanLetsOrdinaryCodePass(t *testing.T) {
	for name, text := range map[string]string{
		"data":      "export const d = [" + strings.Repeat(`{ id: 1, name: "a b, (c) [d", tags: ["x", "y"], price: 1.5 },`+"\n", 3000) + "]",
		"strings":   "export const s = " + strings.Repeat("'((([[[{{{' +\n", 400) + "''",
		"templates": strings.Repeat("console.log(`${`a ${`b ${1 + 2} c`} d`} (((`)\n", 500),
		"comments":  strings.Repeat("// ((((((((\n/* [[[[[[ */\n", 300) + "export default 1",
		"regexps":   strings.Repeat("/[(]([^)]*)[)]/g.test(x);\n", 2000),
		"chain":     "x" + strings.Repeat(".map((a) => a + 1)\n.filter(Boolean)", 300),
		"switch":    "switch (x) {" + strings.Repeat("case 'a': f(1); break;\n", 3000) + "}",
		"elseif":    strings.Repeat("if (a === 1) { b() } else ", 150) + "{}",
	} {
		if len(text) > maxText {
			t.Fatal(name, len(text))
		}
		if err := scan(name, text); err != nil {
			t.Error(name, err)
		}
	}
}

// The scanner sees every bracket of code, whatever strings and templates stand
// around it.
func TestScanCountsCode(t *testing.T) {
	noise := rapid.SampledFrom([]string{`"a(b"`, `'it\'s ['`, "`t ( ${1} [ `", "`${`${'x'}`}`", "/* ( */ 1", "// [\n 1", "x / 2 / y", "a.b(c)", "{ }"})
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(rapid.SliceOfN(noise, 0, 8).Draw(t, "before"), ";\n")
		depth := rapid.IntRange(1, 2*maxDepth).Draw(t, "depth")
		err := scan("x", before+";\n"+strings.Repeat("[", depth))
		if (depth > maxDepth) != (err != nil) {
			t.Fatalf("depth %d: %v", depth, err)
		}
	})
}

func TestModulesAreNamed(t *testing.T) {
	for _, m := range []string{"fs", "node:path", "http", "timers/promises", "child_process", "events", "crypto", "left-pad"} {
		if slices.Contains(Modules, m) || !strings.Contains(Refusal(m), m) {
			t.Error(m)
		}
	}
}

// esbuild's helper for async generators resumes an await in a finally block
// with a second return. When this fails, earlyReturn can go.
func TestEarlyReturnIsStillNeeded(t *testing.T) {
	s, err := Build(Source{Name: "a.js", Text: `export async function* f() { try { yield 1 } finally { await 2 } }; const v = 1, k = 2; export const x = [v, k]`})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Code, `=== "return" && `) {
		t.Error("the helper is not mended: has esbuild changed it?")
	}
}

// Whatever the text is, Build comes back with a script or a coded error.
func FuzzBuild(f *testing.F) {
	for _, s := range []string{"", "export default 1", "return { apply() {} }", "import x from './y'\nexport { x }", "`${", "/*", "'", "\\", "#!x", "{}}}", "a => b", "class { #x }", "@d class A {}", "import('x')", "require(y)", "/(/u", "\u2028", "<a>b</a>", "enum E { A }"} {
		f.Add(s, uint8(0))
		f.Add(s, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, form uint8) {
		s, err := Build(Source{Name: "f.ts", Text: text, Form: Form(form % 3), Import: files{"y.js": "export default 2"}.read})
		switch {
		case err == nil && !strings.HasPrefix(s.Code, "(function(module,exports,require){"):
			t.Fatalf("%q", s.Code)
		case err != nil && seams.CodeOf(err) != seams.CompileFailed && seams.CodeOf(err) != seams.ModuleNotAvailable && seams.CodeOf(err) != seams.TooLarge:
			t.Fatal(err)
		case err != nil && len(err.Error()) > 20_000:
			t.Fatalf("%d bytes of message", len(err.Error()))
		}
	})
}
