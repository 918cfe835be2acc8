package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

const pieceBytes = 32 // about the length of a delta

// Adapter plays a scenario. It implements llm.Adapter and llm.Catalogue.
type Adapter struct{ s *Scenario }

// New makes an adapter that plays s.
func New(s *Scenario) *Adapter { return &Adapter{s} }

// ListModels returns the scenario's models.
func (a *Adapter) ListModels(_ context.Context, route string) ([]llm.ModelInfo, error) {
	out := make([]llm.ModelInfo, len(a.s.models))
	for i, m := range a.s.models {
		out[i] = llm.ModelInfo{Provider: route, ID: m, Name: m}
	}
	return out, nil
}

// Stream answers by the first rule that fits. It refuses options it has no use
// for: a temperature, an effort, a limit or stop words would change nothing.
func (a *Adapter) Stream(ctx context.Context, req llm.Request) llm.Stream {
	return func(yield func(llm.Chunk, error) bool) {
		chunks, err := a.play(req)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, c := range chunks {
			if err := pause(ctx, a.s.delay); err != nil {
				yield(nil, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return llm.NewError(seams.Aborted, "the request was cancelled: %w", context.Cause(ctx))
	}
	return nil
}

// play computes the whole reply.
func (a *Adapter) play(req llm.Request) ([]llm.Chunk, error) {
	if req.Temperature != nil || req.ReasoningEffort != "" || req.MaxTokens != 0 || len(req.Stop) > 0 {
		return nil, llm.NewError(seams.UnsupportedOption, "a scripted model has no temperature, reasoning effort, output limit or stop words")
	}
	seen := read(req)
	for _, r := range a.s.rules {
		e, ok, err := r.fits(seen)
		if err != nil {
			return nil, err
		}
		if ok {
			return r.answer(e, req)
		}
	}
	return nil, llm.NewError(seams.NoRule, "no rule fits: turn %v, step %v, last tool %q, tools offered %v, user text %q",
		seen.vars["turn"], seen.vars["step"], seen.vars["tool"], seen.vars["tools"], seams.Clip(strings.TrimSpace(seen.vars["user"].(string)), 60))
}

// read makes of a request what expressions see.
func read(req llm.Request) *env {
	e := &env{vars: map[string]any{"user": "", "tool": "", "result": nil, "text": "", "failed": false}}
	tools := make([]any, len(req.Tools))
	for i, t := range req.Tools {
		tools[i] = t.Name
	}
	e.vars["tools"] = tools
	turn, step := 0, 1
	names := map[string]string{} // tool by call id
	e.calls, e.results = map[string]int{}, map[string][]any{}
	for _, m := range req.Messages {
		if m.Role == llm.User && m.Source.Kind == llm.FromUser {
			turn, step = turn+1, 1
			e.calls, e.results = map[string]int{}, map[string][]any{}
			e.vars["user"] = m.Content.Text()
		}
		if m.Role == llm.Assistant {
			step++
		}
		for _, b := range m.Content {
			switch b := b.(type) {
			case llm.ToolCall:
				names[b.ID] = b.Name
				e.calls[b.Name]++
				e.vars["tool"] = ""
			case llm.ToolResult:
				text := b.Content.Text()
				name := names[b.ToolCallID]
				v := parsed(text)
				e.results[name] = append(e.results[name], v)
				e.vars["tool"], e.vars["result"], e.vars["text"], e.vars["failed"] = name, v, text, b.IsError
			}
		}
		if m.Role == llm.Assistant || m.Source.Kind == llm.FromUser {
			e.vars["tool"], e.vars["result"], e.vars["text"], e.vars["failed"] = "", nil, "", false
		}
	}
	e.vars["turn"], e.vars["step"] = float64(max(turn, 1)), float64(step)
	return e
}

// parsed reads a text as JSON, or leaves it as it is.
func parsed(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}

// fits reports whether the rule's conditions hold, and gives what its
// expressions see: the request, the groups of its patterns and its values.
func (r *rule) fits(seen *env) (*env, bool, error) {
	e := &env{vars: maps.Clone(seen.vars), calls: seen.calls, results: seen.results}
	if r.user != nil && !groups(e, r.user.FindStringSubmatch(seen.vars["user"].(string)), r.user.SubexpNames()) {
		return nil, false, nil
	}
	if r.tool != "" && seen.vars["tool"] != r.tool {
		return nil, false, nil
	}
	if r.result != nil && (seen.vars["tool"] == "" || !groups(e, r.result.FindStringSubmatch(seen.vars["text"].(string)), r.result.SubexpNames())) {
		return nil, false, nil
	}
	if r.failed != nil && (seen.vars["tool"] == "" || seen.vars["failed"] != *r.failed) {
		return nil, false, nil
	}
	offers := func(name string) bool { return slices.Contains(seen.vars["tools"].([]any), any(name)) }
	for _, t := range r.offered {
		if !offers(t) {
			return nil, false, nil
		}
	}
	if slices.ContainsFunc(r.missing, offers) {
		return nil, false, nil
	}
	if r.cond != nil {
		v, err := r.cond.value(e)
		if err != nil || !truthy(v) {
			return nil, false, err
		}
	}
	for _, b := range r.let {
		v, err := b.value(e)
		if err != nil {
			return nil, false, err
		}
		e.vars[b.name] = v
	}
	return e, true, nil
}

func groups(e *env, match, names []string) bool {
	if match == nil {
		return false
	}
	for i, name := range names {
		if name != "" {
			e.vars[name] = match[i]
		}
	}
	return true
}

// answer makes the chunks of the rule's reply.
func (r *rule) answer(e *env, req llm.Request) ([]llm.Chunk, error) {
	var out []llm.Chunk
	index, written := 0, 0
	prose := func(t template, kind string, delta func(string) llm.Chunk, whole func(string) llm.Block) error {
		if t == nil {
			return nil
		}
		v, err := t(e)
		if err != nil {
			return err
		}
		text := show(v)
		if text == "" {
			return nil
		}
		out = append(out, llm.BlockStart{Index: index, BlockType: kind})
		for _, p := range pieces(text) {
			out = append(out, delta(p))
		}
		out = append(out, llm.BlockEnd{Index: index, Block: whole(text)})
		index, written = index+1, written+len(text)
		return nil
	}
	err := prose(r.reasoning, llm.KindReasoning,
		func(s string) llm.Chunk { return llm.ReasoningDelta{Index: index, Text: s} },
		func(s string) llm.Block { return llm.Reasoning{Text: s} })
	if err == nil {
		err = prose(r.text, llm.KindText,
			func(s string) llm.Chunk { return llm.TextDelta{Index: index, Text: s} },
			func(s string) llm.Block { return llm.Text{Text: s} })
	}
	if err != nil {
		return nil, err
	}
	for _, c := range r.calls {
		v, err := c.args(e)
		if err != nil {
			return nil, err
		}
		args := compact(v)
		// The number of messages grows with a session, so ids do not repeat.
		id := fmt.Sprintf("call_%d_%d", len(req.Messages), index)
		out = append(out, llm.BlockStart{Index: index, BlockType: llm.KindToolCall})
		for i, p := range pieces(args) {
			d := llm.ToolCallDelta{Index: index, ID: id, ArgumentsDelta: p}
			if i == 0 {
				d.Name = c.tool
			}
			out = append(out, d)
		}
		out = append(out, llm.BlockEnd{Index: index, Block: llm.ToolCall{ID: id, Name: c.tool, Arguments: args}})
		index, written = index+1, written+len(args)
	}
	if index == 0 {
		return nil, llm.NewError(seams.InvalidScenario, "%s: its reply is empty", r.label)
	}
	kind := llm.Stop
	if len(r.calls) > 0 {
		kind = llm.ToolCalls
	}
	return append(out,
		llm.Usage{Usage: llm.TokenUsage{InputTokens: tokens(size(req)), OutputTokens: tokens(written)}},
		llm.Finish{Reason: llm.FinishReason{Kind: kind}}), nil
}

// tokens estimates the tokens of n bytes.
func tokens(n int) int64 { return int64(n+3) / 4 }

// size is about what the request holds, in bytes.
func size(req llm.Request) int {
	n := len(req.System)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for _, m := range req.Messages {
		n += contentSize(m.Content)
	}
	return n
}

func contentSize(c llm.Content) int {
	n := 0
	for _, b := range c {
		switch b := b.(type) {
		case llm.Text:
			n += len(b.Text)
		case llm.Reasoning:
			n += len(b.Text)
		case llm.ToolCall:
			n += len(b.Name) + len(b.Arguments)
		case llm.ToolResult:
			n += contentSize(b.Content)
		}
	}
	return n
}

// pieces cuts a text into deltas after white space or, without any, where they
// grow long; never within a character.
func pieces(s string) []string {
	var out []string
	begin := 0
	for i, r := range s {
		n := i - begin
		if n >= pieceBytes && (r == ' ' || r == '\n') || n >= 2*pieceBytes {
			out = append(out, s[begin:i])
			begin = i
		}
	}
	return append(out, strings.Clone(s[begin:]))
}
