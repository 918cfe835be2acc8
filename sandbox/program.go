package sandbox

import (
	"crypto/sha256"
	"errors"
	"path"
	"slices"
	"sync"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"github.com/ouro-run/ouro/sandbox/compile"
	"github.com/ouro-run/ouro/seams"
)

// Program is a compiled source, good for any number of realms at a time.
type Program struct {
	run    *goja.Program
	script *compile.Script
	files  []string // the script's files, under this program's name
}

// Name returns the source's name.
func (p *Program) Name() string { return p.files[0] }

// Compiler compiles and keeps the programs of the sources it saw last, by
// content: the same text under another name, or for another realm, is not
// compiled again.
type Compiler struct {
	mu   sync.Mutex
	kept []*kept // last used last
}

// maxKept is how many programs a compiler keeps.
const maxKept = 128

// kept is a program with what it was made of.
type kept struct {
	key    [sha256.Size]byte
	read   []reading
	run    *goja.Program
	script *compile.Script
}

// reading is one answer of Import. A program holds while all are the same.
type reading struct {
	path   string
	exists bool
	sum    [sha256.Size]byte
}

// NewCompiler makes a compiler.
func NewCompiler() *Compiler { return &Compiler{} }

// Compile returns the program of a source. Errors are those of
// [compile.Build].
func (c *Compiler) Compile(src compile.Source) (*Program, error) {
	key := sha256.Sum256([]byte(string(rune('0'+src.Form)) + path.Ext(src.Name) + "\x00" + src.Text))
	if k := c.find(key, src); k != nil {
		return k.program(src.Name), nil
	}
	k := &kept{key: key}
	recording := src
	if src.Import != nil {
		var mu sync.Mutex
		recording.Import = func(path string) (string, error) {
			text, err := src.Import(path)
			mu.Lock()
			defer mu.Unlock()
			k.read = append(k.read, reading{path, err == nil, sha256.Sum256([]byte(text))})
			return text, err
		}
	}
	var err error
	if k.script, err = compile.Build(recording); err != nil {
		return nil, err
	}
	if k.run, err = parse(src.Name, k.script.Code); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.kept = append(c.kept, k)
	if len(c.kept) > maxKept {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.mu.Unlock()
	return k.program(src.Name), nil
}

func (k *kept) program(name string) *Program {
	p := &Program{run: k.run, script: k.script, files: []string{name}}
	for _, at := range k.script.Paths[1:] {
		p.files = append(p.files, path.Join(path.Dir(name), at))
	}
	return p
}

// find returns a kept program whose imports still read the same.
func (c *Compiler) find(key [sha256.Size]byte, src compile.Source) *kept {
	c.mu.Lock()
	var same []*kept
	for _, k := range c.kept {
		if k.key == key {
			same = append(same, k)
		}
	}
	c.mu.Unlock()
	for _, k := range slices.Backward(same) {
		if !k.holds(src) {
			continue
		}
		c.mu.Lock()
		if i := slices.Index(c.kept, k); i >= 0 {
			c.kept = append(slices.Delete(c.kept, i, i+1), k)
		}
		c.mu.Unlock()
		return k
	}
	return nil
}

func (k *kept) holds(src compile.Source) bool {
	if len(k.read) > 0 && src.Import == nil {
		return false
	}
	for _, r := range k.read {
		text, err := src.Import(r.path)
		if (err == nil) != r.exists || r.exists && sha256.Sum256([]byte(text)) != r.sum {
			return false
		}
	}
	return true
}

// parse makes the engine's program. The name has no folder, so that sources in
// the map keep their inner names, and it marks the frames of helpers.
func parse(name, code string) (p *goja.Program, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = panicked(name, x)
		}
	}()
	ast, err := goja.Parse("plugin.js", code, parser.WithSourceMapLoader(func(string) ([]byte, error) {
		return nil, errors.New("no external source maps")
	}))
	if err == nil {
		p, err = goja.CompileAST(ast, true)
	}
	if err != nil {
		return nil, seams.Errorf(seams.CompileFailed, "compile", "%s: %w", name, err)
	}
	return p, nil
}
