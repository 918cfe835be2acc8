package script

import (
	"context"
	"iter"
	"strings"

	"github.com/ouro-run/ouro/seams"
	"github.com/ouro-run/ouro/seams/events"
	"github.com/ouro-run/ouro/seams/tools"
)

var eventsService = service{
	Service: Service{Name: "events", Summary: "The log of a session: read it, follow it, add events of the plugin's own."},
	methods: []method{
		{Method: Method{"append", "append(type: string, data: any, session?: string): Promise<SessionEvent>",
			"Adds an event of the plugin's own to a session's log, of type '<plugin>/<type>'. It is not shown to the model. Without a session it is that of the agent in whose tool call this runs."},
			async: true, args: data, call: of(events.Key, "append", appendEvent)},
		{Method: Method{"read", "read(options?: { session?: string; from?: number }): Promise<SessionEvent[]>",
			"Reads a session's events from a seq on."},
			async: true, args: data, call: of(events.Key, "read", func(ctx context.Context, h *host, st events.Store, args []any) (any, error) {
				s, from, err := logOf(ctx, st, "ctx.events.read", arg(args, 0))
				if err != nil {
					return nil, err
				}
				return encode(s.Events(from))
			})},
		{Method: Method{"follow", "follow(options?: { session?: string; from?: number }): AsyncIterable<SessionEvent>",
			"Iterates over a session's events from a seq on and waits for more, until the session is closed or the loop is left."},
			args: data, call: of(events.Key, "follow", func(ctx context.Context, h *host, st events.Store, args []any) (any, error) {
				s, from, err := logOf(ctx, st, "ctx.events.follow", arg(args, 0))
				if err != nil {
					return nil, err
				}
				return iter.Seq2[any, error](func(yield func(any, error) bool) {
					for e, err := range s.Follow(h.ctx.Context(), from) {
						var v any
						if err == nil {
							v, err = encode(e)
						}
						if !yield(v, err) || err != nil {
							return
						}
					}
				}), nil
			})},
	},
}

// live returns a session by its id, or that of the tool call that ctx runs in.
func live(ctx context.Context, st events.Store, op string, id any) (events.Session, error) {
	name, ok := id.(string)
	if !ok && id != nil {
		return nil, seams.Errorf(seams.InvalidArgument, op, "session: expected a session's id, got %s", kind(id))
	}
	if name == "" {
		if exec, ok := ctx.Value(execKey{}).(*tools.Exec); ok {
			name = exec.Agent
		}
	}
	if name == "" {
		return nil, seams.Errorf(seams.InvalidArgument, op, "name the session: this code does not run within an agent's tool call")
	}
	s, ok := st.Get(name)
	if !ok {
		return nil, seams.Errorf(seams.SessionNotFound, op, "no live session has the id %q", name)
	}
	return s, nil
}

func logOf(ctx context.Context, st events.Store, op string, options any) (s events.Session, from int, err error) {
	o, err := decode[struct {
		Session any `json:"session"`
		From    int `json:"from"`
	}](seams.InvalidArgument, op, options, true)
	if err != nil {
		return nil, 0, err
	}
	s, err = live(ctx, st, op, o.Session)
	return s, o.From, err
}

func appendEvent(ctx context.Context, h *host, st events.Store, args []any) (any, error) {
	const op = "ctx.events.append"
	name, err := textArg(op, args, 0, "a type")
	if err != nil {
		return nil, err
	}
	owner := h.ctx.Fiber().Name()
	if !strings.HasPrefix(name, owner+"/") {
		name = owner + "/" + name
	}
	payload := arg(args, 1)
	if payload == nil {
		payload = map[string]any{}
	}
	s, err := live(ctx, st, op, arg(args, 2))
	if err != nil {
		return nil, err
	}
	return answer(s.Append(ctx, events.Draft{Type: name, Data: payload, Ignorable: true}))
}
