package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// T is what a run reports to; *testing.T is one.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Subject is an adapter under test.
type Subject struct {
	Adapter llm.Adapter
	// Cases are requests with a known outcome; the same every time.
	Cases []Case
	// Refused are requests the adapter cannot represent.
	Refused []llm.Request
	// Stalled are requests that the service begins to answer, or not even that,
	// and then says nothing while the connection stays open.
	Stalled []llm.Request
	// Secrets must stand in no failure: keys, header values.
	Secrets []string
	// Sent counts the requests the service has received; nil if nobody counts.
	Sent func() int
	// Release frees what the adapter keeps for later requests, such as idle
	// connections; nil if nothing.
	Release func()
	// Limit is how long a stream may take; 10 s if 0.
	Limit time.Duration
}

// Case is one request and its outcome.
type Case struct {
	Name    string
	Request llm.Request
	Want    Want
}

// Want is the joined outcome of a stream. A tool call with the id "*" may have
// any. Code is that of the failure, empty for a reply that succeeds; of one that
// fails, Text and Reasoning are what came before.
type Want struct {
	Text      string
	Reasoning string
	Calls     []llm.ToolCall
	Finish    llm.FinishKind
	Usage     *llm.TokenUsage // nil: not looked at
	Code      seams.Code
}

// Finding is a law that was broken.
type Finding struct {
	Rule string // an ID of Rules
	Case string
	Seen string
}

// String renders "case: rule: what was seen".
func (f Finding) String() string { return f.Case + ": " + f.Rule + ": " + f.Seen }

// Run checks the subject and reports every finding as an error of t.
func Run(t T, s Subject) {
	t.Helper()
	texts := map[string]string{}
	for _, r := range Rules() {
		texts[r.ID] = r.Text
	}
	for _, f := range Check(context.Background(), s) {
		t.Errorf("%s: %s (%s): %s", f.Case, f.Rule, texts[f.Rule], f.Seen)
	}
}

// Check returns what the subject breaks, each law at most once for each case.
// It ends early when ctx does.
func Check(ctx context.Context, s Subject) []Finding {
	if s.Limit == 0 {
		s.Limit = 10 * time.Second
	}
	c := &checker{Subject: s, ctx: ctx}
	before := runtime.NumGoroutine()
	for _, k := range s.Cases {
		c.checkCase(k)
	}
	for i, r := range s.Stalled {
		name := fmt.Sprintf("stalled %d", i+1)
		c.judgeCancelled(Case{Name: name}, 0, c.read(r, plan{-1, -1, 50 * time.Millisecond}))
	}
	for i, r := range s.Refused {
		c.checkRefused(fmt.Sprintf("refused %d", i+1), r)
	}
	if s.Release != nil {
		s.Release()
	}
	c.checkNothingLeft(before)
	return c.found
}

type checker struct {
	Subject
	ctx   context.Context
	found []Finding
	hung  bool
}

func (c *checker) report(rule, name, format string, args ...any) {
	for _, f := range c.found {
		if f.Rule == rule && f.Case == name {
			return
		}
	}
	c.found = append(c.found, Finding{rule, name, fmt.Sprintf(format, args...)})
}

// reading is what one reader saw of a stream.
type reading struct {
	chunks  []llm.Chunk
	err     error
	beside  bool // a chunk beside an error
	after   int  // elements after the first error
	hung    bool
	panic   any
	endedIn time.Duration // from the cancel, if there was one
}

// plan says what a reader does: leave or cancel when it has seen this many
// elements, -1 never; or cancel from elsewhere once nothing came for so long.
type plan struct {
	leave, cancel int
	quiet         time.Duration
}

var readAll = plan{-1, -1, 0}

// read reads one stream in a goroutine of its own, which it joins unless the
// stream hangs.
func (c *checker) read(req llm.Request, p plan) reading {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	var cancelled atomic.Pointer[time.Time]
	stop := func() {
		now := time.Now()
		cancelled.Store(&now)
		cancel()
	}
	quiet := time.AfterFunc(time.Hour, stop)
	defer quiet.Stop()
	if p.quiet > 0 {
		quiet.Reset(p.quiet)
	}
	done := make(chan reading, 1)
	go func() {
		var r reading
		defer func() {
			r.panic = recover()
			if at := cancelled.Load(); at != nil {
				r.endedIn = time.Since(*at)
			}
			done <- r
		}()
		if p.cancel == 0 {
			stop()
		}
		n := 0
		for chunk, err := range c.Adapter.Stream(ctx, req) {
			switch {
			case r.err != nil:
				r.after++
			case err != nil:
				r.err, r.beside = err, chunk != nil
			default:
				r.chunks = append(r.chunks, chunk)
			}
			n++
			if p.quiet > 0 {
				quiet.Reset(p.quiet)
			}
			if n == p.cancel {
				stop()
			}
			if n == p.leave || r.after > 100 {
				return
			}
		}
	}()
	limit := time.NewTimer(c.Limit)
	defer limit.Stop()
	select {
	case r := <-done:
		return r
	case <-limit.C:
		c.hung = true
		return reading{hung: true}
	}
}

func (c *checker) checkCase(k Case) {
	before, _ := json.Marshal(k.Request)
	if c.Sent != nil {
		sent := c.Sent()
		_ = c.Adapter.Stream(c.ctx, k.Request)
		if c.Sent() != sent {
			c.report(ruleLazy, k.Name, "the service has received a request")
		}
	}
	r := c.read(k.Request, readAll)
	c.judge(k, r)
	if r.hung {
		return
	}
	if again := c.read(k.Request, readAll); !sameOutcome(join(r), join(again)) {
		c.report(ruleRepeatable, k.Name, "sent again, the request has another outcome: %s", describe(again))
	}
	c.concurrently(k, r)
	for n := range len(r.chunks) {
		c.judgeCancelled(k, n, c.read(k.Request, plan{-1, n, 0}))
		if n > 0 {
			c.judgeLeft(k, n, c.read(k.Request, plan{n, -1, 0}))
		}
		if c.hung || c.ctx.Err() != nil {
			return
		}
	}
	if after, _ := json.Marshal(k.Request); string(after) != string(before) {
		c.report(ruleReadOnly, k.Name, "the request reads otherwise after the stream")
	}
}

// concurrently reads the same request by several readers at once.
func (c *checker) concurrently(k Case, first reading) {
	const readers = 4
	out := make(chan reading, readers)
	own := make([]*checker, readers)
	for i := range own {
		own[i] = &checker{Subject: c.Subject, ctx: c.ctx}
		go func() { out <- own[i].read(k.Request, readAll) }()
	}
	for range readers {
		r := <-out
		c.hung = c.hung || r.hung
		if !sameOutcome(join(first), join(r)) {
			c.report(ruleRepeatable, k.Name, "read by %d readers at once, one has another outcome: %s", readers, describe(r))
		}
	}
}

// outcome is the joined result of a reading.
type outcome struct {
	Want
	failure *llm.Failure
}

func join(r reading) outcome {
	var o outcome
	var a llm.Assembler
	for _, c := range r.chunks {
		if f, ok := c.(llm.Finish); ok {
			o.Finish, o.failure = f.Reason.Kind, f.Reason.Failure
			continue
		}
		_ = a.Add(c) // the grammar tells
	}
	content, _ := a.Blocks()
	o.Text, o.Reasoning, o.Calls = content.Text(), content.Reasoning(), content.ToolCalls()
	if u, ok := a.Usage(); ok {
		o.Usage = &u
	}
	if r.err != nil {
		f := llm.FailureOf(r.err)
		o.failure = &f
	}
	if o.failure != nil {
		o.Code, o.Finish, o.Calls = o.failure.Code, "", nil
	}
	return o
}

func sameOutcome(a, b outcome) bool {
	for _, o := range []*outcome{&a, &b} {
		calls := make([]llm.ToolCall, len(o.Calls))
		for i, t := range o.Calls {
			calls[i] = llm.ToolCall{Name: t.Name, Arguments: t.Arguments}
		}
		o.Calls = calls
	}
	return reflect.DeepEqual(a.Want, b.Want)
}

func describe(r reading) string {
	switch {
	case r.hung:
		return "it hangs"
	case r.panic != nil:
		return fmt.Sprintf("it panics: %v", r.panic)
	}
	o := join(r)
	return fmt.Sprintf("text %q, reasoning %q, %d calls, finish %q, code %q", seams.Clip(o.Text, 80), seams.Clip(o.Reasoning, 80), len(o.Calls), o.Finish, o.Code)
}

// judge holds a whole reading to the laws.
func (c *checker) judge(k Case, r reading) {
	if !c.sound(k.Name, r) {
		return
	}
	c.grammar(k.Name, r, true)
	c.blocks(k.Name, r)
	c.ending(k.Name, r)
	o := join(r)
	if k.Want.Usage == nil {
		o.Usage = nil
	}
	want := outcome{Want: k.Want}
	if want.Finish != "" && want.Code != "" {
		want.Finish = ""
	}
	if !sameOutcome(o, want) {
		c.report(ruleOutcome, k.Name, "%s, where text %q, reasoning %q, calls %v, finish %q, code %q was due",
			describe(r), seams.Clip(k.Want.Text, 80), seams.Clip(k.Want.Reasoning, 80), k.Want.Calls, k.Want.Finish, k.Want.Code)
		return
	}
	for i, call := range k.Want.Calls {
		if call.ID != "*" && o.Calls[i].ID != call.ID {
			c.report(ruleOutcome, k.Name, "call %d has the id %q, where %q was due", i+1, o.Calls[i].ID, call.ID)
		}
	}
}

// sound reports what makes further judgement idle.
func (c *checker) sound(name string, r reading) bool {
	switch {
	case r.hung:
		c.report(ruleEnds, name, "no end after %v", c.Limit)
	case r.panic != nil:
		c.report(rulePanic, name, "%v", r.panic)
	default:
		return true
	}
	return false
}

// grammar runs the strict checker over a reading, and asks for an end of one
// that was read whole.
func (c *checker) grammar(name string, r reading, whole bool) {
	var g llm.Grammar
	for i, chunk := range r.chunks {
		if err := g.Accept(chunk); err != nil {
			c.violation(name, err, fmt.Sprintf(" (chunk %d)", i+1))
			return
		}
		text, err := json.Marshal(chunk)
		back, err2 := llm.DecodeChunk(text)
		if err = errors.Join(err, err2); err != nil || !reflect.DeepEqual(back, chunk) {
			c.report(llm.RuleUnion, name, "chunk %d (%s) is not what its JSON says: %v", i+1, chunk.Type(), err)
			return
		}
	}
	if !whole {
		return
	}
	err := g.End()
	switch {
	case r.err == nil && err != nil:
		c.violation(name, err, "")
	case r.err != nil && err == nil:
		c.report(llm.RuleLast, name, "an error after the finish: %v", r.err)
	}
}

func (c *checker) violation(name string, err error, where string) {
	var v *llm.Violation
	if errors.As(err, &v) {
		c.report(v.Rule, name, "%s%s", v.Text, where)
	}
}

// blocks compares each block with what its deltas told.
func (c *checker) blocks(name string, r reading) {
	type told struct {
		text   string
		deltas bool
		id     string
	}
	open := map[int]*told{}
	at := func(i int) *told {
		if open[i] == nil {
			open[i] = &told{}
		}
		return open[i]
	}
	add := func(i int, s string) *told {
		b := at(i)
		b.text += s
		b.deltas = true
		return b
	}
	ids := map[string]bool{}
	for _, chunk := range r.chunks {
		switch chunk := chunk.(type) {
		case llm.TextDelta:
			add(chunk.Index, chunk.Text)
		case llm.ReasoningDelta:
			add(chunk.Index, chunk.Text)
		case llm.ToolCallDelta:
			b := add(chunk.Index, chunk.ArgumentsDelta)
			if chunk.ID == "" || b.id != "" && b.id != chunk.ID {
				c.report(ruleCall, name, "a delta of block %d has the id %q after %q", chunk.Index, chunk.ID, b.id)
			}
			b.id = chunk.ID
		case llm.BlockEnd:
			b := at(chunk.Index)
			whole, prose := "", true
			switch block := chunk.Block.(type) {
			case llm.Text:
				whole = block.Text
			case llm.Reasoning:
				whole = block.Text
			case llm.ToolCall:
				whole, prose = block.Arguments, false
				if block.ID == "" || ids[block.ID] || b.id != "" && b.id != block.ID || block.Name == "" {
					c.report(ruleCall, name, "block %d is a call with the id %q and the name %q, its deltas have the id %q", chunk.Index, block.ID, block.Name, b.id)
				}
				ids[block.ID] = true
			default:
				continue
			}
			if b.deltas && whole != b.text {
				c.report(ruleWhole, name, "block %d holds %q, its deltas told %q", chunk.Index, seams.Clip(whole, 80), seams.Clip(b.text, 80))
			}
			if prose && whole == "" {
				c.report(ruleEmpty, name, "block %d", chunk.Index)
			}
		case llm.Usage:
			u := chunk.Usage
			if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens) < 0 || u.ReasoningTokens > u.OutputTokens {
				c.report(ruleUsage, name, "%+v", u)
			}
		}
	}
}

// ending judges the finish or the error.
func (c *checker) ending(name string, r reading) {
	if r.beside {
		c.report(ruleErrorLast, name, "a chunk stands beside the error")
	}
	if r.after > 0 {
		c.report(ruleErrorLast, name, "%d or more elements after the error", r.after)
	}
	o := join(r)
	calls, ends := 0, 0
	for _, chunk := range r.chunks {
		if e, ok := chunk.(llm.BlockEnd); ok && e.Block != nil && e.Block.Kind() == llm.KindToolCall {
			calls++
		}
		if _, ok := chunk.(llm.BlockEnd); ok {
			ends++
		}
		f, ok := chunk.(llm.Finish)
		if !ok {
			continue
		}
		if rs := f.ReplayState; rs != nil && rs.Blocks != nil && len(rs.Blocks) != ends {
			c.report(ruleReason, name, "replay state for %d blocks of %d", len(rs.Blocks), ends)
		}
		failed := false
		switch f.Reason.Kind {
		case llm.Stop:
			if calls > 0 {
				c.report(ruleReason, name, "stop, though there are %d calls", calls)
			}
		case llm.ToolCalls:
			if calls == 0 {
				c.report(ruleReason, name, "tool-calls without a call")
			}
		case llm.MaxTokens:
		case llm.Failed, llm.Aborted:
			failed = true
		default:
			c.report(ruleReason, name, "unknown kind %q", f.Reason.Kind)
		}
		if failed != (f.Reason.Failure != nil) {
			c.report(ruleReason, name, "finish %q, failure %v", f.Reason.Kind, f.Reason.Failure)
		}
	}
	c.failure(name, r, o.failure)
}

// failure judges what is said of one.
func (c *checker) failure(name string, r reading, f *llm.Failure) {
	if f == nil {
		return
	}
	if f.Code == "" || f.Code == seams.Unknown || f.Message == "" || len(f.Message) > 2000 {
		c.report(ruleCoded, name, "code %q, a text of %d bytes: %s", f.Code, len(f.Message), seams.Clip(f.Message, 80))
	}
	if f.Status != 0 && (f.Status < 100 || f.Status > 599) || f.ProviderRetryAfterMs != nil && *f.ProviderRetryAfterMs < 0 {
		c.report(ruleCoded, name, "status %d, or a negative wait", f.Status)
	}
	said := f.Message
	if r.err != nil {
		said += llm.ErrorChain(r.err)
	}
	for _, s := range c.Secrets {
		if s != "" && strings.Contains(said, s) {
			c.report(ruleNoSecret, name, "%s", strings.ReplaceAll(seams.Clip(said, 80), s, "[secret]"))
		}
	}
}

// judgeCancelled judges a reading that was cancelled after n chunks.
func (c *checker) judgeCancelled(k Case, n int, r reading) {
	const atOnce = time.Second
	if r.hung {
		c.report(ruleCancel, k.Name, "cancelled after %d chunks, it goes on for %v", n, c.Limit)
		return
	}
	if !c.sound(k.Name, r) {
		return
	}
	c.grammar(k.Name, r, true)
	c.ending(k.Name, r)
	o := join(r)
	if r.endedIn > atOnce {
		c.report(ruleCancel, k.Name, "cancelled after %d chunks, it ends only after %v", n, r.endedIn)
	}
	due := k.Want.Code == o.Code && k.Want.Finish == o.Finish || k.Want.Code != "" && k.Want.Code == o.Code
	if o.Code != seams.Aborted && (n == 0 || !due) {
		c.report(ruleCancel, k.Name, "cancelled after %d chunks, it ends with finish %q and code %q", n, o.Finish, o.Code)
	}
}

// judgeLeft judges a reading that was left after n chunks. A yield after that
// makes the loop panic.
func (c *checker) judgeLeft(k Case, n int, r reading) {
	switch {
	case r.hung:
		c.report(ruleLeave, k.Name, "left after %d chunks, it does not return", n)
	case r.panic != nil:
		c.report(ruleLeave, k.Name, "left after %d chunks: %v", n, r.panic)
	default:
		c.grammar(k.Name, r, false)
	}
}

func (c *checker) checkRefused(name string, req llm.Request) {
	sent := 0
	if c.Sent != nil {
		sent = c.Sent()
	}
	r := c.read(req, readAll)
	if !c.sound(name, r) {
		return
	}
	o := join(r)
	if !strings.HasPrefix(string(o.Code), "UNSUPPORTED") {
		c.report(ruleRefuse, name, "it ends with %s", describe(r))
		return
	}
	for _, chunk := range r.chunks {
		if _, ok := chunk.(llm.Finish); !ok {
			c.report(ruleRefuse, name, "a %s comes before the refusal", chunk.Type())
		}
	}
	if c.Sent != nil && c.Sent() != sent {
		c.report(ruleRefuse, name, "the service has received a request")
	}
	c.ending(name, r)
}

// checkNothingLeft waits for the number of goroutines to come down.
func (c *checker) checkNothingLeft(before int) {
	if c.hung {
		return
	}
	const patience = 2 * time.Second
	begin := time.Now()
	for runtime.NumGoroutine() > before {
		if time.Since(begin) > patience {
			c.report(ruleNothing, "all", "%d goroutines, %d at the start", runtime.NumGoroutine(), before)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
