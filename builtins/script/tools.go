package script

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ouro-run/ouro/runtime/schema"
	"github.com/ouro-run/ouro/sandbox"
	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/llm"
	"github.com/ouro-run/ouro/seams/tools"
)

var toolsService = service{
	Service: Service{Name: "tools", Summary: "Tools that models call: register one, look at those there are, call one."},
	methods: []method{
		{Method: Method{"register", "register(tool: ToolDefinition): Disposer",
			"Adds a tool, made with defineTool. A model can call it from its next step on. Its execute answers a JSON value; what throws there is told to the model."},
			call: of(tools.Key, "register", registerTool)},
		{Method: Method{"schemas", "schemas(): ToolSchema[]",
			"Lists the tools this plugin sees, as a model sees them."},
			call: of(tools.Key, "schemas", func(_ context.Context, h *host, r *tools.Registry, _ []any) (any, error) {
				return encode(r.Schemas(h.ctx.Scope()))
			})},
		{Method: Method{"get", "get(name: string): ToolSchema | undefined",
			"Looks at one tool, as a model sees it."},
			call: of(tools.Key, "get", func(_ context.Context, h *host, r *tools.Registry, args []any) (any, error) {
				for _, s := range r.Schemas(h.ctx.Scope()) {
					if s.Name == text(args, 0) {
						return encode(s)
					}
				}
				return nil, nil
			})},
		{Method: Method{"execute", "execute(call: ToolCall): Promise<ToolResult>",
			"Calls a tool through all its policy. From within a tool's body the call is a part of that one: of the same agent, seen by the same listeners. A failed call is a result too."},
			async: true, call: of(tools.Key, "execute", executeTool)},
	},
}

// misnamed maps what other systems call the members of a definition.
var misnamed = map[string]string{
	"inputSchema": "parameters", "input_schema": "parameters", "params": "parameters", "schema": "parameters", "args": "parameters", "arguments": "parameters",
	"run": "execute", "call": "execute", "fn": "execute", "func": "execute", "function": "execute", "invoke": "execute",
	"title": "name", "timeout": "timeoutMs", "outputSchema": "output", "returns": "output",
}

func registerTool(_ context.Context, h *host, r *tools.Registry, args []any) (any, error) {
	d, err := h.definition(arg(args, 0))
	if err != nil {
		return nil, err
	}
	if most := h.source.rules.tools; most > 0 && int(h.tools.Load()) >= most {
		return nil, seams.Errorf(seams.TooMany, "ctx.tools.register", "a mounted plugin has at most %d tools at a time: a tool with a parameter does the work of many", most)
	}
	undo, err := r.Register(counting{h.ctx, &h.tools}, d)
	return disposer(nil, undo, err)
}

// counting counts the effects of an owner that stand.
type counting struct {
	seams.Owner
	n *atomic.Int64
}

// Effect implements seams.Owner.
func (c counting) Effect(label string, setup func(context.Context) (seams.Undo, error)) (seams.Undo, error) {
	return c.Owner.Effect(label, func(ctx context.Context) (seams.Undo, error) {
		undo, err := setup(ctx)
		if err != nil {
			return nil, err
		}
		c.n.Add(1)
		return func(ctx context.Context) error {
			c.n.Add(-1)
			return undo(ctx)
		}, nil
	})
}

// definition reads a tool as its author wrote it: as defineTool made it, or, of
// a file, as a plain object, also in Astreus' form with a handler.
func (h *host) definition(v any) (tools.Definition, error) {
	const op = "ctx.tools.register"
	var d tools.Definition
	m, ok := v.(map[string]any)
	if !ok {
		return d, seams.Errorf(seams.InvalidArgument, op, "expected a tool {name, description, parameters, execute}, got %s", kind(v))
	}
	bad := func(path, format string, args ...any) (tools.Definition, error) {
		e := seams.Errorf(seams.InvalidArgument, op, format, args...)
		return d, seams.Errorf(seams.InvalidArgument, op, "tool %q: %s: %s", m["name"], path, e.Msg)
	}
	if h.source.rules.marked && m["kind"] != "tool" {
		return d, seams.Errorf(seams.InvalidArgument, op, "the tool was not made by defineTool: write ctx.tools.register(harness.defineTool({name, description, parameters, execute}))")
	}
	if d.Name, ok = m["name"].(string); !ok {
		return bad("name", "expected a string, got %s", kind(m["name"]))
	}
	if d.Description, ok = m["description"].(string); !ok {
		return bad("description", "expected a string that tells a model what the tool does, got %s", kind(m["description"]))
	}
	body, ok := m["execute"].(*sandbox.Func)
	if !ok {
		if body, ok = m["handler"].(*sandbox.Func); !ok {
			for _, k := range slices.Sorted(maps.Keys(m)) {
				if misnamed[k] == "execute" {
					return bad("execute", "is missing; is %s meant? Rename it", k)
				}
			}
			return bad("execute", "expected a function (args, exec) => value, got %s", kind(m["execute"]))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if right := misnamed[k]; right != "" && m[right] == nil {
			return bad(k, "is not a member of a tool; write %s", right)
		}
	}
	var err error
	if m["execute"] == nil {
		d.Parameters, err = schema.AstreusParameters(m["parameters"])
	} else {
		d.Parameters, err = schema.Parameters(m["parameters"])
	}
	if err != nil {
		return d, seams.Errorf(seams.CodeOf(err), op, "tool %q: %s", d.Name, reason(err))
	}
	if err := h.output(&d, m); err != nil {
		return d, err
	}
	switch ms := m["timeoutMs"].(type) {
	case nil:
	case float64:
		if ms <= 0 || ms > maxDelay {
			return bad("timeoutMs", "expected milliseconds above 0, at most %d, got %v", maxDelay, ms)
		}
		d.Timeout = time.Duration(ms * float64(time.Millisecond))
	default:
		return bad("timeoutMs", "expected a positive number of milliseconds, got %s", kind(ms))
	}
	if most := h.source.rules.call; most > 0 && (d.Timeout == 0 || d.Timeout > most) {
		d.Timeout = most
	}
	switch safe := m["isConcurrencySafe"].(type) {
	case nil:
	case bool:
		d.IsConcurrencySafe = func(any) bool { return safe }
	case *sandbox.Func:
		d.IsConcurrencySafe = func(args any) bool {
			ctx, cancel := h.projection()
			defer cancel()
			v, err := safe.Call(ctx, args)
			return err == nil && v == true
		}
	default:
		return bad("isConcurrencySafe", "expected a boolean or a function, got %s", kind(safe))
	}
	if last, ok := m["finalizeContent"].(*sandbox.Func); ok {
		d.FinalizeContent = h.finalize(d.Name, last)
	}
	d.Execute = h.body(d.Name, body)
	return d, nil
}

// output reads the contract of the value: output {schema, render}, or render
// alone.
func (h *host) output(d *tools.Definition, m map[string]any) error {
	const op = "ctx.tools.register"
	out, ok := m["output"].(map[string]any)
	if m["output"] != nil && !ok {
		return seams.Errorf(seams.InvalidArgument, op, "tool %q: output: expected an object {schema, render}, got %s", d.Name, kind(m["output"]))
	}
	o := &tools.Output{}
	if out["schema"] != nil {
		s, err := schema.Output(out["schema"])
		if err != nil {
			return seams.Errorf(seams.CodeOf(err), op, "tool %q: %s", d.Name, reason(err))
		}
		o.Schema = s
	}
	render := out["render"]
	if render == nil {
		render = m["render"]
	}
	switch f := render.(type) {
	case nil:
	case *sandbox.Func:
		o.Render = h.render(f)
	default:
		return seams.Errorf(seams.InvalidArgument, op, "tool %q: output.render: expected a function (args, value) => blocks, got %s", d.Name, kind(f))
	}
	if o.Schema != nil || o.Render != nil {
		d.Output = o
	}
	return nil
}

// projectionLimit bounds what a definition computes beside its body.
const projectionLimit = 5 * time.Second

func (h *host) projection() (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.ctx.Context(), projectionLimit)
}

func (h *host) render(f *sandbox.Func) func(args, value any) (llm.Content, error) {
	return func(args, value any) (llm.Content, error) {
		ctx, cancel := h.projection()
		defer cancel()
		v, err := f.Call(ctx, args, value)
		if err != nil {
			return nil, err
		}
		return blocks(v)
	}
}

func (h *host) finalize(name string, f *sandbox.Func) func(context.Context, *tools.Exec, *tools.Result) (llm.Content, error) {
	return func(ctx context.Context, exec *tools.Exec, r *tools.Result) (llm.Content, error) {
		shown, err := encode(r)
		if err != nil {
			return nil, err
		}
		v, err := f.Call(ctx, view(ctx, exec), shown)
		if err != nil || v == nil {
			return nil, err
		}
		return blocks(v)
	}
}

// maxPreview bounds what an error shows of a wrong value.
const maxPreview = 120

// blocks reads the content that a renderer answered.
func blocks(v any) (llm.Content, error) {
	list, ok := v.([]any)
	for i := 0; ok && i < len(list); i++ {
		var block map[string]any
		if block, ok = list[i].(map[string]any); ok {
			_, ok = block["type"].(string)
		}
	}
	if !ok {
		preview, _ := json.Marshal(v)
		if len(preview) > maxPreview {
			preview = append([]byte(strings.ToValidUTF8(string(preview[:maxPreview]), "")), "…"...)
		}
		return nil, seams.Errorf(seams.InvalidToolOutput, "", "render answered %s; return a list of blocks such as [{ type: 'text', text: String(value) }]", preview)
	}
	return decode[llm.Content](seams.InvalidToolOutput, "render", v, false)
}

// execKey carries the execution whose body runs.
type execKey struct{}

// body is the tool's function. What it throws is told with its message alone;
// what it answers must be data.
func (h *host) body(name string, f *sandbox.Func) func(context.Context, *tools.Exec, any) (any, error) {
	return func(ctx context.Context, exec *tools.Exec, args any) (any, error) {
		inner := context.WithValue(ctx, execKey{}, exec)
		x := view(inner, exec)
		x["deferContext"] = sandbox.HostFunc(func(_ context.Context, args []any) (any, error) {
			m, err := decode[llm.Message](seams.InvalidArgument, "exec.deferContext", arg(args, 0), true)
			if err != nil {
				return nil, err
			}
			identify(&m)
			exec.DeferContext(m)
			return nil, nil
		})
		x["concludeTurn"] = sandbox.HostFunc(func(context.Context, []any) (any, error) { exec.ConcludeTurn(); return nil, nil })
		v, err := f.Call(inner, args, x)
		thrown, at := (*sandbox.Thrown)(nil), (*seams.Error)(nil)
		if errors.As(err, &at) && !errors.As(err, &thrown) && (at.Code == seams.NotJSON || at.Code == seams.TooLarge) {
			return nil, seams.Errorf(seams.InvalidToolOutput, "", "tool %q returned what is no JSON: %s: %s; return a plain object, or return null", name, at.Op, at.Msg)
		}
		return v, err
	}
}

// view is an execution as JavaScript sees it.
func view(ctx context.Context, exec *tools.Exec) sandbox.Record {
	return sandbox.Record{
		"callId": exec.CallID, "rootCallId": exec.RootCallID, "name": exec.Name, "arguments": exec.Arguments,
		"agent": exec.Agent, "signal": ctx,
	}
}

func execution(ctx context.Context, exec *tools.Exec) ([]any, error) {
	return []any{view(ctx, exec)}, nil
}

func outcome(ctx context.Context, o tools.Outcome) ([]any, error) {
	shown, err := encode(o.Result)
	return []any{view(ctx, o.Exec), shown}, err
}

func outcomeAlone(ctx context.Context, o tools.Outcome) ([]any, error) {
	args, err := outcome(ctx, o)
	delete(args[0].(sandbox.Record), "signal")
	return args, err
}

// executeTool is ctx.tools.execute.
func executeTool(ctx context.Context, h *host, r *tools.Registry, args []any) (any, error) {
	const op = "ctx.tools.execute"
	m, ok := arg(args, 0).(map[string]any)
	if !ok {
		return nil, seams.Errorf(seams.InvalidArgument, op, "expected {name, arguments}, got %s", kind(arg(args, 0)))
	}
	name, ok := m["name"].(string)
	if !ok {
		return nil, seams.Errorf(seams.InvalidArgument, op, "name: expected the tool's name, got %s", kind(m["name"]))
	}
	if signal, ok := m["signal"].(context.Context); ok {
		ctx = signal
	}
	c := tools.Call{ID: llm.NewMessage("", llm.Source{}).ID, Name: name, Arguments: m["arguments"], Agent: h.source.rules.agent, Scope: h.source.rules.scope}
	if parent, ok := ctx.Value(execKey{}).(*tools.Exec); ok {
		c.Parent, c.Agent, c.Scope = parent, parent.Agent, parent.Scope
	} else if c.Scope == nil {
		c.Scope = h.ctx.Scope()
	}
	return encode(r.Execute(ctx, c))
}

// readResult is the answer of tools/execute.
func readResult(op string, v any) (*tools.Result, error) {
	r, err := decode[tools.Result](seams.InvalidArgument, op, v, true)
	if err != nil {
		return nil, err
	}
	if r.IsError {
		f := tools.Failure{Message: "The call failed."}
		if r.Error != nil {
			f = *r.Error
		}
		return tools.Failed(f.Code, f.Message, r.AdditionalContexts...), nil
	}
	return tools.Success(r.Value, r.AdditionalContexts...), nil
}

// readVerdict is the answer of tools/post-execute.
func readVerdict(op string, v any) (tools.Verdict, error) {
	a, err := decode[struct {
		Kind string `json:"kind"`
		tools.Verdict
	}](seams.InvalidArgument, op, v, true)
	if err != nil {
		return tools.Verdict{}, err
	}
	if m, ok := v.(map[string]any); ok {
		if value, given := m["value"]; given {
			a.Value = &value // null is a value
		}
	}
	switch a.Kind {
	case "accept", "":
	case "block":
		a.Block = true
	default:
		return tools.Verdict{}, seams.Errorf(seams.InvalidArgument, op, "kind is %q; expected 'accept' or 'block'", a.Kind)
	}
	return a.Verdict, nil
}

// showVerdict is a verdict as JavaScript sees it.
func showVerdict(v tools.Verdict) (any, error) {
	m, err := encodeObject(v)
	if err != nil {
		return nil, err
	}
	delete(m, "block")
	m["kind"] = "accept"
	if v.Block {
		m["kind"] = "block"
	}
	return m, nil
}
