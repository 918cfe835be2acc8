package compile

// Form is how a source is read.
type Form uint8

const (
	// Module is a file: ES module or CommonJS, told apart by what it uses.
	Module Form = iota
	// Body is the body of an async function that returns a plugin. A text that
	// turns out to be a module is taken as one.
	Body
	// Expression is one expression.
	Expression
)

// Source is a text to compile.
type Source struct {
	// Name is the file's name as errors show it, with slashes. Its extension
	// chooses the language in the Module form; the others take TypeScript.
	Name string
	Text string
	Form Form
	// Import reads the file of a relative import. The path has slashes, is
	// relative to the folder of Name and never leaves it. An error that is
	// fs.ErrNotExist lets the next candidate (".ts", "/index.js", …) be tried.
	// Nil: there are no relative imports.
	Import func(path string) (string, error)
}
