package script

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

// Service is what JavaScript can do with one service of the container.
type Service struct {
	Name    string // the service key, ctx.<name> and the name in a grant
	Summary string
	Methods []Method
}

// Method is a method of a service, or a verb of ctx.
type Method struct {
	Name      string // "" makes the service itself callable
	Signature string // TypeScript, without a leading "ctx."
	Doc       string // sentences for authors of plugins
}

// Event is an event that a Go package declares, as a JavaScript listener sees
// it. Events of other names carry what their emitter gave them.
type Event struct {
	Name      string
	Mode      seams.Mode
	Summary   string
	Signature string // TypeScript of the listener
	Doc       string
}

// Shape is a named TypeScript type that signatures refer to.
type Shape struct {
	Name string
	Text string // the declaration, several lines
}

// service is a row of the table with its bindings.
type service struct {
	Service
	open    bool // in a file's ctx without being injected
	methods []method
}

// method binds a method to Go.
type method struct {
	Method
	async bool
	fetch bool
	args  []sandbox.Kind
	needs string // verbs: the service that must be injected
	mount bool   // verbs: in a mount's ctx too
	call  func(ctx context.Context, h *host, args []any) (any, error)
}

func (s service) public() Service {
	for _, m := range s.methods {
		s.Methods = append(s.Methods, m.Method)
	}
	return s.Service
}

// services is the table, in the order in which it is shown.
func services() []service {
	return []service{toolsService, llmService, eventsService, memoryService, timerService, loggerService, httpService, fsService}
}

// Services returns the rows of the table, whether or not such a service is
// provided.
func Services() []Service {
	var out []Service
	for _, s := range services() {
		out = append(out, s.public())
	}
	return out
}

// Verbs returns what the ctx of a mount offers beside the services it injects.
func Verbs() []Method {
	var out []Method
	for _, m := range verbs() {
		if m.mount {
			out = append(out, m.Method)
		}
	}
	return out
}

// Events returns the declared events, in the order in which they are shown.
func Events() []Event {
	var out []Event
	for _, e := range declaredEvents() {
		out = append(out, e.Event)
	}
	return out
}

// Shapes returns the types that the signatures mention, and those that these
// mention in turn, sorted by name. Names match as whole words.
func Shapes(signatures ...string) []Shape {
	var out []Shape
	seen := map[string]bool{}
	for queue := signatures; len(queue) > 0; queue = queue[1:] {
		for _, word := range identifier.FindAllString(queue[0], -1) {
			if s, ok := shapeOf(word); ok && !seen[word] {
				seen[word] = true
				out = append(out, s)
				queue = append(queue, s.Text)
			}
		}
	}
	slices.SortFunc(out, func(a, b Shape) int { return strings.Compare(a.Name, b.Name) })
	return out
}

var identifier = regexp.MustCompile(`[A-Za-z_$][\w$]*`)

func shapeOf(name string) (Shape, bool) {
	i, ok := slices.BinarySearchFunc(shapes, name, func(s Shape, n string) int { return strings.Compare(s.Name, n) })
	if !ok {
		return Shape{}, false
	}
	return shapes[i], true
}
