package events

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/ouro-run/ouro/seams"
)

// Header is what a session's log is headed by. It does not change.
type Header struct {
	Version       int    `json:"version"` // 0
	ID            string `json:"id"`
	CreatedAt     int64  `json:"createdAt"`     // milliseconds since 1970, UTC
	CWD           string `json:"cwd,omitempty"` // absolute
	ParentSession string `json:"parentSession,omitempty"`
	// SeedLength is the number of events the session began with, the end-seed
	// marker included; 0 for a fresh one.
	SeedLength int `json:"seedLength,omitempty"`
	// Origin is "subagent" or "".
	Origin          string `json:"origin,omitempty"`
	DelegationDepth int    `json:"delegationDepth,omitempty"`
	AgentPreset     string `json:"agentPreset,omitempty"`
}

// maxID bounds a session's id, in bytes.
const maxID = 200

// Validate checks the header's fields against each other and their ranges
// (E-06). INVALID_EVENT names the field.
func (h Header) Validate() error {
	bad := func(field, format string, args ...any) error {
		err := seams.Errorf(seams.InvalidEvent, "", format, args...)
		return seams.Errorf(seams.InvalidEvent, "events", "session header: %s %s", field, err.Msg)
	}
	switch {
	case h.Version != 0:
		return bad("version", "is %d; this program knows 0", h.Version)
	case h.ID == "" || len(h.ID) > maxID:
		return bad("id", "must have 1 to %d bytes", maxID)
	case h.CreatedAt < 0:
		return bad("createdAt", "is negative")
	case h.CWD != "" && !filepath.IsAbs(h.CWD):
		return bad("cwd", "%q is not absolute", seams.Clip(h.CWD, 80))
	case h.ParentSession == h.ID:
		return bad("parentSession", "is the session itself")
	case h.SeedLength < 0:
		return bad("seedLength", "is negative")
	case h.Origin != "" && h.Origin != "subagent":
		return bad("origin", `is %q; expected "subagent" or nothing`, seams.Clip(h.Origin, 80))
	case h.DelegationDepth < 0:
		return bad("delegationDepth", "is negative")
	}
	return nil
}

// DecodeHeader reads and validates a header. Unknown members are refused: a
// reader that does not know one cannot keep what it promises.
func DecodeHeader(data []byte) (Header, error) {
	var h Header
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, seams.Errorf(seams.InvalidEvent, "events", "session header: %w", err)
	}
	return h, h.Validate()
}
