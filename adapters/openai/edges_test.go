package openai

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/conformance/harness"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// A session that holds an image, of a tool too, can be sent to any model: the
// image is left out of the request, which says so.
func TestImageOfHistoryIsLeftOut(t *testing.T) {
	var sent []byte
	a := newAdapter(t, Config{})
	a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
		sent, _ = io.ReadAll(r.Body)
		return reply("text/event-stream", strings.NewReader(endless(1))), nil
	})
	bus := harness.NewBus()
	reg := llm.NewRegistry(bus, nil)
	if _, err := reg.RegisterAdapter(bus.Owner("test", nil), llm.Registration{Routes: []string{"openai"}, Adapter: a}); err != nil {
		t.Fatal(err)
	}
	image := llm.Image{Attachment: llm.Attachment{Hash: "abcdef0123456789", MediaType: "image/png"}}
	o := join(t, reg.Stream(t.Context(), nil, llm.Request{CallConfig: llm.CallConfig{Provider: "openai", Model: "m"}, Messages: []llm.Message{
		llm.NewMessage(llm.User, llm.Source{}, llm.Text{Text: "look"}, image),
		llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel}, llm.ToolCall{ID: "1", Name: "shot", Arguments: "{}"}),
		llm.NewToolResult("1", false, image), llm.UserText("and now something else"),
	}}))
	if o.Finish != llm.Stop || strings.Count(string(sent), "[image abcdef01 left out") != 2 {
		t.Errorf("%+v\n%s", o, sent)
	}
}

// A redirect is not followed: no other host gets the request or its headers.
func TestRedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var hosts []string
		a := newAdapter(t, Config{APIKey: "sk-1", Headers: map[string]string{"api-key": "secret"}})
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
			hosts = append(hosts, r.URL.Host)
			resp := reply("", strings.NewReader(""))
			resp.StatusCode, resp.Request = status, r
			resp.Header.Set("Location", "http://elsewhere.invalid/v1")
			return resp, nil
		})
		o := join(t, a.Stream(t.Context(), ask("m")))
		if !slices.Equal(hosts, []string{"service.invalid"}) || llm.FailureOf(o.Err).Status != status {
			t.Errorf("%d: asked %v, %v", status, hosts, o.Err)
		}
	}
}

// drip is a body that says a comment each second until its request ends.
type drip struct{ ctx context.Context }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		return copy(p, ": ping\n\n"), nil
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
}

// What a service sends after the finish reason does not prolong the wait for
// the trailer: the reply is whole when that is over.
func TestTrailerIsNotProlonged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(t, Config{})
		a.client.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
			return reply("text/event-stream", io.MultiReader(strings.NewReader(`data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`+"\n\n"), drip{r.Context()})), nil
		})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, seams.Timeout)
		defer cancel()
		begin := time.Now()
		o := join(t, a.Stream(ctx, ask("m")))
		if o.Text != "x" || o.Finish != llm.Stop || time.Since(begin) != trailerWait {
			t.Errorf("%+v after %v", o, time.Since(begin))
		}
	})
}
