package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
)

// Counts of equal calls in a row at which the model is told, and at which the
// call is not run and the turn ends.
const (
	remindAt = 3
	stopAt   = 6
)

// spend is what a session has used.
type spend struct {
	tokens int64
	usd    float64
}

func (s *spend) add(u llm.TokenUsage, p *Price) {
	s.tokens += u.Total()
	if p != nil {
		s.usd += p.Of(u)
	}
}

// reached returns why another step may not begin, nil if it may.
func (l Limits) reached(steps int, s spend) *llm.Failure {
	switch {
	case steps >= l.Steps:
		return &llm.Failure{Code: seams.StepLimit, Message: fmt.Sprintf("the turn has had its %d steps", l.Steps)}
	case l.Tokens > 0 && s.tokens >= l.Tokens:
		return &llm.Failure{Code: seams.SpendLimit, Message: fmt.Sprintf("the session has used %d tokens of the %d it may", s.tokens, l.Tokens)}
	case l.USD > 0 && s.usd >= l.USD:
		return &llm.Failure{Code: seams.SpendLimit, Message: fmt.Sprintf("the session has spent $%.4f of the $%.4f it may", s.usd, l.USD)}
	}
	return nil
}

// repeats counts calls in a row that make no headway: equal ones, and those of
// tools that do not exist.
type repeats struct {
	last           string
	equal, unknown int
}

// see counts the next call. reminder is what the model should be told, if
// anything; over says that the call must not run.
func (r *repeats) see(c call, exempt []string) (reminder string, over *llm.Failure) {
	if slices.Contains(exempt, c.Name) {
		return "", nil
	}
	key := c.Name + "\x00" + canonical(c.Arguments)
	if key != r.last {
		r.last, r.equal = key, 0
	}
	r.equal++
	if c.known {
		r.unknown = 0
	} else {
		r.unknown++
	}
	switch {
	case r.equal >= stopAt:
		return "", &llm.Failure{Code: seams.RepeatLimit, Message: fmt.Sprintf("%q was called %d times in a row with the same arguments", seams.Clip(c.Name, 80), r.equal)}
	case r.unknown >= stopAt:
		return "", &llm.Failure{Code: seams.UnknownToolLimit, Message: fmt.Sprintf("%d calls in a row named tools that do not exist", r.unknown)}
	case r.equal == remindAt:
		return fmt.Sprintf("You have called %q %d times in a row with the same arguments. Its result will not change by calling it again: use what you have, or try something else. The turn ends at the %dth such call.", seams.Clip(c.Name, 80), r.equal, stopAt), nil
	case r.unknown == remindAt:
		return fmt.Sprintf("Your last %d calls named tools that do not exist. Call only tools you are offered. The turn ends at the %dth such call.", r.unknown, stopAt), nil
	}
	return "", nil
}

// canonical is the JSON text without what does not change its meaning: order
// of members and white space. Text that is no JSON is its own form.
func canonical(raw string) string {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return string(text)
}
