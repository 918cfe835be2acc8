package compile

import (
	"fmt"
	"strings"
)

// Modules lists the modules that a realm serves. "node:" may stand before url,
// util and buffer.
var Modules = []string{
	"ouro",
	"cordis", "@deepseek-ai/cordis",
	"schemastery", "@deepseek-ai/schemastery",
	"@deepseek-ai/dsh-llm", "@deepseek-ai/dsh-tools",
	"url", "util", "buffer",
}

// Refusal is the message for a module that a realm does not serve; it names
// what to use instead.
func Refusal(name string) string {
	instead := "plugins can import " + strings.Join(Modules[:len(Modules)-3], ", ") + " and files of their own folder"
	switch strings.TrimPrefix(name, "node:") {
	case "fs", "fs/promises", "path", "os":
		instead = "inject the fs service: inject: ['fs'], then ctx.fs"
	case "http", "https", "net", "tls", "axios", "node-fetch", "undici", "got":
		instead = "inject the http service: inject: ['http'], then ctx.http.fetch"
	case "timers", "timers/promises":
		instead = "inject the timer service: inject: ['timer'], then ctx.setTimeout or ctx.timeout"
	case "child_process", "process", "worker_threads":
		instead = "call a tool such as bash through the tools service: inject: ['tools']"
	case "events":
		instead = "use ctx.on and ctx.emit"
	case "crypto":
		instead = "use the global crypto.randomUUID or crypto.getRandomValues"
	}
	return fmt.Sprintf("module %q is not available to plugins: %s", name, instead)
}
