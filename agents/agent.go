package agents

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// Status says whether an agent works.
type Status string

// Statuses of an agent.
const (
	Idle    Status = "idle"
	Running Status = "running"
)

// Agent is one agent with its session. [Registry] makes it.
type Agent struct {
	deps    *Deps
	waits   *waits
	scope   *seams.Scope
	session events.Session
	over    chan struct{} // closed when the agent is disposed

	editor  chan struct{} // held by whoever changes the inbox
	notices notices

	mu      sync.Mutex
	undo    seams.Undo // ends the agent ahead of its owner
	options Options
	edits   int // counts the times options were set
	inbox   inbox
	act     *activity // what runs now; nil while idle
	// woken are the messages that want a turn which no running turn will give
	// them: they came while nothing ran, or after a cancel.
	woken    []string
	locked   bool          // being published: nothing starts
	driven   bool          // the driver goroutine, or maintenance, runs
	quiet    chan struct{} // closed when driven ends; nil while it is false
	closing  bool          // being disposed: nothing starts or is sent
	unlogged error         // why the last turn's start or end is not in the log

	// The rest belongs to the driver.
	header  []byte          // JSON of the last request/header, nil before the first of this process
	asked   int             // the count of edits that the last request was made with
	context shown           // to the model
	spent   spend           // by the session
	callIDs map[string]bool // in the session's history
}

// activity is one turn, or one piece of maintenance.
type activity struct {
	ctx         context.Context
	cancel      context.CancelCauseFunc
	cause       *events.Cause // why it was cancelled; nil if it was not
	maintenance bool
}

func (a *Agent) newActivity() *activity {
	act := &activity{}
	act.ctx, act.cancel = context.WithCancelCause(context.WithValue(context.Background(), agentKey{}, a))
	return act
}

type agentKey struct{}

// From returns the agent on whose behalf ctx runs: the one whose turn called the
// tool or the listener that got it.
func From(ctx context.Context) (*Agent, bool) {
	a, ok := ctx.Value(agentKey{}).(*Agent)
	return a, ok
}

// ID returns the agent's id, which is its session's.
func (a *Agent) ID() string { return a.session.Header().ID }

// Session returns the agent's log.
func (a *Agent) Session() events.Session { return a.session }

// Scope returns the scope of the agent: tools, listeners and prompt sections
// registered in it are for this agent alone.
func (a *Agent) Scope() *seams.Scope { return a.scope }

// Status says whether a turn runs or is about to.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.act != nil && !a.act.maintenance {
		return Running
	}
	return Idle
}

// Options returns the options in force, with their defaults.
func (a *Agent) Options() Options {
	o, _ := a.settings()
	return o
}

// settings returns the options with the count of the times they were set.
func (a *Agent) settings() (Options, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.options, a.edits
}

// Configure changes the options in place: a running turn goes on and takes
// them at its next step. INVALID_ARGUMENT changes nothing.
func (a *Agent) Configure(o Options) error {
	o, err := o.check()
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.options = o
	a.edits++
	return nil
}

// MarshalJSON writes {"id", "status"}, which is what an event tells of an agent.
func (a *Agent) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID     string `json:"id"`
		Status Status `json:"status"`
	}{a.ID(), a.Status()})
}

// wake has a turn begin for a message that was just filed, unless the running
// one will take it or the agent is being disposed. a.mu is held.
func (a *Agent) wake(id string) {
	if a.closing || a.act != nil && !a.act.maintenance && a.act.cause == nil {
		return
	}
	a.woken = append(a.woken, id)
	if !a.driven && !a.locked {
		a.launch()
	}
}

// launch starts the driver. a.mu is held.
func (a *Agent) launch() {
	a.driven, a.quiet = true, make(chan struct{})
	a.begin()
	go a.drive()
}

// begin makes the agent run. a.mu is held.
func (a *Agent) begin() {
	a.act, a.woken = a.newActivity(), nil
}

// next begins again for what has woken the agent meanwhile, or ends the driver.
func (a *Agent) next() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.woken) > 0 {
		a.begin()
		return true
	}
	a.driven = false
	close(a.quiet)
	return false
}

// drive is the agent's goroutine: it runs turns until nothing wakes it. All
// notices of its status come from here, so they are in order.
func (a *Agent) drive() {
	ctx := context.WithValue(context.Background(), agentKey{}, a)
	for more := true; more; more = a.next() {
		notify(ctx, a, StatusChanged, StatusNotice{a, Running})
		for a.settle(a.turn(a.now())) {
		}
		notify(ctx, a, StatusChanged, StatusNotice{a, Idle})
	}
}

// Cancel ends what runs, for a cause, and empties the inbox unless keepInbox.
// It does not wait: [Agent.WhenIdle] does. The first cause of a turn counts. A
// message that wakes the agent after the cancel gets its turn when the cancelled
// one has ended. An idle agent with an empty inbox is left as it is. An error
// says that the inbox could not be emptied; the turn is cancelled in any case.
func (a *Agent) Cancel(ctx context.Context, cause events.Cause, keepInbox bool) error {
	a.mu.Lock()
	act := a.act
	if act != nil && act.cause == nil {
		act.cause = &cause
	}
	var ids []string
	if !keepInbox {
		ids = a.inbox.ids()
		a.woken = nil
	}
	a.mu.Unlock()
	if act != nil {
		act.cancel(seams.Errorf(seams.Aborted, "agents.cancel", "cancelled: %s", cause.Kind))
	}
	if len(ids) == 0 {
		return nil
	}
	return a.discard(context.WithoutCancel(ctx), ids)
}

// WhenIdle returns when nothing of the agent runs, however it ended: at once if
// that is so now. It fails with ABORTED when ctx ends before, and with
// WOULD_DEADLOCK when it is called by what the agent itself runs.
func (a *Agent) WhenIdle(ctx context.Context) error {
	done, err := a.waitable(ctx)
	if err != nil {
		return err
	}
	defer done()
	return a.idle(ctx)
}

func (a *Agent) idle(ctx context.Context) error {
	for {
		a.mu.Lock()
		driven, quiet := a.driven, a.quiet
		a.mu.Unlock()
		if !driven {
			return nil
		}
		select {
		case <-quiet:
		case <-ctx.Done():
			return seams.Errorf(seams.Aborted, "agents.whenIdle", "waiting for agent %q: %w", a.ID(), context.Cause(ctx))
		}
	}
}

// waitable checks that who waits for the agent is not what it runs, through
// agents that it waits for too. Until done is called, who waits is known to.
func (a *Agent) waitable(ctx context.Context) (done func(), err error) {
	a.mu.Lock()
	driven := a.driven
	a.mu.Unlock()
	self, child := From(ctx)
	if driven && (ctx.Value(editing{a}) != nil || child && !a.waits.add(self, a)) {
		return nil, seams.Errorf(seams.WouldDeadlock, "agents.whenIdle", "agent %q would wait for itself", a.ID())
	}
	return func() {
		if driven && child {
			a.waits.drop(self, a)
		}
	}, nil
}

// waits is which agents of a registry wait for which.
type waits struct {
	mu sync.Mutex
	of map[*Agent][]*Agent
}

// add notes that a waits for b, unless b waits for a.
func (w *waits) add(a, b *Agent) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lead(b, a) {
		return false
	}
	w.of[a] = append(w.of[a], b)
	return true
}

func (w *waits) lead(from, to *Agent) bool {
	return from == to || slices.ContainsFunc(w.of[from], func(n *Agent) bool { return w.lead(n, to) })
}

func (w *waits) drop(a, b *Agent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.of[a], b)
	if w.of[a] = slices.Delete(w.of[a], i, i+1); len(w.of[a]) == 0 {
		delete(w.of, a)
	}
}

// RunMaintenance runs task while the agent is idle and keeps turns from
// beginning meanwhile. The task's context ends with ctx, and when the agent is
// cancelled or disposed. AGENT_BUSY when something runs, INACTIVE_EFFECT when
// the agent is disposed.
func (a *Agent) RunMaintenance(ctx context.Context, task func(context.Context) error) error {
	a.mu.Lock()
	switch {
	case a.closing:
		a.mu.Unlock()
		return a.gone("maintain")
	case a.driven || a.locked:
		a.mu.Unlock()
		return a.busy("maintain")
	}
	act := a.newActivity()
	act.maintenance = true
	a.driven, a.quiet, a.act = true, make(chan struct{}), act
	a.mu.Unlock()

	defer func() {
		act.cancel(nil)
		a.mu.Lock()
		a.act = nil
		a.mu.Unlock()
		if a.next() {
			go a.drive()
		}
	}()
	defer context.AfterFunc(ctx, func() { act.cancel(context.Cause(ctx)) })()
	return task(act.ctx)
}

// Dispose ends the agent: what runs is cancelled and waited for, what its Setup
// made is undone, and its session is closed. Idempotent; every call returns
// when the agent is gone; callers but the first also when their ctx ends, with
// its error. WOULD_DEADLOCK from within what the agent runs.
func (a *Agent) Dispose(ctx context.Context) error {
	done, err := a.waitable(ctx)
	if err != nil {
		return err
	}
	defer done()
	a.mu.Lock()
	undo := a.undo
	a.mu.Unlock()
	return undo(ctx)
}

func (a *Agent) busy(did string) error {
	return seams.Errorf(seams.AgentBusy, "agents", "cannot %s agent %q while it is at work", did, a.ID())
}

// restore brings the agent to where its log ends.
func (a *Agent) restore() error {
	for _, e := range a.session.Events(0) {
		switch e.Type {
		case events.InboxSpliced.Name:
			s, err := events.InboxSpliced.Decode(e)
			if err == nil {
				_, err = a.inbox.splice(s)
			}
			if err != nil {
				return seams.Errorf(seams.InvalidEvent, "agents.restore", "event %d of session %q: %w", e.Seq, a.ID(), err)
			}
		case events.AssistantChunk.Name:
			c, err := events.AssistantChunk.Decode(e)
			if err != nil {
				return err
			}
			if u, ok := c.Chunk.(llm.Usage); ok {
				a.spent.add(u.Usage, a.options.Price)
			}
		case events.AssistantMessage.Name:
			r, err := events.AssistantMessage.Decode(e)
			if err != nil {
				return err
			}
			for _, c := range r.Message.Content.ToolCalls() {
				a.callIDs[c.ID] = true
			}
		}
	}
	return nil
}

// hasNextStep reports whether messages wait for the next step.
func (a *Agent) hasNextStep() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.inbox.nextStep) > 0
}

// settle ends the activity. After a normal end it begins another if messages
// wait.
func (a *Agent) settle(normal bool) (again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.act.cancel(nil)
	if normal && a.act.cause == nil && !a.inbox.empty() && !a.closing {
		a.begin()
		return true
	}
	a.act = nil
	return false
}

// now returns the running activity.
func (a *Agent) now() *activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.act
}

// cause returns why the activity was cancelled, nil if it was not.
func (a *Agent) cause(act *activity) *events.Cause {
	a.mu.Lock()
	defer a.mu.Unlock()
	return act.cause
}
