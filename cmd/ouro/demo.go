package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// demoFiles are the composition, the scripted model's scenario and the invoices.
//
//go:embed demo
var demoFiles embed.FS

// demoTask is what the demo's agent is asked.
const demoTask = "What is the total of the invoices in this folder?"

// demo plays the main job on a temporary folder: only the model's words are
// scripted, everything else is the real thing.
func demo(ctx context.Context, p *program, args []string) int {
	fset := flags("demo")
	folder := fset.String("invoices", "", "a `folder` of text files to total instead of the bundled ones")
	if _, code, done := p.parse(fset, args, 0); done {
		return code
	}
	invoices, err := fs.Sub(demoFiles, "demo/invoices")
	if *folder != "" {
		invoices = os.DirFS(p.path(*folder))
		if info, serr := os.Stat(p.path(*folder)); serr != nil || !info.IsDir() {
			return p.fail(seams.Errorf(seams.NotFound, "", "--invoices %s is no folder", *folder))
		}
	}
	if err != nil {
		return p.fail(err)
	}
	begun, err := p.demo(ctx, invoices)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return exitDone
	case cause != nil:
		return p.fail(cause)
	case begun:
		return p.failAs(err, exitFailed)
	}
	return p.fail(err)
}

// demo copies everything to a temporary folder and plays there; begun says that
// the story was told, whatever its end.
func (p *program) demo(ctx context.Context, invoices fs.FS) (begun bool, err error) {
	dir, err := os.MkdirTemp("", "ouro-demo-")
	if err != nil {
		return false, err
	}
	defer func() {
		if rerr := os.RemoveAll(dir); err == nil {
			err = rerr
		}
	}()
	composition, err := fs.Sub(demoFiles, "demo/composition")
	if err != nil {
		return false, err
	}
	if err := os.CopyFS(dir, composition); err != nil {
		return false, err
	}
	if err := os.CopyFS(filepath.Join(dir, "invoices"), invoices); err != nil {
		return false, err
	}
	opt := p.options(filepath.Join(dir, configName), nil)
	opt.CWD = filepath.Join(dir, "invoices")
	r, err := builtins.Open(ctx, opt)
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := r.Close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	return true, p.tell(ctx, r, opt.CWD)
}

// tell runs the task and tells the story on stdout.
func (p *program) tell(ctx context.Context, r *builtins.Runtime, folder string) error {
	agent, err := r.Agent("")
	if err != nil {
		return err
	}
	before := shape(r.Container().Inspect())
	s := &story{p: p}
	s.begin(folder)
	result := watch(ctx, agent, demoTask, s.event)
	if result.IsError {
		return llm.NewError(result.Error.Code, "%s", result.Error.Message)
	}
	after := shape(r.Container().Inspect())
	return s.end(before, after)
}

// shape is what of a container is compared before and after: who is there, what
// is provided and who listens; not numbers that only grow.
func shape(s cordis.Snapshot) (out []string) {
	names := map[uint64]string{}
	for _, f := range s.Fibers {
		names[f.ID] = f.Name
		out = append(out, fmt.Sprint("fiber ", f.Name, " under ", names[f.Parent], " ", f.State, " ", len(f.Effects)))
	}
	for _, v := range s.Services {
		out = append(out, fmt.Sprint("service ", v.Name, " by ", v.Owner))
	}
	for _, e := range s.Events {
		out = append(out, fmt.Sprint("event ", e.Name, " ", e.Listeners))
	}
	return out
}

// story writes the demo's steps for people.
type story struct {
	p    *program
	step int
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.p.stdout, format+"\n", args...) }

func (s *story) begin(folder string) {
	s.say("Ouro demo: an agent that makes its own tool, while it runs.")
	s.say("")
	s.say("The model is scripted, so that this needs no key and no network. Container, JavaScript,")
	s.say("tool calls and files are the real ones.")
	s.say("")
	s.say("A folder of invoices, written by different people:")
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(folder, e.Name()))
		s.say("    %-22s %s", e.Name(), brief(string(text), 60))
	}
	s.say("")
	s.say("you    %s", demoTask)
}

func (s *story) event(e events.Event) {
	switch e.Type {
	case events.AssistantMessage.Name:
		if m, err := events.AssistantMessage.Decode(e); err == nil {
			for _, line := range strings.Split(strings.TrimSpace(m.Message.Content.Text()), "\n") {
				if line != "" {
					s.say("agent  %s", line)
				}
			}
		}
	case events.ToolCall.Name:
		if c, err := events.ToolCall.Decode(e); err == nil {
			s.call(c)
		}
	case events.ToolResult.Name:
		if r, err := events.ToolResult.Decode(e); err == nil {
			mark := "  →    "
			if r.Error != nil {
				mark = "  ✗    "
			}
			lines := strings.Split(strings.TrimRight(resultText(r.Message), "\n"), "\n")
			for i, line := range lines {
				if i == 8 {
					s.say("       … %d more lines", len(lines)-i)
					break
				}
				s.say("%s%s", mark, brief(line, 110))
				mark = "       "
			}
		}
	}
}

func (s *story) call(c events.Call) {
	s.step++
	s.say("")
	var args map[string]any
	_ = json.Unmarshal([]byte(c.Arguments), &args)
	code, isCode := args["code"].(string)
	if !isCode {
		s.say("%2d.    %s %s", s.step, c.Name, brief(c.Arguments, 90))
		return
	}
	s.say("%2d.    %s, with this code:", s.step, c.Name)
	for _, line := range strings.Split(strings.TrimRight(code, "\n"), "\n") {
		s.say("       │ %s", line)
	}
}

// end proves that nothing is left.
func (s *story) end(before, after []string) error {
	s.say("")
	if !reflect.DeepEqual(before, after) {
		s.say("The agent left something behind: it did not come to the end of its task.")
		for _, line := range after {
			if !slices.Contains(before, line) {
				s.say("       %s", line)
			}
		}
		return seams.Errorf(seams.Unknown, "", "the demo's story did not end as it should")
	}
	s.say("The container is what it was before: %d fibers, services and listeners, each compared; nothing of the", len(before))
	s.say("agent's tools is left, no file was written, and the temporary folder is removed.")
	s.say("")
	s.say("Next: README.md has a first plugin in ten lines.")
	return nil
}
