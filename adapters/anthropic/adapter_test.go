package anthropic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/conformance/stream"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		code seams.Code
	}{
		"no address":      {Config{}, seams.InvalidArgument},
		"a password":      {Config{BaseURL: "https://u:secret@host/v1"}, seams.InvalidArgument},
		"a negative time": {Config{BaseURL: "https://host/v1", Timeout: -1}, seams.InvalidArgument},
		"a blank key":     {Config{BaseURL: "https://host/v1", APIKey: " "}, seams.MissingCredential},
		"a broken key":    {Config{BaseURL: "https://host/v1", APIKey: "secret\nkey"}, seams.InvalidCredential},
		"a bad header":    {Config{BaseURL: "https://host/v1", Headers: map[string]string{"a b": "secret"}}, seams.InvalidArgument},
	} {
		if _, err := New(c.cfg); !errors.Is(err, c.code) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// M-53: attribution wins over configured headers, those over the adapter's.
func TestHeaders(t *testing.T) {
	var got http.Header
	a := newAdapter(t, Config{APIKey: " sk-1 ", Headers: map[string]string{"User-Agent": "mine", "X-Team": "blue", "anthropic-version": "2099-01-01"}})
	a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return reply("", strings.NewReader("data: {\"type\":\"message_stop\"}\n\n")), nil
	})
	join(t, a.Stream(t.Context(), ask("m")))
	want := http.Header{"X-Api-Key": {"sk-1"}, "Anthropic-Version": {"2099-01-01"}, "X-Team": {"blue"}, "User-Agent": {"ouro/0.0.0-test (+https://github.com/ouro-run/ouro)"},
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// The limit of output is the request's, the model's or the default (M-31).
func TestCatalogue(t *testing.T) {
	a := newAdapter(t, Config{Models: []llm.ModelInfo{{ID: "m", MaxTokens: 9}}})
	text := []string{"text"}
	list, err := a.ListModels(t.Context(), "r")
	if err != nil || !reflect.DeepEqual(list, []llm.ModelInfo{{Provider: "r", ID: "m", Name: "m", MaxTokens: 9, InputModalities: text}}) {
		t.Errorf("%+v %v", list, err)
	}
	for model, want := range map[string]llm.ModelInfo{"m": list[0], "x": {Provider: "r", ID: "x", Name: "x", MaxTokens: DefaultMaxTokens, InputModalities: text}} {
		if got, err := a.ResolveModel(t.Context(), "r", model); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v", got, err)
		}
	}
	for _, c := range []struct {
		model string
		limit int
		want  string
	}{{"m", 0, `"max_tokens":9,`}, {"m", 5, `"max_tokens":5,`}, {"x", 0, `"max_tokens":32000,`}} {
		var sent []byte
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
			sent, _ = io.ReadAll(r.Body)
			return reply("", strings.NewReader("")), nil
		})
		req := ask(c.model)
		req.MaxTokens = c.limit
		if o := join(t, a.Stream(t.Context(), req)); !errors.Is(o.err, seams.EmptyResponse) || !strings.Contains(string(sent), c.want) {
			t.Errorf("%v: %s", c, sent)
		}
	}
}

// M-81
func TestStatusClassification(t *testing.T) {
	const key = "sk-very-secret"
	told := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_body"}`
	}
	for _, c := range []struct {
		status int
		body   string
		code   seams.Code
		says   string
	}{
		{401, told("authentication_error", "invalid x-api-key "+key), seams.Auth, "invalid x-api-key [secret]"},
		{403, told("permission_error", "no"), seams.Auth, ""},
		{400, told("billing_error", "pay"), seams.Quota, ""},
		{400, told("invalid_request_error", "Your credit balance is too low to access the API"), seams.Quota, ""},
		{400, told("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), seams.ContextWindowExceeded, ""},
		{400, told("invalid_request_error", "Output blocked by content filtering policy"), seams.ContentFilter, ""},
		{400, told("invalid_request_error", "max_tokens: must be positive"), seams.InvalidRequest, "max_tokens: must be positive"},
		{404, told("not_found_error", "model: x"), "HTTP_404", "model: x"},
		{413, told("request_too_large", "too large"), seams.InvalidRequest, ""},
		{429, told("rate_limit_error", "slow down"), seams.RateLimit, ""},
		{500, told("api_error", "boom"), seams.Server, ""},
		{529, told("overloaded_error", "Overloaded"), seams.Server, "Overloaded"},
		{502, "<html>bad gateway</html>", seams.Server, "bad gateway"},
		{400, `{"message":"plain"}`, seams.InvalidRequest, "plain"},
		{302, "", "HTTP_302", ""},
	} {
		for header, wait := range map[string]time.Duration{"7": 7 * time.Second, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat): time.Hour} {
			a := newAdapter(t, Config{APIKey: key, Headers: map[string]string{"X-Own": "own-secret-value"}})
			asked := 0
			a.client.HTTP.Transport = wire(func(*http.Request) (*http.Response, error) {
				asked++
				r := reply("application/json", strings.NewReader(c.body))
				r.StatusCode = c.status
				r.Header.Set("Request-Id", "req-1 own-secret-value")
				r.Header.Set("Retry-After", header)
				r.Header.Set("Location", "http://elsewhere.invalid/")
				return r, nil
			})
			o := join(t, a.Stream(t.Context(), ask("m")))
			f := llm.FailureOf(o.err)
			if asked != 1 || f.Code != c.code || f.Status != c.status || f.RequestID != "req-1 [secret]" || !strings.Contains(f.Message, c.says) || f.ProviderRetryAfterMs == nil ||
				time.Duration(*f.ProviderRetryAfterMs)*time.Millisecond > wait || time.Duration(*f.ProviderRetryAfterMs)*time.Millisecond < wait-2*time.Second {
				t.Errorf("%d %.60s: %+v", c.status, c.body, f)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", f, o.err), key) {
				t.Errorf("%d: the key is told: %v", c.status, o.err)
			}
		}
	}
}

func events(s ...string) string { return "data: " + strings.Join(s, "\n\ndata: ") + "\n\n" }

const (
	textStart = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textDelta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`
	blockStop = `{"type":"content_block_stop","index":0}`
	msgStop   = `{"type":"message_stop"}`
)

func because(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"}}`
}

// What the events of a reply come to.
func TestTranslation(t *testing.T) {
	toolStart := func(id, input string) string {
		return `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"` + id + `","name":"f","input":` + input + `}}`
	}
	failure := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	x := llm.Content{llm.Text{Text: "x"}}
	call := llm.ToolCall{ID: "a", Name: "f", Arguments: `{"p":1}`}
	whole := events(textStart, textDelta, blockStop)
	for _, c := range []struct {
		name, body string
		content    llm.Content
		finish     llm.FinishKind
		code       seams.Code
	}{
		{"end_turn", whole + events(because("end_turn"), msgStop), x, llm.Stop, ""},
		{"stop_sequence", whole + events(because("stop_sequence"), msgStop), x, llm.Stop, ""},
		{"no reason", whole + events(msgStop), x, llm.Stop, ""},
		{"nothing after the stop", whole + events(because("end_turn"), msgStop, textDelta), x, llm.Stop, ""},
		{"max_tokens", whole + events(because("max_tokens"), msgStop), x, llm.MaxTokens, ""},
		{"max_tokens in a call", whole + events(toolStart("a", "{}"), `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"p"}}`, because("max_tokens"), msgStop), x, llm.MaxTokens, ""},
		{"refusal", whole + events(because("refusal"), msgStop), x, "", seams.ContentFilter},
		{"pause_turn", whole + events(because("pause_turn"), msgStop), x, "", "PAUSE_TURN"},
		{"unknown reason", whole + events(because("new-thing"), msgStop), x, "", "NEW_THING"},
		{"full window", whole + events(because("model_context_window_exceeded"), msgStop), x, "", seams.ContextWindowExceeded},
		{"no message_stop", whole + events(because("end_turn")), x, "", seams.StreamClosed},
		{"nothing", events(because("end_turn"), msgStop), llm.Content{}, "", seams.EmptyResponse},
		{"bad JSON", whole + events("{"), x, "", seams.MalformedResponse},
		{"arguments with the start", events(toolStart("a", `{"p":1}`), `{"type":"content_block_stop","index":1}`, because("end_turn"), msgStop), llm.Content{call}, llm.ToolCalls, ""},
		{"unknown kinds", events(`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, `{"type":"content_block_stop","index":1}`, `{"type":"new_event"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`) + whole + events(because("end_turn"), msgStop), x, llm.Stop, ""},
		{"text without a start", events(textDelta, because("end_turn"), msgStop), x, llm.Stop, ""},
		{"text with the start", events(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}`, because("end_turn"), msgStop), x, llm.Stop, ""},
		{"thinking without a start", events(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"r"}}`, msgStop), llm.Content{llm.Reasoning{Text: "r"}}, llm.Stop, ""},
		{"an index again", events(textStart, textDelta, textStart, textDelta, msgStop), llm.Content{x[0], x[0]}, llm.Stop, ""},
		{"overloaded", whole + events(failure("overloaded_error", "Overloaded")), x, "", seams.Server},
		{"api_error", events(failure("api_error", "boom")), llm.Content{}, "", seams.Server},
		{"rate limit", events(failure("rate_limit_error", "slow")), llm.Content{}, "", seams.RateLimit},
		{"permission", events(failure("permission_error", "no")), llm.Content{}, "", seams.Auth},
		{"authentication", events(failure("authentication_error", "no")), llm.Content{}, "", seams.Auth},
		{"invalid", events(failure("invalid_request_error", "bad")), llm.Content{}, "", seams.InvalidRequest},
		{"overflow", events(failure("invalid_request_error", "prompt is too long: 5 tokens > 4 maximum")), llm.Content{}, "", seams.ContextWindowExceeded},
		{"billing", events(failure("billing_error", "pay")), llm.Content{}, "", seams.Quota},
		{"filtered", events(failure("invalid_request_error", "Output blocked by content filtering policy")), llm.Content{}, "", seams.ContentFilter},
		{"an error alone", events(`{"type":"error"}`), llm.Content{}, "", seams.Server},
		{"an error as JSON", failure("rate_limit_error", "slow"), llm.Content{}, "", seams.RateLimit},
		{"JSON that is no stream", `{"type":"message"}`, llm.Content{}, "", seams.MalformedResponse},
	} {
		a := overWire(t, func() io.Reader { return strings.NewReader(c.body) })
		o := join(t, a.Stream(t.Context(), ask("m")))
		if o.finish != c.finish || !reflect.DeepEqual(o.content, c.content) || c.code != "" && !errors.Is(o.err, c.code) || c.code == "" && o.err != nil {
			t.Errorf("%s: %+v", c.name, o)
		}
		if strings.Contains(c.body, "req_1") && c.body[0] == 'd' && llm.FailureOf(o.err).RequestID != "req_1" {
			t.Errorf("%s: %+v", c.name, llm.FailureOf(o.err))
		}
	}
}

// Ids that are missing or come twice are made up.
func TestCallIDs(t *testing.T) {
	start := func(i int, id string) string {
		return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"f"}}`, i, id)
	}
	body := events(start(0, "a"), start(1, "a"), start(2, ""), msgStop)
	calls := join(t, overWire(t, func() io.Reader { return strings.NewReader(body) }).Stream(t.Context(), ask("m"))).content.ToolCalls()
	if len(calls) != 3 || calls[0].ID != "a" || calls[1].ID == "a" || calls[2].ID == "" || calls[1].ID == calls[2].ID {
		t.Errorf("%+v", calls)
	}
}

// M-76: buckets are disjoint, and of each the last count stands.
func TestUsage(t *testing.T) {
	body := events(`{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}`,
		textDelta, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
		`{"type":"message_delta","delta":{},"usage":{"input_tokens":6,"cache_read_input_tokens":null,"output_tokens":9}}`, msgStop)
	o := join(t, overWire(t, func() io.Reader { return strings.NewReader(body) }).Stream(t.Context(), ask("m")))
	if o.usage == nil || *o.usage != (llm.TokenUsage{InputTokens: 6, OutputTokens: 9, CacheReadTokens: 100, CacheWriteTokens: 20}) {
		t.Errorf("%+v", o.usage)
	}
}

// Thinking whose text the service keeps goes back as it came.
func TestKeptThinking(t *testing.T) {
	body := events(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}`, blockStop,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"x"}}`, `{"type":"content_block_stop","index":1}`, because("end_turn"), msgStop)
	o := join(t, overWire(t, func() io.Reader { return strings.NewReader(body) }).Stream(t.Context(), ask("m")))
	m := llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, ReplayState: o.replay}, o.content...)
	want := object(t, `[[{"type":"thinking","thinking":"","signature":"s1"},{"type":"text","text":"x"}]]`)
	if got := contents(t, m); !reflect.DeepEqual(any(got), want) {
		t.Errorf("%v", got)
	}
}

// silent is a body that says nothing until its request ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }

// M-82: the watchdog, the wait for the head, and cancellation.
func TestTimesAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, Config{IdleTimeout: 2 * time.Second, Timeout: 3 * time.Second})
		stalled := wire(func(r *http.Request) (*http.Response, error) {
			return reply("text/event-stream", io.MultiReader(strings.NewReader(events(textStart, textDelta)), silent{r.Context()})), nil
		})
		a.client.HTTP.Transport = stalled
		begin := time.Now()
		if o := join(t, a.Stream(t.Context(), ask("m"))); o.content.Text() != "x" || !errors.Is(o.err, seams.Timeout) || time.Since(begin) != 2*time.Second {
			t.Errorf("%+v after %v", o, time.Since(begin))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { time.Sleep(time.Second); cancel(errors.New("the user left")) }()
		begin = time.Now()
		if o := join(t, a.Stream(ctx, ask("m"))); !errors.Is(o.err, seams.Aborted) || !strings.Contains(o.err.Error(), "the user left") || time.Since(begin) != time.Second {
			t.Errorf("%+v after %v", o, time.Since(begin))
		}
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		begin = time.Now()
		if o := join(t, a.Stream(t.Context(), ask("m"))); !errors.Is(o.err, seams.Timeout) || time.Since(begin) != 3*time.Second {
			t.Errorf("%+v after %v", o, time.Since(begin))
		}
	})
}

func TestConforms(t *testing.T) {
	const key = "sk-very-secret"
	usage := `{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":2}}}`
	replies := map[string]string{
		"text": events(usage, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`, blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hel"}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"lo"}}`, because("end_turn"), msgStop),
		"tools": events(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}`, blockStop,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}`, `{"type":"content_block_stop","index":1}`, because("tool_use"), msgStop),
		"stall": events(textStart, textDelta),
		"cut":   events(textStart, textDelta),
		"error": events(textStart, textDelta, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded, key `+key+`"}}`),
	}
	var sent atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		body, _ := io.ReadAll(r.Body)
		for name, text := range replies {
			if !strings.Contains(string(body), `"text":"`+name+`"`) {
				continue
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, ev := range strings.SplitAfter(text, "\n\n") {
				_, _ = io.WriteString(w, ev)
				w.(http.Flusher).Flush()
			}
			if name == "stall" {
				select {
				case <-r.Context().Done():
				case <-time.After(3 * time.Second):
				}
			}
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"the key `+key+` is wrong"}}`)
	}))
	defer srv.Close()
	a := newAdapter(t, Config{BaseURL: srv.URL + "/v1", APIKey: key})
	ask := func(text string, more ...llm.Block) llm.Request {
		m := llm.NewMessage(llm.User, llm.Source{Kind: llm.FromUser}, append([]llm.Block{llm.Text{Text: text}}, more...)...)
		return llm.Request{CallConfig: llm.CallConfig{Model: "m"}, Messages: []llm.Message{m}}
	}
	limit, effort := ask("text"), ask("text")
	limit.MaxTokens, effort.ReasoningEffort = -1, "extreme"
	stream.Run(t, stream.Subject{
		Adapter: a,
		Cases: []stream.Case{
			{Name: "text", Request: ask("text"), Want: stream.Want{Reasoning: "hm", Text: "Hello", Finish: llm.Stop, Usage: &llm.TokenUsage{InputTokens: 5, OutputTokens: 2}}},
			{Name: "tools", Request: ask("tools"), Want: stream.Want{Finish: llm.ToolCalls, Calls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: "{}"}}}},
			{Name: "cut", Request: ask("cut"), Want: stream.Want{Text: "x", Code: seams.StreamClosed}},
			{Name: "error", Request: ask("error"), Want: stream.Want{Text: "x", Code: seams.Server}},
			{Name: "wrong key", Request: ask("else"), Want: stream.Want{Code: seams.Auth}},
		},
		Refused: []llm.Request{ask("text", llm.Image{Attachment: llm.Attachment{Hash: "ab"}}), limit, effort},
		Secrets: []string{key},
		Stalled: []llm.Request{ask("stall")},
		Sent:    func() int { return int(sent.Load()) },
		Release: func() { a.Close(); srv.CloseClientConnections() },
	})
}

// Any bytes make a stream that keeps the protocol and ends in a code, and what
// it leaves can be sent back.
func FuzzReply(f *testing.F) {
	for _, body := range streamCases(f) {
		f.Add(body, len(body)/2)
	}
	f.Add([]byte(events(textDelta, textStart, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"d"}}`, because("odd"), msgStop)), 3)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		at = max(0, min(at, len(body)))
		a := overWire(t, func() io.Reader {
			return io.MultiReader(strings.NewReader(string(body[:at])), strings.NewReader(string(body[at:])))
		})
		o := join(t, a.Stream(t.Context(), ask("m")))
		if o.err != nil && seams.CodeOf(o.err) == seams.Unknown {
			t.Fatal(o.err)
		}
		contents(t, llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, ReplayState: o.replay}, o.content...))
	})
}

func ExampleNew() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello."}}`, because("end_turn"), msgStop))
	}))
	defer srv.Close()
	a, err := New(Config{BaseURL: srv.URL + "/v1", Models: []llm.ModelInfo{{ID: "small"}}, Identity: llm.Ouro("1.0.0")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	req := llm.Request{CallConfig: llm.CallConfig{Model: "small"}, Messages: []llm.Message{llm.UserText("hi")}}
	for c, err := range a.Stream(context.Background(), req) {
		switch c := c.(type) {
		case llm.TextDelta:
			fmt.Println(c.Text)
		case llm.Finish:
			fmt.Println(c.Reason.Kind, err)
		}
	}
	// Output:
	// Hello.
	// stop <nil>
}
