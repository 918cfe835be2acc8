package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/adapters/openai"
	"github.com/ouro-run/ouro/adapters/scripted"
	"github.com/ouro-run/ouro/conformance/stream"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type adapterFunc func(ctx context.Context, req llm.Request) llm.Stream

func (f adapterFunc) Stream(ctx context.Context, req llm.Request) llm.Stream { return f(ctx, req) }

// whole is a reply with every kind of chunk.
func whole() []llm.Chunk {
	return []llm.Chunk{
		llm.BlockStart{Index: 0, BlockType: llm.KindReasoning},
		llm.ReasoningDelta{Index: 0, Text: "hm"},
		llm.BlockEnd{Index: 0, Block: llm.Reasoning{Text: "hm"}},
		llm.BlockStart{Index: 1, BlockType: llm.KindText},
		llm.TextDelta{Index: 1, Text: "a"},
		llm.TextDelta{Index: 1, Text: "b"},
		llm.BlockEnd{Index: 1, Block: llm.Text{Text: "ab"}},
		llm.BlockStart{Index: 2, BlockType: llm.KindToolCall},
		llm.ToolCallDelta{Index: 2, ID: "c", Name: "f", ArgumentsDelta: "{"},
		llm.ToolCallDelta{Index: 2, ID: "c", ArgumentsDelta: "}"},
		llm.BlockEnd{Index: 2, Block: llm.ToolCall{ID: "c", Name: "f", Arguments: "{}"}},
		llm.Usage{Usage: llm.TokenUsage{InputTokens: 3, OutputTokens: 2}},
		llm.Finish{Reason: llm.FinishReason{Kind: llm.ToolCalls}},
	}
}

// stalled is the purpose of a request that play does not answer.
const stalled = "stalled"

// play is a right adapter around a list of chunks and, perhaps, an error.
func play(list []llm.Chunk, last error) llm.Adapter {
	return adapterFunc(func(ctx context.Context, req llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			if len(req.Stop) > 0 {
				yield(nil, llm.NewError(seams.UnsupportedOption, "no stop words"))
				return
			}
			if req.Purpose == stalled && ctx.Done() != nil {
				<-ctx.Done()
			}
			for _, c := range list {
				if ctx.Err() != nil {
					yield(nil, llm.NewError(seams.Aborted, "cancelled"))
					return
				}
				if !yield(c, nil) {
					return
				}
			}
			if last != nil {
				yield(nil, last)
			}
		}
	})
}

func subject(a llm.Adapter) stream.Subject {
	return stream.Subject{
		Adapter: a,
		Cases: []stream.Case{{Name: "all", Request: llm.Request{Messages: []llm.Message{llm.UserText("go")}}, Want: stream.Want{
			Text: "ab", Reasoning: "hm", Finish: llm.ToolCalls, Calls: []llm.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}, Usage: &llm.TokenUsage{InputTokens: 3, OutputTokens: 2},
		}}},
		Refused: []llm.Request{{CallConfig: llm.CallConfig{Stop: []string{"x"}}}},
		Stalled: []llm.Request{{Purpose: stalled, Messages: []llm.Message{llm.UserText("go")}}},
		Secrets: []string{"sk-secret"},
		Limit:   300 * time.Millisecond,
	}
}

func TestARightAdapterIsNotBlamed(t *testing.T) {
	stream.Run(t, subject(play(whole(), nil)))
	failing := subject(play(whole()[:5], llm.NewError(seams.Server, "broke")))
	failing.Cases[0].Want = stream.Want{Text: "a", Reasoning: "hm", Code: seams.Server}
	stream.Run(t, failing)
	inBand := subject(play(append(whole()[:5], llm.Finish{Reason: llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Message: "m", Code: seams.Server}}}), nil))
	inBand.Cases[0].Want = failing.Cases[0].Want
	stream.Run(t, inBand)
	interleaved := whole()
	interleaved[2], interleaved[3] = interleaved[3], interleaved[2]
	stream.Run(t, subject(play(interleaved, nil)))
	l := whole()
	stream.Run(t, subject(play([]llm.Chunk{l[0], l[2], l[3], l[6], l[7], l[10], l[11], l[12]}, nil))) // only ends
}

// Every law has adapters that break it, and each is caught and named.
func TestBrokenAdaptersAreNamed(t *testing.T) {
	edit := func(f func(l []llm.Chunk) []llm.Chunk) llm.Adapter { return play(f(whole()), nil) }
	set := func(i int, c llm.Chunk) llm.Adapter {
		return edit(func(l []llm.Chunk) []llm.Chunk { l[i] = c; return l })
	}
	drop := func(i int) llm.Adapter {
		return edit(func(l []llm.Chunk) []llm.Chunk { return append(l[:i:i], l[i+1:]...) })
	}
	insert := func(i int, c llm.Chunk) llm.Adapter {
		return edit(func(l []llm.Chunk) []llm.Chunk { return append(append(l[:i:i], c), l[i:]...) })
	}
	around := func(f func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool)) llm.Adapter {
		return adapterFunc(func(ctx context.Context, req llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) { f(ctx, req, yield) }
		})
	}
	right := play(whole(), nil)
	finish := func(r llm.FinishReason) llm.Adapter { return set(12, llm.Finish{Reason: r}) }
	var turn, sent atomic.Int32
	past := int64(-1)
	var once sync.Mutex
	stuck := make(chan struct{})
	defer close(stuck)

	seen := map[string]bool{}
	for _, c := range []struct {
		name, rule string
		a          llm.Adapter
	}{
		{"a nil chunk", "P1", insert(4, nil)},
		{"a pointer for a chunk", "P1", set(4, &llm.TextDelta{Index: 1, Text: "a"})},
		{"an end without a block", "P1", set(6, llm.BlockEnd{Index: 1})},
		{"a start without a kind", "P1", set(3, llm.BlockStart{Index: 1})},
		{"a negative index", "P2", insert(0, llm.BlockStart{Index: -1, BlockType: "text"})},
		{"an index beyond all numbers", "P2", insert(0, llm.BlockStart{Index: 1 << 60, BlockType: "text"})},
		{"a block started twice", "P3", insert(4, llm.BlockStart{Index: 1, BlockType: "text"})},
		{"an index used again", "P3", set(3, llm.BlockStart{Index: 0, BlockType: "text"})},
		{"a delta before its start", "P4", drop(3)},
		{"a delta after its end", "P4", insert(7, llm.TextDelta{Index: 1, Text: "c"})},
		{"an end without a start", "P4", insert(0, llm.BlockEnd{Index: 9, Block: llm.Text{Text: "x"}})},
		{"a delta of another kind", "P5", set(4, llm.ReasoningDelta{Index: 1, Text: "a"})},
		{"an end of another kind", "P5", set(6, llm.BlockEnd{Index: 1, Block: llm.Reasoning{Text: "ab"}})},
		{"usage twice", "P6", insert(11, llm.Usage{})},
		{"a block left open", "P7", drop(6)},
		{"usage after the finish", "P8", insert(13, llm.Usage{})},
		{"two finishes", "P8", insert(12, llm.Finish{Reason: llm.FinishReason{Kind: llm.ToolCalls}})},
		{"an error after the finish", "P8", play(whole(), llm.NewError(seams.Server, "late"))},
		{"half a character", "P1", edit(func(l []llm.Chunk) []llm.Chunk {
			l[4], l[5], l[6] = llm.TextDelta{Index: 1, Text: "\xc3"}, llm.TextDelta{Index: 1, Text: "\xa9"}, llm.BlockEnd{Index: 1, Block: llm.Text{Text: "é"}}
			return l
		})},
		{"replay state that is no JSON", "P1", set(12, llm.Finish{Reason: llm.FinishReason{Kind: llm.ToolCalls}, ReplayState: &llm.ReplayState{Response: json.RawMessage("{")}})},
		{"no finish", "P9", drop(12)},
		{"nothing at all", "P9", play(nil, nil)},
		{"lost text", "S1", edit(func(l []llm.Chunk) []llm.Chunk {
			l[6] = llm.BlockEnd{Index: 1, Block: llm.Text{Text: "a"}}
			return append(l[:5:5], l[6:]...)
		})},
		{"another usage", "S1", set(11, llm.Usage{Usage: llm.TokenUsage{InputTokens: 4}})},
		{"another call", "S1", set(10, llm.BlockEnd{Index: 2, Block: llm.ToolCall{ID: "c", Name: "g", Arguments: "{}"}})},
		{"a shorter end", "S2", set(6, llm.BlockEnd{Index: 1, Block: llm.Text{Text: "a"}})},
		{"other arguments at the end", "S2", set(10, llm.BlockEnd{Index: 2, Block: llm.ToolCall{ID: "c", Name: "f", Arguments: "[]"}})},
		{"an empty text", "S3", edit(func(l []llm.Chunk) []llm.Chunk {
			return append([]llm.Chunk{llm.BlockStart{Index: 5, BlockType: "text"}, llm.BlockEnd{Index: 5, Block: llm.Text{}}}, l...)
		})},
		{"a call without an id", "S4", set(10, llm.BlockEnd{Index: 2, Block: llm.ToolCall{Name: "f", Arguments: "{}"}})},
		{"a call without a name", "S4", set(10, llm.BlockEnd{Index: 2, Block: llm.ToolCall{ID: "c", Arguments: "{}"}})},
		{"an id that changes", "S4", set(9, llm.ToolCallDelta{Index: 2, ID: "d", ArgumentsDelta: "}"})},
		{"a delta without an id", "S4", set(9, llm.ToolCallDelta{Index: 2, ArgumentsDelta: "}"})},
		{"an id used twice", "S4", edit(func(l []llm.Chunk) []llm.Chunk {
			return append(append(l[:11:11], llm.BlockStart{Index: 3, BlockType: "tool-call"}, llm.BlockEnd{Index: 3, Block: llm.ToolCall{ID: "c", Name: "f"}}), l[11:]...)
		})},
		{"stop with calls", "S5", finish(llm.FinishReason{Kind: llm.Stop})},
		{"tool-calls without a call", "S5", edit(func(l []llm.Chunk) []llm.Chunk { return append(l[:7:7], l[11:]...) })},
		{"an unknown kind of finish", "S5", finish(llm.FinishReason{Kind: "done"})},
		{"a failed finish without a failure", "S5", finish(llm.FinishReason{Kind: llm.Failed})},
		{"a stop with a failure", "S5", finish(llm.FinishReason{Kind: llm.ToolCalls, Failure: &llm.Failure{Message: "m", Code: "X"}})},
		{"replay state of other blocks", "S5", set(12, llm.Finish{Reason: llm.FinishReason{Kind: llm.ToolCalls},
			ReplayState: &llm.ReplayState{Response: json.RawMessage("{}"), Blocks: []json.RawMessage{json.RawMessage("1")}}})},
		{"a chunk beside an error", "S6", around(func(_ context.Context, _ llm.Request, yield func(llm.Chunk, error) bool) {
			yield(llm.Usage{}, llm.NewError(seams.Server, "x"))
		})},
		{"it goes on after an error", "S6", around(func(_ context.Context, _ llm.Request, yield func(llm.Chunk, error) bool) {
			for yield(nil, llm.NewError(seams.Server, "x")) {
			}
		})},
		{"an error without a code", "S7", play(nil, errors.New("x"))},
		{"a status that is none", "S7", finish(llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Message: "m", Code: seams.Server, Status: 7}})},
		{"a negative wait", "S7", finish(llm.FinishReason{Kind: llm.Failed, Failure: &llm.Failure{Message: "m", Code: seams.Server, ProviderRetryAfterMs: &past}})},
		{"an endless text", "S7", play(nil, llm.NewError(seams.Server, "%s", strings.Repeat("x", 5000)))},
		{"negative usage", "S8", set(11, llm.Usage{Usage: llm.TokenUsage{InputTokens: -1}})},
		{"more reasoning than output", "S8", set(11, llm.Usage{Usage: llm.TokenUsage{OutputTokens: 1, ReasoningTokens: 2}})},
		{"a hang", "S9", around(func(context.Context, llm.Request, func(llm.Chunk, error) bool) { <-stuck })},
		{"deaf to the cancel", "S10", around(func(_ context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			for c, err := range right.Stream(context.Background(), req) {
				if !yield(c, err) {
					return
				}
			}
		})},
		{"a cancel without its code", "S10", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			for c, err := range right.Stream(ctx, req) {
				if err != nil && ctx.Err() != nil {
					err = llm.NewError(seams.Transport, "closed")
				}
				if !yield(c, err) {
					return
				}
			}
		})},
		{"a cancel that looks like an end", "S10", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			for c, err := range right.Stream(ctx, req) {
				if err != nil && ctx.Err() != nil {
					c, err = llm.Finish{Reason: llm.FinishReason{Kind: llm.MaxTokens}}, nil
				}
				if !yield(c, err) {
					return
				}
			}
		})},
		{"it goes on though the reader left", "S11", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			for c, err := range right.Stream(ctx, req) {
				yield(c, err)
			}
		})},
		{"it does not return when left", "S11", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			for c, err := range right.Stream(ctx, req) {
				if !yield(c, err) {
					<-stuck
				}
			}
		})},
		{"deaf in a silence", "S10", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			if req.Purpose == stalled {
				<-stuck
				return
			}
			right.Stream(ctx, req)(yield)
		})},
		{"a panic", "S12", around(func(context.Context, llm.Request, func(llm.Chunk, error) bool) { panic("x") })},
		{"it writes to the request", "S13", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			once.Lock()
			req.Messages[0].Content = llm.Content{llm.Text{Text: "changed"}}
			once.Unlock()
			right.Stream(ctx, req)(yield)
		})},
		{"it drops an option", "S14", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			req.Stop = nil
			right.Stream(ctx, req)(yield)
		})},
		{"it refuses too late", "S14", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			if len(req.Stop) > 0 && !yield(llm.BlockStart{BlockType: "text"}, nil) {
				return
			}
			right.Stream(ctx, req)(yield)
		})},
		{"it leaves a goroutine", "S15", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			go func() { <-stuck }()
			right.Stream(ctx, req)(yield)
		})},
		{"it tells the key", "S16", play(nil, llm.NewError(seams.Auth, "sk-secret is wrong"))},
		{"cancelled, it tells the key", "S16", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			for c, err := range right.Stream(ctx, req) {
				if err != nil && ctx.Err() != nil {
					err = llm.NewError(seams.Aborted, "the request with sk-secret was cancelled")
				}
				if !yield(c, err) {
					return
				}
			}
		})},
		{"it tells the key in a cause", "S16", play(nil, &llm.Error{Failure: llm.Failure{Message: "no", Code: seams.Auth}, Err: errors.New("Bearer sk-secret")})},
		{"every second time another answer", "S17", around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
			if turn.Add(1)%2 == 0 && len(req.Stop) == 0 {
				yield(nil, llm.NewError(seams.Server, "busy"))
				return
			}
			right.Stream(ctx, req)(yield)
		})},
		{"one reader at a time", "S17", func() llm.Adapter {
			var busy atomic.Bool
			return around(func(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) {
				if !busy.CompareAndSwap(false, true) {
					yield(nil, llm.NewError(seams.Server, "busy"))
					return
				}
				defer busy.Store(false)
				if len(req.Stop) == 0 {
					time.Sleep(5 * time.Millisecond)
				}
				right.Stream(ctx, req)(yield)
			})
		}()},
		{"it sends before anybody reads", "S18", adapterFunc(func(ctx context.Context, req llm.Request) llm.Stream {
			if len(req.Stop) == 0 {
				sent.Add(1)
			}
			return right.Stream(ctx, req)
		})},
	} {
		s := subject(c.a)
		s.Sent = func() int { return int(sent.Load()) }
		found := stream.Check(t.Context(), s)
		named := false
		for _, f := range found {
			named = named || f.Rule == c.rule
		}
		if !named {
			t.Errorf("%s: want %s, have %v", c.name, c.rule, found)
		}
		seen[c.rule] = true
	}
	for _, r := range stream.Rules() {
		if !seen[r.ID] {
			t.Errorf("no broken adapter stands for %s (%s)", r.ID, r.Text)
		}
	}
}

// recorder is a T.
type recorder struct{ lines []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// A finding tells the case, the law and what was seen.
func TestRunTells(t *testing.T) {
	var r recorder
	stream.Run(&r, subject(play(whole()[:12], nil)))
	if len(r.lines) == 0 || !strings.Contains(strings.Join(r.lines, "\n"), "all: P9 (a stream that does not fail ends in a finish): the stream ended without a finish") {
		t.Errorf("%q", r.lines)
	}
}

func TestScriptedConforms(t *testing.T) {
	s, err := scripted.Parse("s.yml", []byte(`
rules:
  - when: {user: tool}
    reasoning: Let me see what there is to be done about it.
    text: I call two tools for that.
    calls: [{tool: f, args: {a: 1}}, {tool: g}]
  - when: {user: text}
    text: A text that is long enough to come in more than a single piece, surely.
`))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string) llm.Request { return llm.Request{Messages: []llm.Message{llm.UserText(text)}} }
	half := 0.5
	stream.Run(t, stream.Subject{
		Adapter: scripted.New(s),
		Cases: []stream.Case{
			{Name: "tool", Request: ask("tool"), Want: stream.Want{Reasoning: "Let me see what there is to be done about it.", Text: "I call two tools for that.", Finish: llm.ToolCalls,
				Calls: []llm.ToolCall{{ID: "*", Name: "f", Arguments: `{"a":1}`}, {ID: "*", Name: "g", Arguments: `{}`}}}},
			{Name: "text", Request: ask("text"), Want: stream.Want{Text: "A text that is long enough to come in more than a single piece, surely.", Finish: llm.Stop}},
			{Name: "no rule", Request: ask("nothing"), Want: stream.Want{Code: seams.NoRule}},
		},
		Refused: []llm.Request{{CallConfig: llm.CallConfig{Temperature: &half}}, {CallConfig: llm.CallConfig{Stop: []string{"x"}}}},
	})
}

func TestOpenAIConforms(t *testing.T) {
	const key = "sk-very-secret"
	replies := map[string]string{
		"text":  `data: {"choices":[{"delta":{"reasoning":"hm"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n",
		"tools": `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}}]}` + "\n\n" + `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n",
		"stall": `data: {"choices":[{"delta":{"content":"Half"}}]}` + "\n\n",
		"cut":   `data: {"choices":[{"delta":{"content":"Half"}}]}` + "\n\n",
		"error": `data: {"choices":[{"delta":{"content":"Half"}}]}` + "\n\n" + `data: {"error":{"message":"overloaded, key ` + key + `","code":503}}` + "\n\n",
	}
	var sent atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		body, _ := io.ReadAll(r.Body)
		for name, reply := range replies {
			if !strings.Contains(string(body), `"content":"`+name+`"`) {
				continue
			}
			w.Header().Set("Content-Type", "text/event-stream")
			if name == "stall" {
				_, _ = io.WriteString(w, reply)
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(3 * time.Second):
				}
				return
			}
			for _, ev := range strings.SplitAfter(reply, "\n\n") {
				_, _ = io.WriteString(w, ev)
				w.(http.Flusher).Flush()
			}
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"the key `+key+` is wrong"}}`)
	}))
	defer srv.Close()
	a, err := openai.New(openai.Config{BaseURL: srv.URL + "/v1", APIKey: key, Identity: llm.Ouro("test")})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string, more ...llm.Block) llm.Request {
		m := llm.NewMessage(llm.User, llm.Source{Kind: llm.FromUser}, append([]llm.Block{llm.Text{Text: text}}, more...)...)
		return llm.Request{CallConfig: llm.CallConfig{Model: "m"}, Messages: []llm.Message{m}}
	}
	limit := ask("text")
	limit.MaxTokens = -1
	stream.Run(t, stream.Subject{
		Adapter: a,
		Cases: []stream.Case{
			{Name: "text", Request: ask("text"), Want: stream.Want{Reasoning: "hm", Text: "Hello", Finish: llm.Stop, Usage: &llm.TokenUsage{InputTokens: 5, OutputTokens: 2}}},
			{Name: "tools", Request: ask("tools"), Want: stream.Want{Finish: llm.ToolCalls, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g"}}}},
			{Name: "cut", Request: ask("cut"), Want: stream.Want{Text: "Half", Code: seams.StreamClosed}},
			{Name: "error", Request: ask("error"), Want: stream.Want{Text: "Half", Code: seams.Server}},
			{Name: "wrong key", Request: ask("else"), Want: stream.Want{Code: seams.Auth}},
		},
		Refused: []llm.Request{ask("text", llm.Image{Attachment: llm.Attachment{Hash: "ab"}}), limit},
		Secrets: []string{key},
		Stalled: []llm.Request{ask("stall")},
		Sent:    func() int { return int(sent.Load()) },
		Release: func() { a.Close(); srv.CloseClientConnections() },
	})
}

func ExampleCheck() {
	// An adapter that forgets its finish.
	a := adapterFunc(func(context.Context, llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			_ = yield(llm.BlockStart{BlockType: llm.KindText}, nil) &&
				yield(llm.TextDelta{Text: "hi"}, nil) &&
				yield(llm.BlockEnd{Block: llm.Text{Text: "hi"}}, nil)
		}
	})
	found := stream.Check(context.Background(), stream.Subject{Adapter: a, Cases: []stream.Case{{Name: "greeting", Want: stream.Want{Text: "hi", Finish: llm.Stop}}}})
	fmt.Println(found[0])
	// Output: greeting: P9: the stream ended without a finish
}
