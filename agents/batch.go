package agents

import (
	"context"
	"errors"
	"sync"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

// batch runs the calls of one reply. Calls start in the model's order: an
// exclusive one alone, parallel ones beside each other up to the option's
// number. The policy phases of the pipeline run in the model's order, and so are
// results logged (A-94…A-98). All but the calls themselves runs in the driver.
type batch struct {
	*step
	calls []call
	slots []*slot // of the calls that were started

	running   int
	exclusive bool // what runs wants to be alone
	finished  chan *slot
	logged    int // results in the log

	contexts  []llm.Message // that calls have for the next step
	reminders []llm.Message
	concluded bool
	over      *llm.Failure // the limit that ended the batch
}

// slot is one started call.
type slot struct {
	seq    int           // of its tool/call
	judged chan struct{} // closed when its policy has let it pass, or it is done
	done   chan struct{} // closed when it is done
	result *tools.Result // set before done
	ended  bool          // the driver knows that it is done
}

// run returns when every call has its result in the log.
func (b *batch) run(ctx context.Context) error {
	b.finished = make(chan *slot, len(b.calls))
	err := b.start(ctx)
	for b.running > 0 {
		err = errors.Join(err, b.await(<-b.finished))
	}
	for _, c := range b.calls[len(b.slots):] {
		err = errors.Join(err, b.skip(c))
	}
	if b.over == nil && ctx.Err() == nil {
		b.contexts = append(b.contexts, b.reminders...)
	}
	for _, m := range b.contexts {
		err = errors.Join(err, b.pass(ctx, m))
	}
	return err
}

// start starts calls until all are, or one may not be, or something fails.
func (b *batch) start(ctx context.Context) error {
	for _, c := range b.calls {
		text, over := b.repeat.see(c, b.opts.Limits.RepeatExempt)
		if b.over = over; over != nil {
			return nil
		}
		if text != "" {
			b.reminders = append(b.reminders, notice(text))
		}
		args := arguments(c.Arguments)
		if err := b.makeRoom(ctx, c, args); err != nil || ctx.Err() != nil {
			return err
		}
		e, err := b.append(b.called(c))
		if err != nil {
			return err
		}
		b.launch(ctx, c, args, e.Seq)
	}
	return nil
}

// makeRoom waits until the next call may start: the policy of the one before
// has let it pass, and what runs leaves room for it.
func (b *batch) makeRoom(ctx context.Context, c call, args any) error {
	if n := len(b.slots); n > 0 {
		for judged := b.slots[n-1].judged; judged != nil; {
			select {
			case <-judged:
				judged = nil
			case s := <-b.finished:
				if err := b.await(s); err != nil {
					return err
				}
			}
		}
	}
	for ctx.Err() == nil {
		// A tool may be another one by the time there is room.
		exclusive := b.deps.Tools.ExecutionMode(ctx, b.scope, c.Name, args) != tools.Parallel
		if b.running == 0 || !exclusive && !b.exclusive && b.running < b.opts.MaxParallelToolCalls {
			b.exclusive = exclusive
			return nil
		}
		if err := b.await(<-b.finished); err != nil {
			return err
		}
	}
	return nil
}

// launch runs a call in a goroutine of its own.
func (b *batch) launch(ctx context.Context, c call, args any, seq int) {
	s := &slot{seq: seq, judged: make(chan struct{}), done: make(chan struct{})}
	var before *slot
	if n := len(b.slots); n > 0 {
		before = b.slots[n-1]
	}
	b.slots = append(b.slots, s)
	b.running++
	judged := sync.OnceFunc(func() { close(s.judged) })
	go func() {
		s.result = b.deps.Tools.Execute(ctx, tools.Call{
			ID: c.ID, Name: c.Name, Arguments: args, Agent: b.ID(), Scope: b.scope,
			Barrier: func(ctx context.Context) error {
				judged()
				return b.session.Flush(ctx)
			},
			BeforePost: func(ctx context.Context) {
				if before != nil {
					select {
					case <-before.done:
					case <-ctx.Done():
					}
				}
			},
		})
		judged()
		close(s.done)
		b.finished <- s
	}()
}

// await takes note of a call that is done and logs the results that are next.
func (b *batch) await(s *slot) error {
	b.running--
	s.ended = true
	var err error
	for b.logged < len(b.slots) && b.slots[b.logged].ended {
		err = errors.Join(err, b.commit(b.calls[b.logged], b.slots[b.logged]))
		b.logged++
	}
	return err
}

// commit logs the result of a call. One that the log does not take is replaced
// by an error that says so: every call has a result.
func (b *batch) commit(c call, s *slot) error {
	r := s.result
	result := b.result(c, r.IsError, r.Content, r.Error)
	err := b.log(events.ToolResult.New(result).Citing(s.seq))
	if err != nil {
		f := &tools.Failure{Message: "the result could not be logged: " + err.Error(), Code: seams.CodeOf(err)}
		text := llm.Content{llm.Text{Text: "Error: " + f.Message}}
		return b.log(events.ToolResult.New(b.result(c, true, text, f)).Citing(s.seq))
	}
	b.contexts = append(b.contexts, r.AdditionalContexts...)
	b.concluded = b.concluded || r.ConcludesTurn
	return nil
}

// skip logs a call that was not started, with a result that says so.
func (b *batch) skip(c call) error {
	e, err := b.append(b.called(c))
	if err != nil {
		return err
	}
	f := &tools.Failure{Message: "the turn ended before this call was started; it had no effect", Code: seams.AbortedBeforeDispatch}
	if b.over != nil {
		f.Message = b.over.Message + "; this call was not run"
		f.Code = b.over.Code
	}
	text := llm.Content{llm.Text{Text: "Error: " + f.Message + " [" + string(f.Code) + "]"}}
	return b.log(events.ToolResult.New(b.result(c, true, text, f)).Citing(e.Seq))
}

func (b *batch) called(c call) events.Draft {
	return events.ToolCall.New(events.Call{Turn: b.turn.n, Step: b.n, CallID: c.ID, Name: c.Name, Arguments: c.Arguments})
}

func (b *batch) result(c call, isError bool, content llm.Content, f *tools.Failure) events.CallResult {
	r := events.CallResult{Turn: b.turn.n, Step: b.n, Message: llm.NewToolResult(c.ID, isError, content...)}
	if f != nil {
		r.Error = &events.CallError{Code: string(f.Code), Message: f.Message}
	}
	return r
}

// pass hands a context to the next step. One that cannot stand in a log is its
// author's fault and is left out.
func (b *batch) pass(ctx context.Context, m llm.Message) error {
	err := b.Inject(context.WithoutCancel(ctx), m)
	if errors.Is(err, seams.InvalidArgument) || errors.Is(err, seams.Duplicate) {
		b.contain(ctx, err)
		return nil
	}
	return err
}

// notice is what the loop tells the model.
func notice(text string) llm.Message {
	return llm.NewMessage(llm.User, llm.Source{Kind: llm.FromPlugin, Plugin: loopPlugin, Form: "notice"}, llm.Text{Text: text})
}
