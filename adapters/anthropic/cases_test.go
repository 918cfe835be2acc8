package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outcome is the joined result of a stream, as the cases state it.
type outcome struct {
	content llm.Content
	finish  llm.FinishKind
	usage   *llm.TokenUsage
	replay  *llm.ReplayState
	err     error
}

// join reads a stream to its end and holds it to the protocol; blocks are
// closed before an error too.
func join(t testing.TB, s llm.Stream) outcome {
	t.Helper()
	var o outcome
	var g llm.Grammar
	var a llm.Assembler
	open := 0
	for c, err := range s {
		if o.err != nil || err != nil && c != nil {
			t.Fatalf("a chunk after or beside the error: %#v", c)
		}
		if err != nil {
			o.err = err
			continue
		}
		if err := errors.Join(g.Accept(c), a.Add(c)); err != nil {
			t.Fatalf("%v (%#v)", err, c)
		}
		switch c := c.(type) {
		case llm.BlockStart:
			open++
		case llm.BlockEnd:
			open--
		case llm.Finish:
			o.finish = c.Reason.Kind
		}
	}
	if open > 0 || (o.finish == "") == (o.err == nil) {
		t.Fatalf("%d blocks are open, finish %q, error %v", open, o.finish, o.err)
	}
	o.content, _ = a.Blocks()
	o.replay = a.ReplayState()
	if u, ok := a.Usage(); ok {
		o.usage = &u
	}
	return o
}

// wire is a transport that answers every request.
type wire func(r *http.Request) (*http.Response, error)

func (f wire) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reply(contentType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body)}
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
func overWire(t testing.TB, body func() io.Reader) *Adapter {
	a := newAdapter(t, Config{})
	a.client.HTTP.Transport = wire(func(*http.Request) (*http.Response, error) { return reply("text/event-stream", body()), nil })
	return a
}

func ask(model string) llm.Request {
	return llm.Request{CallConfig: llm.CallConfig{Model: model}, Messages: []llm.Message{llm.UserText("hi")}}
}

// want is the JSON block of a case's expect file.
type want struct {
	TextBefore string `json:"text_before"`
	Reasoning  string
	Calls      []struct {
		ID, Name string
		Args     any
	}
	Finish   llm.FinishKind
	Usage    *struct{ Input, Output int64 }
	Error    string
	Replayed any `json:"replayed_assistant_content"`
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
	return w
}

func (w want) check(t testing.TB, o outcome) {
	t.Helper()
	if w.Error != "" {
		if w.Error != "overloaded" || !errors.Is(o.err, seams.Server) || llm.FailureOf(o.err).Status == 200 || o.content.Text() != w.TextBefore {
			t.Fatalf("text %q, %v", o.content.Text(), o.err)
		}
		return
	}
	calls := o.content.ToolCalls()
	if o.err != nil || o.finish != w.Finish || o.content.Reasoning() != w.Reasoning || len(calls) != len(w.Calls) ||
		o.usage == nil || o.usage.InputTokens != w.Usage.Input || o.usage.OutputTokens != w.Usage.Output {
		t.Fatalf("%+v", o)
	}
	for i, c := range w.Calls {
		var args any
		if err := json.Unmarshal([]byte(calls[i].Arguments), &args); err != nil || calls[i].ID != c.ID || calls[i].Name != c.Name || !reflect.DeepEqual(args, c.Args) {
			t.Fatalf("call %d: %+v", i, calls[i])
		}
	}
	if w.Replayed == nil {
		return
	}
	// Saved and read again, as a session is.
	m := llm.NewMessage(llm.Assistant, llm.Source{Kind: llm.FromModel, ReplayState: o.replay}, o.content...)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var again llm.Message
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, again)[0]; !reflect.DeepEqual(got, w.Replayed) {
		t.Fatalf("sent back: %v", got)
	}
}

func streamCases(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(files) < 3 {
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
// place.
func TestCasesDoNotDependOnReads(t *testing.T) {
	for id, body := range streamCases(t) {
		t.Run(id, func(t *testing.T) {
			w := load(t, id)
			w.check(t, join(t, overWire(t, func() io.Reader { return bytes.NewReader(body) }).Stream(t.Context(), ask("m"))))
			w.check(t, join(t, overWire(t, func() io.Reader { return iotest.OneByteReader(bytes.NewReader(body)) }).Stream(t.Context(), ask("m"))))
			at := 0
			a := overWire(t, func() io.Reader { return io.MultiReader(bytes.NewReader(body[:at]), bytes.NewReader(body[at:])) })
			for ; at < len(body); at++ {
				w.check(t, join(t, a.Stream(t.Context(), ask("m"))))
			}
		})
	}
}

// The same over a real connection, flushed after each byte.
func TestCasesOverHTTP(t *testing.T) {
	for id, body := range streamCases(t) {
		srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/messages" || r.Method != http.MethodPost {
				t.Errorf("%s %s", r.Method, r.URL.Path)
			}
			rw.Header().Set("Content-Type", "text/event-stream")
			for i := range body {
				_, _ = rw.Write(body[i : i+1])
				rw.(http.Flusher).Flush()
			}
		}))
		a := newAdapter(t, Config{BaseURL: srv.URL + "/v1"})
		t.Run(id, func(t *testing.T) { load(t, id).check(t, join(t, a.Stream(t.Context(), ask("m")))) })
		a.Close()
		srv.Close()
	}
}

// A reply cut off anywhere, cleanly or by a broken connection, is a coded
// error, unless nothing but the last line end is missing.
func TestCutOffAnywhere(t *testing.T) {
	for id, body := range streamCases(t) {
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
			at := 0
			a := overWire(t, func() io.Reader { return io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(end)) })
			for ; at < len(bytes.TrimSpace(body)); at++ {
				o := join(t, a.Stream(t.Context(), ask("m")))
				code := seams.CodeOf(o.err)
				ok := code == seams.StreamClosed && end == io.EOF || code == seams.Transport && end != io.EOF ||
					code == seams.EmptyResponse && at == 0
				if !ok {
					t.Fatalf("%s cut at %d with %v: %v", id, at, end, o.err)
				}
			}
		}
	}
}
