package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestConfig(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		code seams.Code
	}{
		"no address":      {Config{}, seams.InvalidArgument},
		"no scheme":       {Config{BaseURL: "host/v1"}, seams.InvalidArgument},
		"another scheme":  {Config{BaseURL: "ftp://host/v1"}, seams.InvalidArgument},
		"a password":      {Config{BaseURL: "https://u:secret@host/v1"}, seams.InvalidArgument},
		"a negative time": {Config{BaseURL: "https://host/v1", Timeout: -1}, seams.InvalidArgument},
		"a blank key":     {Config{BaseURL: "https://host/v1", APIKey: " "}, seams.MissingCredential},
		"a broken key":    {Config{BaseURL: "https://host/v1", APIKey: "secret\nkey"}, seams.InvalidCredential},
		"a bad header":    {Config{BaseURL: "https://host/v1", Headers: map[string]string{"a b": "secret"}}, seams.InvalidArgument},
		"a bad value":     {Config{BaseURL: "https://host/v1", Headers: map[string]string{"a": "secret\r\nb: c"}}, seams.InvalidArgument},
		"compression":     {Config{BaseURL: "https://host/v1", Headers: map[string]string{"accept-encoding": "gzip"}}, seams.InvalidArgument},
	} {
		if _, err := New(c.cfg); !errors.Is(err, c.code) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for base, want := range map[string]string{"https://h/v1": "https://h/v1/chat/completions", "https://h/v1/": "https://h/v1/chat/completions", "http://h:1?api-version=2": "http://h:1/chat/completions?api-version=2"} {
		if r := requested(t, Config{BaseURL: base}); r.URL.String() != want {
			t.Errorf("%s: %s", base, r.URL)
		}
	}
}

// requested returns the request that an adapter of the config sends.
func requested(t *testing.T, cfg Config) *http.Request {
	t.Helper()
	var got *http.Request
	a := newAdapter(t, cfg)
	a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
		got = r
		return reply("", strings.NewReader("data: [DONE]\n\n")), nil
	})
	join(t, a.Stream(t.Context(), ask("m")))
	return got
}

// M-53: attribution wins over configured headers; M-82, sse-13: no
// Accept-Encoding by hand.
func TestHeaders(t *testing.T) {
	got := requested(t, Config{APIKey: " sk-1 ", Headers: map[string]string{"User-Agent": "mine", "X-Team": "blue"}}).Header
	want := http.Header{"Authorization": {"Bearer sk-1"}, "X-Team": {"blue"}, "User-Agent": {"ouro/0.0.0-test (+https://github.com/ouro-run/ouro)"},
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	got = requested(t, Config{APIKey: "sk-1", Headers: map[string]string{"authorization": "Token x"}}).Header
	if got := got.Get("Authorization"); got != "Token x" {
		t.Error(got)
	}
	if got = requested(t, Config{}).Header; got.Get("Authorization") != "" {
		t.Error("a key is sent though there is none")
	}
}

func TestCatalogue(t *testing.T) {
	a := newAdapter(t, Config{Models: []llm.ModelInfo{{ID: "m", ContextWindow: 9}, {ID: "n", Name: "N"}}})
	text := []string{"text"}
	list, err := a.ListModels(t.Context(), "r")
	if err != nil || !reflect.DeepEqual(list, []llm.ModelInfo{{Provider: "r", ID: "m", Name: "m", ContextWindow: 9, InputModalities: text}, {Provider: "r", ID: "n", Name: "N", InputModalities: text}}) {
		t.Errorf("%+v %v", list, err)
	}
	for model, want := range map[string]llm.ModelInfo{"m": list[0], "x": {Provider: "r", ID: "x", Name: "x", InputModalities: text}} {
		if got, err := a.ResolveModel(t.Context(), "r", model); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v %v", got, err)
		}
	}
}

// M-81
func TestStatusClassification(t *testing.T) {
	const key = "sk-very-secret"
	for _, c := range []struct {
		status int
		body   string
		code   seams.Code
		says   string
	}{
		{401, `{"error":{"message":"bad key ` + key + `"}}`, seams.Auth, "bad key [secret]"},
		{403, `forbidden`, seams.Auth, "forbidden"},
		{402, `{"error":{"message":"pay"}}`, seams.Quota, "pay"},
		{429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, seams.RateLimit, "slow down"},
		{429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, seams.Quota, ""},
		{403, `{"error":{"message":"Insufficient balance"}}`, seams.Quota, ""},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, seams.ContextWindowExceeded, ""},
		{413, `{"error":{"message":"prompt is too long: 5 tokens > 4 maximum"}}`, seams.ContextWindowExceeded, ""},
		{400, `{"error":{"message":"no","code":"content_filter"}}`, seams.ContentFilter, ""},
		{400, `{"error":{"message":"max_tokens must be positive","type":"invalid_request_error"}}`, seams.InvalidRequest, "max_tokens must be positive"},
		{400, `{"message":"plain"}`, seams.InvalidRequest, "plain"},
		{400, `{"detail":"a detail"}`, seams.InvalidRequest, "a detail"},
		{400, `{"detail":[{"msg":"field required"}]}`, seams.InvalidRequest, "field required"},
		{400, `{"error":"a string"}`, seams.InvalidRequest, "a string"},
		{400, `{"error":{"reason":"odd"}}`, seams.InvalidRequest, "odd"},
		{400, ``, seams.InvalidRequest, "400"},
		{413, `too large`, seams.InvalidRequest, ""},
		{404, `<html>not found</html>`, "HTTP_404", "not found"},
		{422, `{"detail":"x"}`, "HTTP_422", ""},
		{500, `boom`, seams.Server, "boom"},
		{503, `{"error":{"message":"overloaded","code":503}}`, seams.Server, "overloaded"},
		{529, ``, seams.Server, ""},
		{302, ``, "HTTP_302", ""},
		{500, strings.Repeat("long ", 100_000), seams.Server, "long long"},
	} {
		a := newAdapter(t, Config{APIKey: key, Headers: map[string]string{"X-Own": "own-secret-value"}})
		a.client.HTTP.Transport = wire(func(*http.Request) (*http.Response, error) {
			r := reply("application/json", strings.NewReader(c.body))
			r.StatusCode = c.status
			r.Header.Set("X-Request-Id", "req-1 own-secret-value")
			r.Header.Set("Retry-After", "7")
			return r, nil
		})
		o := join(t, a.Stream(t.Context(), ask("m")))
		f := llm.FailureOf(o.Err)
		if f.Code != c.code || f.Status != c.status || f.RequestID != "req-1 [secret]" || f.ProviderRetryAfterMs == nil || *f.ProviderRetryAfterMs != 7000 || !strings.Contains(f.Message, c.says) || len(f.Message) > 1000 {
			t.Errorf("%d %.60s: %+v", c.status, c.body, f)
		}
		if strings.Contains(fmt.Sprintf("%+v %v", f, o.Err), key) {
			t.Errorf("%d: the key is told: %v", c.status, o.Err)
		}
	}
}

// A connection that cannot be had, and one whose peer says nothing.
func TestTransportAndTimeout(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Close()
	a := newAdapter(t, Config{BaseURL: srv.URL + "/v1", APIKey: "sk-secret"})
	if o := join(t, a.Stream(t.Context(), ask("m"))); !errors.Is(o.Err, seams.Transport) || !strings.Contains(o.Err.Error(), "refused") {
		t.Error(o.Err)
	}
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, Config{Timeout: 3 * time.Second})
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		begin := time.Now()
		if o := join(t, a.Stream(t.Context(), ask("m"))); !errors.Is(o.Err, seams.Timeout) || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", o.Err, time.Since(begin))
		}
		// A body that explains a failure is bounded in time as well.
		a = newAdapter(t, Config{IdleTimeout: 2 * time.Second})
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
			resp := reply("", silent{r.Context()})
			resp.StatusCode = 500
			return resp, nil
		})
		begin = time.Now()
		if o := join(t, a.Stream(t.Context(), ask("m"))); !errors.Is(o.Err, seams.Server) || time.Since(begin) != 2*time.Second {
			t.Errorf("%v after %v", o.Err, time.Since(begin))
		}
	})
}

// silent is a body that says nothing until its request ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }

// M-82: the watchdog; after the finish reason it waits a short time only, and
// the reply is whole.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			body string
			wait time.Duration
			code seams.Code
		}{
			{`data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n", DefaultIdleTimeout, seams.Timeout},
			{`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n\n", trailerWait, ""},
		} {
			a := newAdapter(t, Config{})
			a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
				return reply("text/event-stream", io.MultiReader(strings.NewReader(c.body), silent{r.Context()})), nil
			})
			begin := time.Now()
			o := join(t, a.Stream(t.Context(), ask("m")))
			if o.Text != "x" || time.Since(begin) != c.wait || c.code != "" && !errors.Is(o.Err, c.code) || c.code == "" && o.Finish != llm.Stop {
				t.Errorf("%+v after %v", o, time.Since(begin))
			}
		}
	})
}

// M-82: an abort before and during the wait.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, Config{})
		sent := 0
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
			sent++
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { time.Sleep(time.Second); cancel(errors.New("the user left")) }()
		begin := time.Now()
		o := join(t, a.Stream(ctx, ask("m")))
		if !errors.Is(o.Err, seams.Aborted) || !strings.Contains(o.Err.Error(), "the user left") || time.Since(begin) != time.Second {
			t.Error(o.Err)
		}
		if o := join(t, a.Stream(ctx, ask("m"))); !errors.Is(o.Err, seams.Aborted) {
			t.Error(o.Err)
		}
	})
}

// Any bytes make a stream that keeps the protocol and ends in a code.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`data: {"choices":[{"delta":{"content":"<think>a</think>b","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`+"\n\n"), 10)
	f.Add([]byte(`data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":"x"}]}}],"error":{"code":"429"}}`+"\r\n\r\ndata: [DONE]"), 3)
	f.Fuzz(func(t *testing.T, body []byte, at int) {
		at = max(0, min(at, len(body)))
		a := overWire(t, "", func() io.Reader {
			return io.MultiReader(strings.NewReader(string(body[:at])), strings.NewReader(string(body[at:])))
		})
		o := join(t, a.Stream(t.Context(), ask("m")))
		if o.Err != nil && seams.CodeOf(o.Err) == seams.Unknown {
			t.Fatal(o.Err)
		}
	})
}

// endless is a body of n equal events.
func endless(n int) string {
	return strings.Repeat(`data: {"id":"chunk-1","object":"chat.completion.chunk","created":1700000000,"model":"test-model","choices":[{"index":0,"delta":{"content":"Some text of a model."},"finish_reason":null}]}`+"\n\n", n) +
		"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
}

// Per chunk: what a text delta costs from bytes to the consumer.
func BenchmarkTextChunk(b *testing.B) {
	const n = 1000
	body := endless(n)
	a := overWire(b, "text/event-stream", func() io.Reader { return strings.NewReader(body) })
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range a.Stream(b.Context(), ask("m")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/chunk")
}

func ExampleNew() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
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
