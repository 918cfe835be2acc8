package model

import (
	"fmt"
	"slices"
	"strings"
)

// Node is a fiber as declared: its script, where it stands and what it binds.
type Node struct {
	Path   string // "" is the root
	Script *Script
	Parent int // index of the parent's node, -1 below the root
	Realms Realms
	Binds  []string
	Never  bool // retired, failed, or an undecided successor
}

func realmOf(nodes []Node, i int, name string) string {
	for ; i >= 0; i = nodes[i].Parent {
		if r, ok := nodes[i].Realms[name]; ok {
			return r
		}
	}
	return ""
}

// Fixpoint returns which nodes are active at rest: the least set of those whose
// parent is in it and whose needs are each bound, in the right realm, by one in
// it. It reads declarations only.
func Fixpoint(nodes []Node) []bool {
	in := make([]bool, len(nodes))
	for changed := true; changed; {
		changed = false
		for i, n := range nodes {
			if in[i] || n.Never || n.Script.Fails() || n.Parent >= 0 && !in[n.Parent] {
				continue
			}
			if !slices.ContainsFunc(n.Script.Needs, func(k string) bool { return len(providers(nodes, in, i, k)) != 1 }) {
				in[i], changed = true, true
			}
		}
	}
	return in
}

// providers are the nodes of the set in that bind what node i calls name.
func providers(nodes []Node, in []bool, i int, name string) (out []int) {
	for j, p := range nodes {
		if in[j] && slices.Contains(p.Binds, name) && realmOf(nodes, j, name) == realmOf(nodes, i, name) {
			out = append(out, j)
		}
	}
	return
}

// Observation is what an observer sees of a composition at rest, up to renaming:
// one line for each active fiber, sorted.
func Observation(nodes []Node) []string {
	in := Fixpoint(nodes)
	var out []string
	for i, n := range nodes {
		if !in[i] || n.Path == "" {
			continue
		}
		var view []string
		for _, k := range n.Script.Needs {
			view = append(view, k+"="+nodes[providers(nodes, in, i, k)[0]].Path)
		}
		out = append(out, Line(n.Path, view, slices.Clone(n.Binds)))
	}
	slices.Sort(out)
	return out
}

// Line renders one active fiber.
func Line(path string, view, binds []string) string {
	slices.Sort(view)
	slices.Sort(binds)
	return fmt.Sprintf("%s view[%s] binds[%s]", path, strings.Join(view, " "), strings.Join(binds, " "))
}

// Declared appends the nodes of s, mounted as path below parent, and of the
// children it mounts.
func Declared(nodes []Node, path string, s *Script, parent int, realms Realms) []Node {
	me := len(nodes)
	n := Node{Path: path, Script: s, Parent: parent, Realms: realms}
	for _, p := range s.Steps {
		if p.Kind == Bind {
			n.Binds = append(n.Binds, p.Name)
		}
	}
	nodes = append(nodes, n)
	for _, p := range s.effects() {
		if p.Kind == Child {
			nodes = Declared(nodes, path+"/"+p.Script.Name, p.Script, me, p.Realms)
		}
	}
	return nodes
}
