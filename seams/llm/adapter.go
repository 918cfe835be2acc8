package llm

import "context"

// Adapter speaks to one provider. It may implement the optional interfaces
// Describer, Catalogue, ModelResolver and RetryPolicied too.
//
// Stream must not do anything before it is ranged over. It yields chunks as
// the protocol of the package comment says; a failure is its last element, as
// an error without a chunk. It stops when ctx ends or its consumer leaves, and
// when the loop is over nothing of it runs any more. It refuses what it cannot
// represent with an UNSUPPORTED_ code before any I/O, and never retries. The
// request is read-only.
type Adapter interface {
	Stream(ctx context.Context, req Request) Stream
}

// Describer names the provider behind a route.
type Describer interface {
	ProviderInfo(route string) ProviderInfo
}

// Catalogue lists the models of a route. The list is advice: a model that is
// not on it can be asked for too.
type Catalogue interface {
	ListModels(ctx context.Context, route string) ([]ModelInfo, error)
}

// ModelResolver describes exactly one model of a route, listed or not.
type ModelResolver interface {
	ResolveModel(ctx context.Context, route, model string) (ModelInfo, error)
}

// RetryPolicied gives a route another retry policy than the default.
type RetryPolicied interface {
	RetryPolicy(route string) RetryPolicy
}

// ProviderInfo describes a provider for people. ID equals the route.
type ProviderInfo struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ModelInfo describes a model. Zero values mean "not known".
type ModelInfo struct {
	Provider        string         `json:"provider"`
	ID              string         `json:"id"`
	Name            string         `json:"name"`
	ContextWindow   int            `json:"contextWindow,omitempty"`   // tokens
	MaxTokens       int            `json:"maxTokens,omitempty"`       // output tokens when the caller gives no cap
	InputModalities []string       `json:"inputModalities,omitempty"` // "text", "image", …
	Reasoning       *ReasoningInfo `json:"reasoning,omitempty"`
}

// ReasoningInfo lists the efforts a model offers. Default is one of them, or
// empty.
type ReasoningInfo struct {
	Efforts []Effort `json:"efforts"`
	Default string   `json:"default,omitempty"`
}

// Effort is one reasoning effort.
type Effort struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}
