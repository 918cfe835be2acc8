package seams

import (
	"context"
	"reflect"
)

// Mode says how an event's listeners are called.
type Mode uint8

const (
	// Emit calls all listeners in order, whatever others do; errors are joined.
	Emit Mode = iota
	// Parallel starts all listeners and waits for all; errors are joined.
	Parallel
	// Serial calls listeners in order; the first bail value ends the dispatch.
	Serial
	// Bail is Serial for listeners that answer at once; JavaScript listeners of
	// another realm are called as in Serial.
	Bail
	// Waterfall nests listeners, the earliest outermost, around a default. A
	// listener that does not call next vetoes all that is inside it.
	Waterfall
)

// String returns the mode's name as it stands in documentation.
func (m Mode) String() string {
	return [...]string{"emit", "parallel", "serial", "bail", "waterfall"}[m]
}

// Next continues a waterfall inward. It may be called at most once; a second
// call answers NEXT_TWICE.
type Next func(ctx context.Context) (any, error)

// Handler is a listener. payload is the event's payload type; next is nil
// unless the mode is Waterfall. The result matters in Serial, Bail and
// Waterfall only. A panic is contained and charged to the listener's owner.
type Handler func(ctx context.Context, payload any, next Next) (any, error)

// Args is the payload of an event that no Go package declares: the arguments
// as the emitter gave them, JSON-shaped.
type Args []any

// Dispatch is one dispatch of an event.
type Dispatch struct {
	Event   string
	Mode    Mode
	Scope   *Scope // listeners of this scope and of outer ones hear it
	Payload any
	Default Next // Waterfall: the innermost continuation; nil answers nil
}

// Bus dispatches events to the listeners that are visible when it begins,
// minus those whose owner closed before their turn. The container implements
// it. No listener is entered after its owner's dispose has returned.
type Bus interface {
	Dispatch(ctx context.Context, d Dispatch) (any, error)
}

// Event is a declared event: its name, its mode, its payload type P and its
// result type R (struct{} where the mode has no result).
type Event[P, R any] struct {
	Name string
	Mode Mode
}

// Dispatch sends the event. def is the innermost continuation of a waterfall
// and must be nil in other modes. A zero R from Serial or Bail means that no
// listener answered. A listener's result of another type is WRONG_TYPE.
func (e Event[P, R]) Dispatch(ctx context.Context, bus Bus, scope *Scope, payload P, def func(context.Context) (R, error)) (R, error) {
	d := Dispatch{Event: e.Name, Mode: e.Mode, Scope: scope, Payload: payload}
	if def != nil {
		d.Default = func(ctx context.Context) (any, error) { return def(ctx) }
	}
	v, err := bus.Dispatch(ctx, d)
	r, ok := v.(R)
	if err == nil && v != nil && !ok {
		err = Errorf(WrongType, e.Name, "a listener of %s answered %T", e.Name, v)
	}
	return r, err
}

// On registers fn for the event with owner. next is nil unless the event is a
// waterfall; in the other modes a zero R is no answer.
func (e Event[P, R]) On(owner Owner, fn func(ctx context.Context, payload P, next func(context.Context) (R, error)) (R, error)) (Undo, error) {
	return owner.On(e.Name, func(ctx context.Context, payload any, next Next) (any, error) {
		p, ok := payload.(P)
		if !ok {
			return nil, Errorf(WrongType, e.Name, "%s was dispatched with %T", e.Name, payload)
		}
		var in func(context.Context) (R, error)
		if next != nil {
			in = func(ctx context.Context) (R, error) {
				v, err := next(ctx)
				r, ok := v.(R)
				if err == nil && v != nil && !ok {
					err = Errorf(WrongType, e.Name, "a listener of %s answered %T", e.Name, v)
				}
				return r, err
			}
		}
		r, err := fn(ctx, p, in)
		if next == nil && reflect.ValueOf(&r).Elem().IsZero() {
			return nil, err
		}
		return r, err
	})
}

// Bails reports whether a listener's answer ends a Serial or Bail dispatch:
// anything but nil and false.
func Bails(v any) bool { return v != nil && v != false }
