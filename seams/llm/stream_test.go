package llm_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// M-19, M-20, M-21, M-51: whatever goes wrong on the adapter's side is one
// finish, last.
func TestAdapterFailuresAreOneFinish(t *testing.T) {
	wait := int64(1500)
	for name, c := range map[string]struct {
		adapter adapterFunc
		code    seams.Code
		kind    llm.FinishKind
	}{
		"a coded error": {func(context.Context, llm.Request) llm.Stream {
			return thenError(&llm.Error{Failure: llm.Failure{Message: "slow", Code: seams.RateLimit, Status: 429, ProviderRetryAfterMs: &wait}}, valid[:2]...)
		}, seams.RateLimit, llm.Failed},
		"another error":       {func(context.Context, llm.Request) llm.Stream { return thenError(errors.New("x")) }, seams.Unknown, llm.Failed},
		"aborted":             {func(context.Context, llm.Request) llm.Stream { return thenError(llm.NewError(seams.Aborted, "x")) }, seams.Aborted, llm.Aborted},
		"a panic in dispatch": {func(context.Context, llm.Request) llm.Stream { panic("x") }, seams.Panicked, llm.Failed},
		"a panic in the stream": {func(context.Context, llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) { yield(valid[0], nil); panic("x") }
		}, seams.Panicked, llm.Failed},
		"no stream": {func(context.Context, llm.Request) llm.Stream { return nil }, seams.Panicked, llm.Failed},
		"no chunk":  {func(context.Context, llm.Request) llm.Stream { return chunks(nil) }, seams.MalformedResponse, llm.Failed},
		"no finish": {func(context.Context, llm.Request) llm.Stream { return chunks(valid[:2]...) }, seams.StreamClosed, llm.Failed},
		"hostile":   {func(context.Context, llm.Request) llm.Stream { return thenError(hostile{}) }, seams.Unknown, llm.Failed},
		"an endless error": {func(context.Context, llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) {
				for yield(nil, seams.Server) {
				}
			}
		}, seams.Server, llm.Failed},
	} {
		w := newWorld()
		o, _ := w.add(t, c.adapter, "p")
		all, fin, err := drain(w.Stream(t.Context(), nil, to("p", "m")))
		if err != nil || fin == nil || fin.Reason.Kind != c.kind || fin.Reason.Failure.Code != c.code {
			t.Errorf("%s: %+v, %v", name, all, err)
			continue
		}
		if _, ok := all[len(all)-1].(llm.Finish); !ok {
			t.Errorf("%s: the finish is not last", name)
		}
		if c.code == seams.RateLimit && (fin.Reason.Failure.Status != 429 || *fin.Reason.Failure.ProviderRetryAfterMs != wait || len(all) != 3) {
			t.Errorf("facts are lost: %+v", fin.Reason.Failure)
		}
		if o.leasesHeld() != 0 {
			t.Errorf("%s: the owner is still held", name)
		}
	}
}

// What an adapter sends after its finish is not passed on.
func TestNothingAfterTheFinish(t *testing.T) {
	w := newWorld()
	w.add(t, adapterFunc(func(context.Context, llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			if yield(finish(llm.Stop), nil) {
				t.Error("the adapter is asked for more")
			}
		}
	}), "p")
	if all, _, err := drain(w.Stream(t.Context(), nil, to("p", "m"))); err != nil || len(all) != 1 {
		t.Errorf("%v %v", all, err)
	}
}

// M-21
func TestCancelIsAborted(t *testing.T) {
	w := newWorld()
	w.add(t, adapterFunc(func(ctx context.Context, _ llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			yield(valid[0], nil)
			<-ctx.Done()
			yield(nil, ctx.Err())
		}
	}), "p")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last llm.Chunk
	for c, err := range w.Stream(ctx, nil, to("p", "m")) {
		if err != nil {
			t.Fatal(err)
		}
		last = c
		cancel()
	}
	if f, ok := last.(llm.Finish); !ok || f.Reason.Kind != llm.Aborted || f.Reason.Failure.Code != seams.Aborted {
		t.Errorf("%+v", last)
	}
}

// M-21: a cancelled request is aborted, whatever the adapter makes of it; the
// context of the stream counts beside the one it was prepared in.
func TestCancelOfAPreparedStream(t *testing.T) {
	w := newWorld()
	w.add(t, adapterFunc(func(ctx context.Context, _ llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			yield(valid[0], nil)
			<-ctx.Done()
			yield(nil, llm.NewError(seams.Transport, "closed"))
		}
	}), "p")
	p, err := w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last llm.Chunk
	for c := range p.Stream(ctx, to("p", "m")) {
		last = c
		cancel()
	}
	if f, ok := last.(llm.Finish); !ok || f.Reason.Kind != llm.Aborted || f.Reason.Failure.Code != seams.Transport {
		t.Errorf("%+v", last)
	}
}

// M-22, M-41: listeners wrap, reroute and replace; their failures stay errors.
func TestMiddleware(t *testing.T) {
	w := newWorld()
	w.add(t, says("a"), "a")
	w.add(t, says("b"), "b")
	broken := errors.New("broken")
	mode := ""
	_, err := llm.OnStream(w.owner("m"), func(ctx context.Context, req *llm.Request, next func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		switch mode {
		case "reroute":
			req.Provider = "b"
		case "own":
			return chunks(reply("own")...), nil
		case "fail":
			return nil, broken
		case "nothing":
			return nil, nil
		case "fail in the stream":
			s, err := next(ctx)
			return func(yield func(llm.Chunk, error) bool) {
				for range s {
					yield(nil, broken)
					return
				}
			}, err
		case "panic in the consumer", "":
		}
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	req := to("a", "m")
	for m, want := range map[string]string{"": "a", "reroute": "b", "own": "own"} {
		mode = m
		if got, _ := who(t, w, nil, req); got != want {
			t.Errorf("%s: %q", m, got)
		}
	}
	if req.Provider != "a" {
		t.Error("the caller's request was changed")
	}
	for _, m := range []string{"fail", "fail in the stream"} {
		mode = m
		if _, fin, err := drain(w.Stream(t.Context(), nil, req)); err != broken || fin != nil {
			t.Errorf("%s: %v %v", m, fin, err)
		}
	}
	mode = "nothing"
	if _, _, err := drain(w.Stream(t.Context(), nil, req)); !errors.Is(err, seams.WrongType) {
		t.Error(err)
	}
	mode = ""
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("the consumer's panic became %v", r)
			}
		}()
		for range w.Stream(t.Context(), nil, req) {
			panic("mine")
		}
	}()
}

// A listener's owner is held as long as its stream runs, and no longer.
func TestListenerIsHeldByItsStream(t *testing.T) {
	w := newWorld()
	w.add(t, says("a"), "a")
	m := w.owner("m")
	if _, err := llm.OnStream(m, func(ctx context.Context, _ *llm.Request, next func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		return next(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	for range w.Stream(t.Context(), nil, to("a", "m")) {
		if m.leasesHeld() != 1 {
			t.Fatal("not held while the stream runs")
		}
	}
	if m.leasesHeld() != 0 {
		t.Fatal("held after the stream")
	}
	// A stream that an outer listener drops is let go with its context.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := llm.StreamEvent.Dispatch(ctx, w.bus, nil, &llm.Request{}, func(context.Context) (llm.Stream, error) { return chunks(), nil })
		if err != nil || m.leasesHeld() != 1 {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if m.leasesHeld() != 0 {
			t.Error("a dropped stream holds its listener")
		}
		if _, _, err := drain(s); !errors.Is(err, seams.Aborted) {
			t.Error(err)
		}
	})
}

// M-23: leaving the loop waits for the adapter's cleanup; a panic in it, when
// nobody listens any more, is contained.
func TestLeavingWaitsForCleanup(t *testing.T) {
	for _, hard := range []bool{false, true} {
		w := newWorld()
		cleaned := false
		o, _ := w.add(t, adapterFunc(func(context.Context, llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) {
				defer func() {
					cleaned = true
					if hard {
						panic("cleanup")
					}
				}()
				for _, c := range valid {
					if !yield(c, nil) {
						return
					}
				}
			}
		}), "p")
		for range w.Stream(t.Context(), nil, to("p", "m")) {
			break
		}
		if !cleaned || o.leasesHeld() != 0 {
			t.Errorf("hard=%v: cleaned %v, %d leases", hard, cleaned, o.leasesHeld())
		}
	}
}

// M-25, M-31, M-32, M-33, M-36
func TestPrepare(t *testing.T) {
	w := newWorld()
	lookups := 0
	var got llm.Request
	policy := llm.RetryPolicy{Mode: "always", RetryableCodes: []seams.Code{"X"}, Backoff: llm.Backoff{InitialDelayMs: 1, MaxDelayMs: 1}}
	w.add(t, described{
		adapterFunc: func(_ context.Context, req llm.Request) llm.Stream { got = req; return chunks(reply("x")...) },
		resolve: func(_ context.Context, route, model string) (llm.ModelInfo, error) {
			lookups++
			return llm.ModelInfo{Provider: route, ID: model, Name: model, MaxTokens: 77, Reasoning: &llm.ReasoningInfo{Efforts: []llm.Effort{{ID: "low", Name: "Low"}, {ID: "high", Name: "High"}}, Default: "low"}}, nil
		},
		policy: &policy,
	}, "p")
	policy.RetryableCodes[0] = "CHANGED"
	p, err := w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Config.MaxTokens != 77 || p.Config.ReasoningEffort != "low" || p.Defaults != (llm.AdapterDefaults{ReasoningEffort: "low", MaxTokens: 77}) || p.RetryPolicy.RetryableCodes[0] != "X" {
		t.Errorf("%+v", p)
	}
	req := to("", "")
	req.CallConfig = p.Config
	if _, fin, err := drain(p.Stream(t.Context(), req)); err != nil || fin.Reason.Kind != llm.Stop || lookups != 1 || got.MaxTokens != 77 {
		t.Errorf("%v %v, %d lookups, %+v", fin, err, lookups, got)
	}
	p, err = w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "p", Model: "m", ReasoningEffort: "high", MaxTokens: 5})
	if err != nil || p.Defaults != (llm.AdapterDefaults{}) || p.Config.MaxTokens != 5 || p.Config.ReasoningEffort != "high" {
		t.Errorf("%+v %v", p, err)
	}
	p.Close()
	if _, err = w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "p", Model: "m", ReasoningEffort: "max"}); !errors.Is(err, seams.UnsupportedReasoningEffort) || !strings.Contains(err.Error(), "low, high") {
		t.Error(err)
	}
	if _, err = w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "q"}); !errors.Is(err, seams.NoAdapter) {
		t.Error(err)
	}
	w.add(t, says("bare"), "bare")
	p, err = w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "bare", Model: "m"})
	if err != nil || !reflect.DeepEqual(p.RetryPolicy, llm.DefaultRetryPolicy()) {
		t.Errorf("%+v %v", p, err)
	}
	p.Close()
	// Unprepared, the defaults are filled in after the listeners.
	if _, err := llm.OnStream(w.owner("m"), func(ctx context.Context, req *llm.Request, next func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		if req.MaxTokens != 0 {
			t.Error("defaults before the listeners")
		}
		req.Provider = "p"
		return next(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := drain(w.Stream(t.Context(), nil, to("bare", "m"))); err != nil || got.MaxTokens != 77 {
		t.Errorf("%v %+v", err, got)
	}
}

// M-34, M-35
func TestPreparedCallIsPinnedAndOneShot(t *testing.T) {
	w := newWorld()
	o, h := w.add(t, says("old"), "p")
	prepare := func() *llm.PreparedCall {
		t.Helper()
		p, err := w.Prepare(t.Context(), nil, llm.CallConfig{Provider: "p", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	text := func(s llm.Stream) string {
		t.Helper()
		all, fin, err := drain(s)
		if err != nil {
			t.Fatal(err)
		}
		if fin.Reason.Failure != nil {
			return string(fin.Reason.Failure.Code)
		}
		return all[1].(llm.TextDelta).Text
	}
	p := prepare()
	if err := h.Replace(); err != nil {
		t.Fatal(err)
	}
	w.add(t, says("new"), "p")
	req := to("p", "m")
	if got := text(p.Stream(t.Context(), req)); got != "old" {
		t.Errorf("after the route was replaced: %s", got)
	}
	if got := text(p.Stream(t.Context(), req)); got != "INVALID_PREPARED_CALL" {
		t.Errorf("second use: %s", got)
	}
	p.Close()
	if n := o.leasesHeld(); n != 0 {
		t.Errorf("%d leases", n)
	}
	p = prepare()
	drifted := req
	drifted.MaxTokens = 3
	if got := text(p.Stream(t.Context(), drifted)); got != "INVALID_PREPARED_CALL" {
		t.Errorf("drift: %s", got)
	}
	p = prepare()
	p.Config.MaxTokens = 3 // the caller's copy is not what was prepared
	drifted.CallConfig = p.Config
	if got := text(p.Stream(t.Context(), drifted)); got != "INVALID_PREPARED_CALL" {
		t.Errorf("drift of the config itself: %s", got)
	}
	p = prepare()
	p.Close()
	p.Close()
	if got := text(p.Stream(t.Context(), req)); got != "INVALID_PREPARED_CALL" {
		t.Errorf("closed: %s", got)
	}
	// A call that is dropped lets go with its context.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld()
		o, _ := w.add(t, says("x"), "p")
		if _, err := w.Prepare(ctx, nil, llm.CallConfig{Provider: "p", Model: "m"}); err != nil || o.leasesHeld() != 1 {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if o.leasesHeld() != 0 {
			t.Error("a dropped call holds the adapter")
		}
	})
}

// Nothing of an adapter runs once its owner's end has returned, and the end
// waits for what runs.
func TestNothingRunsAfterTheOwnersEnd(t *testing.T) {
	w := newWorld()
	running := make(chan struct{})
	release := make(chan struct{})
	active := false
	o, _ := w.add(t, adapterFunc(func(context.Context, llm.Request) llm.Stream {
		return func(yield func(llm.Chunk, error) bool) {
			active = true
			defer func() { active = false }()
			if yield(valid[0], nil) {
				close(running)
				<-release
				yield(finish(llm.Failed), nil)
			}
		}
	}), "p")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = drain(w.Stream(context.Background(), nil, to("p", "m")))
	}()
	<-running
	ended := make(chan struct{})
	go func() { o.end(); close(ended) }()
	select {
	case <-ended:
		t.Fatal("the owner ended while its adapter ran")
	default:
	}
	close(release)
	<-ended
	if active {
		t.Error("the adapter runs after its owner's end")
	}
	<-done
	if _, code := who(t, w, nil, to("p", "m")); code != seams.NoAdapter {
		t.Error(code)
	}
}

// drained is an owner whose drain deadline passes.
type drained struct {
	*owner
	cancel context.CancelCauseFunc
}

func (d *drained) Claim() seams.Claim { return d }

func (d *drained) Enter(ctx context.Context) (context.Context, func(), error) {
	_, exit, err := d.owner.Enter(ctx)
	frame, cancel := context.WithCancelCause(ctx)
	d.cancel = cancel
	return frame, func() { cancel(nil); exit() }, err
}

func TestDrainDeadlineEndsTheStream(t *testing.T) {
	for cause, code := range map[error]seams.Code{nil: seams.Unloaded, seams.Stuck: seams.Stuck} {
		w := newWorld()
		d := &drained{owner: w.owner("d")}
		if _, err := w.RegisterAdapter(d, llm.Registration{Routes: []string{"p"}, Adapter: adapterFunc(func(ctx context.Context, _ llm.Request) llm.Stream {
			return func(yield func(llm.Chunk, error) bool) {
				yield(valid[0], nil)
				<-ctx.Done()
				yield(nil, ctx.Err())
			}
		})}); err != nil {
			t.Fatal(err)
		}
		var fin llm.FinishReason
		for c, err := range w.Stream(t.Context(), nil, to("p", "m")) {
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := c.(llm.Finish); ok {
				fin = f.Reason
				continue
			}
			d.cancel(cause)
		}
		if fin.Kind != llm.Failed || fin.Failure.Code != code {
			t.Errorf("%v: %+v", cause, fin)
		}
	}
}

// M-37, M-42: what history an adapter sees.
func TestHistoryForTheAdapter(t *testing.T) {
	w := newWorld()
	var got []llm.Message
	capture := func(_ context.Context, req llm.Request) llm.Stream { got = req.Messages; return chunks(reply("x")...) }
	modalities := []string{"text"}
	resolve := func(_ context.Context, route, model string) (llm.ModelInfo, error) {
		return llm.ModelInfo{Provider: route, ID: model, Name: model, InputModalities: modalities}, nil
	}
	w.add(t, described{adapterFunc: capture, resolve: resolve}, "p", "p2")
	w.add(t, says("y"), "q")
	state := &llm.ReplayState{Response: []byte("1")}
	by := func(provider string) llm.Source {
		return llm.Source{Kind: llm.FromModel, Provider: provider, Model: "m", ReplayState: state}
	}
	image := llm.Image{Attachment: llm.Attachment{Hash: "0123456789abcdef", MediaType: "image/png"}}
	history := []llm.Message{
		llm.NewMessage(llm.User, llm.Source{Kind: llm.FromUser}, llm.Text{Text: "see"}, image),
		llm.NewMessage(llm.Assistant, by("p"), llm.Text{Text: "a"}),
		llm.NewMessage(llm.Assistant, by("p2"), llm.Text{Text: "b"}),
		llm.NewMessage(llm.Assistant, by("q"), llm.Text{Text: "c"}),
		llm.NewMessage(llm.Assistant, by("gone"), llm.Text{Text: "d"}),
		llm.NewToolResult("c", false, llm.Text{Text: "t"}, image),
	}
	var inWaterfall []llm.Message
	if _, err := llm.OnStream(w.owner("m"), func(ctx context.Context, req *llm.Request, next func(context.Context) (llm.Stream, error)) (llm.Stream, error) {
		inWaterfall = req.Messages
		return next(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%+v", history)
	req := to("p", "m")
	req.Messages = history
	if _, fin, err := drain(w.Stream(t.Context(), nil, req)); err != nil || fin.Reason.Kind != llm.Stop {
		t.Fatal(fin, err)
	}
	for i, kept := range []bool{false, true, true, false, false, false} {
		if (got[i].Source.ReplayState != nil) != kept || got[i].Source.Provider != history[i].Source.Provider {
			t.Errorf("message %d: %+v", i, got[i].Source)
		}
	}
	placeholder := "[image 01234567 left out: this model takes text only]"
	inner := got[5].Content[0].(llm.ToolResult).Content
	if got[0].Content[1] != (llm.Text{Text: placeholder}) || inner[1] != (llm.Text{Text: placeholder}) || inner[0] != (llm.Text{Text: "t"}) {
		t.Errorf("%+v\n%+v", got[0].Content, inner)
	}
	if fmt.Sprintf("%+v", history) != before || inWaterfall[0].Content[1] != llm.Block(image) {
		t.Error("the history itself was changed")
	}
	for _, m := range [][]string{{"text", "image"}, nil} {
		modalities = m
		if _, _, err := drain(w.Stream(t.Context(), nil, req)); err != nil || got[0].Content[1] != llm.Block(image) {
			t.Errorf("%v: %+v", m, got[0].Content)
		}
	}
}

func ExampleRegistry() {
	reg := llm.NewRegistry(&bus{}, nil)
	plugin := &owner{name: "echo"} // in a program: the container's
	echo := adapterFunc(func(_ context.Context, req llm.Request) llm.Stream {
		return chunks(reply("you said " + req.Messages[0].Content.Text())...)
	})
	if _, err := reg.RegisterAdapter(plugin, llm.Registration{Entry: "echo", Routes: []string{"echo-1"}, Adapter: echo}); err != nil {
		fmt.Println(err)
		return
	}
	req := llm.Request{CallConfig: llm.CallConfig{Model: "echo-1"}, Messages: []llm.Message{llm.UserText("hello")}}
	var answer llm.Assembler
	for c, err := range reg.Stream(context.Background(), nil, req) {
		if err == nil {
			err = answer.Add(c)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	blocks, _ := answer.Blocks()
	fmt.Println(blocks.Text(), "/", answer.Finish().Kind)
	// Output: you said hello / stop
}
