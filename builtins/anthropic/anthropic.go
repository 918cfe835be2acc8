package anthropic

import (
	"github.com/ouro-run/ouro/adapters/anthropic"
	"github.com/ouro-run/ouro/builtins/provider"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams/llm"
)

type config struct {
	provider.Settings
	Compat struct {
		AdaptiveThinking bool `json:"adaptiveThinking"`
	} `json:"compat"`
}

func configSchema() schema.Typed[config] {
	f := provider.Fields()
	f["baseURL"] = f["baseURL"].Default("https://api.anthropic.com/v1").Description("the service's address with its version path")
	f["apiKey"] = f["apiKey"].Description("sent as x-api-key; write !!js process.env.NAME; leave it out for a service that needs none")
	f["compat"] = schema.Object(schema.Fields{
		"adaptiveThinking": schema.Boolean().Default(false).Description("send the reasoning effort by name, for models that refuse a budget of thinking tokens"),
	})
	return schema.As[config](schema.Object(f))
}

// Plugin returns the plugin. identity is what the service is told about the
// program.
func Plugin(identity llm.Identity) *cordis.Plugin {
	p := cordis.Define("anthropic", func(ctx *cordis.Context, cfg config) error { return apply(ctx, cfg, identity) },
		cordis.Need{Name: llm.Key.Name})
	p.Config = configSchema()
	return p
}

func apply(ctx *cordis.Context, cfg config, identity llm.Identity) error {
	adapter, err := anthropic.New(anthropic.Config{
		BaseURL:     cfg.BaseURL,
		APIKey:      cfg.APIKey,
		Models:      cfg.Catalogue(),
		Headers:     cfg.Headers,
		Timeout:     cfg.Timeout(),
		IdleTimeout: cfg.IdleTimeout(),
		Compat:      anthropic.Compat{AdaptiveThinking: cfg.Compat.AdaptiveThinking},
		Identity:    identity,
		RetryPolicy: cfg.RetryPolicy,
	})
	if err != nil {
		return err
	}
	return provider.Register(ctx, "anthropic", adapter)
}
