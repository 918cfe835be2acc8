package agents_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

func section(name string, order float64, text string) agents.Section {
	return agents.Section{Name: name, Order: order, Text: func(context.Context, agents.PromptRequest) (string, error) { return text, nil }}
}

// A-19, P-01, P-02: sections by order, equal ones by registration; what a section
// says may depend on the agent.
func TestPromptOrder(t *testing.T) {
	w := newWorld(t)
	for _, s := range []agents.Section{
		section("tools", 100, "tools"), section("persona", 0, "persona"), section("second persona", 0, "more persona"), section("identity", -100, "identity"), section("empty", 1, ""),
		{Name: "cwd", Order: 200, Text: func(_ context.Context, r agents.PromptRequest) (string, error) {
			return r.Agent + " in " + r.CWD + " on " + r.Config.Model, nil
		}},
	} {
		_, err := w.prompt.Section(w.owner, s)
		must(t, err)
	}
	a := w.agent(func(s *agents.Spec) { s.Header.CWD = "/tmp" })
	ask(t, a, "x")
	want := "identity\n\npersona\n\nmore persona\n\ntools\n\nmain in /tmp on m"
	if got := w.model.asked()[0].System; got != want {
		t.Errorf("got %q", got)
	}
}

// P-03, P-04, P-12
func TestSections(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	mine := w.owner.in(a.Scope())
	for _, c := range []struct {
		s    agents.Section
		code seams.Code
	}{
		{section("", 0, ""), seams.InvalidArgument}, {agents.Section{Name: "x"}, seams.InvalidArgument},
		{section("x", math.NaN(), ""), seams.InvalidArgument}, {section("x", math.Inf(1), ""), seams.InvalidArgument},
		{section("persona", 5, "again"), seams.Duplicate},
	} {
		_, _ = w.prompt.Section(w.owner, section("persona", 0, "global"))
		if _, err := w.prompt.Section(w.owner, c.s); !errors.Is(err, c.code) {
			t.Errorf("%q: got %v", c.s.Name, err)
		}
	}
	undo, err := w.prompt.Section(mine, section("persona", 0, "mine"))
	must(t, err)
	ask(t, a, "x")
	must(t, undo(t.Context()))
	ask(t, a, "x")
	mine.dispose(t)
	if q := w.model.asked(); q[0].System != "mine" || q[1].System != "global" {
		t.Errorf("%q, %q", q[0].System, q[1].System)
	}
}

// a section that fails, or panics, fails the turn and names itself.
func TestFailingSection(t *testing.T) {
	for name, text := range map[string]func(context.Context, agents.PromptRequest) (string, error){
		"fails":  func(context.Context, agents.PromptRequest) (string, error) { return "", errors.New("no such variable") },
		"panics": func(context.Context, agents.PromptRequest) (string, error) { panic("no such variable") },
	} {
		w := newWorld(t)
		undo, err := w.prompt.Section(w.owner, agents.Section{Name: "broken", Text: text})
		must(t, err)
		a := w.agent()
		r := ask(t, a, "x")
		if r.Subtype != agents.Errored || !strings.Contains(r.Error.Message, `"broken"`) || !strings.Contains(r.Error.Message, "no such variable") {
			t.Errorf("%s: %+v", name, r)
		}
		same(t, "log", types(a.Session().Events(0)), []string{"turn/start", "turn/end"})
		must(t, undo(t.Context()))
		if r := ask(t, a, "y"); r.Subtype != agents.Success {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// the runtime context is a message when it has changed, when it is empty
// after it was not, and again when it is no longer on the surface.
func TestRuntimeContext(t *testing.T) {
	w := newWorld(t)
	text := "one"
	_, err := w.prompt.Context(w.owner, agents.Section{Name: "c", Text: func(context.Context, agents.PromptRequest) (string, error) { return text, nil }})
	must(t, err)
	a := w.agent()
	turn := func(want ...string) {
		t.Helper()
		before := len(a.Session().Messages())
		ask(t, a, "x")
		same(t, "messages", shapes(a.Session().Messages()[before:]), append(want, "user: x", "assistant: ok"))
	}
	turn("user: one")
	turn()
	text = "two"
	turn("user: two")
	text = ""
	turn("user: What was said before of your surroundings no longer holds.")
	turn()
	text = "two"
	turn("user: two")
	must(t, a.RunMaintenance(t.Context(), func(ctx context.Context) error {
		nodes := a.Session().Surface()
		var seqs []int
		for _, n := range nodes {
			seqs = append(seqs, n.Seq)
		}
		_, err := a.Session().Append(ctx, events.UserMessage.New(events.Message{Message: llm.UserText("summary")}).
			Replacing(seqs[0], seqs[len(seqs)-1]).Citing(seqs...))
		return err
	}))
	turn("user: two")
	turn()
	if m := a.Session().Messages()[1]; m.Source.Kind != llm.FromPlugin || m.Source.Form != "snapshot" {
		t.Errorf("%+v", m.Source)
	}
}

// The runtime context alone begins no step.
func TestContextIsNoMessage(t *testing.T) {
	w := newWorld(t)
	_, err := w.prompt.Context(w.owner, section("c", 0, "here"))
	must(t, err)
	on(t, w.owner, agents.PreStep, func(_ context.Context, p agents.Proposal, _ func(context.Context) (agents.Admission, error)) (agents.Admission, error) {
		return agents.Admission{Kind: agents.Enter, Messages: p.Messages[:1]}, nil
	})
	a := w.agent()
	ask(t, a, "x")
	same(t, "log", types(a.Session().Events(0)), []string{"turn/start", "turn/end"})
}

// P-13: tools by name, however they were registered.
func TestToolOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{1,3}`), func(s string) string { return s }).Draw(r, "names")
		var in []llm.ToolSchema
		for _, n := range names {
			in = append(in, llm.ToolSchema{Name: n})
		}
		a, err := agents.NewSections(nil).Assemble(t.Context(), agents.PromptRequest{Tools: in})
		must(t, err)
		for i := 1; i < len(a.Tools); i++ {
			if a.Tools[i-1].Name >= a.Tools[i].Name {
				r.Fatalf("%v", a.Tools)
			}
		}
		if len(a.Tools) != len(in) {
			r.Fatal("a tool is missing")
		}
		for i, n := range names {
			if in[i].Name != n {
				r.Fatal("the caller's list was changed")
			}
		}
	})
}

func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	text := func(cwd string) (string, error) {
		return agents.Workspace().Text(t.Context(), agents.PromptRequest{CWD: cwd})
	}
	expect := func(want string) {
		t.Helper()
		got, err := text(dir)
		if err != nil || got != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	place := "Your working directory is " + dir + "."
	if got, err := text(""); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	expect(place)
	must(t, os.WriteFile(file, []byte("\ufeff\nBe \xff brief.\n"), 0o600))
	expect(place + "\n\nIts AGENTS.md says:\n\nBe \ufffd brief.")
	must(t, os.WriteFile(file, []byte("\n"), 0o600))
	expect(place)
	must(t, os.WriteFile(file, []byte(strings.Repeat("é", 1<<20)), 0o600))
	got, err := text(dir)
	if err != nil || len(got) > 66<<10 || !strings.Contains(got, "The file goes on") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	must(t, os.Remove(file))
	must(t, os.Mkdir(file, 0o700))
	if _, err := text(dir); !errors.Is(err, seams.InvalidArgument) {
		t.Errorf("got %v", err)
	}
}
