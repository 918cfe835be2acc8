package arch

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/seams"
)

const module = "github.com/ouro-run/ouro/"

// room is a part of the house: the packages at and below path. It may import
// its own packages if whole, and those in may, where a trailing slash means all
// that is below as well.
type room struct {
	path  string
	whole bool
	may   string
}

// rooms is the import table; the first that fits a package counts.
var rooms = []room{
	{"seams/llm", false, "seams runtime/schema"},
	{"seams/tools", false, "seams runtime/schema seams/llm"},
	{"seams/events", false, "seams runtime/schema seams/llm"},
	{"seams/memory", false, "seams runtime/schema"},
	{"seams", false, ""},
	{"runtime/schema", false, "seams"},
	{"runtime/cordis", true, "seams"},
	{"runtime/config", false, "seams runtime/schema"},
	{"runtime/loader", false, "seams runtime/"},
	{"adapters", false, "seams/ runtime/schema adapters/sse"}, // one outer thing each
	{"agents", true, "seams/ runtime/schema"},
	{"sandbox", true, "seams/ runtime/schema"},
	{"conformance", true, "seams/ runtime/schema"},
	{"builtins", true, "seams/ runtime/ adapters/ agents/ sandbox/"},
	{"cmd", true, "seams/ runtime/ adapters/ agents/ sandbox/ builtins/ conformance/"},
}

func (r room) permits(to string) bool {
	if r.whole && within(to, r.path) {
		return true
	}
	for _, m := range strings.Fields(r.may) {
		if tree, ok := strings.CutSuffix(m, "/"); to == m || ok && within(to, tree) {
			return true
		}
	}
	return false
}

// libraries that may be imported by one room only, and may stand in no exported
// signature.
var libraries = map[string]string{
	"github.com/dop251/goja":            "sandbox",
	"github.com/dop251/goja_nodejs":     "sandbox",
	"github.com/dlclark/regexp2":        "sandbox",
	"github.com/evanw/esbuild":          "sandbox",
	"github.com/fsnotify/fsnotify":      "runtime/loader",
	"github.com/sashabaranov/go-openai": "adapters/openai",
	"gopkg.in/yaml.v3":                  "", // config, and scenario files
	"github.com/mark3labs/mcp-go":       "adapters",
	"go.etcd.io/bbolt":                  "adapters",
	"pgregory.net/rapid":                "tests",
	"github.com/rogpeppe/go-internal":   "tests",
	"go.uber.org/goleak":                "tests",
}

type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var ps []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	return ps
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func within(path, room string) bool { return path == room || strings.HasPrefix(path, room+"/") }

// The import table: imports go down only.
func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		i := slices.IndexFunc(rooms, func(r room) bool { return within(from, r.path) })
		if i < 0 {
			t.Errorf("%s is in no room of the table", from)
			continue
		}
		for _, imp := range p.Imports {
			if to, own := strings.CutPrefix(imp, module); own {
				if !rooms[i].permits(to) {
					t.Errorf("%s imports %s, which is not below it", from, to)
				}
				continue
			}
			for lib, home := range libraries {
				if within(imp, lib) && home != "" && !within(from, home) && !(home == "tests" && within(from, "runtime/cordis/model")) {
					t.Errorf("%s imports %s, which belongs to %s", from, imp, home)
				}
			}
		}
	}
}

// Every package has a doc.go with its comment; every exported name of it has one.
func TestDocumentation(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", name)
		}
		fset := token.NewFileSet()
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f == "doc.go" && file.Doc == nil {
				t.Errorf("%s: doc.go has no package comment", name)
			}
			for _, d := range file.Decls {
				undocumented(d, func(id *ast.Ident) {
					t.Errorf("%s: %s has no comment", fset.Position(id.Pos()), id.Name)
				})
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: init registers behind the reader's back", fset.Position(fn.Pos()))
				}
			}
		}
	}
}

func undocumented(d ast.Decl, report func(*ast.Ident)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !conventional[d.Name.Name] {
			report(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					report(s.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						report(n)
					}
				}
			}
		}
	}
}

// conventional methods say by their name what they do.
var conventional = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "String": true, "MarshalJSON": true, "UnmarshalJSON": true}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// No exported signature mentions a type of the engine or of an adapter's library.
func TestExportedSignatures(t *testing.T) {
	for _, p := range packages(t) {
		fset := token.NewFileSet()
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			foreign := map[string]bool{}
			for _, imp := range file.Imports {
				path := strings.Trim(imp.Path.Value, `"`)
				for lib, home := range libraries {
					if within(path, lib) && home != "" && home != "tests" {
						name := filepath.Base(path)
						if name == "go-openai" {
							name = "openai"
						}
						if imp.Name != nil {
							name = imp.Name.Name
						}
						foreign[name] = true
					}
				}
			}
			if len(foreign) == 0 {
				continue
			}
			mentions := func(n ast.Node, what string) {
				ast.Inspect(n, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && foreign[x.Name] {
							t.Errorf("%s: exported %s mentions %s.%s", fset.Position(s.Pos()), what, x.Name, s.Sel.Name)
						}
					}
					return true
				})
			}
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && exportedReceiver(d) {
						mentions(d.Type, d.Name.Name)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() {
							if st, ok := ts.Type.(*ast.StructType); ok {
								for _, fl := range st.Fields.List {
									for _, n := range fl.Names {
										if n.IsExported() {
											mentions(fl.Type, ts.Name.Name+"."+n.Name)
										}
									}
								}
							} else {
								mentions(ts.Type, ts.Name.Name)
							}
						}
					}
				}
			}
		}
	}
}

var codeConst = regexp.MustCompile(`(?m)^\t(\w+)\s+(?:seams\.)?Code\s*= "([A-Z0-9_]+)"`)

// Every error code of the module stands in the one table, and docs/errors.md is
// that table.
func TestCodes(t *testing.T) {
	known := map[seams.Code]bool{}
	var doc strings.Builder
	doc.WriteString("# Error codes\n\nOne table for Go, JavaScript (`err.code`), JSON (`error.code`) and `ouro explain CODE`. Codes never change; texts may.\nThis page is made of the table in `seams/codes.go`.\n\n| code | what it means | what to do |\n| --- | --- | --- |\n")
	for _, i := range seams.Codes() {
		if known[i.Code] {
			t.Errorf("%s stands twice in the table", i.Code)
		}
		known[i.Code] = true
		if i.Meaning == "" || i.Next == "" {
			t.Errorf("%s is not explained", i.Code)
		}
		fmt.Fprintf(&doc, "| `%s` | %s | %s |\n", i.Code, i.Meaning, i.Next)
	}
	for _, p := range packages(t) {
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range codeConst.FindAllStringSubmatch(string(text), -1) {
				if !known[seams.Code(m[2])] {
					t.Errorf("%s: the code %s is not in the table", filepath.Join(p.Dir, f), m[2])
				}
			}
		}
	}
	path := filepath.Join(root(t), "docs", "errors.md")
	if os.Getenv("OURO_WRITE_DOCS") != "" {
		if err := os.WriteFile(path, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != doc.String() {
		t.Errorf("docs/errors.md is not the table; write it with OURO_WRITE_DOCS=1 go test ./conformance/arch (%v)", err)
	}
}
