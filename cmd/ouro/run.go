package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ouro-run/ouro/agents"
	"github.com/ouro-run/ouro/builtins"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/llm"
)

// task is what `run` was asked to do.
type task struct {
	prompt, config, agent, model, format string
	maxSteps                             int
	timeout                              time.Duration
	quiet                                bool
}

// stdinWait is how long run waits for the first byte of a piped stdin that is
// context to a prompt.
const stdinWait = 3 * time.Second

// maxStdin bounds what is read from stdin, in bytes.
const maxStdin = 8 << 20

// run runs one task.
func run(ctx context.Context, p *program, args []string) int {
	var t task
	var prompt string
	fs := flags("run [flags] \"task\"")
	fs.StringVar(&prompt, "p", "", "the task; it may also be given as an argument, or on stdin")
	fs.StringVar(&t.config, "config", "", "the composition; ./"+configName+" if it is not given")
	fs.StringVar(&t.agent, "agent", "", "the agent; the first one if it is not given")
	fs.StringVar(&t.model, "model", "", "`provider/model`, or a model alone")
	fs.StringVar(&t.format, "output-format", "text", "text, json or stream-json")
	fs.IntVar(&t.maxSteps, "max-steps", 0, "model requests of the turn; 0 is what the composition says")
	fs.DurationVar(&t.timeout, "timeout", 0, "end the run after this time, such as 5m")
	fs.BoolVar(&t.quiet, "q", false, "no progress on stderr")
	rest, code, done := p.parse(fs, args, -1)
	if done {
		return code
	}
	o, err := newOutput(p, t)
	if err != nil {
		return p.fail(err)
	}
	switch {
	case t.maxSteps < 0:
		return o.refuse(seams.Errorf(seams.InvalidArgument, "", "--max-steps %d: expected a positive number", t.maxSteps))
	case t.timeout < 0:
		return o.refuse(seams.Errorf(seams.InvalidArgument, "", "--timeout %s: expected a positive duration, such as 5m", t.timeout))
	case t.timeout > 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.timeout, errTimeout)
		defer cancel()
	}
	if t.prompt, err = p.prompt(ctx, strings.TrimSpace(strings.Join(append([]string{prompt}, rest...), " "))); err != nil {
		return o.refuse(err)
	}
	file, text, note, err := p.composition(t.config)
	if err != nil {
		return o.refuse(err)
	}
	if note != "" && !t.quiet {
		fmt.Fprintln(p.stderr, "ouro:", note)
	}
	opt := p.options(file, text)
	opt.Watch = true
	r, err := builtins.Open(ctx, opt)
	if err != nil {
		return o.refuse(err)
	}
	result, err := p.turn(ctx, r, t, o)
	cerr := r.Close(context.WithoutCancel(ctx))
	if err != nil {
		return o.refuse(err)
	}
	if cerr != nil {
		fmt.Fprintln(p.stderr, "ouro: stopping:", cerr)
	}
	if cause := context.Cause(ctx); cause != nil && result.Subtype == agents.Cancelled {
		result.Error.Message = "the run was cancelled: " + cause.Error()
	}
	return o.result(result, exitCode(ctx, result))
}

var errTimeout = errors.New("the run took longer than --timeout")

// turn runs the task with the chosen agent and shows it as it goes.
func (p *program) turn(ctx context.Context, r *builtins.Runtime, t task, o *output) (agents.Result, error) {
	loop, err := r.Loop()
	if err != nil {
		return agents.Result{}, err
	}
	if err := loop.Override(func(opts agents.Options) agents.Options { return t.override(r, opts) }); err != nil {
		return agents.Result{}, err
	}
	agent, err := loop.Agent(t.agent)
	if err != nil {
		return agents.Result{}, err
	}
	return watch(ctx, agent, t.prompt, o.event), nil
}

// watch runs an agent and shows each event of its session, in order.
func watch(ctx context.Context, agent *agents.Agent, prompt string, show func(events.Event)) agents.Result {
	session := agent.Session()
	next := session.Len()
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for e, err := range session.Follow(follow, next) {
			if err != nil {
				return
			}
			next = e.Seq + 1
			show(e)
		}
	}()
	result := agent.Run(ctx, llm.UserText(prompt))
	stop()
	<-shown
	for _, e := range session.Events(next) {
		show(e)
	}
	return result
}

// override puts the command line over the composition.
func (t task) override(r *builtins.Runtime, o agents.Options) agents.Options {
	if t.maxSteps > 0 {
		o.Limits.Steps = t.maxSteps
	}
	if t.model != "" {
		o.Model = t.model
		if left, right, ok := strings.Cut(t.model, "/"); ok && r.Provides(left) {
			o.Provider, o.Model = left, right
		} else if r.Provides(t.model) {
			o.Provider = "" // the model is a route itself
		}
	}
	return o
}

// prompt joins the task given and what is piped in.
func (p *program) prompt(ctx context.Context, given string) (string, error) {
	piped, err := p.piped(ctx, given == "")
	if err != nil {
		return "", err
	}
	switch {
	case given == "" && strings.TrimSpace(piped) == "":
		return "", seams.Errorf(seams.InvalidArgument, "", "there is no task: ouro run \"what to do\", or pipe it in")
	case given == "":
		return piped, nil
	case strings.TrimSpace(piped) == "":
		return given, nil
	default:
		return given + "\n\n<stdin>\n" + piped + "\n</stdin>", nil
	}
}

// piped reads stdin unless it is a terminal. If it is only context, it is given
// up on when no byte comes for a while.
func (p *program) piped(ctx context.Context, need bool) (string, error) {
	if f, ok := p.stdin.(*os.File); ok {
		info, err := f.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return "", nil
		}
	}
	type read struct {
		text []byte
		err  error
	}
	first, all := make(chan struct{}), make(chan read, 1)
	go func() { // ends with stdin; the process does not wait for it
		one := make([]byte, 1)
		n, err := io.ReadFull(p.stdin, one)
		close(first)
		if err != nil {
			all <- read{one[:n], nil}
			return
		}
		rest, err := io.ReadAll(io.LimitReader(p.stdin, maxStdin))
		all <- read{append(one, rest...), err}
	}()
	if !need {
		select {
		case <-first:
		case <-time.After(stdinWait):
			fmt.Fprintln(p.stderr, "ouro: nothing came on stdin for 3 s; going on without it")
			return "", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	select {
	case r := <-all:
		if len(r.text) > maxStdin {
			return "", seams.Errorf(seams.TooLarge, "", "stdin is over %d bytes", maxStdin)
		}
		return string(r.text), r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// exitCode is the code of a finished run.
func exitCode(ctx context.Context, r agents.Result) int {
	if code, ok := interrupted(context.Cause(ctx)); ok && r.Subtype == agents.Cancelled {
		return code
	}
	switch {
	case r.Subtype == agents.Limit:
		return exitLimit
	case r.IsError:
		return exitOf(r.Error.Code, exitFailed)
	}
	return exitDone
}

// output writes what happens in the chosen format.
type output struct {
	p      *program
	format string
	live   bool // progress on stderr
	enc    *json.Encoder
}

func newOutput(p *program, t task) (*output, error) {
	switch t.format {
	case "text", "json", "stream-json":
	default:
		return nil, seams.Errorf(seams.InvalidArgument, "", "--output-format %q: expected text, json or stream-json", t.format)
	}
	return &output{p: p, format: t.format, live: !t.quiet && t.format == "text" && p.terminal(p.stderr), enc: json.NewEncoder(p.stdout)}, nil
}

// event shows one event of the session.
func (o *output) event(e events.Event) {
	if o.format == "stream-json" {
		_ = o.enc.Encode(struct {
			Seq  int             `json:"seq"`
			Type string          `json:"type"`
			Time int64           `json:"time"`
			Data json.RawMessage `json:"data"`
		}{e.Seq, e.Type, e.Time, e.Data})
	}
	if o.live {
		o.progress(e)
	}
}

// progress tells a person at a terminal what the agent does.
func (o *output) progress(e events.Event) {
	w := o.p.stderr
	switch e.Type {
	case events.ToolCall.Name:
		if c, err := events.ToolCall.Decode(e); err == nil {
			fmt.Fprintf(w, "· %s %s\n", c.Name, brief(c.Arguments, 100))
		}
	case events.ToolResult.Name:
		if r, err := events.ToolResult.Decode(e); err == nil && r.Error != nil {
			fmt.Fprintf(w, "  ✗ %s\n", brief(resultText(r.Message), 160))
		}
	}
}

// resultText is the text of the tool results in a message.
func resultText(m llm.Message) string {
	var out []string
	for _, b := range m.Content {
		if r, ok := b.(llm.ToolResult); ok {
			out = append(out, r.Content.Text())
		}
	}
	return strings.Join(out, "\n")
}

// brief makes one line of a text, of about n bytes.
func brief(s string, n int) string {
	return seams.Clip(strings.Join(strings.Fields(s), " "), n)
}

// refuse ends a run that could not begin.
func (o *output) refuse(err error) int {
	if o.format == "text" {
		return o.p.fail(err)
	}
	r := agents.Result{Type: "result", Subtype: agents.Errored, IsError: true,
		Error: &agents.ResultError{Code: seams.CodeOf(err), Message: err.Error()}}
	code, cut := interrupted(err)
	if cut {
		r.Subtype, r.Error.Code = agents.Cancelled, seams.Aborted
	} else {
		code = exitOf(seams.CodeOf(err), exitUsage)
	}
	_ = o.enc.Encode(r)
	return code
}

// result ends a run: the answer, or the result as JSON.
func (o *output) result(r agents.Result, code int) int {
	if o.format != "text" {
		_ = o.enc.Encode(r)
		return code
	}
	if r.Text != "" {
		fmt.Fprintln(o.p.stdout, strings.TrimRight(r.Text, "\n"))
	}
	if r.IsError {
		o.p.complain(r.Error.Message, r.Error.Code)
	}
	return code
}
