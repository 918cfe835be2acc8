package sse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"
)

// sse-12, the whole table.
func TestRetryAfter(t *testing.T) {
	raw, err := os.ReadFile("testdata/sse-12.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) < 10 {
		t.Fatal(err, len(rows))
	}
	for _, row := range rows {
		h := http.Header{}
		for _, name := range []string{"retry-after", "retry-after-ms"} {
			if s, ok := row[name].(string); ok {
				h.Set(name, s)
			}
		}
		now := time.Now()
		if s, ok := row["now"].(string); ok {
			if now, err = time.Parse(time.RFC3339, s); err != nil {
				t.Fatal(err)
			}
		}
		got := retryAfter(h, now)
		ok := false
		switch want := row["want_ms"].(type) {
		case nil:
			ok = got == nil
		case float64:
			ok = got != nil && *got == int64(want)
		case string: // capped: whoever waits bounds it; here it is only in range
			ok = got != nil && *got > 0 && *got <= maxRetryAfter
		case []any: // the first of each pair is what the package comment says
			ok = got != nil && float64(*got) == want[0]
		}
		if !ok {
			shown := "none"
			if got != nil {
				shown = fmt.Sprint(*got)
			}
			t.Errorf("%v: %s", row, shown)
		}
	}
}
