package agents

import (
	"slices"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Options is what an agent is configured with. [Agent.Configure] changes it in
// place; a step that has begun keeps what it began with.
type Options struct {
	// CallConfig chooses the model. An agent without a model fails its turns with
	// NO_MODEL unless a listener of [Request] chooses one.
	llm.CallConfig
	// MaxParallelToolCalls bounds the calls of one reply that run at a time; 0
	// is 10.
	MaxParallelToolCalls int
	Limits               Limits
	// Price makes money of tokens, nil if it is not known.
	Price *Price
}

// Limits bounds what an agent does without being asked again.
type Limits struct {
	// Steps of one turn; 0 is 64.
	Steps int
	// Tokens and USD bound what the agent's session has spent in all; 0 is no
	// bound. USD needs a price.
	Tokens int64
	USD    float64
	// RepeatExempt names tools whose repeated calls are not counted: those
	// that poll.
	RepeatExempt []string
}

// Price is in US dollars per million tokens.
type Price struct {
	Input, Output, CacheRead, CacheWrite float64
}

// Of returns what a use of tokens costs, in US dollars.
func (p *Price) Of(u llm.TokenUsage) float64 {
	return (p.Input*float64(u.InputTokens) + p.Output*float64(u.OutputTokens) +
		p.CacheRead*float64(u.CacheReadTokens) + p.CacheWrite*float64(u.CacheWriteTokens)) / 1e6
}

const (
	defaultSteps    = 64
	defaultParallel = 10
)

// check returns the options with their defaults, and INVALID_ARGUMENT for a
// value outside of its range.
func (o Options) check() (Options, error) {
	bad := func(field string, value any, want string) (Options, error) {
		return o, seams.Errorf(seams.InvalidArgument, "agents.options", "%s is %v; expected %s", field, value, want)
	}
	switch {
	case o.MaxTokens < 0:
		return bad("maxTokens", o.MaxTokens, "a positive number of tokens, or 0 for the model's own")
	case o.MaxParallelToolCalls < 0:
		return bad("maxParallelToolCalls", o.MaxParallelToolCalls, "a positive number, or 0 for 10")
	case o.Limits.Steps < 0:
		return bad("limits.steps", o.Limits.Steps, "a positive number, or 0 for 64")
	case o.Limits.Tokens < 0:
		return bad("limits.tokens", o.Limits.Tokens, "a positive number of tokens, or 0 for no bound")
	case o.Limits.USD < 0:
		return bad("limits.usd", o.Limits.USD, "a positive amount, or 0 for no bound")
	case o.Limits.USD > 0 && o.Price == nil:
		return bad("limits.usd", o.Limits.USD, "a price beside it, which says what a token costs")
	}
	if o.MaxParallelToolCalls == 0 {
		o.MaxParallelToolCalls = defaultParallel
	}
	if o.Limits.Steps == 0 {
		o.Limits.Steps = defaultSteps
	}
	o.Stop = slices.Clone(o.Stop)
	o.Limits.RepeatExempt = slices.Clone(o.Limits.RepeatExempt)
	if o.Price != nil {
		p := *o.Price
		o.Price = &p
	}
	return o, nil
}
