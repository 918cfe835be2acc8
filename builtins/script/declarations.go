package script

import (
	_ "embed"
	"strings"
)

// modules are the types of what the virtual modules export, but for those of
// the table.
//
//go:embed modules.d.ts
var modules string

// Declarations returns ouro.d.ts: the types of the virtual modules, of ctx and
// its services, and of the events, for editors.
func Declarations() string {
	var b strings.Builder
	b.WriteString("// Types for plugins of Ouro.\n\ndeclare module 'ouro' {\n")
	write := func(indent, text string) {
		for line := range strings.Lines(text) {
			b.WriteString(indent + strings.TrimRight(line, "\n") + "\n")
		}
	}
	write("  ", modules)
	for _, s := range shapes {
		if s.Name != "LlmAdapter" { // a class of the modules
			write("  ", "export "+s.Text)
		}
	}
	member := func(service string, m Method) {
		write("    ", "/** "+m.Doc+" */")
		write("    ", strings.TrimPrefix(m.Signature, prefixOf(service, m)))
	}
	b.WriteString("  export interface Context {\n")
	b.WriteString("    on<K extends keyof Events>(event: K, listener: Events[K], options?: { prepend?: boolean; global?: boolean }): Disposer\n")
	b.WriteString("    once<K extends keyof Events>(event: K, listener: Events[K], options?: { prepend?: boolean; global?: boolean }): Disposer\n")
	for _, v := range verbs() {
		member("", v.Method)
	}
	for _, s := range services() {
		b.WriteString("    /** " + s.Summary + " */\n    readonly " + s.Name + ": " + typeOf(s.Name) + "\n")
	}
	b.WriteString("    /** What other plugins provide. */\n    readonly [service: string]: any\n  }\n")
	for _, s := range services() {
		b.WriteString("  export interface " + typeOf(s.Name) + " {\n")
		for _, m := range s.methods {
			member(s.Name, m.Method)
		}
		b.WriteString("  }\n")
	}
	b.WriteString("  export interface Events {\n")
	for _, e := range declaredEvents() {
		doc := e.Summary
		if e.Doc != "" {
			doc += ". " + e.Doc
		}
		write("    ", "/** "+e.Mode.String()+": "+doc+" */")
		write("    ", "'"+e.Name+"': "+e.Signature)
	}
	b.WriteString("  }\n}\n")
	for _, m := range []struct{ name, exports string }{
		{"cordis", "Context, Service, Schema, Plugin, Disposer, Fiber, Events"},
		{"@deepseek-ai/cordis", "Context, Service, Schema, Plugin, Disposer, Fiber, Events"},
		{"schemastery", "Schema, Schema as default"},
		{"@deepseek-ai/schemastery", "Schema, Schema as default"},
		{"@deepseek-ai/dsh-llm", "LlmAdapter, LlmError, CallId, attributionHeaders, GenerateOptions, StreamChunk, ContentBlock, Message, ModelInfo, ProviderInfo, FinishReason, TokenUsage, Failure"},
		{"@deepseek-ai/dsh-tools", "defineTool, ToolDefinition, ToolExec, ToolResult, ToolSchema, Decision, Verdict"},
	} {
		b.WriteString("\ndeclare module '" + m.name + "' {\n  export { " + m.exports + " } from 'ouro'\n}\n")
	}
	return b.String()
}

// prefixOf is what stands before the parenthesis of a callable service.
func prefixOf(service string, m Method) string {
	if m.Name == "" {
		return service
	}
	return ""
}

// typeOf names the interface of a service.
func typeOf(service string) string {
	return strings.ToUpper(service[:1]) + service[1:] + "Service"
}
