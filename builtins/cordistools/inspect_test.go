package cordistools_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ouro-run/ouro/builtins/script"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/tools"
)

//
func TestToolSchemas(t *testing.T) {
	w := newWorld(t, nil)
	var got []string
	for _, s := range w.tools.Schemas(nil) {
		got = append(got, s.Name+" "+string(s.Parameters))
	}
	slices.Sort(got)
	want := []string{
		`cordis_inspect {"properties":{"name":{"description":"with what api or events: one service or event, in full","type":"string"},"what":{"description":"one section; all of them when left out","enum":["services","plugins","tools","temporary","api","events"],"type":"string"}},"type":"object"}`,
		`cordis_mount {"properties":{"code":{"description":"the body of an async function that returns a plugin","type":"string"}},"required":["code"],"type":"object"}`,
		`cordis_unmount {"properties":{"id":{"description":"the temporary plugin's id","type":"string"}},"required":["id"],"type":"object"}`,
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("got  %q\nwant %q", got, want)
			break
		}
	}
	for name, output := range map[string]string{
		"cordis_inspect": `{"type":"string"}`,
		"cordis_mount":   `{"additionalProperties":false,"properties":{"id":{"type":"string"},"pluginName":{"type":"string"},"provides":{"items":{"type":"string"},"type":"array"},"state":{"enum":["pending","loading","active","failed","disposed","unloading"],"type":"string"},"waitingFor":{"items":{"type":"string"},"type":"array"}},"required":["id","pluginName","provides","state","waitingFor"],"type":"object"}`,
		"cordis_unmount": `{"additionalProperties":false,"properties":{"id":{"type":"string"},"pluginName":{"type":"string"}},"required":["id","pluginName"],"type":"object"}`,
	} {
		d, _ := w.tools.Get(nil, name)
		if text, err := json.Marshal(d.Output.Schema.JSONSchema()); string(text) != output || err != nil {
			t.Errorf("output of %s: %s %v", name, text, err)
		}
	}
	w.fails("cordis_inspect", map[string]any{"what": "everything"}, seams.InvalidArgs, "what")
	w.fails("cordis_mount", map[string]any{}, seams.InvalidArgs, "code", "required")
	w.fails("cordis_unmount", map[string]any{"id": 1.0}, seams.InvalidArgs, "id")
}

// What the descriptions have to teach a model.
func TestDescriptionsTeach(t *testing.T) {
	w := newWorld(t, nil)
	d, _ := w.tools.Get(nil, "cordis_mount")
	for _, part := range []string{
		"memory only", "no file", "not over a restart", "other sessions", "no security boundary", "return", "inject", "apply(ctx)", "cordis_inspect",
		"harness.registerTool", "harness.defineTool", "next step", "required: true", "additionalProperties", "oneOf", "execute", "render", "ctx.provide", "ctx.effect",
		"undone", "console", "btoa", "TextEncoder", "require", "setTimeout", "fetch", "process", "next()", "Never await", "TypeScript",
	} {
		if !strings.Contains(d.Description, part) {
			t.Errorf("cordis_mount does not say %q", part)
		}
	}
	total := 0
	for _, s := range w.tools.Schemas(nil) {
		n := (len(s.Name) + len(s.Description) + len(s.Parameters)) / 4
		t.Logf("%s: about %d tokens", s.Name, n)
		total += n
	}
	if t.Logf("together: about %d tokens", total); total > 1000 {
		t.Errorf("the three tools cost about %d tokens of every request, want at most 1000", total)
	}
}

//
func TestInspectSections(t *testing.T) {
	w := newWorld(t, nil)
	r := w.call("cordis_inspect", nil)
	text := r.Value.(string)
	if text != r.Content.Text() || len(r.Content) != 1 {
		t.Error("the value is not the text")
	}
	headings := regexp.MustCompile(`(?m)^## .*$`).FindAllString(text, -1)
	if want := []string{"## services", "## plugins", "## tools", "## Temporary Plugins", "## api", "## events"}; !slices.Equal(headings, want) {
		t.Errorf("headings %q", headings)
	}
	// Each section stands alone under its name, and one blank line lies between two.
	var parts []string
	for _, what := range []string{"services", "plugins", "tools", "temporary", "api", "events"} {
		parts = append(parts, w.ok("cordis_inspect", map[string]any{"what": what}))
	}
	if got := strings.Join(parts, "\n\n"); got != text {
		t.Error("the sections are not the whole report")
	}
}

//
func TestInspectShowsWhatIsThere(t *testing.T) {
	w := newWorld(t, nil)
	want := map[string][]string{
		"services":  {"- tools (provided by tools)", "- timer (provided by timer)"},
		"plugins":   {"- cordis-tools [active]", "- cordis-dynamic [active]", "- root [active]"},
		"tools":     {"- cordis_inspect", "- cordis_mount", "- cordis_unmount"},
		"temporary": {"No temporary plugin is running; such plugins live in memory only and vanish on restart."},
	}
	for what, lines := range want {
		got := w.section(what)
		for _, l := range lines {
			if !slices.Contains(got, l) {
				t.Errorf("%s has no line %q: %q", what, l, got)
			}
		}
	}
}

// The tools section is what the calling agent sees.
func TestInspectToolsOfScope(t *testing.T) {
	w := newWorld(t, nil)
	w.running(adder)
	scope := seams.NewScope("agent", nil)
	scoped := w.root.WithScope(scope)
	if _, err := w.tools.Restrict(scoped, tools.Filter{Deny: []string{"add"}}); err != nil {
		t.Fatal(err)
	}
	in := func(s *seams.Scope) string {
		return w.tools.Execute(t.Context(), tools.Call{ID: "1", Name: "cordis_inspect", Arguments: map[string]any{"what": "tools"}, Scope: s}).Content.Text()
	}
	if got := in(scope); got != "## tools\n- cordis_inspect\n- cordis_mount\n- cordis_unmount" {
		t.Errorf("in the scope: %q", got)
	}
	if got := in(nil); got != "## tools\n- cordis_inspect\n- cordis_mount\n- cordis_unmount\n- add" {
		t.Errorf("outside: %q", got)
	}
}

const lifetime = "in memory only, until it is unmounted or the process ends"

//
func TestInspectTemporary(t *testing.T) {
	w := newWorld(t, nil)
	w.mount(`return { name: 'giver', apply(ctx) { ctx.provide('b', { f() {} }); ctx.provide('a', 1) } }`)
	w.mount(`return { name: 'waiter', inject: ['z', 'tools', 'y'], apply() {} }`)
	w.mount(`return () => {}`)
	want := []string{
		"- Temporary Plugin dyn-1: giver [running] — provides: a, b; waiting for: none; lifetime: " + lifetime,
		"- Temporary Plugin dyn-2: waiter [pending] — provides: none; waiting for: z, y; lifetime: " + lifetime,
		"- Temporary Plugin dyn-3: <anonymous> [running] — provides: none; waiting for: none; lifetime: " + lifetime,
	}
	if got := w.section("temporary"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	plugins := w.section("plugins")
	for _, l := range []string{"- giver [active]", "- waiter [pending]", "- <anonymous> [active]"} {
		if !slices.Contains(plugins, l) {
			t.Errorf("plugins has no %q: %q", l, plugins)
		}
	}
	if !slices.IsSorted(plugins) {
		t.Errorf("not sorted: %q", plugins)
	}
}

// A service of the root context is no missing one.
func TestWaitingForWithRootService(t *testing.T) {
	w := newWorld(t, map[string]any{"policy": map[string]any{"allow": []any{"clock"}}})
	if _, err := cordis.Provide(w.root, seams.Key[any]{Name: "clock"}, any("12:00")); err != nil {
		t.Fatal(err)
	}
	v := w.mount(`return { inject: ['later', 'clock'], apply() {} }`)
	if got := fmt.Sprint(v["waitingFor"]); got != "[later]" {
		t.Error(got)
	}
}

//
func TestInspectAPI(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { name: 'giver', apply(ctx) { ctx.provide('greeter', { hello() {} }); ctx.provide('attic', 1) } }`)
	got := w.section("api")
	at := func(line string) int {
		t.Helper()
		i := slices.Index(got, line)
		if i < 0 {
			t.Fatalf("no line %q in\n%s", line, strings.Join(got, "\n"))
		}
		return i
	}
	// In this order: live services, those without an entry, those that do not
	// run, types, what every ctx has.
	order := []int{
		at("- tools — Tools that models call: register one, look at those there are, call one."),
		at("    register(tool: ToolDefinition): Disposer"),
		at("- logger — Writes records under the plugin's name."),
		at("- attic (provided by giver, no catalog entry)"),
		at("- greeter (provided by giver, no catalog entry)"),
		at("Not running here, but can be loaded: fs, http"),
		at("Types:"),
		at("    interface ToolSchema { name: string; description: string; parameters: any /* JSON Schema */ }"),
		at("On every ctx:"),
		at("- on — Listens to an event until the plugin ends or the disposer is called."),
	}
	if !slices.IsSorted(order) {
		t.Errorf("order %v of\n%s", order, strings.Join(got, "\n"))
	}
	all := strings.Join(got, "\n")
	for _, s := range script.Services() {
		for _, m := range s.Methods {
			running := s.Name != "fs" && s.Name != "http"
			if running != strings.Contains(all, "\n    "+m.Signature+"\n") {
				t.Errorf("%s.%s: shown is %v", s.Name, m.Name, !running)
			}
		}
	}
	// FileInfo belongs to fs, which does not run; Decision to an event.
	for _, absent := range []string{"FileInfo", "type Decision", "readText", "// Adds a tool"} {
		if strings.Contains(all, absent) {
			t.Errorf("api shows %q", absent)
		}
	}
	if len(script.Verbs()) == 0 || len(got)-1-at("On every ctx:") != len(script.Verbs()) {
		t.Error("not every verb has a line")
	}
	// Nothing is missing when all run.
	w.folder(nil)
	w.server("")
	if all := strings.Join(w.section("api"), "\n"); strings.Contains(all, "Not running") || !strings.Contains(all, "interface FileInfo") {
		t.Error("with fs and http:", all)
	}
}

//
func TestInspectOneService(t *testing.T) {
	w := newWorld(t, nil)
	got := strings.Split(w.ok("cordis_inspect", map[string]any{"what": "api", "name": "memory"}), "\n")
	if got[0] != "## api" || got[1] != "- memory — What outlives a session: items by key, by text and by similarity." {
		t.Errorf("%q", got[:2])
	}
	if got[2] != "    // Stores an item under its scope and key, in place of the one that is there." || got[3] != "    put(item: MemoryItem): Promise<MemoryItem>" {
		t.Errorf("%q", got[2:4])
	}
	all := strings.Join(got, "\n")
	for _, absent := range []string{"- tools", "- on —", "Not running", "no catalog entry", "interface ToolSchema", "On every ctx"} {
		if strings.Contains(all, absent) {
			t.Errorf("it shows %q:\n%s", absent, all)
		}
	}
	if !strings.Contains(all, "interface MemoryHit") {
		t.Error("no types")
	}
}

//
func TestInspectEvents(t *testing.T) {
	w := newWorld(t, nil)
	got := w.section("events")
	i := slices.Index(got, "- tools/execute [waterfall] — around a tool call's dispatch")
	if i < 0 || got[i+1] != "    (exec: ToolExec, next: () => Promise<ToolResult>) => Promise<ToolResult>" {
		t.Fatalf("%q", got)
	}
	if !strings.Contains(got[len(got)-1], "must call and return next()") {
		t.Errorf("last line %q", got[len(got)-1])
	}
	if want := 2*len(script.Events()) + 1; len(got) != want {
		t.Errorf("%d lines, want %d", len(got), want)
	}
}

//
func TestInspectOneEvent(t *testing.T) {
	w := newWorld(t, nil)
	got := strings.Split(w.ok("cordis_inspect", map[string]any{"what": "events", "name": "tools/pre-execute"}), "\n")
	want := []string{
		"## events",
		"- tools/pre-execute [waterfall] — before a tool call runs: allow, deny or ask",
		"    // Returns {kind: 'allow'}, {kind: 'deny', reason} or {kind: 'ask', reason?}. Arguments cannot be changed.",
		"    (exec: ToolExec, next: () => Promise<Decision>) => Promise<Decision>",
	}
	if len(got) != 5 || !slices.Equal(got[:4], want) || !strings.Contains(got[4], "next()") {
		t.Errorf("%q", got)
	}
}

//
func TestInspectErrors(t *testing.T) {
	w := newWorld(t, nil)
	w.running(`return { name: 'giver', apply(ctx) { ctx.provide('greeter', { hello() {}, bye() {} }); ctx.provide('n', 1) } }`)
	bad := func(what, name string, code seams.Code, parts ...string) {
		t.Helper()
		w.fails("cordis_inspect", map[string]any{"what": what, "name": name}, code, append(parts, `"`+name+`"`)...)
	}
	bad("services", "tools", seams.InvalidArgument, "what: 'api'", "what: 'events'")
	bad("temporary", "dyn-1", seams.InvalidArgument)
	w.fails("cordis_inspect", map[string]any{"name": "tools"}, seams.InvalidArgument, `"tools"`)
	bad("api", "nonsense", seams.NotFound, "no service")
	bad("api", "fs", seams.NotProvided, "not running")
	bad("events", "nonsense", seams.NotFound, "no event")
	// A service that a mount provides has no entry; its methods are told.
	bad("api", "greeter", seams.NotFound, "giver", "no catalog entry", "hello, bye")
	bad("api", "n", seams.NotFound, "giver", "no catalog entry")
}
