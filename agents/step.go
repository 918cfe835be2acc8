package agents

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// step asks the model once and runs what it calls. What it reads of the world,
// it reads anew.
type step struct {
	*turn
	opts     Options
	edits    int // the count of settings that opts is the last of
	n        int
	prompt   Assembly
	over     *llm.Failure // the limit that ended its requests
	snapshot string       // id of the runtime context among the proposed messages
}

// outcome is what a step leaves to its turn.
type outcome struct {
	owed      bool // the model is owed a reply to its calls
	truncated bool // the reply was cut off at its output limit
	over      *llm.Failure
}

// propose assembles the prompt and asks whether a step with these messages may
// begin. The runtime context is proposed too when it is not what the model has
// seen last.
func (s *step) propose(ctx context.Context, claimed []llm.Message) (Admission, error) {
	if ctx.Err() != nil {
		return Admission{}, context.Cause(ctx)
	}
	var err error
	s.prompt, err = s.deps.Prompt.Assemble(ctx, PromptRequest{
		Agent: s.ID(), Scope: s.scope, CWD: s.session.Header().CWD, Config: s.base(s.session.State().Header),
		Tools: s.deps.Tools.Schemas(s.scope),
	})
	if err != nil {
		return Admission{}, err
	}
	if err := s.context.update(s.session); err != nil {
		return Admission{}, err
	}
	messages := slices.Clone(claimed)
	if text := s.prompt.Context; text != s.context.text {
		m := contextMessage(text)
		s.snapshot = m.ID
		messages = slices.Insert(messages, 0, m)
	}
	if ctx.Err() != nil {
		return Admission{}, context.Cause(ctx)
	}
	admitted, err := PreStep.Dispatch(ctx, s.deps.Bus, s.scope, Proposal{s.Agent, s.turn.n, s.n, slices.Clone(messages)},
		func(context.Context) (Admission, error) { return Admission{Enter, messages}, nil })
	if err == nil && admitted.Kind != Enter && admitted.Kind != Reject {
		err = seams.Errorf(seams.WrongType, PreStep.Name, "a listener answered %q; expected enter or reject: return what next() returns to admit", admitted.Kind)
	}
	return admitted, err
}

// adds reports whether there is a message besides the runtime context.
func (s *step) adds(messages []llm.Message) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool { return m.ID != s.snapshot })
}

// run takes the step from its start to its end, which is logged whatever
// happens between.
func (s *step) run(ctx context.Context, messages []llm.Message) (out outcome, err error) {
	if err := s.log(events.StepStart.New(events.Step{Turn: s.turn.n, Step: s.n})); err != nil {
		return out, err
	}
	defer func() {
		err = errors.Join(err, s.log(events.StepEnd.New(events.Step{Turn: s.turn.n, Step: s.n})))
	}()
	for _, m := range messages {
		if m.Source.Kind == llm.FromUser {
			s.repeat = repeats{}
		}
		if err := s.log(events.UserMessage.New(events.Message{Message: m})); err != nil {
			return out, err
		}
	}
	r, err := s.ask(ctx)
	if err != nil || r == nil {
		out.over = s.over
		return out, err
	}
	if out.truncated = r.finish == llm.MaxTokens; out.truncated {
		cut := notice("Your reply was cut off at its output limit; tool calls in it were not run.")
		if err := s.log(events.UserMessage.New(events.Message{Message: cut})); err != nil {
			return out, err
		}
	}
	if len(r.calls) == 0 {
		return out, nil
	}
	batch := &batch{step: s, calls: r.calls}
	err = batch.run(ctx)
	out.owed, out.over = !batch.concluded, batch.over
	return out, err
}

// reply is a model's answer as it was logged.
type reply struct {
	finish llm.FinishKind
	calls  []call
}

// call is a tool call of a reply. Name and Arguments are what the model wrote;
// ID is what the log has.
type call struct {
	llm.ToolCall
	known bool // there is such a tool
}

// ask makes requests until one succeeds, or fails for good. The reply is nil if
// the turn was cancelled.
func (s *step) ask(ctx context.Context) (*reply, error) {
	for {
		a, err := s.attempt(ctx)
		switch {
		case ctx.Err() != nil && (a == nil || a.failure != nil || err != nil):
			return nil, s.interrupted(a)
		case err != nil:
			return nil, err
		case a.failure == nil:
			return s.reply(a)
		}
		recovery, err := RequestFailed.Dispatch(ctx, s.deps.Bus, s.scope, RequestFailure{
			Agent: s.Agent, Turn: s.turn.n, Step: s.n, Provider: a.config.Provider, Failure: *a.failure, RetryPolicy: a.policy,
		}, func(context.Context) (Recovery, error) { return Recovery{}, nil })
		s.contain(ctx, err)
		if ctx.Err() != nil || err != nil || recovery.Kind != Retry {
			return nil, &llm.Error{Failure: *a.failure}
		}
		if s.over = s.opts.Limits.reached(0, s.spent); s.over != nil {
			return nil, nil
		}
	}
}

// attempt is one request and what came of it.
type attempt struct {
	config  llm.CallConfig
	policy  *llm.RetryPolicy
	chunks  []int // seqs of its assistant/chunk events
	got     llm.Assembler
	failure *llm.Failure // on the model's side; nil of a reply that is whole
}

// attempt makes one request. Errors are those of the runtime and its plugins,
// which nobody is asked to recover from; it is nil with a nil error when the turn
// was cancelled before there was a request.
func (s *step) attempt(ctx context.Context) (*attempt, error) {
	last := s.session.State().Header
	base := s.base(last)
	cfg, err := Request.Dispatch(ctx, s.deps.Bus, s.scope, StepNotice{s.Agent, s.turn.n, s.n},
		func(context.Context) (llm.CallConfig, error) { return base, nil })
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	case cfg.Model == "":
		return nil, seams.Errorf(seams.NoModel, "agents.request", "agent %q has no model to ask: set the model of its entry, or of all agents", s.ID())
	}
	header := events.Envelope{Config: cfg, System: s.prompt.System, Tools: s.prompt.Tools}
	model := llm.ModelInfo{Provider: cfg.Provider, ID: cfg.Model}
	a := &attempt{}
	call, err := s.deps.LLM.Prepare(ctx, s.scope, cfg)
	switch {
	case err == nil:
		defer call.Close()
		header.Config, header.AdapterDefaults = call.Config, adapterOwned(cfg, call)
		model, a.policy = call.Model, &call.RetryPolicy
	case ctx.Err() != nil:
		return nil, nil
	case !errors.Is(err, seams.NoAdapter) || cfg.Provider == "":
		return nil, err
	}
	a.config = header.Config
	if err := s.announce(header, model, last); err != nil {
		return nil, err
	}
	s.asked = s.edits
	req := llm.Request{
		CallConfig: header.Config, Messages: s.session.Messages(), System: header.System, Tools: header.Tools, SessionID: s.ID(),
	}
	if err := s.session.Flush(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	if call != nil {
		return a, s.receive(ctx, a, call.Stream(ctx, req))
	}
	// A listener of llm/stream may own a route nobody is registered for.
	return a, s.receive(ctx, a, s.deps.LLM.Stream(ctx, s.scope, req))
}

// base returns the config that a request begins with: the options if they were
// set since the last request, else that of the last request without what its
// adapter filled in.
func (s *step) base(last *events.Envelope) llm.CallConfig {
	cfg := s.opts.CallConfig
	if last == nil {
		return cfg
	}
	logged := last.Config
	for _, field := range last.AdapterDefaults {
		switch field {
		case ownedProvider:
			logged.Provider = ""
		case ownedEffort:
			logged.ReasoningEffort = ""
		case ownedMaxTokens:
			logged.MaxTokens = 0
		}
	}
	if s.edits == s.asked {
		return logged
	}
	if cfg.Provider == "" && cfg.Model == "" {
		cfg.Provider, cfg.Model = logged.Provider, logged.Model
	}
	return cfg
}

// Names of the fields in events.Envelope.AdapterDefaults.
const (
	ownedProvider  = "provider"
	ownedEffort    = "reasoningEffort"
	ownedMaxTokens = "maxTokens"
)

// adapterOwned names the fields that are not the caller's wish.
func adapterOwned(asked llm.CallConfig, call *llm.PreparedCall) []string {
	var out []string
	if asked.Provider == "" {
		out = append(out, ownedProvider)
	}
	if call.Defaults.ReasoningEffort != "" {
		out = append(out, ownedEffort)
	}
	if call.Defaults.MaxTokens != 0 {
		out = append(out, ownedMaxTokens)
	}
	return out
}

// announce logs the header and the context of the request as far as they are
// not what was logged last; the first header of a resumed session in any case
//
func (s *step) announce(h events.Envelope, m llm.ModelInfo, last *events.Envelope) error {
	b, err := json.Marshal(h)
	if err != nil {
		return seams.Errorf(seams.NotJSON, "agents.request", "the prompt or a tool's parameters: %w", err)
	}
	if !bytes.Equal(b, s.header) {
		reason := events.HeaderChanged
		switch {
		case last == nil:
			reason = events.HeaderInitial
		case s.header == nil:
			reason = events.HeaderResume
		}
		if err := s.log(events.RequestHeader.New(events.HeaderChange{Header: h, Reason: reason})); err != nil {
			return err
		}
		s.header = b
	}
	now := events.ModelContext{Provider: m.Provider, Model: m.ID, ContextWindow: m.ContextWindow}
	if was := s.session.State().Context; was == nil || *was != now {
		return s.log(events.RequestContext.New(now))
	}
	return nil
}

// receive logs the chunks of a stream as they come.
func (s *step) receive(ctx context.Context, a *attempt, stream llm.Stream) error {
	done := false
	for c, err := range stream {
		if err != nil {
			return err
		}
		e, err := s.append(events.AssistantChunk.New(events.Chunk{Turn: s.turn.n, Step: s.n, Chunk: c}))
		if err != nil {
			return err
		}
		a.chunks = append(a.chunks, e.Seq)
		if err := a.got.Add(c); err != nil {
			return err
		}
		switch c := c.(type) {
		case llm.Usage:
			s.spent.add(c.Usage, s.opts.Price)
		case llm.Finish:
			done = true
		}
		if ctx.Err() != nil {
			break
		}
	}
	switch reason := a.got.Finish(); {
	case !done:
		a.failure = &llm.Failure{Code: seams.StreamClosed, Message: "the stream ended without a finish"}
	case reason.Failure != nil:
		a.failure = reason.Failure
	case reason.Kind == llm.Failed || reason.Kind == llm.Aborted:
		a.failure = &llm.Failure{Code: seams.Unknown, Message: "the request failed, and its adapter does not say why"}
	}
	return nil
}

// interrupted logs what had come before the turn was cancelled, if it is worth
// keeping.
func (s *step) interrupted(a *attempt) error {
	if a == nil {
		return nil
	}
	content := a.got.Interrupted()
	if len(content) == 0 {
		return nil
	}
	return s.log(s.message(a, content, nil, true))
}

// reply logs a reply that is whole. In it, calls have an id that is the
// session's only one, a name that providers accept, and arguments that are a
// JSON object: what the model wrote stays in the chunks and in tool/call.
func (s *step) reply(a *attempt) (*reply, error) {
	content, err := a.got.Blocks()
	if err != nil {
		return nil, err
	}
	r := &reply{finish: a.got.Finish().Kind}
	replay := a.got.ReplayState()
	for i, b := range content {
		c, ok := b.(llm.ToolCall)
		if !ok {
			continue
		}
		_, known := s.deps.Tools.Get(s.scope, c.Name)
		for c.ID == "" || s.callIDs[c.ID] {
			c.ID = "call-" + rand.Text()
		}
		s.callIDs[c.ID] = true
		r.calls = append(r.calls, call{c, known})
		c.Name, c.Arguments = acceptableName(c.Name), acceptableArguments(c.Arguments)
		if b != llm.Block(c) {
			replay = nil // it holds what the model wrote
		}
		content[i] = c
	}
	return r, s.log(s.message(a, content, replay, false))
}

// message is the assistant/message of a reply, or of the part of it that came.
func (s *step) message(a *attempt, content llm.Content, replay *llm.ReplayState, interrupted bool) events.Draft {
	source := llm.Source{Kind: llm.FromModel, Provider: a.config.Provider, Model: a.config.Model, ReplayState: replay}
	r := events.Reply{Turn: s.turn.n, Step: s.n, Message: llm.NewMessage(llm.Assistant, source, content...), Interrupted: interrupted}
	if usage, ok := a.got.Usage(); ok {
		r.Usage = &usage
	}
	return events.AssistantMessage.New(r).Citing(a.chunks...)
}

var foreign = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// acceptableName is the name under which a call is sent back to the model.
func acceptableName(name string) string {
	const most = 64
	name = foreign.ReplaceAllString(name, "_")
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), most)]
}

// acceptableArguments is the text of the arguments if it is an object, else {}.
func acceptableArguments(raw string) string {
	if _, ok := arguments(raw).(map[string]any); ok && strings.Trim(raw, " \t\r\n") != "" {
		return raw
	}
	return "{}"
}

// arguments reads what a model wrote. White space is JSON's.
func arguments(raw string) any { return tools.ParseArguments(strings.Trim(raw, " \t\r\n")) }
