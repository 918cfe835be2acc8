package loader

import (
	"strings"
	"testing"
)

// isolated writes a provider of x and a consumer of it; each %-mark is replaced
// by what it isolates.
func isolated(provider, consumer string) string {
	of := func(s string) string {
		if s == "" {
			return ""
		}
		return ", isolate: {" + s + "}"
	}
	return "- {id: p, name: ./p.js" + of(provider) + "}\n- {id: c, name: ./c.js" + of(consumer) + "}\n"
}

func isolation(t *testing.T) *world {
	w := newWorld(t, Options{})
	w.write("p.js", "provide x")
	w.write("c.js", "inject x")
	return w
}

const (
	upP, downP = "up p p", "down p p"
	upC, downC = "up c c x=p", "down c c x=p"
)

// L-13
func TestIsolationOfAConsumer(t *testing.T) {
	w := isolation(t)
	w.start(isolated("", ""))
	w.happened(upP, upC)
	w.edit(isolated("", "y: true"))
	w.happened()
	w.edit(isolated("", "x: true"))
	w.stands("p:active c:active") // nothing fills the new realm: the old version stays
	w.happened()
	w.blames("yml:2:17: warning: entry c: its new version waits: needs x in realm private to c: nothing provides it…its last good version goes on running")
	w.edit(isolated("", "x: r"))
	w.happened()
	w.edit(isolated("x: r", "x: r"))
	w.happened(downP, downC, upP, upC)
	w.edit(isolated("", ""))
	w.happened(downP, downC, upP, upC)
}

// L-14: a consumer loses and regains its provider.
func TestIsolationOfAProvider(t *testing.T) {
	w := isolation(t)
	w.start(isolated("", ""))
	w.happened(upP, upC)
	w.edit(isolated("y: true", ""))
	w.happened()
	w.edit(isolated("x: true", ""))
	w.happened(upP, downP, downC)
	w.stands("p:active c:pending")
	w.edit(isolated("", ""))
	w.happened(upP, downP, upC)
}

func group(id, isolate string, entries ...string) string {
	return "- id: " + id + "\n  group: true\n  isolate: {" + isolate + "}\n  config:\n    - " + strings.Join(entries, "\n    - ") + "\n"
}

const p, c = "{id: p, name: ./p.js}", "{id: c, name: ./c.js}"

// L-15
func TestIsolatedGroup(t *testing.T) {
	w := isolation(t)
	w.start(group("g", "x: true", p, c) + "- {id: out, name: ./c.js}\n")
	w.happened(upP, upC)
	w.stands("p:active c:active out:pending")
	w.edit("# moved\n" + group("g", "x: true", p, c) + "- {id: out, name: ./c.js}\n")
	w.happened()
	w.write("p.js", "provide x\nversion 2")
	w.reload()
	w.happened("up p p2", downP, downC, "up c c x=p2") // the private realm outlives the reload
}

// L-16, L-49
func TestNamedRealm(t *testing.T) {
	w := isolation(t)
	w.start(group("g", "x: shared", p) + group("h", "x: shared", c, "{id: d, name: ./c.js}") + group("i", "x: else", "{id: e, name: ./c.js}"))
	w.happened(upP, upC, "up d c x=p")
	w.stands("p:active c:active d:active e:pending")
}

// L-17
func TestNestedRealms(t *testing.T) {
	w := isolation(t)
	nested := func(isolate string) string {
		return "- id: g\n  group: true\n  isolate: {x: outer}\n  config:\n    - {id: p, name: ./p.js}\n    - {id: o, name: ./c.js}\n" +
			"    - id: h\n      group: true\n      isolate: {" + isolate + "}\n      config:\n        - {id: q, name: ./q.js}\n        - {id: c, name: ./c.js}\n"
	}
	w.write("q.js", "bind x")
	w.start(nested("x: inner"))
	w.happened("up p p", "up o c x=p", "up q q", "up c c x=q")
	w.edit(nested("x: deeper"))
	w.happened("up q q", "down q q", "down c c x=q", "up c c x=q")
	w.edit(strings.Replace(nested("x: deeper"), "{id: c, name: ./c.js}", "{id: c, name: ./c.js, isolate: {x: outer}}", 1))
	w.happened("down c c x=q", "up c c x=p")
	w.blames()
}

// L-18
func TestMovesInAndOutOfAnIsolatedGroup(t *testing.T) {
	w := isolation(t)
	rest := "{id: y, name: ./y.js}"
	w.write("y.js", "")
	w.start("- " + p + "\n- " + c + "\n" + group("g", "x: true", rest))
	w.happened(upP, upC, "up y y")
	w.edit("- " + p + "\n" + group("g", "x: true", rest, c))
	w.happened()
	w.edit(group("g", "x: true", rest, c, p))
	w.happened(upP, downP, upC, downC)
	w.edit("- " + c + "\n" + group("g", "x: true", rest, p))
	w.happened()
	w.edit("- " + p + "\n- " + c + "\n" + group("g", "x: true", rest))
	w.happened(upP, downP, upC, downC)
	w.stands("p:active c:active y:active")
	w.blames("c: its new version waits", "c: its new version waits")
}

// A version that waits is given up when the file goes back to the one before.
func TestWithdrawnVersion(t *testing.T) {
	w := isolation(t)
	w.write("q.js", "provide x")
	q := "- {id: q, name: ./q.js, isolate: {x: r}}\n"
	w.start(isolated("", ""))
	w.happened(upP, upC)
	w.edit(isolated("", "x: r"))
	w.edit(isolated("", ""))
	w.edit(isolated("", "") + q)
	w.happened("up q q")
	w.edit(isolated("", "x: r") + q)
	w.happened(downC, "up c c x=q")
}
