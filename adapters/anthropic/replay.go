package anthropic

import (
	"encoding/json"

	"github.com/ouro-run/ouro/seams/llm"
)

// replayFormat marks a replay state as this package's; it changes with its
// form.
const replayFormat = "anthropic-messages/1"

type replayHead struct {
	Format string `json:"format"`
}

// entry is what the replay state says of one block of the message.
type entry struct {
	// Before are blocks that go before this one and have none of their own.
	Before []opaque `json:"before,omitempty"`
	// Signature of thinking.
	Signature string `json:"signature,omitempty"`
}

// opaque is a block only the service can read.
type opaque struct {
	Type      string  `json:"type"`
	Data      string  `json:"data,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature string  `json:"signature,omitempty"`
}

// replayState returns nil where there is nothing that the message does not say.
func replayState(entries []entry) *llm.ReplayState {
	r := &llm.ReplayState{}
	needed := false
	for _, e := range entries {
		needed = needed || len(e.Before) > 0 || e.Signature != ""
		raw, _ := json.Marshal(e)
		r.Blocks = append(r.Blocks, raw)
	}
	if !needed {
		return nil
	}
	r.Response, _ = json.Marshal(replayHead{replayFormat})
	return r
}

// replay returns one entry for each block of the message, empty ones where the
// replay state is missing or another's (M-87).
func replay(m llm.Message) []entry {
	none := make([]entry, len(m.Content))
	r := m.Source.ReplayState
	if r == nil || len(r.Blocks) != len(m.Content) {
		return none
	}
	var head replayHead
	if json.Unmarshal(r.Response, &head) != nil || head.Format != replayFormat {
		return none
	}
	out := make([]entry, len(m.Content))
	for i, raw := range r.Blocks {
		if json.Unmarshal(raw, &out[i]) != nil {
			return none
		}
	}
	return out
}
