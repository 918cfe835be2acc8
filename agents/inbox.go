package agents

import (
	"context"
	"slices"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// inbox is the two lists of messages that wait: what the agent/inbox/spliced
// events of the log add up to.
type inbox struct {
	nextTurn, nextStep []llm.Message
}

func (b *inbox) list(target events.InboxList) *[]llm.Message {
	if target == events.NextTurn {
		return &b.nextTurn
	}
	return &b.nextStep
}

func (b *inbox) empty() bool { return len(b.nextTurn)+len(b.nextStep) == 0 }

// find returns where the message of an id waits.
func (b *inbox) find(id string) (target events.InboxList, at int, ok bool) {
	for _, target := range [...]events.InboxList{events.NextTurn, events.NextStep} {
		if at := slices.IndexFunc(*b.list(target), func(m llm.Message) bool { return m.ID == id }); at >= 0 {
			return target, at, true
		}
	}
	return "", 0, false
}

func (b *inbox) ids() []string {
	var out []string
	for _, m := range slices.Concat(b.nextTurn, b.nextStep) {
		out = append(out, m.ID)
	}
	return out
}

// splice applies one change and returns what left. INVALID_EVENT when the
// change does not fit the lists, which are then as before.
func (b *inbox) splice(s events.Splice) (removed []llm.Message, err error) {
	list := b.list(s.Target)
	if s.Start > len(*list) || s.RemovedCount > len(*list)-s.Start {
		return nil, seams.Errorf(seams.InvalidEvent, "agents.inbox", "%s has %d messages; a splice cannot remove %d from position %d", s.Target, len(*list), s.RemovedCount, s.Start)
	}
	removed = slices.Clone((*list)[s.Start : s.Start+s.RemovedCount])
	for i, m := range s.Inserted {
		_, _, waits := b.find(m.ID)
		goes := slices.ContainsFunc(removed, func(r llm.Message) bool { return r.ID == m.ID })
		twice := slices.ContainsFunc(s.Inserted[:i], func(r llm.Message) bool { return r.ID == m.ID })
		if waits && !goes || twice {
			return nil, seams.Errorf(seams.InvalidEvent, "agents.inbox", "a message %q waits already", m.ID)
		}
	}
	*list = slices.Concat((*list)[:s.Start], s.Inserted, (*list)[s.Start+s.RemovedCount:])
	return removed, nil
}

// Followup sends a message that gets a turn of its own, and wakes the agent.
// It is logged when Followup returns. DUPLICATE when a message of its id waits,
// INVALID_ARGUMENT when it is not a user's or a plugin's, INACTIVE_EFFECT when
// the agent is disposed, REENTRANT_APPEND from within an observer of the
// session's log.
func (a *Agent) Followup(ctx context.Context, m llm.Message) error {
	return a.send(ctx, events.NextTurn, true, m)
}

// Steer sends a message that joins the running turn at its next step, or opens
// one. It fails as Followup does.
func (a *Agent) Steer(ctx context.Context, m llm.Message) error {
	return a.send(ctx, events.NextStep, true, m)
}

// Inject adds messages to the next step there is, without waking the agent. It
// fails as Followup does, but as long as a disposed agent's session is being
// closed with SESSION_NOT_LIVE.
func (a *Agent) Inject(ctx context.Context, ms ...llm.Message) error {
	return a.send(ctx, events.NextStep, false, ms...)
}

// sendable checks that a message can stand in a log as a user's.
func sendable(m llm.Message) error {
	k := m.Source.Kind
	if m.ID == "" || m.Role != llm.User || k == "" || k == llm.FromModel || k == llm.FromTool {
		return seams.Errorf(seams.InvalidArgument, "agents.send", "message %q has role %q and source %q; expected an id, role %q and a source that is neither model nor tool", m.ID, m.Role, k, llm.User)
	}
	for i, b := range m.Content {
		if k := b.Kind(); k == llm.KindToolCall || k == llm.KindToolResult {
			return seams.Errorf(seams.InvalidArgument, "agents.send", "content[%d] of message %q is a %s block; only the agent makes those", i, m.ID, k)
		}
	}
	return nil
}

func (a *Agent) send(ctx context.Context, target events.InboxList, wakes bool, ms ...llm.Message) error {
	for _, m := range ms {
		if err := sendable(m); err != nil {
			return err
		}
	}
	if len(ms) == 0 {
		return nil
	}
	return a.edit(ctx, edit{
		plan: func() (*events.Splice, error) {
			if wakes && a.closing {
				return nil, a.gone("send to")
			}
			for i, m := range ms {
				_, _, waits := a.inbox.find(m.ID)
				if waits || slices.ContainsFunc(ms[:i], func(o llm.Message) bool { return o.ID == m.ID }) {
					return nil, seams.Errorf(seams.Duplicate, "agents.send", "a message %q waits already in the inbox of %q", m.ID, a.ID())
				}
			}
			// What wakes the agent after a cancel is for what comes after it.
			if wakes && a.act != nil && a.act.cause != nil {
				target = events.NextTurn
			}
			return &events.Splice{Target: target, Start: len(*a.inbox.list(target)), Inserted: ms}, nil
		},
		applied: func([]llm.Message) {
			for _, m := range ms {
				a.tell(func(ctx context.Context) { notify(ctx, a, Inserted, ItemNotice{Agent: a, Message: m}) })
			}
			if wakes {
				a.wake(ms[0].ID)
			}
		},
	})
}

// Pending returns the messages that wait for turns of their own and those that
// wait for the next step; the slices belong to the caller.
func (a *Agent) Pending() (nextTurn, nextStep []llm.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.inbox.nextTurn), slices.Clone(a.inbox.nextStep)
}

// Replace puts m where the message id waits. NOT_FOUND when it does not wait
// (any more), otherwise it fails as Followup does.
func (a *Agent) Replace(ctx context.Context, id string, m llm.Message) error {
	if err := sendable(m); err != nil {
		return err
	}
	return a.edit(ctx, edit{
		plan: func() (*events.Splice, error) {
			target, at, ok := a.inbox.find(id)
			if !ok {
				return nil, a.notWaiting(id)
			}
			if _, _, waits := a.inbox.find(m.ID); waits && m.ID != id {
				return nil, seams.Errorf(seams.Duplicate, "agents.replace", "a message %q waits already in the inbox of %q", m.ID, a.ID())
			}
			return &events.Splice{Target: target, Start: at, RemovedCount: 1, Inserted: []llm.Message{m}}, nil
		},
		applied: func(removed []llm.Message) {
			if i := slices.Index(a.woken, id); i >= 0 {
				a.woken[i] = m.ID
			}
			a.tell(func(ctx context.Context) {
				notify(ctx, a, Discarded, ItemNotice{Agent: a, Message: removed[0]})
				notify(ctx, a, Inserted, ItemNotice{Agent: a, Message: m})
			})
		},
	})
}

// Remove takes a waiting message out; an agent it has woken goes back to sleep.
// NOT_FOUND when it does not wait (any more).
func (a *Agent) Remove(ctx context.Context, id string) error {
	return a.edit(ctx, edit{
		plan: func() (*events.Splice, error) {
			target, at, ok := a.inbox.find(id)
			if !ok {
				return nil, a.notWaiting(id)
			}
			return &events.Splice{Target: target, Start: at, RemovedCount: 1}, nil
		},
		applied: a.discarded,
	})
}

// discard takes out the messages of ids as far as they still wait, as cancelled
//
func (a *Agent) discard(ctx context.Context, ids []string) error {
	return a.edit(ctx, edit{
		all: true,
		plan: func() (*events.Splice, error) {
			for _, target := range [...]events.InboxList{events.NextTurn, events.NextStep} {
				list := *a.inbox.list(target)
				in := func(m llm.Message) bool { return slices.Contains(ids, m.ID) }
				start := slices.IndexFunc(list, in)
				if start < 0 {
					continue
				}
				n := slices.IndexFunc(list[start:], func(m llm.Message) bool { return !in(m) })
				if n < 0 {
					n = len(list) - start
				}
				return &events.Splice{Target: target, Start: start, RemovedCount: n, Outcome: "canceled"}, nil
			}
			return nil, nil
		},
		applied: a.discarded,
	})
}

func (a *Agent) discarded(removed []llm.Message) {
	for _, m := range removed {
		a.woken = slices.DeleteFunc(a.woken, func(id string) bool { return id == m.ID })
		a.tell(func(ctx context.Context) { notify(ctx, a, Discarded, ItemNotice{Agent: a, Message: m}) })
	}
}

// claim takes what a step of the turn begins with: all that waits for the next
// step and, for the first step, one message that waits for a turn.
func (a *Agent) claim(ctx context.Context, turn int, first bool) ([]llm.Message, error) {
	var out []llm.Message
	targets := []events.InboxList{events.NextStep}
	if first {
		targets = append(targets, events.NextTurn)
	}
	for _, target := range targets {
		err := a.edit(ctx, edit{
			plan: func() (*events.Splice, error) {
				n := len(*a.inbox.list(target))
				if target == events.NextTurn {
					n = min(n, 1)
				}
				if n == 0 || a.act.cause != nil {
					return nil, nil
				}
				return &events.Splice{Target: target, RemovedCount: n}, nil
			},
			applied: func(removed []llm.Message) {
				for _, m := range removed {
					a.woken = slices.DeleteFunc(a.woken, func(id string) bool { return id == m.ID })
					a.tell(func(ctx context.Context) { notify(ctx, a, Claimed, ItemNotice{Agent: a, Message: m, Turn: turn}) })
				}
				out = append(out, removed...)
			},
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// edit is a change of the inbox. Both functions run with a.mu held.
type edit struct {
	plan    func() (*events.Splice, error) // nil: there is nothing to do
	applied func(removed []llm.Message)
	all     bool // plan and apply until there is nothing to do
}

// editing marks the context in which an agent's change is logged.
type editing struct{ *Agent }

// edit plans, logs and applies a change, one at a time: what is logged fits
// what was logged before it, and what is not logged does not happen.
func (a *Agent) edit(ctx context.Context, e edit) error {
	if ctx.Value(editing{a}) != nil {
		return seams.Errorf(seams.ReentrantAppend, "agents.inbox", "an observer changed the inbox of %q from within the notice of another change; do it after the notice has returned", a.ID())
	}
	gone := func() error {
		return seams.Errorf(seams.Aborted, "agents.inbox", "waiting to change the inbox of %q: %w", a.ID(), context.Cause(ctx))
	}
	if ctx.Err() != nil {
		return gone()
	}
	select {
	case a.editor <- struct{}{}:
	case <-ctx.Done():
		return gone()
	}
	ctx = context.WithoutCancel(ctx)
	err := a.editAlone(context.WithValue(ctx, editing{a}, true), e)
	<-a.editor
	a.notices.deliver(ctx)
	return err
}

func (a *Agent) editAlone(ctx context.Context, e edit) error {
	for {
		a.mu.Lock()
		s, err := e.plan()
		a.mu.Unlock()
		if s == nil || err != nil {
			return err
		}
		if s.Inserted == nil {
			s.Inserted = []llm.Message{}
		}
		if _, err := a.session.Append(ctx, events.InboxSpliced.New(*s)); err != nil {
			return err
		}
		a.mu.Lock()
		removed, err := a.inbox.splice(*s)
		if err == nil {
			e.applied(removed)
		}
		a.mu.Unlock()
		if err != nil || !e.all {
			return err
		}
	}
}

func (a *Agent) gone(did string) error {
	return seams.Errorf(seams.InactiveEffect, "agents", "cannot %s agent %q: it is disposed", did, a.ID())
}

func (a *Agent) notWaiting(id string) error {
	return seams.Errorf(seams.NotFound, "agents.inbox", "no message %q waits in the inbox of %q; it may have been claimed", id, a.ID())
}
