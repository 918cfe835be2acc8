package openai

import (
	"context"
	"time"

	"github.com/ouro-run/ouro/adapters/openai"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

type config struct {
	BaseURL       string            `json:"baseURL"`
	APIKey        string            `json:"apiKey"`
	Models        []any             `json:"models"`
	Headers       map[string]string `json:"headers"`
	TimeoutMS     int64             `json:"timeoutMs"`
	IdleTimeoutMS int64             `json:"idleTimeoutMs"`
	RetryPolicy   llm.RetryPolicy   `json:"retryPolicy"`
	Compat        struct {
		SendReasoning bool `json:"sendReasoning"`
		KeepThinkTags bool `json:"keepThinkTags"`
	} `json:"compat"`
}

var configSchema = schema.As[config](schema.Object(schema.Fields{
	"baseURL": schema.String().Required().Description("the service's address with its version path, such as http://localhost:8000/v1"),
	"apiKey":  schema.String().Role("secret").Description("sent as a bearer token; write !!js process.env.NAME; leave it out for a service that needs none"),
	"models": schema.Array(schema.Union(schema.String(), schema.Object(schema.Fields{
		"id":            schema.String().Required(),
		"name":          schema.String(),
		"contextWindow": schema.Natural(),
		"maxTokens":     schema.Natural(),
	}))).Description("the catalogue; a model that is not in it can be asked for too"),
	"headers":       schema.Dict(schema.String()).Description("sent with each request"),
	"timeoutMs":     schema.Natural().Description("bounds the wait for the head of a response"),
	"idleTimeoutMs": schema.Natural().Description("bounds the silence between two parts of a response"),
	"retryPolicy":   llm.RetryPolicySchema().Description("for llm-retry: which failures are worth another try, how often and when"),
	"compat": schema.Object(schema.Fields{
		"sendReasoning": schema.Boolean().Default(false).Description("send the reasoning of earlier replies back, as some services demand"),
		"keepThinkTags": schema.Boolean().Default(false).Description("leave <think> tags in the text"),
	}),
}))

// Plugin returns the plugin. identity is what services are told about the
// program.
func Plugin(identity llm.Identity) *cordis.Plugin {
	p := cordis.Define("openai", func(ctx *cordis.Context, cfg config) error { return apply(ctx, cfg, identity) },
		cordis.Need{Name: llm.Key.Name})
	p.Config = configSchema
	return p
}

func apply(ctx *cordis.Context, cfg config, identity llm.Identity) error {
	reg, err := cordis.Get(ctx, llm.Key)
	if err != nil {
		return err
	}
	adapter, err := openai.New(openai.Config{
		BaseURL:     cfg.BaseURL,
		APIKey:      cfg.APIKey,
		Models:      cfg.models(),
		Headers:     cfg.Headers,
		Timeout:     time.Duration(cfg.TimeoutMS) * time.Millisecond,
		IdleTimeout: time.Duration(cfg.IdleTimeoutMS) * time.Millisecond,
		Compat:      openai.Compat{SendReasoning: cfg.Compat.SendReasoning, KeepThinkTags: cfg.Compat.KeepThinkTags},
		Identity:    identity,
		RetryPolicy: cfg.RetryPolicy,
		Warn:        func(text string) { ctx.Report("adapter", "openai", seams.Errorf(seams.Unknown, "openai", "%s", text)) },
	})
	if err != nil {
		return err
	}
	if _, err := ctx.Effect("openai.client", func(context.Context) (seams.Undo, error) {
		return func(context.Context) error { adapter.Close(); return nil }, nil
	}); err != nil {
		return err
	}
	id := ctx.Fiber().Entry()
	if id == "" {
		id = "openai"
	}
	_, err = reg.RegisterAdapter(ctx, llm.Registration{Entry: id, Routes: []string{id}, Adapter: adapter})
	return err
}

func (c config) models() []llm.ModelInfo {
	var out []llm.ModelInfo
	for _, m := range c.Models {
		switch m := m.(type) {
		case string:
			out = append(out, llm.ModelInfo{ID: m, Name: m})
		case map[string]any:
			info := llm.ModelInfo{ID: m["id"].(string), Name: m["id"].(string)}
			if n, ok := m["name"].(string); ok && n != "" {
				info.Name = n
			}
			if n, ok := m["contextWindow"].(float64); ok {
				info.ContextWindow = int(n)
			}
			if n, ok := m["maxTokens"].(float64); ok {
				info.MaxTokens = int(n)
			}
			out = append(out, info)
		}
	}
	return out
}
