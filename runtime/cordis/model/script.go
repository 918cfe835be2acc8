package model

import "slices"

// Kind says what a step of a script does.
type Kind uint8

const (
	Take   Kind = iota // take a resource; undone by giving it back
	Bind               // provide the service Name
	Listen             // listen to the event Name
	Seq                // take N resources in one effect of several steps
	Go                 // run a goroutine until it is told to end
	Child              // mount Script
	Emit               // emit the event Name
	Leave              // dispose the own fiber
	Fail               // raise
)

// Manner is how an undo, a listener or a failure behaves.
type Manner uint8

const (
	Fine   Manner = iota // returns nil
	Errs                 // returns an error
	Panics               // panics
	Exits                // calls runtime.Goexit
	Off                  // a listener that removes itself
	Ends                 // a listener that disposes its owner
	Nests                // a listener that emits another event
)

// Realms names, per service, the realm it is isolated to.
type Realms map[string]string

// Step is one step of a script.
type Step struct {
	Kind   Kind
	Name   string
	N      int
	How    Manner
	Front  bool // Listen: before all others
	Once   bool // Listen: at most one call
	Script *Script
	Realms Realms // Child: given to it
}

// Script declares a plugin.
type Script struct {
	Name      string // unique in its plan
	Needs     []string
	Wants     []string // optional needs
	Provides  []string // declared ahead; Bind of others is not
	Steps     []Step
	Plain     bool // all steps are one stage
	Exclusive bool // replaced with a gap
	Takes     bool // takes a changed configuration in place
}

// Fails reports whether s raises.
func (s *Script) Fails() bool {
	return slices.ContainsFunc(s.Steps, func(p Step) bool { return p.Kind == Fail })
}

// Failing returns s with a failure before its step at.
func (s *Script) Failing(at int, how Manner) *Script {
	d := *s
	d.Name += "!"
	d.Steps = slices.Insert(slices.Clone(s.Steps), at%(len(s.Steps)+1), Step{Kind: Fail, How: how})
	return &d
}

// Wanting returns s with one need more.
func (s *Script) Wanting(name string) *Script {
	d := *s
	d.Name += "+" + name
	d.Needs = append([]string{name}, s.Needs...)
	return &d
}

// effects lists what s registers, in order, as far as it gets.
func (s *Script) effects() (out []Step) {
	for _, p := range s.Steps {
		switch p.Kind {
		case Fail:
			return
		case Seq:
			out = append(out, Step{Kind: Seq})
			for range p.N {
				out = append(out, Step{Kind: Take})
			}
		case Go:
			out = append(out, Step{Kind: Take})
		case Child:
			out = append(out, Step{Kind: Child, Name: p.Script.Name, Script: p.Script, Realms: p.Realms})
		case Emit, Leave:
		default:
			out = append(out, p)
		}
	}
	return
}
