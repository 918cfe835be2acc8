package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/loader"
	"github.com/ouro-run/ouro/seams"
)

// configName is the composition of a folder.
const configName = "cordis.yml"

// provider is a service that the built-in composition can use.
type provider struct {
	id, plugin, key, base string // base: variable of the address, "" for none
	address               string // when base is not set
	model                 string
}

// providers are looked for in this order.
var providers = []provider{
	{"openai", "openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1", "gpt-4.1-mini"},
	{"anthropic", "anthropic", "ANTHROPIC_API_KEY", "", "https://api.anthropic.com/v1", "claude-sonnet-4-5"},
	{"deepseek", "openai", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "https://api.deepseek.com/v1", "deepseek-chat"},
	{"openrouter", "openai", "OPENROUTER_API_KEY", "", "https://openrouter.ai/api/v1", "openai/gpt-4.1-mini"},
	{"groq", "openai", "GROQ_API_KEY", "", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"},
	{"mistral", "openai", "MISTRAL_API_KEY", "", "https://api.mistral.ai/v1", "mistral-small-latest"},
	{"together", "openai", "TOGETHER_API_KEY", "", "https://api.together.xyz/v1", "meta-llama/Llama-3.3-70B-Instruct-Turbo"},
	{"xai", "openai", "XAI_API_KEY", "", "https://api.x.ai/v1", "grok-3-mini"},
	{"moonshot", "openai", "MOONSHOT_API_KEY", "", "https://api.moonshot.ai/v1", "kimi-k2-0711-preview"},
}

// composition is the file to run, or the text of the built-in one.
func (p *program) composition(flag string) (file string, text []byte, note string, err error) {
	if flag != "" {
		return p.path(flag), nil, "", nil
	}
	file = p.path(configName)
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) { // whatever is there is what was meant
		return file, nil, "", nil
	}
	for _, pr := range providers {
		key, base := p.getenv(pr.key), ""
		if pr.base != "" {
			base = p.getenv(pr.base)
		}
		if key == "" && base == "" {
			continue
		}
		apiKey := ""
		if key != "" {
			apiKey = fmt.Sprintf("\n    apiKey: !!js process.env.%s", pr.key)
		}
		if base == "" {
			base = pr.address
		}
		text := fmt.Sprintf(`- id: %s
  name: %s
  config:
    baseURL: %q%s
- id: llm-retry
  name: llm-retry
- id: agent-loop
  name: agent-loop
  config:
    agents: [{id: main, provider: %[1]s, model: %[5]q}]
`, pr.id, pr.plugin, base, apiKey, pr.model)
		return file, []byte(text), fmt.Sprintf("there is no %s here; using the built-in composition with %s and the model %s", configName, pr.id, pr.model), nil
	}
	var names []string
	for _, pr := range providers {
		names = append(names, pr.key)
	}
	return "", nil, "", seams.Errorf(seams.MissingCredential, "", "there is no %s here, and no provider is set up: set one of %s, or OPENAI_BASE_URL for a local server; `ouro demo` needs nothing",
		configName, strings.Join(names, ", "))
}

func (p *program) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// options are what every command opens a composition with.
func (p *program) options(file string, text []byte) builtins.Options {
	return builtins.Options{
		File: file, Text: text, CWD: p.dir, Env: p.environment(), Version: version(), Log: p.stderr,
		Fault:  func(f loader.Fault) { fmt.Fprintln(p.stderr, p.fault(f)) },
		Report: func(r cordis.Report) { fmt.Fprintln(p.stderr, "ouro: "+reportLine(r)) },
	}
}

// fault is a fault as people read it: with the file's path from here.
func (p *program) fault(f loader.Fault) string {
	if rel, err := filepath.Rel(p.dir, f.Pos.File); err == nil && filepath.IsLocal(rel) {
		f.Pos.File = rel
	}
	return f.String()
}

func reportLine(r cordis.Report) string {
	who := ""
	if r.Fiber != nil {
		who = r.Fiber.Name() + ": "
	}
	label := ""
	if r.Label != "" {
		label = " " + r.Label
	}
	return fmt.Sprintf("%s%s%s: %v", who, r.Phase, label, r.Err)
}
