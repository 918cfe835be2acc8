package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/seams/llm"
)

// binary builds the program as it is shipped.
func binary(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "ouro")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return path
}

// spawn runs the program once and answers its peak resident memory in MB.
func spawn(b *testing.B, dir, path string, args ...string) float64 {
	b.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin", "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}

// Goal: 8 ms from start to exit.
func BenchmarkVersion(b *testing.B) {
	path, dir := binary(b), b.TempDir()
	for b.Loop() {
		spawn(b, dir, path, "version")
	}
}

// Goals: 20 ms from start to the first model request, 40 ms and 35 MB for a whole
// run of one step.
func BenchmarkRun(b *testing.B) {
	var first atomic.Int64
	s := newWire(b, func(_ int, w http.ResponseWriter, _ map[string]any) {
		first.CompareAndSwap(0, time.Now().UnixNano())
		_, _ = io.WriteString(w, say("hello"))
	})
	path := binary(b)
	dir := folder(b, map[string]string{configName: composition(s.URL)})
	var toRequest time.Duration
	peak := 0.0
	for b.Loop() {
		first.Store(0)
		began := time.Now()
		peak = max(peak, spawn(b, dir, path, "run", "hello"))
		toRequest += time.Duration(first.Load() - began.UnixNano())
	}
	b.ReportMetric(float64(toRequest.Microseconds())/1000/float64(b.N), "ms-to-request")
	b.ReportMetric(peak, "MB-peak")
}

// Goals, without the server's own time: 0.5 ms without a tool, 1.5 ms with one.
func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct {
		name  string
		reply func(n int) string
	}{
		{"plain", func(int) string { return say("hello") }},
		{"one-tool", func(n int) string {
			if n%2 == 0 {
				return call("c", "cordis_inspect", map[string]any{"what": "tools"})
			}
			return say("hello")
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newWire(b, func(n int, w http.ResponseWriter, _ map[string]any) { _, _ = io.WriteString(w, c.reply(n)) })
			dir := folder(b, map[string]string{configName: composition(s.URL)})
			ctx := context.Background()
			r, err := builtins.Open(ctx, builtins.Options{File: filepath.Join(dir, configName), CWD: dir})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close(ctx)
			agent, err := r.Agent("")
			if err != nil {
				b.Fatal(err)
			}
			total := time.Duration(0)
			turns := 0
			for b.Loop() {
				turns++
				began := time.Now()
				if res := agent.Run(ctx, llm.UserText("go")); res.IsError {
					b.Fatal(res.Error)
				}
				total += time.Since(began)
			}
			b.ReportMetric(float64(total-time.Duration(s.spent.Load()))/1e6/float64(turns), "ms-own/turn")
		})
	}
}
