package model

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Slot is an entry of a composition. Variants 0 and 1 declare the same, 2
// differs in needs and provisions, 3 fails where failures are in play.
type Slot struct {
	Parent   int // the slot below whose active holder it is mounted, -1 for the root
	Realms   Realms
	Variants []*Script
}

// OpKind says what an operation does.
type OpKind uint8

const (
	Set      OpKind = iota // mount Variant with configuration N, or replace by it
	Unmount                // retire all versions
	Withdraw               // retire the undecided successor
	Restart                // replace the newest version by itself
	Update                 // give the newest version the configuration N
	Dispose                // retire the holder alone
	Call                   // begin a call into the holder
	Dispatch               // emit the event Name from outside
	Change                 // the holder changes the value of Name in place
	Revoke                 // undo the holder's N-th effect ahead of time
	Provide                // the holder provides Name, outside of its apply
	Batch                  // Sub in one step
	Run                    // let N things happen
)

// Op is one operation on a composition.
type Op struct {
	Kind    OpKind
	Slot    int
	Variant int
	N       int
	Name    string
	Sub     []Op
}

// Plan is a composition and what is done to it.
type Plan struct {
	Slots   []Slot
	Ops     []Op
	Watched bool // mounts are announced to an observer
	// Plain plans declare everything: what is at rest follows from the last
	// variants alone.
	Plain bool
}

// String renders the plan for people.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "watched=%v plain=%v\n", p.Watched, p.Plain)
	for i, s := range p.Slots {
		fmt.Fprintf(&b, "slot %d below %d realms %v\n", i, s.Parent, s.Realms)
		for v, c := range s.Variants {
			fmt.Fprintf(&b, "  %d: %v\n", v, c)
		}
	}
	for _, o := range p.Ops {
		fmt.Fprintf(&b, "%v\n", o)
	}
	return b.String()
}

// GoString is String: the draw logs of rapid use it.
func (p Plan) GoString() string { return p.String() }

func (s *Script) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s needs%v", s.Name, s.Needs)
	if len(s.Wants) > 0 {
		fmt.Fprintf(&b, " wants%v", s.Wants)
	}
	fmt.Fprintf(&b, " provides%v", s.Provides)
	for _, f := range []struct {
		on   bool
		name string
	}{{s.Plain, " plain"}, {s.Exclusive, " exclusive"}, {s.Takes, " takes"}} {
		if f.on {
			b.WriteString(f.name)
		}
	}
	b.WriteString(" {")
	for _, p := range s.Steps {
		fmt.Fprintf(&b, " %v", p)
	}
	return b.String() + " }"
}

func (k Kind) String() string {
	return [...]string{"take", "bind", "listen", "seq", "go", "child", "emit", "leave", "fail"}[k]
}

func (m Manner) String() string {
	return [...]string{"", "errs", "panics", "exits", "off", "ends", "nests"}[m]
}

func (p Step) String() string {
	s := p.Kind.String()
	if p.Name != "" {
		s += "(" + p.Name + ")"
	}
	if p.N > 0 {
		s += fmt.Sprint(p.N)
	}
	if p.How != Fine {
		s += "!" + p.How.String()
	}
	if p.Front {
		s += "^"
	}
	if p.Once {
		s += "1"
	}
	if p.Script != nil {
		s += fmt.Sprintf("[%v %v]", p.Script, p.Realms)
	}
	return s
}

func (k OpKind) String() string {
	return [...]string{"Set", "Unmount", "Withdraw", "Restart", "Update", "Dispose", "Call", "Dispatch", "Change", "Revoke", "Provide", "Batch", "Run"}[k]
}

func (o Op) String() string {
	switch o.Kind {
	case Run:
		return fmt.Sprintf("Run %d", o.N)
	case Batch:
		return fmt.Sprintf("Batch %v", o.Sub)
	case Dispatch:
		return fmt.Sprintf("Dispatch %s", o.Name)
	default:
		return fmt.Sprintf("%v slot %d variant %d n %d %s", o.Kind, o.Slot, o.Variant, o.N, o.Name)
	}
}

// Plans generates plans.
func Plans() *rapid.Generator[Plan] {
	return rapid.Custom(func(t *rapid.T) Plan { return (&drawer{t: t}).plan() })
}

// drawer draws one plan with the features that were drawn for it.
type drawer struct {
	t *rapid.T
	n int // slots

	cyclic, children, childKeys, own, fails, realms, events bool
	groups, dynamic, hidden, takes, exclusive               bool
}

func (d *drawer) one(n int) int     { return rapid.IntRange(0, n-1).Draw(d.t, "i") }
func (d *drawer) in(n int) bool     { return d.one(n) == n-1 } // shrinks to false
func (d *drawer) flag() bool        { return rapid.Bool().Draw(d.t, "b") }
func key(kind string, i int) string { return fmt.Sprintf("%s%d", kind, i) }

func (d *drawer) plan() Plan {
	wild := d.flag()
	d.children, d.childKeys, d.realms, d.events, d.fails = d.flag(), d.flag(), d.flag(), d.flag(), d.flag()
	d.cyclic, d.own = d.in(3), d.flag()
	if wild {
		d.groups, d.dynamic, d.hidden, d.takes, d.exclusive = d.flag(), d.flag(), d.in(3), d.flag(), d.in(3)
	}
	d.n = 2 + d.one(4)
	p := Plan{Watched: d.in(4), Plain: !wild}
	for i := range d.n {
		s := Slot{Parent: -1}
		if d.groups && i > 0 && d.flag() {
			s.Parent = d.one(i)
		}
		if d.realms && d.in(3) {
			s.Realms = d.realm()
		}
		for v := range 4 {
			s.Variants = append(s.Variants, d.script(i, v, s.Variants))
		}
		p.Slots = append(p.Slots, s)
	}
	for range 4 + d.one(16) {
		p.Ops = append(p.Ops, d.op())
	}
	return p
}

// realm isolates one name.
func (d *drawer) realm() Realms {
	return Realms{key("k", d.one(d.n)): key("r", d.one(2))}
}

func (d *drawer) needs(i int) (out []string) {
	for j := range d.n {
		own := j == i && d.own && d.in(8)
		if j == i && !own || j > i && !d.cyclic {
			continue
		}
		if own || d.in(3) {
			out = append(out, key("k", j))
		}
		if d.in(8) {
			out = append(out, key("e", j))
		}
		if d.childKeys && d.in(8) {
			out = append(out, key("c", j))
		}
		if d.dynamic && d.in(8) {
			out = append(out, key("x", j))
		}
	}
	return
}

func (d *drawer) script(i, v int, before []*Script) *Script {
	s := &Script{Name: fmt.Sprintf("p%d.%d", i, v), Plain: d.in(3)}
	var binds []string
	if v == 1 {
		s.Needs, s.Exclusive, s.Takes = before[0].Needs, before[0].Exclusive, before[0].Takes
		for _, p := range before[0].Steps {
			if p.Kind == Bind {
				binds = append(binds, p.Name)
			}
		}
		s.Provides = before[0].Provides
	} else {
		s.Needs = d.needs(i)
		s.Exclusive, s.Takes = d.exclusive && d.in(4), d.takes && d.flag()
		if d.in(5) {
			binds = append(binds, key("k", i))
		} else if !d.in(5) {
			binds = append(binds, key("k", i))
		}
		if d.in(3) {
			binds = append(binds, key("e", i))
		}
		if d.hidden && d.in(4) {
			binds = append(binds, key("k", d.one(d.n)))
			binds = unique(binds)
		} else {
			s.Provides = binds
		}
	}
	if d.in(4) {
		s.Wants = append(s.Wants, key("k", d.one(d.n)))
		if contains(s.Needs, s.Wants[0]) {
			s.Wants = nil
		}
	}
	for _, k := range binds {
		s.Steps = append(s.Steps, Step{Kind: Bind, Name: k})
	}
	for range d.one(3) {
		s.Steps = append(s.Steps, d.resource())
	}
	if d.children && d.flag() {
		for x := range 1 + d.one(2) {
			s.Steps = append(s.Steps, d.child(i, v, x))
		}
	}
	if d.events {
		for range d.one(3) {
			s.Steps = append(s.Steps, d.listener())
		}
		if d.in(6) {
			s.Steps = append(s.Steps, Step{Kind: Emit, Name: d.event()})
		}
	}
	for a := len(s.Steps) - 1; a > 0; a-- {
		b := d.one(a + 1)
		s.Steps[a], s.Steps[b] = s.Steps[b], s.Steps[a]
	}
	if d.fails && v == 3 {
		s = s.Failing(d.one(len(s.Steps)+1), []Manner{Errs, Panics, Exits}[d.one(3)])
	}
	if !d.comparable() && d.in(12) {
		s.Steps = append(s.Steps, Step{Kind: Leave})
	}
	return s
}

func (d *drawer) comparable() bool {
	return !(d.groups || d.dynamic || d.hidden || d.takes || d.exclusive)
}

func (d *drawer) resource() Step {
	switch d.one(6) {
	case 4:
		return Step{Kind: Seq, N: 1 + d.one(3)}
	case 5:
		return Step{Kind: Go}
	default:
		s := Step{Kind: Take}
		if d.fails && d.in(4) {
			s.How = []Manner{Errs, Panics, Exits}[d.one(3)]
		}
		return s
	}
}

func (d *drawer) event() string { return []string{"ping", "pong"}[d.one(2)] }

func (d *drawer) listener() Step {
	s := Step{Kind: Listen, Name: d.event(), Front: d.in(4), Once: d.in(5)}
	if d.in(3) {
		s.How = []Manner{Errs, Panics, Off, Nests}[d.one(4)]
		if !d.comparable() && d.in(4) {
			s.How = Ends
		}
	}
	return s
}

func (d *drawer) child(i, v, x int) Step {
	c := &Script{Name: fmt.Sprintf("c%d.%d.%d", i, v, x), Plain: d.in(3), Steps: []Step{d.resource()}}
	if d.flag() {
		c.Needs = []string{key("k", d.one(d.n))}
	}
	if d.childKeys {
		k := key("c", i)
		if x == 1 {
			k = key("d", i)
			if d.flag() {
				c.Needs = append(c.Needs, key("c", i)) // needs its sibling
			}
		}
		c.Provides = []string{k}
		c.Steps = append(c.Steps, Step{Kind: Bind, Name: k})
	}
	if d.events && d.in(3) {
		c.Steps = append(c.Steps, d.listener())
	}
	if d.flag() {
		c.Steps = append(c.Steps, d.grandchild(i, v, x))
	} else if d.childKeys && d.in(3) {
		c.Needs = append(c.Needs, key("g", i)) // needs its nephew
	}
	s := Step{Kind: Child, Script: c}
	if d.realms && d.in(4) {
		s.Realms = d.realm()
	}
	return s
}

func (d *drawer) grandchild(i, v, x int) Step {
	g := &Script{Name: fmt.Sprintf("g%d.%d.%d", i, v, x), Plain: d.flag(), Steps: []Step{{Kind: Take}}}
	if d.flag() {
		g.Needs = []string{key("k", d.one(d.n))}
	}
	if d.childKeys && x == 0 {
		g.Provides = []string{key("g", i)}
		g.Steps = append(g.Steps, Step{Kind: Bind, Name: key("g", i)})
	}
	return Step{Kind: Child, Script: g}
}

func (d *drawer) op() Op {
	o := Op{Slot: d.one(d.n), Variant: d.one(4), N: 1 + d.one(10)}
	switch k := d.one(24); {
	case k < 9:
		o.Kind, o.N = Set, d.one(2)
	case k < 14:
		o.Kind = Run
	case k < 15:
		o.Kind = Unmount
	case k < 16:
		o.Kind = Withdraw
	case k < 17:
		o.Kind = Restart
	case k < 18:
		o.Kind = Call
	case k < 19 && d.events:
		o.Kind, o.Name = Dispatch, d.event()
	case k < 20:
		o.Kind = Batch
		for range 1 + d.one(4) {
			s := Op{Kind: []OpKind{Set, Unmount}[d.one(2)], Slot: d.one(d.n), Variant: d.one(4)}
			o.Sub = append(o.Sub, s)
		}
	case k < 21:
		o.Kind, o.Name = Change, key("k", o.Slot)
	case k < 22 && d.takes:
		o.Kind, o.N = Update, d.one(3)
	case k < 24 && d.dynamic:
		o.Kind = []OpKind{Revoke, Provide, Provide, Dispose}[d.one(4)]
		o.Name = key("x", o.Slot)
	}
	return o
}

func contains(s []string, v string) bool {
	for _, x := range s {
		if x == v {
			return true
		}
	}
	return false
}

func unique(s []string) (out []string) {
	for _, x := range s {
		if !contains(out, x) {
			out = append(out, x)
		}
	}
	return
}
