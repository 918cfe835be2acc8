package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/ouro-run/ouro/seams"
)

// Script is what the engine runs: a function expression
// (module, exports, require) => … with an inline source map.
type Script struct {
	Code string
	// ID is unique among the scripts of the process.
	ID uint64
	// Files are the names of the sources, as errors show them: the one called
	// "p7:m3" in the source map is Files[3] of the script with ID 7. Paths are the
	// same files as Import knows them; the first is the source itself, "".
	Files, Paths []string
	// Form is the form that the source turned out to have.
	Form Form
	// Head is the number of lines before the first file's text in the map.
	Head int
}

// supported says what the engine lacks; all else of the language stays as it
// is written. A year as target would not do: none lowers async generators and
// keeps what the engine has (pitfall 1).
var supported = map[string]bool{
	"async-generator": false, "for-await": false, "top-level-await": false,
	"dynamic-import": false, "import-meta": false, "import-attributes": false, "import-assertions": false,
	"import-defer": false, "import-source": false,
	"using": false, "decorators": false, "hashbang": false, "from-base64": false,
	"regexp-match-indices": false, "regexp-set-notation": false,
	"regexp-unicode-property-escapes": false, "regexp-sticky-and-unicode-flags": false, // go through the realm's RegExp, which knows \p{…}
	"arbitrary-module-namespace-names": false, "node-colon-prefix-import": false, "node-colon-prefix-require": false,
}

const tsconfig = `{"compilerOptions":{"useDefineForClassFields":true,"experimentalDecorators":false}}`

// Build lowers and bundles a source.
func Build(src Source) (*Script, error) {
	if src.Form == Module {
		switch ext := path.Ext(src.Name); ext {
		case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts":
		default:
			return nil, seams.Errorf(seams.CompileFailed, "compile", "%s: a plugin is a .js, .mjs, .cjs or .ts file, not %q", src.Name, ext)
		}
	}
	if err := scan(src.Name, src.Text); err != nil {
		return nil, err
	}
	switch src.Form {
	case Expression:
		return build(src, "module.exports = (\n", src.Text, "\n)")
	case Body:
		return buildBody(src)
	}
	return build(src, "", src.Text, "")
}

var (
	moduleSyntax = regexp.MustCompile(`(?m)^[ \t]*(?:export\b|import\b[ \t]*[^(. \t])`)
	importLine   = regexp.MustCompile(`(?m)^[ \t]*import\b[ \t]*(?:[\w*{}$,\s]+?\bfrom\b[ \t]*)?(?:"[^"\n]*"|'[^'\n]*')[ \t]*;?`)
)

// buildBody takes the text as a function's body. Models often write a module
// instead, or a body that begins with imports; both are accepted.
func buildBody(src Source) (*Script, error) {
	const head, tail = "module.exports = async function (module, exports) {\n", "\n}"
	script, bodyErr := build(src, head, src.Text, tail)
	if bodyErr == nil || !moduleSyntax.MatchString(src.Text) || !errors.Is(bodyErr, seams.CompileFailed) {
		return script, bodyErr
	}
	asModule := src
	asModule.Form = Module
	script, err := build(asModule, "", src.Text, "")
	if err == nil {
		return script, nil
	}
	if imports := importLine.FindAllString(src.Text, -1); imports != nil {
		rest := importLine.ReplaceAllStringFunc(src.Text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		join := strings.Join(imports, ";")
		hoisted, hoistedErr := build(src, strings.ReplaceAll(join, "\n", " ")+";"+head, rest, tail)
		if hoistedErr == nil || errors.Is(hoistedErr, seams.ModuleNotAvailable) {
			return hoisted, hoistedErr
		}
	}
	return nil, err
}

// build runs esbuild on head, text and tail.
func build(src Source, head, text, tail string) (*Script, error) {
	b := &bundle{src: src, script: &Script{ID: builds.Add(1), Form: src.Form, Files: []string{src.Name}, Paths: []string{""}, Head: strings.Count(head, "\n")}}
	if strings.HasPrefix(text, "#!") {
		text = "//" + text[2:] // same length, and the wrapper may stand before it (pitfall 18)
	}
	b.text = []string{head + withoutMaps(text) + tail}
	b.total = len(text)
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{"m0"}, Bundle: true, Write: false, Outfile: "/out.js",
		Format: api.FormatCommonJS, Platform: api.PlatformNeutral, Target: api.ESNext, Supported: supported,
		Plugins: []api.Plugin{{Name: "ouro", Setup: b.setup}}, LogLevel: api.LogLevelSilent, LogLimit: 20, Charset: api.CharsetUTF8,
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, TsconfigRaw: tsconfig,
	})
	if len(r.Errors) > 0 {
		return nil, b.fail(r.Errors)
	}
	b.script.Code = wrap(string(r.OutputFiles[0].Contents))
	return b.script, nil
}

var mapComment = regexp.MustCompile(`([#@][ \t]*sourceMapping)URL`)

// withoutMaps spoils the comments that name a source's own map: esbuild would
// read that file.
func withoutMaps(text string) string { return mapComment.ReplaceAllString(text, "${1}url") }

// earlyReturn finds, in esbuild's helper for async generators, where an await
// that a return has reached in a finally block is resumed by another return:
// the rest of the block would not run. It belongs to yield* alone. A test says
// when the helper is right and this can go.
var earlyReturn = regexp.MustCompile(`(resume\d*\()(\w+) === "return" \? \w+ : "next", (\w+)\[1\]`)

// wrap keeps the wrapper's head on line 1, so that the map's rows hold, and
// its end before the map's comment, which the engine reads only on the last
// line (pitfall 18).
func wrap(js string) string {
	const head, tail = "(function(module,exports,require){", "\n})"
	js = earlyReturn.ReplaceAllString(js, `${1}${2} === "return" && ${3}[1] ? ${2} : "next", ${3}[1]`)
	if i := strings.LastIndex(js, "\n//# sourceMappingURL="); i >= 0 {
		return head + js[:i] + tail + strings.TrimRight(js[i:], "\n")
	}
	return head + js + tail
}

// bundle is the state of one build.
type bundle struct {
	src Source

	mu     sync.Mutex // esbuild calls back from several goroutines
	script *Script
	text   []string // of each file, as esbuild gets it
	total  int
}

var builds atomic.Uint64

func (b *bundle) namespace() string { return "p" + strconv.FormatUint(b.script.ID, 10) }

var errRefused = errors.New("refused import")

func (b *bundle) setup(pb api.PluginBuild) {
	pb.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		if a.Kind == api.ResolveEntryPoint {
			return api.OnResolveResult{Path: "m0", Namespace: b.namespace()}, nil
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.resolve(a), nil
	})
	pb.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: b.namespace()}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		i := index(a.Path)
		return api.OnLoadResult{Contents: &b.text[i], Loader: b.loader(i)}, nil
	})
}

var defaultName = regexp.MustCompile(`^m\d+_default$`)

// Unnamed reports whether a function's name is the one that bundling gives to
// an anonymous default export.
func Unnamed(name string) bool { return defaultName.MatchString(name) }

func index(path string) int {
	i, _ := strconv.Atoi(strings.TrimPrefix(path, "m"))
	return i
}

func (b *bundle) loader(i int) api.Loader {
	if i == 0 && b.src.Form != Module {
		return api.LoaderTS
	}
	switch path.Ext(b.script.Files[i]) {
	case ".ts", ".mts", ".cts":
		return api.LoaderTS
	case ".json":
		return api.LoaderJSON
	}
	if i == 0 && !strings.HasSuffix(b.src.Name, "js") {
		return api.LoaderTS // mounted code that turned out to be a module
	}
	return api.LoaderJS
}

func (b *bundle) resolve(a api.OnResolveArgs) api.OnResolveResult {
	name := strings.TrimPrefix(a.Path, "node:")
	relative := strings.HasPrefix(a.Path, "./") || strings.HasPrefix(a.Path, "../") || a.Path == "." || a.Path == ".."
	switch {
	case slices.Contains(Modules, name):
		return api.OnResolveResult{Path: name, External: true}
	case !relative && (a.Kind == api.ResolveJSRequireCall || a.Kind == api.ResolveJSDynamicImport):
		return api.OnResolveResult{Path: a.Path, External: true} // refused by the realm when it is reached
	case !relative:
		return refuse(Refusal(a.Path))
	case b.src.Import == nil:
		return refuse(fmt.Sprintf("%q cannot be imported: this code has no folder, so put everything into the one text", a.Path))
	}
	importer := index(a.Importer)
	at := path.Join(path.Dir(b.script.Paths[importer]), a.Path)
	if at == ".." || strings.HasPrefix(at, "../") || path.IsAbs(at) {
		return refuse(fmt.Sprintf("%q lies outside the plugin's folder: move it into the folder or a folder below", a.Path))
	}
	for _, candidate := range candidates(at) {
		for i, p := range b.script.Paths {
			if p == candidate {
				return api.OnResolveResult{Path: "m" + strconv.Itoa(i), Namespace: b.namespace()}
			}
		}
		text, err := b.src.Import(candidate)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return refuse(fmt.Sprintf("%q cannot be read: %v", a.Path, err))
		}
		return b.add(candidate, text)
	}
	return refuse(fmt.Sprintf("%q does not exist (tried %s)", a.Path, strings.Join(candidates(at), ", ")))
}

func (b *bundle) add(at, text string) api.OnResolveResult {
	name := path.Join(path.Dir(b.src.Name), at)
	switch b.total += len(text); {
	case len(b.text) >= maxFiles:
		return refuse(fmt.Sprintf("%s is file %d, at most %d are bundled", name, len(b.text)+1, maxFiles))
	case b.total > maxTotal:
		return refuse(fmt.Sprintf("with %s the files have more than %d bytes", name, maxTotal))
	}
	if err := scan(name, text); err != nil {
		return refuse(err.Error())
	}
	i := len(b.text)
	b.text = append(b.text, withoutMaps(text))
	b.script.Files = append(b.script.Files, name)
	b.script.Paths = append(b.script.Paths, at)
	return api.OnResolveResult{Path: "m" + strconv.Itoa(i), Namespace: b.namespace()}
}

// candidates lists the files that an import may mean, in Node's order, with
// the TypeScript habit of importing "./a.js" for a.ts.
func candidates(at string) []string {
	var out []string
	switch ext := path.Ext(at); ext {
	case ".js", ".mjs", ".cjs":
		out = append(out, at, strings.TrimSuffix(at, ext)+strings.Replace(ext, "js", "ts", 1))
	case ".ts", ".mts", ".cts", ".json":
		out = append(out, at)
	}
	for _, suffix := range []string{".ts", ".js", ".mjs", ".cjs", "/index.ts", "/index.js"} {
		out = append(out, at+suffix)
	}
	return out
}

func refuse(text string) api.OnResolveResult {
	return api.OnResolveResult{Errors: []api.Message{{Text: text, Detail: errRefused}}}
}

// fail renders esbuild's messages as one error, each with its place and line.
func (b *bundle) fail(ms []api.Message) error {
	code := seams.ModuleNotAvailable
	var out strings.Builder
	for i, m := range ms {
		if m.Detail != errRefused {
			code = seams.CompileFailed
		}
		if i > 0 {
			out.WriteString("\n")
		}
		b.render(&out, m)
	}
	if code == seams.CompileFailed {
		out.WriteString(b.hint(ms[0]))
	}
	return &seams.Error{Code: code, Op: "compile", Msg: out.String()}
}

func (b *bundle) render(out *strings.Builder, m api.Message) {
	text := m.Text
	if strings.HasPrefix(text, "Top-level await") {
		text = "top-level await is not available to plugins: await inside apply" // pitfall 19
	}
	l := m.Location
	if l == nil {
		out.WriteString(b.src.Name + ": " + text)
		return
	}
	i := index(strings.TrimPrefix(l.File, b.namespace()+":"))
	line := l.Line
	if i == 0 {
		line = max(line-b.script.Head, 1) // a hoisted import has no line of its own
	}
	column := utf8.RuneCountInString(l.LineText[:min(l.Column, len(l.LineText))])
	fmt.Fprintf(out, "%s:%d:%d: %s", b.script.Files[i], line, column+1, text)
	if shown, caret := excerpt(l.LineText, column); shown != "" {
		fmt.Fprintf(out, "\n    %s\n    %s^", shown, strings.Repeat(" ", caret))
	}
}

// excerpt cuts a source line to what fits around the column.
func excerpt(line string, column int) (string, int) {
	const before, width = 60, 100
	runes := []rune(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", " "))
	column = min(column, len(runes))
	from := max(0, column-before)
	return string(runes[from:min(len(runes), from+width)]), column - from
}

func (b *bundle) hint(m api.Message) string {
	switch {
	case b.src.Form == Body:
		return "\nThe text is the body of an async function that returns a plugin. Check its brackets; a stray closing parenthesis after the returned object is the usual cause."
	case m.Location != nil && b.loader(index(strings.TrimPrefix(m.Location.File, b.namespace()+":"))) == api.LoaderJS:
		i := index(strings.TrimPrefix(m.Location.File, b.namespace()+":"))
		parses := func(l api.Loader) bool {
			return len(api.Transform(b.text[i], api.TransformOptions{Loader: l, LogLevel: api.LogLevelSilent}).Errors) == 0
		}
		if parses(api.LoaderTS) && !parses(api.LoaderJS) {
			return "\nThis is TypeScript: give the file the extension .ts."
		}
	}
	return ""
}
