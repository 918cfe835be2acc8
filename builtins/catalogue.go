package builtins

import (
	"maps"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/builtins/agentloop"
	"github.com/ouro-run/ouro/builtins/anthropic"
	"github.com/ouro-run/ouro/builtins/cordistools"
	"github.com/ouro-run/ouro/builtins/events"
	"github.com/ouro-run/ouro/builtins/fs"
	"github.com/ouro-run/ouro/builtins/http"
	"github.com/ouro-run/ouro/builtins/llm"
	"github.com/ouro-run/ouro/builtins/llmretry"
	"github.com/ouro-run/ouro/builtins/logger"
	"github.com/ouro-run/ouro/builtins/memory"
	"github.com/ouro-run/ouro/builtins/openai"
	"github.com/ouro-run/ouro/builtins/scripted"
	"github.com/ouro-run/ouro/builtins/timer"
	"github.com/ouro-run/ouro/builtins/tools"
	"github.com/ouro-run/ouro/runtime/cordis"
)

// defaults are provided unless an entry provides their service.
var defaults = []string{"llm", "tools", "events", "memory", "timer", "logger"}

// aliases are the names under which compositions written for the upstream
// runtime know our plugins.
var aliases = map[string]string{
	"@deepseek-ai/dsh-agent-loop":  "agent-loop",
	"@deepseek-ai/dsh-llm":         "llm",
	"@deepseek-ai/dsh-llm-retry":   "llm-retry",
	"@deepseek-ai/dsh-tools":       "tools",
	"@deepseek-ai/dsh-session":     "events",
	"@deepseek-ai/dsh-tool-cordis": "cordis-tools",
	"@deepseek-ai/cordis-timer":    "timer",
	"@deepseek-ai/cordis-logger":   "logger",
	"@cordisjs/plugin-timer":       "timer",
	"@cordisjs/plugin-logger":      "logger",
}

// catalogue makes the table of plugins by name.
func (r *Runtime) catalogue() map[string]*cordis.Plugin {
	dir := r.dir
	table := map[string]*cordis.Plugin{
		"agent-loop":   agentloop.Plugin(r.opt.CWD),
		"anthropic":    anthropic.Plugin(r.identity),
		"cordis-tools": cordistools.Plugin(r.engine),
		"events":       events.Plugin(),
		"fs":           fs.Plugin(dir),
		"http":         http.Plugin(),
		"llm":          llm.Plugin(),
		"llm-retry":    llmretry.Plugin(),
		"logger":       logger.Plugin(r.opt.Log),
		"memory":       memory.Plugin(),
		"openai":       openai.Plugin(r.identity),
		"scripted":     scripted.Plugin(dir),
		"timer":        timer.Plugin(),
		"tools":        tools.Plugin(),
	}
	for alias, name := range aliases {
		table[alias] = table[name]
	}
	return table
}

// Names returns the names of the builtins, sorted.
func Names() []string {
	r := &Runtime{}
	names := slices.Sorted(maps.Keys(r.catalogue()))
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "@") })
}
