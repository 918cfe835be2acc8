package cordistools_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// scenario is a model that mounts an adder, uses it, and unmounts it when told to.
const scenario = `rules:
  - name: mount
    when: {user: 'mount', missing: [add], if: called("cordis_mount") == 0}
    calls: [{tool: cordis_mount, args: {code: "` + "$CODE" + `"}}]
  - name: use
    when: {user: 'mount|use', offered: [add], if: called("add") == 0}
    calls: [{tool: add, args: {a: 2, b: 3}}]
  - name: keep
    when: {user: 'mount and keep|use', tool: add}
    text: 'kept: {{text}}'
  - name: unmount
    when: {tool: add}
    calls: [{tool: cordis_unmount, args: {id: '{{match(last(results("cordis_mount")), "dyn-[0-9]+")}}'}}]
  - name: gone
    when: {tool: cordis_unmount, missing: [add]}
    text: '{{text}}'
  - name: otherwise
    text: 'no such tool: {{join(tools, " ")}}'
`

// composition opens a whole runtime whose model is the scenario.
func composition(t *testing.T, name string) *builtins.Runtime {
	t.Helper()
	dir := t.TempDir()
	code, _ := json.Marshal(adder)
	text := strings.ReplaceAll(scenario, `"$CODE"`, string(code))
	if err := os.WriteFile(filepath.Join(dir, "scenario.yml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	yml := `- {id: model, name: scripted, config: {file: ./scenario.yml}}
- {id: self, name: '` + name + `'}
- {id: loop, name: agent-loop, config: {agents: [{id: main, provider: model}], model: scripted, workspaceContext: false}}
`
	r, err := builtins.Open(t.Context(), builtins.Options{
		File: filepath.Join(dir, "cordis.yml"), Text: []byte(yml), CWD: dir, Log: io.Discard,
		Fault:  func(f loader.Fault) { t.Error(f) },
		Report: func(r cordis.Report) { t.Error(r.Phase, r.Label, r.Err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func ask(t *testing.T, r *builtins.Runtime, text string) agents.Result {
	t.Helper()
	a, err := r.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	result := a.Run(t.Context(), llm.UserText(text))
	if result.IsError {
		t.Fatalf("%+v", result.Error)
	}
	return result
}

// the plugin loads by its name and by the one it has upstream.
// mount, use on the next step, unmount, each an ordinary tool call.
func TestRealLoop(t *testing.T) {
	for _, name := range []string{"cordis-tools", "@deepseek-ai/dsh-tool-cordis"} {
		r := composition(t, name)
		before := r.Container().Inspect()
		result := ask(t, r, "mount it")
		if result.Text != `Temporary Plugin dyn-1 (plugin "adder") is unmounted.` || result.NumSteps != 4 {
			t.Errorf("%s: %q after %d steps", name, result.Text, result.NumSteps)
		}
		a, _ := r.Agent("")
		var got []string
		for _, e := range a.Session().Events(0) {
			switch e.Type {
			case events.ToolCall.Name:
				c, err := events.ToolCall.Decode(e)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, "call "+c.Name)
			case events.ToolResult.Name:
				c, err := events.ToolResult.Decode(e)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, "result of step "+string(rune('0'+c.Step)))
			}
		}
		if want := []string{"call cordis_mount", "result of step 1", "call add", "result of step 2", "call cordis_unmount", "result of step 3"}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if after := r.Container().Inspect(); len(after.Fibers) != len(before.Fibers) || len(after.Services) != len(before.Services) || len(after.Events) != len(before.Events) {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
	}
}

// a mount stays over turns, not over a new runtime.
func TestMountPersists(t *testing.T) {
	r := composition(t, "cordis-tools")
	if got := ask(t, r, "mount and keep it").Text; got != "kept: 2 + 3 = 5" {
		t.Error(got)
	}
	if got := ask(t, r, "use it again").Text; got != "kept: 2 + 3 = 5" {
		t.Error(got)
	}
	if got := ask(t, composition(t, "cordis-tools"), "use it again").Text; got != "no such tool: cordis_inspect cordis_mount cordis_unmount" {
		t.Error(got)
	}
}

// Nothing of it exists unless it stands in the composition.
func TestOptIn(t *testing.T) {
	dir := t.TempDir()
	r, err := builtins.Open(t.Context(), builtins.Options{File: filepath.Join(dir, "cordis.yml"), Text: []byte("[]\n"), CWD: dir, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	for _, f := range r.Container().Inspect().Fibers {
		if strings.Contains(f.Name, "cordis") {
			t.Error(f.Name)
		}
	}
}

// a bad limit is a fault of the entry, with its place, and the rest runs.
func TestBadConfigIsAFault(t *testing.T) {
	dir := t.TempDir()
	var faults []string
	r, err := builtins.Open(t.Context(), builtins.Options{
		File: filepath.Join(dir, "cordis.yml"), CWD: dir, Log: io.Discard,
		Text:  []byte("- id: self\n  name: cordis-tools\n  config:\n    vmTimeoutMs: 0\n"),
		Fault: func(f loader.Fault) { faults = append(faults, f.String()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if len(faults) != 1 || !strings.Contains(faults[0], "cordis.yml:4:18") || !strings.Contains(faults[0], string(seams.InvalidConfig)) {
		t.Errorf("%q", faults)
	}
}
