package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A signal cancels the turn and leaves nothing running: the process ends at once
// with 128 and the signal's number, and the server sees its request go. So does
// --timeout, with 124.
func TestInterrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ouro")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		name   string
		args   []string
		signal syscall.Signal
		code   int
	}{
		{"interrupt", nil, syscall.SIGINT, 130},
		{"terminate", nil, syscall.SIGTERM, 143},
		{"timeout", []string{"--timeout", "300ms"}, 0, exitTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			arrived, gone := make(chan struct{}), make(chan struct{})
			s := newWire(t, func(_ int, w http.ResponseWriter, _ map[string]any) {
				w.(http.Flusher).Flush()
				close(arrived)
			})
			s.hold = func(r *http.Request) { <-r.Context().Done(); close(gone) }
			dir := folder(t, map[string]string{configName: composition(s.URL)})
			cmd := exec.Command(path, append([]string{"run", "--output-format", "json"}, append(c.args, "hello")...)...)
			cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-arrived
			if c.signal != 0 {
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != c.code {
				t.Fatalf("%v, want exit %d\n%s\n%s", err, c.code, &out, &errs)
			}
			<-gone
			if !bytes.Contains(out.Bytes(), []byte(`"subtype":"cancelled"`)) {
				t.Errorf("no result line: %s", &out)
			}
		})
	}
}

// A signal's exit code is the same wherever it strikes, and --timeout counts from
// the start, while stdin is still awaited.
func TestInterruptBetweenTurns(t *testing.T) {
	dir := folder(t, map[string]string{configName: "[]\n"})
	for _, c := range []struct {
		name string
		run  func(context.Context, *program, []string) int
		args []string
		on   string // on stdout, what the signal comes at; "" for before the start
		code int
	}{
		{"demo", demo, nil, "you    ", 130},
		{"check", check, nil, "", 130},
		{"inspect", inspect, nil, "", 130},
		{"stdin", run, []string{"--timeout", "1ms"}, "never", exitTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			strike := func() { cancel(signalled{syscall.SIGINT}) }
			if c.on == "" {
				strike()
			}
			stdin, open := io.Pipe()
			defer open.Close()
			out := writer(func(b []byte) (int, error) {
				if c.on != "" && bytes.Contains(b, []byte(c.on)) {
					strike()
				}
				return len(b), nil
			})
			p := &program{stdin: stdin, stdout: out, stderr: io.Discard, dir: dir}
			if code := c.run(ctx, p, c.args); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
		})
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
