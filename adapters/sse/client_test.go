package sse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

type wire func(r *http.Request) (*http.Response, error)

func (f wire) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering makes a client whose requests have this answer.
func answering(t testing.TB, status int, body func(ctx context.Context) io.Reader) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{
		Name: "test", BaseURL: "http://service.invalid/v1", Path: "chat", Headers: map[string]string{"X-Own": "own-secret"},
		Timeout: time.Minute, IdleTimeout: time.Minute, MaxEventBytes: 64, RequestID: []string{"X-Second", "X-First"},
		Explain: func(status int, body []byte) llm.Failure {
			var f llm.Failure
			_ = json.Unmarshal(body, &f)
			return f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.HTTP.Transport = wire(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"X-First": {"own-secret 1"}}, Body: io.NopCloser(body(r.Context()))}, nil
	})
	return c
}

// What a body comes to.
func TestClientAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		events int
		code   seams.Code
		says   string
	}{
		{200, "data: a\n\ndata: b\n\n", 2, "", ""},
		{200, "", 0, seams.EmptyResponse, "200"},
		{200, "<html>", 0, seams.MalformedResponse, "web page"},
		{200, "\x1f\x8b\x08", 0, seams.MalformedResponse, "compressed"},
		{200, `{"x":"own-secret"}`, 0, seams.MalformedResponse, `{"x":"[secret]"}`},
		{200, `{"code":"RATE_LIMIT","message":"slow","status":429}`, 0, seams.RateLimit, "slow"},
		{500, `{"code":"SERVER","message":"own-secret broke"}`, 0, seams.Server, "[secret] broke"},
		{200, "data: a\n\ndata: " + strings.Repeat("x", 5000), 1, seams.MalformedResponse, "64 bytes"},
	} {
		client := answering(t, c.status, func(context.Context) io.Reader { return strings.NewReader(c.body) })
		n := 0
		reply, err := client.Post(t.Context(), nil)
		if err == nil {
			if reply.RequestID() != "[secret] 1" {
				t.Errorf("request id %q", reply.RequestID())
			}
			for ; err == nil; n++ {
				_, err = reply.Next()
			}
			n--
			reply.Close()
		}
		if c.code == "" && err != io.EOF || c.code != "" && (!errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says)) || n != c.events || strings.Contains(fmt.Sprint(err), "own-secret") {
			t.Errorf("%d %.40q: %d events, %v", c.status, c.body, n, err)
		}
	}
}

// Expire ends a reply that goes on; the first call counts.
func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := answering(t, 200, func(ctx context.Context) io.Reader {
			return io.MultiReader(strings.NewReader("data: a\n\n"), silent{ctx})
		})
		reply, err := c.Post(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Close()
		begin := time.Now()
		reply.Expire(time.Second)
		reply.Expire(time.Hour)
		_, first := reply.Next()
		_, second := reply.Next()
		if first != nil || !errors.Is(second, seams.Timeout) || time.Since(begin) != time.Second {
			t.Errorf("%v, %v after %v", first, second, time.Since(begin))
		}
	})
}

// silent is a body that says nothing until its request ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }

func TestReasonCode(t *testing.T) {
	for reason, want := range map[string]seams.Code{"pause_turn": "PAUSE_TURN", "a b-ü": "A_B__", strings.Repeat("x", 99): seams.Code(strings.Repeat("X", 40))} {
		if got := ReasonCode(reason); got != want {
			t.Errorf("%q: %s", reason, got)
		}
	}
}
