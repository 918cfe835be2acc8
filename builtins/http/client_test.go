package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	client "github.com/ouro-run/ouro/builtins/http"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func newClient(t *testing.T, cfg client.Config) *client.Client {
	c := client.New(cfg)
	t.Cleanup(c.Close)
	return c
}

func TestFetch(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, r.Method, " ", r.Header.Get("X-Ask"), " ", string(b))
	})
	resp, err := newClient(t, client.Config{}).Fetch(t.Context(), &sandbox.Request{Method: "POST", URL: s.URL + "/p?q=1", Header: map[string][]string{"X-Ask": {"yes"}}, Body: []byte("body")})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || string(text) != "POST yes body" || resp.Status != 418 || resp.StatusText != "I'm a teapot" || len(resp.Header["X-Two"]) != 2 || resp.URL != s.URL+"/p?q=1" {
		t.Errorf("%+v %q %v", resp, text, err)
	}
}

func TestRefused(t *testing.T) {
	c := newClient(t, client.Config{})
	for _, r := range []*sandbox.Request{
		{Method: "GET", URL: "file:///etc/passwd"}, {Method: "GET", URL: "ftp://x/"}, {Method: "GET", URL: "/relative"}, {Method: "GET", URL: "http://"},
		{Method: "GET", URL: "http://user:secret@x/"}, {Method: "GET", URL: "http://x/%zz"}, {Method: "CONNECT", URL: "http://x/"}, {Method: "BAD METHOD", URL: "http://x/"},
	} {
		_, err := c.Fetch(t.Context(), r)
		if !errors.Is(err, seams.InvalidArgument) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
}

// A failure names where it was, and nothing that may be secret.
func TestFailures(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
		case "/stall":
			fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "some")
		case "/big":
			fmt.Fprint(w, strings.Repeat("x", 2000))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}
	})
	c := newClient(t, client.Config{Timeout: 50 * time.Millisecond, Idle: 50 * time.Millisecond, MaxBody: 1000})
	for path, code := range map[string]seams.Code{
		"/slow": seams.Timeout, "/stall": seams.Timeout, "/cut": seams.Transport, "/big": seams.TooLarge, "/loop": seams.Transport, "/away": seams.InvalidArgument,
	} {
		t.Run(path, func(t *testing.T) {
			resp, err := c.Fetch(t.Context(), &sandbox.Request{Method: "GET", URL: s.URL + path + "?key=hunter2", Header: map[string][]string{"Authorization": {"hunter3"}}})
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, code) || !strings.Contains(err.Error(), strings.TrimPrefix(s.URL, "http://")+path) || strings.Contains(err.Error(), "hunter") {
				t.Errorf("err = %v, want %s", err, code)
			}
		})
	}
	refused := httptest.NewServer(nil)
	refused.Close()
	if _, err := c.Fetch(t.Context(), &sandbox.Request{Method: "GET", URL: refused.URL}); !errors.Is(err, seams.Transport) {
		t.Errorf("refused: %v", err)
	}
}

func TestCancel(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	c := newClient(t, client.Config{})
	for _, path := range []string{"/", "/body"} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		resp, err := c.Fetch(ctx, &sandbox.Request{Method: "GET", URL: s.URL + path})
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if !errors.Is(err, seams.Aborted) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A redirect to another host does not take credentials along.
func TestRedirectAway(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.Header["X-Api-Key"]), r.Header.Get("Accept"))
	})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		target := other.URL
		if r.URL.Path == "/same" {
			target = "/"
		}
		if r.URL.Path == "/" {
			fmt.Fprint(w, len(r.Header["X-Api-Key"]), r.Header.Get("Accept"))
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	})
	for path, want := range map[string]string{"/same": "1text/plain", "/other": "0text/plain"} {
		resp, err := newClient(t, client.Config{}).Fetch(t.Context(), &sandbox.Request{Method: "GET", URL: s.URL + path, Header: map[string][]string{"X-Api-Key": {"k"}, "Accept": {"text/plain"}}})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(text) != want {
			t.Errorf("%s: %q, want %q", path, text, want)
		}
	}
}

func TestPlugin(t *testing.T) {
	c := cordis.New(cordis.Options{})
	defer c.Close(context.Background())
	f, err := c.Root().Plugin(client.Plugin(), map[string]any{"timeoutMs": 100.0})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := cordis.Lookup(c.Root(), client.Key); !ok {
		t.Error("the service is not provided")
	}
	if _, err := client.Plugin().Config.Resolve(map[string]any{"timeoutMs": 0.0}); !errors.Is(err, seams.InvalidConfig) {
		t.Errorf("err = %v", err)
	}
}

func ExampleClient_Fetch() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	c := client.New(client.Config{})
	defer c.Close()
	resp, err := c.Fetch(context.Background(), &sandbox.Request{Method: "GET", URL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(text))
	// Output: 200 hello
}
