package agents

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// PromptKey is the service in which plugins register sections of the system
// prompt.
var PromptKey = seams.Key[*Sections]{Name: "systemPrompt"}

// Prompt makes what a model is told besides messages. [Sections] is one.
type Prompt interface {
	// Assemble is called once for each step. An error fails the turn.
	Assemble(ctx context.Context, r PromptRequest) (Assembly, error)
}

// PromptRequest says for whom a prompt is assembled. Tools are those the agent
// has, in any order.
type PromptRequest struct {
	Agent  string
	Scope  *seams.Scope
	CWD    string // "" if the session has none
	Config llm.CallConfig
	Tools  []llm.ToolSchema
}

// Assembly is a prompt. System is the system text, Context what the model is
// told of its surroundings as a message, again whenever it changes; "" is
// none. Tools are in the order in which the model sees them.
type Assembly struct {
	System  string
	Context string
	Tools   []llm.ToolSchema
}

// Section is a part of the system text or of the runtime context.
type Section struct {
	// Name is the section's in its scope; one of an inner scope takes its place.
	Name string
	// Order sorts sections, equal ones by registration: -100 is the harness'
	// identity, 0 the persona, 100 to 199 are tools (P-02).
	Order float64
	// Text makes the text for a prompt; empty text is left out. It takes its
	// owner's lease.
	Text func(ctx context.Context, r PromptRequest) (string, error)
}

// Sections is the [Prompt] that plugins add sections to.
type Sections struct {
	system, context *seams.Registry[Section]
}

// NewSections makes a prompt without sections. stamp is the container's
// publication stamp, see [seams.NewRegistry].
func NewSections(stamp func() uint64) *Sections {
	return &Sections{seams.NewRegistry[Section]("prompt section", stamp), seams.NewRegistry[Section]("prompt context", stamp)}
}

// Section adds a section to the system text of the agents in o's scope.
// DUPLICATE when the scope has its name, INVALID_ARGUMENT when it has no name, no
// Text or no finite order (P-03, P-04).
func (p *Sections) Section(o seams.Owner, s Section) (seams.Undo, error) {
	return add(p.system, o, "systemPrompt.section", s)
}

// Context adds a section to the runtime context of the agents in o's scope. It
// fails as Section does.
func (p *Sections) Context(o seams.Owner, s Section) (seams.Undo, error) {
	return add(p.context, o, "systemPrompt.context", s)
}

func add(r *seams.Registry[Section], o seams.Owner, op string, s Section) (seams.Undo, error) {
	switch {
	case s.Name == "" || s.Text == nil:
		return nil, seams.Errorf(seams.InvalidArgument, op, "section %q: a name and a text are needed", s.Name)
	case math.IsNaN(s.Order) || math.IsInf(s.Order, 0):
		return nil, seams.Errorf(seams.InvalidArgument, op, "section %q: its order %v is not a finite number", s.Name, s.Order)
	}
	reg, err := r.Register(o, op+"("+s.Name+")", s, s.Name)
	if err != nil {
		return nil, err
	}
	return reg.Undo, nil
}

// Assemble implements [Prompt]: sections in order, an empty line between them,
// and the tools by name (P-01, P-09, P-13).
func (p *Sections) Assemble(ctx context.Context, r PromptRequest) (Assembly, error) {
	system, err := join(ctx, p.system, r)
	if err != nil {
		return Assembly{}, err
	}
	surroundings, err := join(ctx, p.context, r)
	if err != nil {
		return Assembly{}, err
	}
	tools := slices.Clone(r.Tools)
	slices.SortStableFunc(tools, func(a, b llm.ToolSchema) int { return strings.Compare(a.Name, b.Name) })
	return Assembly{system, surroundings, tools}, nil
}

func join(ctx context.Context, sections *seams.Registry[Section], r PromptRequest) (string, error) {
	all := sections.All(r.Scope)
	slices.SortStableFunc(all, func(a, b seams.Entry[Section]) int { return cmp.Compare(a.Value.Order, b.Value.Order) })
	var texts []string
	for _, e := range all {
		text, err := render(ctx, e, r)
		switch {
		case seams.CodeOf(err) == seams.InactiveEffect:
			continue // its owner has left
		case err != nil:
			return "", seams.Errorf(seams.CodeOf(err), "systemPrompt.assemble", "section %q of %s: %w", e.Name, e.Claim, err)
		case text != "":
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

func render(ctx context.Context, e seams.Entry[Section], r PromptRequest) (text string, err error) {
	ctx, exit, err := e.Claim.Enter(ctx)
	if err != nil {
		return "", err
	}
	defer exit()
	defer func() {
		if p := recover(); p != nil {
			err = seams.Errorf(seams.Panicked, "", "panicked: %v", p)
		}
	}()
	return e.Value.Text(ctx, r)
}

// The message that carries the runtime context.
const (
	loopPlugin  = "agent-loop" // source.plugin of what the loop itself says
	contextForm = "snapshot"
	noContext   = "What was said before of your surroundings no longer holds."
)

func contextMessage(text string) llm.Message {
	if text == "" {
		text = noContext
	}
	return llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: loopPlugin, Form: contextForm}, llm.Text{Text: text})
}

// contextOf returns the runtime context that a message carries, if it is one.
func contextOf(m llm.Message) (text string, ok bool) {
	if m.Source.Plugin != loopPlugin || m.Source.Form != contextForm {
		return "", false
	}
	if text = m.Content.Text(); text == noContext {
		text = ""
	}
	return text, true
}

// shown is the runtime context that the model has seen last, read off the log
// as it grows.
type shown struct {
	text string
	read int // events
}

// update reads the events that have come since. Only when a part of the surface
// was replaced is all of it looked at again.
func (c *shown) update(s events.Session) error {
	replaced := false
	for _, e := range s.Events(c.read) {
		c.read = e.Seq + 1
		replaced = replaced || e.SurfaceOp != nil && e.SurfaceOp.Replace
		if !events.UserMessage.Is(e) {
			continue
		}
		m, err := events.UserMessage.Decode(e)
		if err != nil {
			return err
		}
		if text, ok := contextOf(m.Message); ok {
			c.text = text
		}
	}
	if replaced {
		c.text = ""
		for _, n := range s.Surface() {
			if text, ok := contextOf(n.Message); ok {
				c.text = text
			}
		}
	}
	return nil
}
