package openai

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is the joined result of a stream, as the cases state it.
type outcome struct {
	Text, Reasoning string
	Calls           []llm.ToolCall
	Finish          llm.FinishKind
	Usage           *llm.TokenUsage
	Err             error
	Blocks          []string // kinds in order of their start
}

// join reads a stream to its end and holds it to the rules of every case: each
// start has one end, errors included; no delta outside its block; no empty
// block but a tool call; one finish or one error, last.
func join(t testing.TB, s llm.Stream) outcome {
	t.Helper()
	var o outcome
	var g llm.Grammar
	open := map[int]string{}
	for c, err := range s {
		if o.Err != nil {
			t.Fatalf("a chunk after the error: %#v", c)
		}
		if err != nil {
			if c != nil {
				t.Fatalf("a chunk beside an error")
			}
			o.Err = err
			continue
		}
		if err := g.Accept(c); err != nil {
			t.Fatalf("%v (%#v)", err, c)
		}
		switch c := c.(type) {
		case llm.BlockStart:
			open[c.Index] = ""
			o.Blocks = append(o.Blocks, c.BlockType)
		case llm.TextDelta:
			o.Text += c.Text
			open[c.Index] += c.Text
		case llm.ReasoningDelta:
			o.Reasoning += c.Text
			open[c.Index] += c.Text
		case llm.ToolCallDelta:
			open[c.Index] += c.ArgumentsDelta
		case llm.BlockEnd:
			whole := ""
			switch b := c.Block.(type) {
			case llm.Text:
				whole = b.Text
			case llm.Reasoning:
				whole = b.Text
			case llm.ToolCall:
				o.Calls = append(o.Calls, b)
				if b.Arguments != open[c.Index] {
					t.Fatalf("the block's arguments differ from its deltas: %q, %q", b.Arguments, open[c.Index])
				}
				delete(open, c.Index)
				continue
			}
			if whole == "" || whole != open[c.Index] {
				t.Fatalf("the block %q is empty or differs from its deltas %q", whole, open[c.Index])
			}
			delete(open, c.Index)
		case llm.Usage:
			o.Usage = &c.Usage
		case llm.Finish:
			o.Finish = c.Reason.Kind
		}
	}
	if len(open) > 0 {
		t.Fatalf("blocks left open: %v", open)
	}
	if (o.Finish == "") == (o.Err == nil) {
		t.Fatalf("want one finish or one error, have %q and %v", o.Finish, o.Err)
	}
	return o
}

// want is the JSON block of a case's expect file.
type want struct {
	Response   map[string]any
	Text       *string
	TextBefore *string `json:"text_before"`
	Reasoning  string
	Calls      []struct {
		ID, Name    string
		Args        any
		ArgsInvalid bool `json:"args_invalid"`
		ArgsLength  int  `json:"args_length"`
	}
	Finish string
	Usage  *struct{ Input, Output, Cached, Reasoning int64 }
	Error  string
	Either []want
}

func load(t testing.TB, id string) want {
	t.Helper()
	b, err := os.ReadFile("testdata/" + id + ".expect.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("```json"))
	block, _, ok := bytes.Cut(rest, []byte("```"))
	var w want
	if err := json.Unmarshal(block, &w); err != nil || !ok {
		t.Fatalf("%s: no JSON block: %v", id, err)
	}
	if len(w.Either) > 0 {
		w = w.Either[0] // oai-27: this adapter leaves the text whole
	}
	return w
}

var kinds = map[string]seams.Code{"server": seams.Server, "truncated": seams.StreamClosed, "malformed": seams.MalformedResponse}
var finishes = map[string]llm.FinishKind{"stop": llm.Stop, "tool-calls": llm.ToolCalls, "length": llm.MaxTokens}

func (w want) check(t testing.TB, o outcome) {
	t.Helper()
	if w.Error != "" {
		if !errors.Is(o.Err, kinds[w.Error]) {
			t.Fatalf("want error %s, have %v (finish %q)", kinds[w.Error], o.Err, o.Finish)
		}
		if w.TextBefore != nil && o.Text != *w.TextBefore {
			t.Fatalf("text before the error: want %q, have %q", *w.TextBefore, o.Text)
		}
		return
	}
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	text := ""
	if w.Text != nil {
		text = *w.Text
	}
	if o.Text != text || o.Reasoning != w.Reasoning || o.Finish != finishes[w.Finish] {
		t.Fatalf("want text %q, reasoning %q, finish %q\nhave %q, %q, %q", text, w.Reasoning, w.Finish, o.Text, o.Reasoning, o.Finish)
	}
	if len(o.Calls) != len(w.Calls) {
		t.Fatalf("want %d calls, have %+v", len(w.Calls), o.Calls)
	}
	ids := map[string]bool{}
	for i, c := range w.Calls {
		have := o.Calls[i]
		if have.Name != c.Name || have.ID == "" || ids[have.ID] || c.ID != "*" && have.ID != c.ID {
			t.Fatalf("call %d: want %+v, have %+v", i, c, have)
		}
		ids[have.ID] = true
		var args any
		err := json.Unmarshal([]byte(have.Arguments), &args)
		switch {
		case c.ArgsInvalid:
			if err == nil {
				t.Fatalf("call %d: the arguments %q should be broken", i, have.Arguments)
			}
		case c.ArgsLength > 0:
			if err != nil || len(have.Arguments) != c.ArgsLength {
				t.Fatalf("call %d: %d bytes of arguments, want %d (%v)", i, len(have.Arguments), c.ArgsLength, err)
			}
		case !reflect.DeepEqual(args, c.Args):
			t.Fatalf("call %d: want %v, have %v", i, c.Args, args)
		}
	}
	if (w.Usage == nil) != (o.Usage == nil) {
		t.Fatalf("usage: want %v, have %v", w.Usage, o.Usage)
	}
	if w.Usage != nil {
		// The cases count cached input within the input.
		have := [4]int64{o.Usage.InputTokens + o.Usage.CacheReadTokens, o.Usage.OutputTokens, o.Usage.CacheReadTokens, o.Usage.ReasoningTokens}
		if have != [4]int64{w.Usage.Input, w.Usage.Output, w.Usage.Cached, w.Usage.Reasoning} {
			t.Fatalf("usage: want %+v, have %+v", *w.Usage, *o.Usage)
		}
	}
}

// wire is a transport that answers every request with the body it is given.
type wire func(r *http.Request) (*http.Response, error)

func (f wire) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reply(contentType string, body io.Reader) *http.Response {
	h := http.Header{}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(body)}
}

func newAdapter(t testing.TB, cfg Config) *Adapter {
	t.Helper()
	if cfg.BaseURL == "" {
		cfg.BaseURL = "http://service.invalid/v1"
	}
	cfg.Identity = llm.Ouro("0.0.0-test")
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// overWire makes an adapter whose replies have this body.
func overWire(t testing.TB, contentType string, body func() io.Reader) *Adapter {
	a := newAdapter(t, Config{})
	a.client.HTTP.Transport = wire(func(*http.Request) (*http.Response, error) { return reply(contentType, body()), nil })
	return a
}

func ask(model string) llm.Request {
	return llm.Request{CallConfig: llm.CallConfig{Model: model}, Messages: []llm.Message{llm.UserText("hi")}}
}

func streamCases(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 20 {
		t.Fatalf("cases are missing: %v %v", files, err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".sse")] = b
	}
	return out
}

// Every stream case, in one write, one byte per read and cut in two at every
// place. M-74, M-75, M-76.
func TestCasesDoNotDependOnReads(t *testing.T) {
	for id, body := range streamCases(t) {
		t.Run(id, func(t *testing.T) {
			w := load(t, id)
			w.check(t, join(t, overWire(t, "text/event-stream", func() io.Reader { return bytes.NewReader(body) }).Stream(t.Context(), ask("m"))))
			w.check(t, join(t, overWire(t, "text/event-stream", func() io.Reader { return iotest.OneByteReader(bytes.NewReader(body)) }).Stream(t.Context(), ask("m"))))
			if len(body) > 10_000 {
				return // cut in the reader's own package
			}
			at := 0
			a := overWire(t, "text/event-stream", func() io.Reader {
				return io.MultiReader(bytes.NewReader(body[:at]), bytes.NewReader(body[at:]))
			})
			for at = 0; at < len(body); at += stride {
				w.check(t, join(t, a.Stream(t.Context(), ask("m"))))
			}
		})
	}
}

// The same over a real connection, flushed after each byte.
func TestCasesOverHTTP(t *testing.T) {
	for id, body := range streamCases(t) {
		for _, step := range []int{len(body), 1} {
			if len(body)/step > 10_000 {
				continue
			}
			w := load(t, id)
			srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost {
					t.Errorf("%s %s", r.Method, r.URL.Path)
				}
				for k, v := range w.Response {
					if s, ok := v.(string); ok {
						rw.Header().Set(k, s)
					}
				}
				if rw.Header().Get("Content-Type") == "" {
					rw.Header().Set("Content-Type", "text/event-stream")
				}
				for i := 0; i < len(body); i += step {
					_, _ = rw.Write(body[i:min(i+step, len(body))])
					rw.(http.Flusher).Flush()
				}
			}))
			a := newAdapter(t, Config{BaseURL: srv.URL + "/v1"})
			t.Run(id, func(t *testing.T) { w.check(t, join(t, a.Stream(t.Context(), ask("m")))) })
			a.Close()
			srv.Close()
		}
	}
}

// A reply cut off anywhere, cleanly or by a broken connection, is complete or
// a coded error; never a hang, a panic or a call that looks whole.
func TestCutOffAnywhere(t *testing.T) {
	for id, body := range streamCases(t) {
		if len(body) > 10_000 {
			continue
		}
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
			at := 0
			a := overWire(t, "text/event-stream", func() io.Reader {
				return io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(end))
			})
			for at = 0; at < len(body); at += stride {
				o := join(t, a.Stream(t.Context(), ask("m")))
				if o.Err == nil {
					continue
				}
				code := seams.CodeOf(o.Err)
				ok := code == seams.StreamClosed && end == io.EOF || code == seams.Transport && end != io.EOF ||
					code == seams.EmptyResponse && at == 0 || id == "oai-23" && code == seams.Server
				if !ok {
					t.Fatalf("%s cut at %d with %v: %v", id, at, end, o.Err)
				}
			}
		}
	}
}

// oai-16, second run: the end mark ends reading though the connection stays.
func TestEndMarkEndsReading(t *testing.T) {
	body := append(streamCases(t)["oai-16"], "data: [DONE]\n\n"...)
	hold := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = rw.Write(body)
		rw.(http.Flusher).Flush()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(hold)
	a := newAdapter(t, Config{BaseURL: srv.URL + "/v1"})
	load(t, "oai-16").check(t, join(t, a.Stream(t.Context(), ask("m"))))
}

// A body over the bound is an error; one of 5 MB within it comes whole (sse-06).
func TestLongLines(t *testing.T) {
	body := streamCases(t)["sse-06"]
	long := bytes.Replace(body, []byte("row 00000 "), bytes.Repeat([]byte("row 00000 "), 500_000), 1)
	a := overWire(t, "text/event-stream", func() io.Reader { return bytes.NewReader(long) })
	o := join(t, a.Stream(t.Context(), ask("m")))
	if o.Err != nil || len(o.Calls) != 1 || len(o.Calls[0].Arguments) < 5_000_000 {
		t.Fatalf("%v, %d calls", o.Err, len(o.Calls))
	}
	transport := a.client.HTTP.Transport
	a = newAdapter(t, Config{MaxEventBytes: 1 << 20})
	a.client.HTTP.Transport = transport
	if o := join(t, a.Stream(t.Context(), ask("m"))); !errors.Is(o.Err, seams.MalformedResponse) {
		t.Fatalf("want MALFORMED_RESPONSE, have %v", o.Err)
	}
}

// sse-10: the whole HTTP reply from a raw listener.
func TestWebPageIsNoReply(t *testing.T) {
	raw, err := os.ReadFile("testdata/sse-10.http")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = c.Write(raw)
		}
	}()
	defer func() { l.Close(); <-done }()
	a := newAdapter(t, Config{BaseURL: "http://" + l.Addr().String() + "/v1"})
	o := join(t, a.Stream(t.Context(), ask("m")))
	load(t, "sse-10").check(t, o)
	for _, s := range []string{"200", "text/html", "Sign in to continue"} {
		if !strings.Contains(o.Err.Error(), s) {
			t.Errorf("%q does not name %s", o.Err, s)
		}
	}
}

// What a body without or with another content type may be (sse-10, sse-13).
func TestContentTypes(t *testing.T) {
	good := string(streamCases(t)["sse-04"])
	for _, c := range []struct {
		kind, body string
		want       seams.Code
	}{
		{"", good, ""},
		{"application/json", good, ""},
		{"text/plain; charset=utf-8", good, ""},
		{"", "<!doctype html><p>data: hello", seams.MalformedResponse},
		{"text/html", good, seams.MalformedResponse},
		{"application/json", `{"id":"x","choices":[{"message":{"content":"hi"}}]}`, seams.MalformedResponse},
		{"application/json", `{"error":{"message":"slow down","code":429}}`, seams.RateLimit},
		{"text/plain", "no events here", seams.StreamClosed},
		{"text/event-stream", "\x1f\x8b\x08\x00junk", seams.MalformedResponse},
		{"text/event-stream", "", seams.EmptyResponse},
		{"text/event-stream", "data: nonsense\n\n", seams.MalformedResponse},
	} {
		a := overWire(t, c.kind, func() io.Reader { return strings.NewReader(c.body) })
		if o := join(t, a.Stream(t.Context(), ask("m"))); c.want != "" && !errors.Is(o.Err, c.want) || c.want == "" && o.Err != nil {
			t.Errorf("%s %.30q: want %q, have %v", c.kind, c.body, c.want, o.Err)
		}
	}
}

// sse-13: packed with and without the header, and given as it arrives.
func TestPackedBody(t *testing.T) {
	packed, err := os.ReadFile("testdata/sse-13.sse.gz")
	if err != nil {
		t.Fatal(err)
	}
	mode := ""
	more := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		if mode != "bare" {
			rw.Header().Set("Content-Encoding", "gzip")
		}
		if mode != "slow" {
			_, _ = rw.Write(packed)
			return
		}
		z := gzip.NewWriter(rw)
		_, _ = io.WriteString(z, "data: {\"choices\":[{\"delta\":{\"content\":\"early\"}}]}\n\n")
		_ = z.Flush()
		rw.(http.Flusher).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(z, "data: [DONE]\n\n")
		_ = z.Close()
	}))
	defer srv.Close()
	a := newAdapter(t, Config{BaseURL: srv.URL + "/v1"})
	load(t, "sse-13").check(t, join(t, a.Stream(t.Context(), ask("m"))))
	mode = "bare"
	if o := join(t, a.Stream(t.Context(), ask("m"))); !errors.Is(o.Err, seams.MalformedResponse) {
		t.Fatalf("want MALFORMED_RESPONSE, have %v", o.Err)
	}
	mode = "slow"
	for c, err := range a.Stream(t.Context(), ask("m")) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := c.(llm.TextDelta); ok && d.Text == "early" {
			close(more)
		}
	}
}

// The variants the cases tell in words.
func TestVariants(t *testing.T) {
	event := func(s ...string) string { return "data: " + strings.Join(s, "\n\ndata: ") + "\n\n" }
	delta := func(s string) string { return `{"choices":[{"index":0,"delta":` + s + `}]}` }
	end := `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for _, c := range []struct {
		name, body string
		want       outcome
		code       seams.Code
	}{
		{"oai-03 name in pieces", strings.NewReplacer(
			`"name":"read_file","arguments":""}}]},"finish_reason":null`, `"name":"read_","arguments":""}}]},"finish_reason":null`,
			`"name":"read_file","arguments":"{\"path\":"`, `"name":"file","arguments":"{\"path\":"`,
		).Replace(string(streamCases(t)["oai-03"])), outcome{Calls: []llm.ToolCall{{ID: "call_1", Name: "read_file", Arguments: `{"path":"a.txt"}`}}, Finish: llm.ToolCalls, Blocks: []string{"tool-call"}}, ""},
		{"names that grow", event(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{}"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"name":"other"}}]}`), end), outcome{Calls: []llm.ToolCall{{ID: "a", Name: "read_file", Arguments: "{}"}}, Finish: llm.ToolCalls, Blocks: []string{"tool-call"}}, ""},
		{"oai-06 another call after the reason", event(delta(`{"content":"x"}`), end, delta(`{"content":"y","tool_calls":[{"index":1,"id":"b","function":{"name":"g"}}]}`), "[DONE]"), outcome{Text: "x", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"content filter with a call", event(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`), `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`), outcome{Calls: []llm.ToolCall{{ID: "a", Name: "f"}}, Blocks: []string{"tool-call"}}, seams.ContentFilter},
		{"oai-12 no choices", event(`{"id":"x"}`, `{"choices":null}`, delta(`{"content":"Hi"}`), end), outcome{Text: "Hi", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"oai-23a", event(`{"error":{"message":"quota used up","code":429}}`), outcome{}, seams.RateLimit},
		{"oai-23b", event(`{"error":{"message":"boom","code":"server_error"}}`), outcome{}, seams.Server},
		{"oai-23c", event(`{"error":"it broke"}`), outcome{}, seams.Server},
		{"oai-23d", event(`{"choices":[{"delta":{},"finish_reason":"error"}]}`), outcome{}, seams.Server},
		{"in-band overflow", event(`{"error":{"message":"too long","code":"context_length_exceeded"}}`), outcome{}, seams.ContextWindowExceeded},
		{"oai-25 close tag alone", event(delta(`{"content":"because</think>so"}`), end), outcome{Text: "because</think>so", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"oai-25 never closed", event(delta(`{"content":"<think>all of it</th"}`), end), outcome{Reasoning: "all of it</th", Finish: llm.Stop, Blocks: []string{"reasoning"}}, ""},
		{"oai-25 empty reasoning", event(delta(`{"content":"<think>\n\n</think>\n\n"}`), delta(`{"content":"\nyes"}`), end), outcome{Text: "yes", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"oai-25 tag in an answer", event(delta(`{"content":"use <think> and </think>"}`), end), outcome{Text: "use <think> and </think>", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"leading white space", event(delta(`{"content":"  "}`), delta(`{"content":"x"}`), end), outcome{Text: "  x", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"reasoning and text in turns", event(delta(`{"reasoning":"a"}`), delta(`{"content":"b"}`), delta(`{"reasoning":"c"}`), end), outcome{Text: "b", Reasoning: "ac", Finish: llm.Stop, Blocks: []string{"reasoning", "text", "reasoning"}}, ""},
		{"id after the first fragment", event(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`), end), outcome{Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}, Finish: llm.ToolCalls, Blocks: []string{"tool-call"}}, ""},
		{"arguments as an object", event(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`), end), outcome{Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, Finish: llm.ToolCalls, Blocks: []string{"tool-call"}}, ""},
		{"empty arguments", event(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`), end), outcome{Calls: []llm.ToolCall{{ID: "a", Name: "f"}}, Finish: llm.ToolCalls, Blocks: []string{"tool-call"}}, ""},
		{"end mark without a reason", event(delta(`{"content":"x"}`), "[DONE]"), outcome{Text: "x", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"rubbish after the reason", event(delta(`{"content":"x"}`), end, "oops", "[DONE]"), outcome{Text: "x", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"M-77 nothing", event(end, "[DONE]"), outcome{}, seams.EmptyResponse},
		{"M-77 reasoning only", event(delta(`{"reasoning_content":"hm"}`), end), outcome{Reasoning: "hm", Finish: llm.Stop, Blocks: []string{"reasoning"}}, ""},
		{"M-77 usage first", event(end, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}`, "[DONE]"), outcome{Usage: &llm.TokenUsage{InputTokens: 3}}, seams.EmptyResponse},
		{"M-78 unknown reason", event(delta(`{"content":"x"}`), `{"choices":[{"delta":{},"finish_reason":"model_context_window"}]}`), outcome{Text: "x", Blocks: []string{"text"}}, "MODEL_CONTEXT_WINDOW"},
		{"content filter", event(delta(`{"content":"x"}`), `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`), outcome{Text: "x", Blocks: []string{"text"}}, seams.ContentFilter},
		{"M-78 bad JSON", event(delta(`{"content":"x"}`), `{"choices":`), outcome{Text: "x", Blocks: []string{"text"}}, seams.MalformedResponse},
		{"M-76 last usage wins", event(delta(`{"content":"x"}`), `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, end, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}}`), outcome{Text: "x", Finish: llm.Stop, Usage: &llm.TokenUsage{InputTokens: 5, OutputTokens: 2, CacheReadTokens: 4}, Blocks: []string{"text"}}, ""},
		{"refusal", event(delta(`{"refusal":"I will not"}`), end), outcome{Text: "I will not", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
		{"other choices", event(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`, end), outcome{Text: "yes", Finish: llm.Stop, Blocks: []string{"text"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := overWire(t, "text/event-stream", func() io.Reader { return strings.NewReader(c.body) })
			o := join(t, a.Stream(t.Context(), ask("m")))
			if c.code != "" && !errors.Is(o.Err, c.code) || c.code == "" && o.Err != nil {
				t.Fatalf("want %q, have %v", c.code, o.Err)
			}
			o.Err = nil
			if !reflect.DeepEqual(o, c.want) {
				t.Fatalf("want %+v\nhave %+v", c.want, o)
			}
		})
	}
}

// oai-11: ids made up in two turns differ.
func TestMadeUpIDsDiffer(t *testing.T) {
	body := streamCases(t)["oai-11"]
	a := overWire(t, "text/event-stream", func() io.Reader { return bytes.NewReader(body) })
	seen := map[string]bool{}
	for range 3 {
		for _, c := range join(t, a.Stream(t.Context(), ask("m"))).Calls {
			if seen[c.ID] {
				t.Fatalf("the id %s came twice", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

// oai-27: the oddity is told where tools were offered.
func TestUnparsedMarkupIsTold(t *testing.T) {
	body := streamCases(t)["oai-27"]
	a := overWire(t, "text/event-stream", func() io.Reader { return bytes.NewReader(body) })
	var told []string
	a.cfg.Warn = func(s string) { told = append(told, s) }
	join(t, a.Stream(t.Context(), ask("m")))
	req := ask("m")
	req.Tools = []llm.ToolSchema{{Name: "run"}}
	join(t, a.Stream(t.Context(), req))
	if len(told) != 1 {
		t.Fatalf("warnings: %q", told)
	}
}

// sse-14
func TestTimeline(t *testing.T) {
	raw, err := os.ReadFile("testdata/sse-14.timeline.json")
	if err != nil {
		t.Fatal(err)
	}
	var lines map[string][]struct {
		At   time.Duration `json:"at_ms"` // milliseconds
		Send string
	}
	if err := json.Unmarshal(raw, &lines); err != nil {
		t.Fatal(err)
	}
	const limit = time.Second
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				a := newAdapter(t, Config{IdleTimeout: limit})
				a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
					body, server := io.Pipe()
					go func() {
						for _, l := range line {
							time.Sleep(time.Until(begin.Add(l.At * time.Millisecond)))
							if l.Send != "" {
								_, _ = io.WriteString(server, l.Send)
							}
						}
						<-r.Context().Done()
						server.CloseWithError(r.Context().Err())
					}()
					return reply("text/event-stream", body), nil
				})
				o := join(t, a.Stream(t.Context(), ask("m")))
				if name == "slow_but_alive" {
					if o.Text != "w0 w3 w6 w9 " || o.Finish != llm.Stop {
						t.Fatalf("%+v", o)
					}
					return
				}
				if took := time.Since(begin); o.Text != "started" || !errors.Is(o.Err, seams.Timeout) || took != limit+200*time.Millisecond {
					t.Fatalf("%+v after %v", o, took)
				}
			})
		})
	}
}

// cancel at every chunk: the stream ends at once, and goleak sees what is left.
func TestLeaveAndCancelAtEveryChunk(t *testing.T) {
	body := streamCases(t)["oai-09"]
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, line := range bytes.SplitAfter(body, []byte("\n\n")) {
			_, _ = rw.Write(line)
			rw.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	a := newAdapter(t, Config{BaseURL: srv.URL + "/v1"})
	total := 0
	for range a.Stream(t.Context(), ask("m")) {
		total++
	}
	for stop := range total {
		n := 0
		for range a.Stream(t.Context(), ask("m")) {
			if n++; n > stop {
				break
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		n = 0
		var last error
		for _, err := range a.Stream(ctx, ask("m")) {
			last = err
			if n++; n > stop {
				cancel()
			}
		}
		cancel()
		if last != nil && !errors.Is(last, seams.Aborted) {
			t.Fatalf("cancelled after %d chunks: %v", stop, last)
		}
	}
}
