package logger

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ouro-run/ouro/runtime/cordis"
	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/seams"
)

// Key is the service. Each reader gets a logger of its own name.
var Key = seams.Key[*Logger]{Name: "logger"}

// Level is how important a record is.
type Level uint8

// Levels; a lower one is never silenced before a higher one.
const (
	Error Level = iota
	Info
	Warn
	Debug
)

var levels = [...]string{"error", "info", "warn", "debug"}

// String returns the level's name.
func (l Level) String() string { return levels[l] }

// ParseLevel reads a level's name.
func ParseLevel(s string) (Level, bool) {
	for i, n := range levels {
		if n == s {
			return Level(i), true
		}
	}
	return 0, false
}

// Record is one line that was logged.
type Record struct {
	Seq   uint64 // from 1, in order
	Time  time.Time
	Level Level
	Name  string
	Text  string // at most [MaxText] bytes
}

// Bounds of records.
const (
	MaxText = 64 << 10 // bytes
	ring    = 1000     // records that a hub keeps
)

// Exporter takes records.
type Exporter func(Record)

// Hub takes the records of all loggers made of it.
type Hub struct {
	mu        sync.Mutex
	seq       uint64
	records   []Record    // a ring once it is full
	exporters []*Exporter // in the order in which they came

	out sync.Mutex // held while exporters run, so that records stay in order
}

// NewHub makes a hub without exporters.
func NewHub() *Hub { return &Hub{} }

// Export hands each later record to x until remove is called.
func (h *Hub) Export(x Exporter) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.exporters = append(h.exporters, &x)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.exporters = slices.DeleteFunc(h.exporters, func(e *Exporter) bool { return e == &x })
	}
}

// Records returns the last records, at most 1000, oldest first.
func (h *Hub) Records() []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.records) < ring {
		return append([]Record(nil), h.records...)
	}
	at := int(h.seq % ring)
	return append(append([]Record(nil), h.records[at:]...), h.records[:at]...)
}

// Logger returns a logger of a name.
func (h *Hub) Logger(name string) *Logger { return &Logger{h, name} }

func (h *Hub) log(level Level, name, text string) {
	h.out.Lock()
	defer h.out.Unlock()
	h.mu.Lock()
	h.seq++
	r := Record{h.seq, time.Now(), level, name, text}
	if len(h.records) < ring {
		h.records = append(h.records, r)
	} else {
		h.records[(h.seq-1)%ring] = r
	}
	exporters := slices.Clone(h.exporters)
	h.mu.Unlock()
	for _, x := range exporters {
		(*x)(r)
	}
}

// Logger writes records under a name.
type Logger struct {
	hub  *Hub
	name string
}

// Name returns the name its records have.
func (l *Logger) Name() string { return l.name }

// Hub returns where its records go.
func (l *Logger) Hub() *Hub { return l.hub }

// Named returns a logger of another name, which wins over all others.
func (l *Logger) Named(name string) *Logger { return &Logger{l.hub, name} }

// Error logs what went wrong. Values are joined with spaces: text as it is,
// errors with their message, all else as JSON.
func (l *Logger) Error(values ...any) { l.Log(Error, values...) }

// Info logs what people want to know.
func (l *Logger) Info(values ...any) { l.Log(Info, values...) }

// Warn logs what may go wrong.
func (l *Logger) Warn(values ...any) { l.Log(Warn, values...) }

// Debug logs what helps to find an error.
func (l *Logger) Debug(values ...any) { l.Log(Debug, values...) }

// Log logs at a level.
func (l *Logger) Log(level Level, values ...any) {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = render(v)
	}
	text := strings.Join(parts, " ")
	if len(text) > MaxText {
		text = strings.ToValidUTF8(text[:MaxText], "") + "…"
	}
	l.hub.log(level, l.name, text)
}

func render(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// Writer exports to w the records up to a level, each as one line: time, level,
// name and text, whose further lines are indented. Levels gives single names
// another level.
func Writer(w io.Writer, level Level, levels map[string]Level) Exporter {
	return func(r Record) {
		most, ok := levels[r.Name]
		if !ok {
			most = level
		}
		if r.Level <= most {
			fmt.Fprintf(w, "%s %-5s %s: %s\n", r.Time.Format(time.TimeOnly), r.Level, r.Name, strings.ReplaceAll(r.Text, "\n", "\n    "))
		}
	}
}

// Plugin returns the plugin that provides the service and writes to w.
func Plugin(w io.Writer) *cordis.Plugin {
	names := make([]any, len(levels))
	for i, l := range levels {
		names[i] = l
	}
	return &cordis.Plugin{
		Name: "logger", Provide: []string{Key.Name},
		Config: schema.Object(schema.Fields{
			"level":  schema.Enum(names...).Default("info").Description("the least important level that is written"),
			"levels": schema.Dict(schema.Enum(names...)).Description("levels of single names"),
		}),
		Apply: func(ctx *cordis.Context, config any) error {
			cfg := config.(map[string]any)
			level, _ := ParseLevel(cfg["level"].(string))
			single := map[string]Level{}
			for name, v := range cfg["levels"].(map[string]any) {
				single[name], _ = ParseLevel(v.(string))
			}
			hub := NewHub()
			hub.Export(Writer(w, level, single))
			_, err := cordis.ProvideEach(ctx, Key, func(reader *cordis.Context) *Logger { return hub.Logger(nameOf(reader)) })
			return err
		},
	}
}

// nameOf is the intercepted name, else the reader's own.
func nameOf(reader *cordis.Context) string {
	if name, ok := reader.Meta(Key.Name)["name"].(string); ok && name != "" {
		return name
	}
	return hyphenate(reader.Fiber().Name())
}

// hyphenate makes "my-plugin" of "MyPlugin".
func hyphenate(s string) string {
	var b strings.Builder
	after := false // a lower-case letter or digit
	for _, r := range s {
		if unicode.IsUpper(r) {
			if after {
				b.WriteByte('-')
			}
			r = unicode.ToLower(r)
			after = false
		} else {
			after = unicode.IsLower(r) || unicode.IsDigit(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
