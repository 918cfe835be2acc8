package agentloop

import (
	"cmp"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams/llm"
)

type config struct {
	Agents   []agentConfig `json:"agents"`
	Provider string        `json:"provider"`
	Model    string        `json:"model"`
	Persona  string        `json:"persona"`

	WorkspaceContext     bool     `json:"workspaceContext"`
	MaxSteps             int      `json:"maxSteps"`
	MaxParallelToolCalls int      `json:"maxParallelToolCalls"`
	MaxSpendTokens       int64    `json:"maxSpendTokens"`
	RepeatExempt         []string `json:"repeatExempt"`
	MaxTokens            int      `json:"maxTokens"`
	Temperature          *float64 `json:"temperature"`
}

type agentConfig struct {
	ID              string   `json:"id"`
	SessionID       string   `json:"sessionId"`
	ResumeSessionID string   `json:"resumeSessionId"`
	Provider        string   `json:"provider"`
	Model           string   `json:"model"`
	MaxTokens       int      `json:"maxTokens"`
	CWD             string   `json:"cwd"`
	ReasoningEffort string   `json:"reasoningEffort"`
	Temperature     *float64 `json:"temperature"`
}

var configSchema = schema.As[config](schema.Object(schema.Fields{
	"agents": schema.Array(schema.Object(schema.Fields{
		"id":              schema.String().Required().Pattern(`^[A-Za-z0-9._-]+$`).Description("the name that --agent takes"),
		"sessionId":       schema.String().Description("the session's id; a fresh one for each run when it is left out"),
		"resumeSessionId": schema.String().Description("the id of a stored session to go on with"),
		"provider":        schema.String().Description("a route, or the id of the entry whose adapter serves the model"),
		"model":           schema.String(),
		"maxTokens":       schema.Natural().Description("output tokens of one request; 0 is the model's own cap"),
		"cwd":             schema.String().Description("the working directory; the program's own when it is left out"),
		"reasoningEffort": schema.String(),
		"temperature":     schema.Number().Min(0).Max(2),
	})).Description("the agents; one called main when it is left out"),
	"provider":             schema.String().Description("for agents that name none"),
	"model":                schema.String().Description("for agents that name none"),
	"persona":              schema.String().Description("what agents are told they are"),
	"workspaceContext":     schema.Boolean().Default(true).Description("tell the model the working directory and its AGENTS.md"),
	"maxSteps":             schema.Natural().Description("model requests of one turn; 0 is 64"),
	"maxParallelToolCalls": schema.Natural().Min(1).Default(10).Description("tool calls of one reply that run at a time"),
	"maxSpendTokens":       schema.Natural().Description("tokens one session may spend in all; 0 is no bound"),
	"repeatExempt":         schema.Array(schema.String()).Description("tools whose repeated identical calls are not counted"),
	"maxTokens":            schema.Natural(),
	"temperature":          schema.Number().Min(0).Max(2),
}))

// all returns the declared agents, or the one that is there without any.
func (c config) all() []agentConfig {
	if len(c.Agents) == 0 {
		return []agentConfig{{ID: "main"}}
	}
	return c.Agents
}

func (c config) options(a agentConfig) agents.Options {
	o := agents.Options{
		CallConfig: llm.CallConfig{
			Provider:        cmp.Or(a.Provider, c.Provider),
			Model:           cmp.Or(a.Model, c.Model),
			MaxTokens:       max(a.MaxTokens, 0),
			ReasoningEffort: a.ReasoningEffort,
			Temperature:     a.Temperature,
		},
		MaxParallelToolCalls: c.MaxParallelToolCalls,
		Limits:               agents.Limits{Steps: c.MaxSteps, Tokens: c.MaxSpendTokens, RepeatExempt: c.RepeatExempt},
	}
	if a.MaxTokens == 0 {
		o.MaxTokens = c.MaxTokens
	}
	if a.Temperature == nil {
		o.Temperature = c.Temperature
	}
	return o
}
