package provider

import (
	"cmp"
	"context"
	"time"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Settings are those of [Fields], as a plugin's configuration holds them.
type Settings struct {
	BaseURL       string            `json:"baseURL"`
	APIKey        string            `json:"apiKey"`
	Models        []any             `json:"models"`
	Headers       map[string]string `json:"headers"`
	TimeoutMS     int64             `json:"timeoutMs"`
	IdleTimeoutMS int64             `json:"idleTimeoutMs"`
	RetryPolicy   llm.RetryPolicy   `json:"retryPolicy"`
}

// Fields returns the schema of Settings, for the plugin to describe and to add
// to. baseURL and apiKey say nothing of the service yet.
func Fields() schema.Fields {
	return schema.Fields{
		"baseURL": schema.String(),
		"apiKey":  schema.String().Role("secret"),
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
	}
}

// Timeout is the bound on the wait for the head of a response, 0 if none is set.
func (s Settings) Timeout() time.Duration { return time.Duration(s.TimeoutMS) * time.Millisecond }

// IdleTimeout is the bound on the silence within one, 0 if none is set.
func (s Settings) IdleTimeout() time.Duration {
	return time.Duration(s.IdleTimeoutMS) * time.Millisecond
}

// Catalogue returns the models that are set.
func (s Settings) Catalogue() []llm.ModelInfo {
	var out []llm.ModelInfo
	for _, m := range s.Models {
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

// Register registers the adapter under the id of ctx's entry, or under plugin
// where it has none, and closes it with ctx.
func Register(ctx *cordis.Context, plugin string, adapter interface {
	llm.Adapter
	Close()
}) error {
	reg, err := cordis.Get(ctx, llm.Key)
	if err != nil {
		return err
	}
	if _, err := ctx.Effect(plugin+".client", func(context.Context) (seams.Undo, error) {
		return func(context.Context) error { adapter.Close(); return nil }, nil
	}); err != nil {
		return err
	}
	id := cmp.Or(ctx.Fiber().Entry(), plugin)
	_, err = reg.RegisterAdapter(ctx, llm.Registration{Entry: id, Routes: []string{id}, Adapter: adapter})
	return err
}
