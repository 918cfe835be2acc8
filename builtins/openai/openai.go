package openai

import (
	"github.com/ouro-run/ouro/adapters/openai"
	"github.com/ouro-run/ouro/builtins/provider"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

type config struct {
	provider.Settings
	Compat struct {
		SendReasoning bool `json:"sendReasoning"`
		KeepThinkTags bool `json:"keepThinkTags"`
	} `json:"compat"`
}

func configSchema() schema.Typed[config] {
	f := provider.Fields()
	f["baseURL"] = schema.String().Required().Description("the service's address with its version path, such as http://localhost:8000/v1")
	f["apiKey"] = f["apiKey"].Description("sent as a bearer token; write !!js process.env.NAME; leave it out for a service that needs none")
	f["compat"] = schema.Object(schema.Fields{
		"sendReasoning": schema.Boolean().Default(false).Description("send the reasoning of earlier replies back, as some services demand"),
		"keepThinkTags": schema.Boolean().Default(false).Description("leave <think> tags in the text"),
	})
	return schema.As[config](schema.Object(f))
}

// Plugin returns the plugin. identity is what services are told about the
// program.
func Plugin(identity llm.Identity) *cordis.Plugin {
	p := cordis.Define("openai", func(ctx *cordis.Context, cfg config) error { return apply(ctx, cfg, identity) },
		cordis.Need{Name: llm.Key.Name})
	p.Config = configSchema()
	return p
}

func apply(ctx *cordis.Context, cfg config, identity llm.Identity) error {
	adapter, err := openai.New(openai.Config{
		BaseURL:     cfg.BaseURL,
		APIKey:      cfg.APIKey,
		Models:      cfg.Catalogue(),
		Headers:     cfg.Headers,
		Timeout:     cfg.Timeout(),
		IdleTimeout: cfg.IdleTimeout(),
		Compat:      openai.Compat{SendReasoning: cfg.Compat.SendReasoning, KeepThinkTags: cfg.Compat.KeepThinkTags},
		Identity:    identity,
		RetryPolicy: cfg.RetryPolicy,
		Warn:        func(text string) { ctx.Report("adapter", "openai", seams.Errorf(seams.Unknown, "openai", "%s", text)) },
	})
	if err != nil {
		return err
	}
	return provider.Register(ctx, "openai", adapter)
}
