package memory

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// Services of a composition.
var (
	Key         = seams.Key[Store]{Name: "memory"}
	WorkingKey  = seams.Key[WorkingStore]{Name: "workingMemory"}
	EmbedderKey = seams.Key[Embedder]{Name: "embedder"}
)

// Scope says whose memory something is. User is required; an empty Agent or
// Session means all of the user's.
type Scope struct {
	User    string `json:"user"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
}

// Covers reports whether what belongs to s may be seen from at: every name in s
// is the same in at.
func (s Scope) Covers(at Scope) bool {
	return s.User == at.User && (s.Agent == "" || s.Agent == at.Agent) && (s.Session == "" || s.Session == at.Session)
}

// Kinds of items this package knows; others are as good.
const (
	Fact         = "fact"
	Conversation = "conversation"
	Procedure    = "procedure" // something learned to do
)

// Bounds of an item.
const (
	MaxKey  = 512     // bytes
	MaxText = 1 << 20 // bytes
)

// Item is one thing remembered. Scope and Key together are its identity.
type Item struct {
	Scope    Scope          `json:"scope"`
	Key      string         `json:"key"`
	Kind     string         `json:"kind"`
	Text     string         `json:"text"`
	Metadata map[string]any `json:"metadata,omitempty"` // JSON values
	Created  time.Time      `json:"created"`            // set by Put
	Updated  time.Time      `json:"updated"`            // set by Put
	// Expires is when the item is gone, zero for never. An expired item is as
	// one that was deleted.
	Expires time.Time `json:"expires,omitzero"`
}

// Store keeps items.
type Store interface {
	// Put stores an item under its scope and key, in place of the one that is
	// there, whose Created it keeps. It returns the item as stored.
	Put(ctx context.Context, it Item) (Item, error)
	// Get returns the item of exactly this scope and key, or NOT_FOUND.
	Get(ctx context.Context, s Scope, key string) (Item, error)
	// Delete removes the item of exactly this scope and key, and reports whether
	// it was there.
	Delete(ctx context.Context, s Scope, key string) (bool, error)
	// Search returns the items that are visible from a scope and fit all of the
	// query.
	Search(ctx context.Context, q Query) (Found, error)
}

// Query chooses items. Empty fields choose nothing away.
type Query struct {
	Scope  Scope
	Prefix string         // of the key
	Kinds  []string       // one of them
	Where  map[string]any // metadata that must be there and equal
	// Text ranks by relevance and leaves out what has none. Without it the
	// newest come first.
	Text string
	// MinScore leaves out hits below it, 0 to 1.
	MinScore float64
	// Limit is the most hits to return; 0 is 10.
	Limit int
}

// Found is what a search found.
type Found struct {
	Hits []Hit `json:"hits"` // best first
	// Ranking says how they are ordered. A store without an [Embedder] ranks
	// by text and says so here.
	Ranking Ranking `json:"ranking"`
}

// Hit is an item with its relevance, 0 to 1; 0 in a query without text.
type Hit struct {
	Item  Item    `json:"item"`
	Score float64 `json:"score"`
}

// Ranking is an order of hits.
type Ranking string

// Rankings.
const (
	ByTime       Ranking = "time"
	ByText       Ranking = "text"
	BySimilarity Ranking = "similarity"
)

// WorkingStore keeps the state that a task, or a conversation, works with: one
// JSON value for each scope.
type WorkingStore interface {
	// Load returns the state of exactly this scope, or NOT_FOUND.
	Load(ctx context.Context, s Scope) (json.RawMessage, error)
	// Save replaces it. NOT_JSON when state is no JSON text.
	Save(ctx context.Context, s Scope, state json.RawMessage) error
	// Drop removes it, if it is there.
	Drop(ctx context.Context, s Scope) error
}

// Embedder makes vectors of texts.
type Embedder interface {
	// Embed returns one vector for each text, in order, each of Dim finite
	// numbers. It returns all or an error.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Dim returns the length of a vector, which does not change.
	Dim() int
	// Name says for people what makes the vectors; vectors of different names
	// cannot be compared.
	Name() string
}
