package mounts

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
)

// Runtime is what the suite mounts into. Its mounts may inject tools, timer,
// memory, fs (a folder that has a file notes.txt with the text "milk") and http.
type Runtime interface {
	// Mount mounts code and answers the mount's id. Its error has the code and
	// the text that the model is told.
	Mount(ctx context.Context, code string) (id string, err error)
	// Call calls a tool and answers the text that the model sees.
	Call(ctx context.Context, tool string, args map[string]any) (text string, err error)
	// Unmount removes a mount.
	Unmount(ctx context.Context, id string) error
	// URL is the address of a server that answers "pong" to everything. It stands
	// for the address http://api.test in the code of cases.
	URL() string
}

// Case is one mistake.
type Case struct {
	Name   string // of its file
	Title  string
	Code   string
	Tool   string
	Args   map[string]any
	Answer string // what the tool answers when the code is right

	Refused seams.Code // "" when the code is accepted
	Says    string     // what the refusal's text has to say
	Fixed   string     // the code with the change that it suggests
}

//go:embed cases
var files embed.FS

// Cases returns the corpus in order of names. The error names a file that is no
// case.
func Cases() ([]Case, error) {
	entries, err := files.ReadDir("cases")
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("cases", e.Name()))
		if err != nil {
			return nil, err
		}
		c, err := Parse(e.Name(), string(text))
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// Parse reads a case. INVALID_ARGUMENT names the file and what it lacks.
func Parse(name, text string) (Case, error) {
	c := Case{Name: name}
	bad := func(format string, args ...any) (Case, error) {
		return Case{}, seams.Errorf(seams.InvalidArgument, name, format, args...)
	}
	type change struct{ from, to string }
	var changes []change
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	read := 0
	for lines.Scan() {
		line, ok := strings.CutPrefix(lines.Text(), "//")
		if !ok {
			break
		}
		read += len(lines.Text()) + 1
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "call":
			tool, args, _ := strings.Cut(value, " ")
			c.Tool = tool
			if args != "" {
				if err := json.Unmarshal([]byte(args), &c.Args); err != nil {
					return bad("call: %w", err)
				}
			}
		case "answer":
			c.Answer = value
		case "refused":
			c.Refused = seams.Code(value)
		case "says":
			c.Says = value
		case "change":
			from, to, ok := strings.Cut(value, " -->")
			if !ok || from == "" {
				return bad("change: expected old text --> new text, got %q", value)
			}
			lines := strings.NewReplacer(`\n`, "\n")
			changes = append(changes, change{lines.Replace(from), lines.Replace(strings.TrimPrefix(to, " "))})
		default:
			if c.Tool != "" {
				return bad("unknown line %q", line)
			}
			c.Title = strings.TrimSpace(c.Title + " " + line)
		}
	}
	c.Code = text[min(read, len(text)):]
	switch {
	case c.Title == "" || c.Tool == "" || c.Answer == "" || strings.TrimSpace(c.Code) == "":
		return bad("a case has a title, a call, an answer and code")
	case (c.Refused == "") != (len(changes) == 0) || (c.Refused == "") != (c.Says == ""):
		return bad("refused, says and change go together")
	}
	c.Fixed = c.Code
	for _, ch := range changes {
		if strings.Count(c.Fixed, ch.from) != 1 {
			return bad("change: %q stands %d times in the code, expected once", ch.from, strings.Count(c.Fixed, ch.from))
		}
		c.Fixed = strings.Replace(c.Fixed, ch.from, ch.to, 1)
	}
	return c, nil
}

// Checks makes a check of each case of the corpus.
func Checks(r Runtime) ([]harness.Check, error) {
	cases, err := Cases()
	if err != nil {
		return nil, err
	}
	var out []harness.Check
	for _, c := range cases {
		out = append(out, harness.Check{Name: c.Name, Run: func(ctx context.Context) error { return c.run(ctx, r) }})
	}
	return out, nil
}

func (c Case) run(ctx context.Context, r Runtime) error {
	if c.Refused == "" {
		return c.passes(ctx, r, c.Code)
	}
	answer, err := c.try(ctx, r, c.Code)
	switch {
	case err == nil:
		return fmt.Errorf("the code was accepted and answered %q; expected %s", answer, c.Refused)
	case seams.CodeOf(err) != c.Refused:
		return fmt.Errorf("refused with %s, expected %s: %w", seams.CodeOf(err), c.Refused, err)
	case !strings.Contains(err.Error(), c.Says):
		return fmt.Errorf("the error does not say %q: %w", c.Says, err)
	}
	if err := c.passes(ctx, r, c.Fixed); err != nil {
		return fmt.Errorf("with the change that the error suggests: %w", err)
	}
	return nil
}

func (c Case) passes(ctx context.Context, r Runtime, code string) error {
	answer, err := c.try(ctx, r, code)
	switch {
	case err != nil:
		return fmt.Errorf("refused: %w", err)
	case answer != c.Answer:
		return fmt.Errorf("the tool answered %q, expected %q", answer, c.Answer)
	}
	return nil
}

// try mounts code, calls its tool and unmounts it.
func (c Case) try(ctx context.Context, r Runtime, code string) (answer string, err error) {
	id, err := r.Mount(ctx, strings.ReplaceAll(code, "http://api.test", r.URL()))
	if err != nil {
		return "", err
	}
	defer func() {
		if left := r.Unmount(ctx, id); left != nil {
			err = errors.Join(err, fmt.Errorf("unmount: %w", left))
		}
	}()
	return r.Call(ctx, c.Tool, c.Args)
}
