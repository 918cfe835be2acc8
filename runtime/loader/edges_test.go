package loader

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// A listener of a reload may call the loader while it is being closed.
func TestListenerCallsDuringClose(t *testing.T) {
	w := newWorld(t, Options{})
	answer := make(chan error, 1)
	_, err := ReloadEvent.On(w.c.Root(), func(ctx context.Context, _ Reload, _ func(context.Context) (struct{}, error)) (struct{}, error) {
		<-w.l.run.Done() // Close has begun
		answer <- w.l.Settle(context.WithoutCancel(ctx))
		return struct{}{}, nil
	})
	w.ok(err)
	w.write("a.js", "version 1")
	w.start(one)
	w.write("a.js", "version 2")
	w.ok(w.l.Reload(context.Background()))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.ok(w.l.Close(ctx))
	if err := <-answer; seams.CodeOf(err) != seams.InactiveEffect {
		t.Errorf("Settle of a loader that is being closed answers %v", err)
	}
}

// Close ends what Start waits for.
func TestCloseDuringStart(t *testing.T) {
	loading := make(chan struct{})
	w := newWorld(t, Options{Load: func(ctx context.Context, _ string) (Source, error) {
		close(loading)
		<-ctx.Done()
		return Source{}, context.Cause(ctx)
	}})
	w.write("a.js", "")
	w.write("cordis.yml", one)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	started := make(chan struct{})
	go func() { defer close(started); _ = w.l.Start(ctx) }()
	<-loading
	w.ok(w.l.Close(context.Background()))
	if ctx.Err() != nil {
		t.Error("Close has waited for the end of Start's context")
	}
	<-started
}

// What is no regular file is not read to see whether it has changed: a pipe
// would wait for its writer.
func TestOnlyRegularFilesAreSummed(t *testing.T) {
	if sum(os.DevNull) != [32]byte{} {
		t.Error("a device was read")
	}
}
