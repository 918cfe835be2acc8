package script_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/ouro-run/ouro/builtins/script"
)

// Every row has a summary, every method a signature of its own name and a text.
func TestTableIsWhole(t *testing.T) {
	method := func(where string, m script.Method) {
		name := m.Name
		if name == "" {
			name = where
		}
		if !strings.HasPrefix(m.Signature, name+"(") || m.Doc == "" || !strings.HasSuffix(m.Doc, ".") {
			t.Errorf("%s.%s: signature %q, doc %q", where, m.Name, m.Signature, m.Doc)
		}
	}
	for _, s := range script.Services() {
		if s.Summary == "" || len(s.Methods) == 0 {
			t.Errorf("%s is not described", s.Name)
		}
		for _, m := range s.Methods {
			method(s.Name, m)
		}
	}
	for _, m := range script.Verbs() {
		method("ctx", m)
	}
	seen := map[string]bool{}
	for _, e := range script.Events() {
		if e.Summary == "" || !strings.HasPrefix(e.Signature, "(") || seen[e.Name] {
			t.Errorf("event %s is not described, or twice", e.Name)
		}
		if e.Mode.String() == "waterfall" && (e.Doc == "" || !strings.Contains(e.Signature, "next: (")) {
			t.Errorf("waterfall %s does not say what it returns", e.Name)
		}
		seen[e.Name] = true
	}
}

// A mount's verbs are those that an agent may have.
func TestVerbs(t *testing.T) {
	var got []string
	for _, v := range script.Verbs() {
		got = append(got, v.Name)
	}
	want := []string{"on", "once", "effect", "provide", "get", "setTimeout", "setInterval", "timeout", "interval", "sleep", "throttle", "debounce"}
	if !slices.Equal(got, want) {
		t.Errorf("verbs = %v, want %v", got, want)
	}
}

// Shapes are closed under mention, sorted, and mention nothing that is not
// declared.
func TestShapes(t *testing.T) {
	shapes := script.Shapes("stream(options: GenerateOptions): AsyncIterable<StreamChunk>")
	var names []string
	for _, s := range shapes {
		names = append(names, s.Name)
	}
	if want := []string{"ContentBlock", "Failure", "FinishReason", "GenerateOptions", "Message", "StreamChunk", "TokenUsage", "ToolSchema"}; !slices.Equal(names, want) {
		t.Errorf("shapes = %v, want %v", names, want)
	}
	if got := script.Shapes("f(myMessages: string): void"); len(got) != 0 {
		t.Errorf("words are matched in part: %v", got)
	}
	known := map[string]bool{}
	var all []string
	for _, s := range script.Services() {
		for _, m := range s.Methods {
			all = append(all, m.Signature)
		}
	}
	for _, v := range script.Verbs() {
		all = append(all, v.Signature)
	}
	for _, e := range script.Events() {
		all = append(all, e.Signature)
	}
	for _, s := range script.Shapes(all...) {
		known[s.Name] = true
		all = append(all, s.Text)
	}
	builtin := "Promise PromiseLike AsyncIterable Iterable AbortSignal Uint8Array Request Response Context Schema Omit JSON ISO"
	for _, text := range all {
		text = regexp.MustCompile(`//[^\n]*|/\*.*?\*/|'[^']*'`).ReplaceAllString(text, "")
		for _, word := range regexp.MustCompile(`\b[A-Z]\w+`).FindAllString(text, -1) {
			if !known[word] && !slices.Contains(strings.Fields(builtin), word) {
				t.Errorf("%q mentions %s, which is declared nowhere", text, word)
			}
		}
	}
}

// ouro.d.ts is TypeScript that parses, and names everything of the table.
func TestDeclarations(t *testing.T) {
	text := script.Declarations()
	r := api.Transform(text, api.TransformOptions{Loader: api.LoaderTS, LogLevel: api.LogLevelSilent})
	for _, e := range r.Errors {
		t.Errorf("%d: %s: %s", e.Location.Line, e.Text, e.Location.LineText)
	}
	for _, s := range script.Services() {
		if !strings.Contains(text, "readonly "+s.Name+": ") {
			t.Errorf("ctx.%s is not declared", s.Name)
		}
		for _, m := range s.Methods {
			if m.Name != "" && !strings.Contains(text, "    "+m.Signature+"\n") {
				t.Errorf("%s.%s is not declared", s.Name, m.Name)
			}
		}
	}
	for _, e := range script.Events() {
		if !strings.Contains(text, "'"+e.Name+"': ") {
			t.Errorf("event %s is not declared", e.Name)
		}
	}
	for _, m := range []string{"cordis", "schemastery", "@deepseek-ai/dsh-llm", "@deepseek-ai/dsh-tools", "@deepseek-ai/cordis", "@deepseek-ai/schemastery", "ouro"} {
		if !strings.Contains(text, "declare module '"+m+"' {") {
			t.Errorf("module %s is not declared", m)
		}
	}
}
