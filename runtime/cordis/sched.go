package cordis

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ouro-run/ouro/seams"
)

// event is something the scheduler decides on.
type event struct {
	kind eventKind
	f    *Fiber
	ep   *episode
	eff  *effect
	err  error
	last bool // evStage: Apply is at its end; evUndone: it is not to be run again
	fn   func(*state)
	done chan struct{} // made when the poster has to wait for another drainer

	ctx    *Context // evProvide: the provider
	nested bool     // evUndo: asked for inside another undo of the same fiber
	run    bool     // answer of evUndo: the caller runs the inverse
	wait   bool     // answer of evUndo: the caller waits for it
}

type eventKind uint8

const (
	evFunc    eventKind = iota // fn
	evStage                    // a stage of Apply has landed
	evUndone                   // an inverse has returned
	evDrained                  // a closed gate has become empty
	evPoke                     // look at f again
	evProvide                  // bind eff; answers err
	evUndo                     // undo eff ahead of time
)

// command is something the scheduler wants done elsewhere, because plugin code
// runs in it or a clock is read. Commands of one fiber never overlap: the next
// one follows on the completion of the one before.
type command struct {
	kind   commandKind
	f      *Fiber
	ep     *episode
	eff    *effect
	again  bool
	retake bool
}

type commandKind uint8

const (
	cmdStage  commandKind = iota // run Apply, or its next step
	cmdStop                      // end a diverted step sequence
	cmdUndo                      // run an inverse
	cmdDrain                     // bound the frames inside a closed gate
	cmdPoke                      // post evPoke
	cmdTell                      // hand notes to observers
	cmdReport                    // hand over reports
)

// executor runs commands. The production one starts goroutines; tests park them
// and choose which completes next.
type executor interface {
	start(c *Container, cmds []command)
}

// drainBound is how many events one caller processes for others before it hands
// the queue to a goroutine of its own.
const drainBound = 256

// sched is the combining queue: whoever posts while nobody drains, drains.
type sched struct {
	mu   sync.Mutex
	busy bool
	q    []*event
	free []*event // the array of the last batch, for the next
}

// post hands ev to the scheduler. It never waits for plugin code.
func (c *Container) post(ev *event) {
	c.sched.mu.Lock()
	c.sched.q = append(c.sched.q, ev)
	if c.sched.busy {
		c.sched.mu.Unlock()
		return
	}
	c.exec.start(c, c.drain(drainBound))
}

// do runs fn as one event and returns when it has been carried out with all its
// immediate consequences.
func (c *Container) do(fn func(*state)) {
	if out := c.decide(fn); len(out) > 0 {
		c.exec.start(c, out)
	}
}

// published returns when what was decided so far can be seen: a fiber shows its
// new state in the middle of a step, what it registered at the step's end.
func (c *Container) published() { c.do(func(*state) {}) }

// decide is do, and answers the commands that are to be started.
func (c *Container) decide(fn func(*state)) []command {
	ev := newEvent(evFunc)
	ev.fn = fn
	out := c.submit(ev)
	ev.free()
	return out
}

// events of callers that wait for their outcome are used again.
var eventPool = sync.Pool{New: func() any { return new(event) }}

func newEvent(kind eventKind) *event {
	ev := eventPool.Get().(*event)
	ev.kind = kind
	return ev
}

func (ev *event) free() {
	*ev = event{}
	eventPool.Put(ev)
}

// submit carries out ev and answers the commands that are to be started; none
// when somebody else was draining, who then starts them.
func (c *Container) submit(ev *event) []command {
	s := &c.sched
	s.mu.Lock()
	s.q = append(s.q, ev)
	if s.busy {
		done := make(chan struct{})
		ev.done = done
		s.mu.Unlock()
		<-done
		return nil
	}
	return c.drain(drainBound)
}

// call is submit for an event whose commands the executor gets.
func (c *Container) call(ev *event) {
	if out := c.submit(ev); len(out) > 0 {
		c.exec.start(c, out)
	}
}

// drain is entered with the mutex held and leaves it unlocked. It answers the
// commands to start.
func (c *Container) drain(bound int) []command {
	s := &c.sched
	s.busy = true
	for n := 0; len(s.q) > 0; {
		if n > bound {
			c.wg.Go(func() {
				s.mu.Lock()
				c.exec.start(c, c.drain(1<<30))
			})
			out := c.st.out
			c.st.out = nil
			s.mu.Unlock()
			return out
		}
		batch := s.q
		s.q = s.free[:0]
		s.mu.Unlock()
		for _, ev := range batch {
			c.st.step(ev)
			c.st.sweep()
		}
		c.st.refresh()
		s.mu.Lock()
		for i, ev := range batch {
			if ev.done != nil {
				close(ev.done)
			}
			batch[i] = nil
		}
		n += len(batch)
		s.free = batch
	}
	s.busy = false
	out := c.st.out
	c.st.out = nil
	s.mu.Unlock()
	return out
}

func (st *state) step(ev *event) {
	switch ev.kind {
	case evFunc:
		ev.fn(st)
	case evStage:
		st.staged(ev)
	case evUndone:
		st.undone(ev)
	case evDrained:
		if ev.ep.f.ep == ev.ep && ev.ep.gate.empty() {
			ev.ep.life.drained()
			st.startUndo(ev.ep.f)
		}
	case evPoke:
		if ev.last {
			st.takeover(ev.f)
		}
		if st.mut.has(mutLazyLeave) && ev.f.phase == active && !st.same(ev.f) {
			st.leave(ev.f)
		}
		st.mark(ev.f)
	case evProvide:
		ev.err = st.provide(ev.ctx, ev.eff)
	case evUndo:
		st.undoNow(ev)
	}
}

// goroutines is the production executor: one goroutine carries the commands of
// one fiber as long as they follow each other.
type goroutines struct{}

func (goroutines) start(c *Container, cmds []command) {
	for _, cmd := range cmds {
		c.wg.Add(1)
		go c.carryOn(cmd)
	}
}

func (c *Container) carryOn(cmd command) {
	defer c.wg.Done()
	c.carry(cmd)
}

func (c *Container) carry(cmd command) {
	ended := false
	defer func() {
		if !ended {
			if ev := aborted(cmd); ev != nil {
				c.post(ev)
			}
		}
	}()
	for {
		ev := c.execute(cmd)
		if ev == nil {
			ended = true
			return
		}
		ended = true
		c.sched.mu.Lock()
		c.sched.q = append(c.sched.q, ev)
		if c.sched.busy {
			c.sched.mu.Unlock()
			return
		}
		out := c.drain(drainBound)
		if len(out) == 0 {
			return
		}
		mine := -1
		for i := range out {
			if out[i].f == cmd.f {
				mine = i
			}
		}
		if mine < 0 {
			c.exec.start(c, out)
			return
		}
		next := out[mine]
		ended = false
		c.exec.start(c, append(out[:mine:mine], out[mine+1:]...))
		cmd = next
	}
}

// aborted is the event of a command in which plugin code called Goexit: its work
// is over all the same.
func aborted(cmd command) *event {
	switch cmd.kind {
	case cmdStage, cmdStop:
		return &event{kind: evStage, ep: cmd.ep, last: true, err: errGoexit}
	case cmdUndo:
		return &event{kind: evUndone, eff: cmd.eff, last: cmd.again, err: errGoexit}
	default:
		return nil
	}
}

// execute runs one command to its end and answers the event that reports it.
func (c *Container) execute(cmd command) *event {
	switch cmd.kind {
	case cmdStage:
		return c.stage(cmd.ep)
	case cmdStop:
		err := contain(func() error { cmd.ep.run.stop(); return nil })
		if err != nil {
			c.report(Report{Fiber: cmd.f, Phase: "apply", Err: err})
		}
		return &event{kind: evStage, ep: cmd.ep, last: true}
	case cmdUndo:
		return &event{kind: evUndone, eff: cmd.eff, err: c.undo(c.ctx, cmd.eff), last: cmd.again}
	case cmdDrain:
		cmd.ep.life.drain(c.opts.DrainTimeout)
		return nil
	case cmdTell:
		c.tellAll()
		return nil
	case cmdReport:
		c.reportAll()
		return nil
	default:
		return &event{kind: evPoke, f: cmd.f, last: cmd.retake}
	}
}

// stages is a running Apply.
type stages struct {
	next func() (seams.Undo, error, bool)
	stop func()
}

// stage runs Apply, or one step of it, for ep.
func (c *Container) stage(ep *episode) *event {
	f := ep.f
	ctx, ev := &ep.body, &ep.landed
	*ev = event{kind: evStage, ep: ep}
	var undo seams.Undo
	ev.err = contain(func() (err error) {
		if ep.run == nil {
			cfg, err := f.config(ctx, f.raw, f.resolve)
			if err != nil {
				return err
			}
			if t := f.p.ApplyTimeout; t > 0 {
				ep.limit = time.AfterFunc(t, func() { ep.life.cancel(f.tooSlow()) })
			}
			if f.p.Apply != nil {
				ev.last = true
				return f.p.Apply(ctx, cfg)
			}
			next, stop := iter.Pull2(f.p.Steps(ctx, cfg))
			ep.run = &stages{next, stop}
		}
		var more bool
		undo, err, more = ep.run.next()
		ev.last = !more || err != nil
		return err
	})
	if ev.last && ep.limit != nil && !ep.limit.Stop() && ev.err == nil {
		ev.err = f.tooSlow()
	}
	if ev.err != nil {
		ev.last = true
		if ep.run != nil {
			_ = contain(func() error { ep.run.stop(); return nil })
		}
		if seams.CodeOf(ev.err) == seams.Unknown {
			ev.err = seams.Errorf(seams.ApplyFailed, f.label(), "%w", ev.err)
		}
	}
	if undo != nil {
		ep.record(&effect{name: "step", kind: userEffect, undo: undo})
	}
	return ev
}

func (f *Fiber) tooSlow() error {
	return seams.Errorf(seams.Timeout, f.label(), "apply took longer than %s", f.p.ApplyTimeout)
}

// config makes the configuration of one activation: resolved, then validated.
func (f *Fiber) config(ctx *Context, raw any, resolve func(*Context) (any, error)) (any, error) {
	if resolve != nil {
		var err error
		if raw, err = resolve(ctx); err != nil {
			return nil, err
		}
	}
	if f.p.Config == nil {
		return raw, nil
	}
	return f.p.Config.Resolve(raw)
}

// undo runs one inverse with a deadline. When it passes, the effect is reported
// as stuck, once; the call is not abandoned. base gives values, not its end.
func (c *Container) undo(base context.Context, e *effect) error {
	if e.undo == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(base), c.opts.UndoTimeout,
		seams.Errorf(seams.Timeout, e.label(), "undoing took longer than %s", c.opts.UndoTimeout))
	defer cancel()
	timer := time.AfterFunc(c.opts.UndoTimeout, func() {
		c.do(func(st *state) {
			if e.state == running {
				st.stuck = append(st.stuck, e)
				st.check = append(st.check, e.ep.f)
				st.blame(Report{Fiber: e.ep.f, Phase: "undo", Label: e.label(),
					Err: seams.Errorf(seams.Stuck, e.ep.f.label(), "undoing %s has not ended after %s", e.label(), c.opts.UndoTimeout)})
			}
		})
	})
	defer timer.Stop()
	err := contain(func() error { return e.undo(withFrame(ctx, e.ep, undoFrame)) })
	if err != nil {
		err = seams.Errorf(seams.UndoFailed, e.ep.f.label(), "undoing %s: %w", e.label(), err)
	}
	return err
}

// contain calls plugin code: a panic becomes PANICKED, and so does Goexit.
func contain(f func() error) (err error) {
	ended := false
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok {
				err = &seams.Error{Code: seams.Panicked, Msg: fmt.Sprintf("%v\n%s", e, debug.Stack()), Err: e}
			} else {
				err = &seams.Error{Code: seams.Panicked, Msg: fmt.Sprintf("%v\n%s", r, debug.Stack())}
			}
		} else if !ended && err == nil {
			err = errGoexit
		}
	}()
	err = f()
	ended = true
	return err
}

var errGoexit = seams.Errorf(seams.Panicked, "", "runtime.Goexit was called")
