package logger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ouro-run/ouro/builtins/logger"
	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/seams"
)

// The ring holds the last 1000 records in order, whatever number came.
func TestRing(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001, 2500} {
		h := logger.NewHub()
		for i := range n {
			h.Logger("x").Info(i)
		}
		got := h.Records()
		if len(got) != min(n, 1000) {
			t.Fatalf("%d: %d records", n, len(got))
		}
		for i, r := range got {
			if want := n - len(got) + i; r.Text != fmt.Sprint(want) || r.Seq != uint64(want+1) {
				t.Fatalf("%d: record %d is %+v", n, i, r)
			}
		}
	}
}

func TestWriterLevels(t *testing.T) {
	for _, c := range []struct {
		level logger.Level
		names map[string]logger.Level
		want  string
	}{
		{logger.Error, nil, "e"}, {logger.Info, nil, "ei"}, {logger.Warn, nil, "eiw"}, {logger.Debug, nil, "eiwd"},
		{logger.Error, map[string]logger.Level{"x": logger.Debug}, "eiwd"}, {logger.Debug, map[string]logger.Level{"x": logger.Error}, "e"},
	} {
		var out bytes.Buffer
		h := logger.NewHub()
		h.Export(logger.Writer(&out, c.level, c.names))
		l := h.Logger("x")
		l.Error("e")
		l.Info("i")
		l.Warn("w")
		l.Debug("d")
		got := ""
		for line := range strings.Lines(out.String()) {
			got += line[len(line)-2 : len(line)-1]
		}
		if got != c.want {
			t.Errorf("%s %v: %q, want %q", c.level, c.names, got, c.want)
		}
	}
}

func TestText(t *testing.T) {
	h := logger.NewHub()
	l := h.Logger("x")
	l.Info("a", 1, map[string]any{"b": true}, errors.New("bad"), nil, make(chan int) == nil, logger.Warn)
	l.Info(strings.Repeat("가", logger.MaxText))
	got := h.Records()
	if want := `a 1 {"b":true} bad null false warn`; got[0].Text != want {
		t.Errorf("text %q, want %q", got[0].Text, want)
	}
	if len(got[1].Text) > logger.MaxText+len("…") || !strings.HasSuffix(got[1].Text, "가…") {
		t.Errorf("a long text has %d bytes", len(got[1].Text))
	}
}

// Records of many goroutines reach exporters one at a time and in order.
func TestConcurrency(t *testing.T) {
	h := logger.NewHub()
	var seen []uint64
	remove := h.Export(func(r logger.Record) { seen = append(seen, r.Seq) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				h.Logger("x").Info("y")
			}
		})
	}
	wg.Wait()
	for i, s := range seen {
		if s != uint64(i+1) {
			t.Fatalf("record %d is number %d", i, s)
		}
	}
	remove()
	h.Logger("x").Info("y")
	if len(seen) != 800 {
		t.Errorf("%d records were exported", len(seen))
	}
}

// Exporters come and go while others log, and hear records in the order in which
// they came.
func TestExportersComeAndGo(t *testing.T) {
	h := logger.NewHub()
	var heard []string
	note := func(name string) logger.Exporter { return func(logger.Record) { heard = append(heard, name) } }
	removeA := h.Export(note("a"))
	h.Export(note("b"))
	h.Logger("x").Info("y")
	removeA()
	removeA()
	h.Export(note("c"))
	h.Logger("x").Info("y")
	if got := strings.Join(heard, ""); got != "abbc" {
		t.Errorf("heard %q", got)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			h.Export(func(logger.Record) {})()
			h.Logger("x").Info("y")
		})
	}
	wg.Wait()
}

// C-59, C-60 for Go plugins.
func TestNames(t *testing.T) {
	c := cordis.New(cordis.Options{})
	defer c.Close(context.Background())
	root := c.Root()
	if f, err := root.Plugin(logger.Plugin(&bytes.Buffer{}), map[string]any{}); err != nil {
		t.Fatal(err)
	} else if err := f.Ready().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader := func(name string, need cordis.Need) *cordis.Plugin {
		return &cordis.Plugin{Name: name, Inject: []cordis.Need{need}, Apply: func(ctx *cordis.Context, got any) error {
			l, err := cordis.Get(ctx, logger.Key)
			if err == nil {
				*got.(*string) = l.Name() + " " + l.Named("explicit").Name()
			}
			return err
		}}
	}
	for _, c := range []struct {
		ctx  *cordis.Context
		name string
		meta map[string]any
		want string
	}{
		{root, "MyPlugin", nil, "my-plugin explicit"},
		{root, "llm2Chat", nil, "llm2-chat explicit"},
		{root.Intercept("logger", map[string]any{"name": "outer"}), "p", nil, "outer explicit"},
		{root.Intercept("logger", map[string]any{"name": "outer"}), "p", map[string]any{"name": "inner"}, "inner explicit"},
		{root.Intercept("logger", map[string]any{"name": ""}), "p", nil, "p explicit"},
	} {
		var got string
		f, err := c.ctx.Plugin(reader(c.name, cordis.Need{Name: "logger", Meta: c.meta}), &got)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Ready().Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%s %v: %q, want %q", c.name, c.meta, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, bad := range []map[string]any{{"level": "loud"}, {"levels": map[string]any{"x": 1.0}}, {"lvel": "info"}} {
		if _, err := logger.Plugin(os.Stderr).Config.Resolve(bad); !errors.Is(err, seams.InvalidConfig) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	var out bytes.Buffer
	c := cordis.New(cordis.Options{})
	defer c.Close(context.Background())
	f, err := c.Root().Plugin(logger.Plugin(&out), map[string]any{"level": "error", "levels": map[string]any{"root": "debug"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ := cordis.Lookup(c.Root(), logger.Key)
	l.Debug("first\nsecond")
	l.Named("other").Info("silent")
	if got := out.String(); !strings.HasSuffix(got, "debug root: first\n    second\n") || strings.Contains(got, "silent") {
		t.Errorf("wrote %q", got)
	}
}

func ExampleHub() {
	hub := logger.NewHub()
	hub.Export(func(r logger.Record) { fmt.Println(r.Level, r.Name, r.Text) })
	hub.Logger("server").Info("listening on", 8080)
	hub.Logger("server").Error("cannot accept:", errors.New("too many files"))
	// Output:
	// info server listening on 8080
	// error server cannot accept: too many files
}
