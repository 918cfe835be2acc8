package events

import (
	"bytes"
	"encoding/json"

	"github.com/ouro-run/ouro/seams"
)

// Event is one entry of a session's log. Its fields do not change once it is
// committed, and nobody writes to Data.
type Event struct {
	Seq  int    `json:"seq"` // its index in the log
	Type string `json:"type"`
	Time int64  `json:"time"` // milliseconds since 1970, UTC
	// Data is a JSON object.
	Data json.RawMessage `json:"data"`
	// SurfaceOp says where a node of the surface goes; nil of other events.
	SurfaceOp *SurfaceOp `json:"surfaceOp,omitempty"`
	// SourceEventSeqs are the earlier events this one came of, ascending.
	// Empty but not nil is said of an assistant message without chunks.
	SourceEventSeqs []int `json:"sourceEventSeqs,omitzero"`
	// Ignorable says that a reader who does not know Type loses nothing that
	// the model saw. Events of unknown type are treated alike.
	Ignorable bool `json:"ignorable,omitempty"`
}

// SurfaceOp places a node: at the end, or instead of the nodes from the one of
// event Start to the one of event End. In JSON it is "append" or {"op":
// "replace", "start": …, "end": …}.
type SurfaceOp struct {
	Replace    bool
	Start, End int
}

// MarshalJSON writes the operation.
func (o SurfaceOp) MarshalJSON() ([]byte, error) {
	if !o.Replace {
		return []byte(`"append"`), nil
	}
	return json.Marshal(replaceOp{"replace", &o.Start, &o.End})
}

type replaceOp struct {
	Op    string `json:"op"`
	Start *int   `json:"start"`
	End   *int   `json:"end"`
}

// UnmarshalJSON reads an operation; anything but the two forms is INVALID_EVENT.
func (o *SurfaceOp) UnmarshalJSON(b []byte) error {
	if string(b) == `"append"` {
		*o = SurfaceOp{}
		return nil
	}
	var r replaceOp
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || r.Op != "replace" || r.Start == nil || r.End == nil {
		return seams.Errorf(seams.InvalidEvent, "events.surfaceOp", `expected "append" or {"op": "replace", "start": seq, "end": seq}`)
	}
	*o = SurfaceOp{true, *r.Start, *r.End}
	return nil
}

// Draft is an event before it has its place in a log. Data is any Go value
// whose JSON is an object.
type Draft struct {
	Type            string
	Data            any
	SurfaceOp       *SurfaceOp
	SourceEventSeqs []int
	Ignorable       bool
}

// Citing returns the draft with its sources. Without arguments it says that
// there are none, which only an assistant message may.
func (d Draft) Citing(seqs ...int) Draft {
	d.SourceEventSeqs = append([]int{}, seqs...)
	return d
}

// Replacing returns the draft of a node that takes the place of the nodes from
// start to end, both named by the seq of their event. It must cite all of them.
func (d Draft) Replacing(start, end int) Draft {
	d.SurfaceOp = &SurfaceOp{true, start, end}
	return d
}

// Type declares a type of event: its name and the Go type of its data.
// A plugin declares its own with a name of its own ("my-plugin/thing") and
// Ignorable set.
type Type[T any] struct {
	Name      string
	Ignorable bool

	surface bool
}

// New makes a draft; one of a surface type appends.
func (t Type[T]) New(data T) Draft {
	d := Draft{Type: t.Name, Data: data, Ignorable: t.Ignorable}
	if t.surface {
		d.SurfaceOp = &SurfaceOp{}
	}
	return d
}

// Is reports whether e is of this type.
func (t Type[T]) Is(e Event) bool { return e.Type == t.Name }

// Decode reads the data of an event. INVALID_EVENT when e is of another type
// or its data does not fit.
func (t Type[T]) Decode(e Event) (T, error) {
	var data T
	if !t.Is(e) {
		return data, invalid(e, "type", "is %q, not %q", e.Type, t.Name)
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return data, invalid(e, "data", "%w", err)
	}
	return data, nil
}

// invalid is the error of an event that breaks a rule at a path within it.
func invalid(e Event, path, format string, args ...any) error {
	err := seams.Errorf(seams.InvalidEvent, "", format, args...)
	return seams.Errorf(seams.InvalidEvent, "events", "event %d (%s): %s %s", e.Seq, seams.Clip(e.Type, 80), path, err.Msg)
}
