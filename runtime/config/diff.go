package config

import "maps"

// Change says what became of one entry between two readings of a file.
type Change struct {
	Old, New *Entry // Old is nil for an added entry, New for a removed one
	// Fields of a changed entry that differ, in this order: name, config,
	// disabled, group, inject, isolate, intercept, parent. The entries in a
	// group are not part of its config.
	Fields []string
}

// Diff compares two readings by id: first what was removed in the old order,
// then what was added or changed in the new one, groups before what is in them.
// Entries that are the same in all fields are left out, wherever their lines
// have moved to (L-02). A nil File has no entries.
func Diff(old, new *File) []Change {
	var out []Change
	before, after := old.byID(), new.byID()
	for e := range old.All() {
		if after[e.ID] == nil {
			out = append(out, Change{Old: e})
		}
	}
	for e := range new.All() {
		was := before[e.ID]
		if was == nil {
			out = append(out, Change{New: e})
		} else if f := changed(was, e); f != nil {
			out = append(out, Change{was, e, f})
		}
	}
	return out
}

func (f *File) byID() map[string]*Entry {
	out := map[string]*Entry{}
	for e := range f.All() {
		out[e.ID] = e
	}
	return out
}

func changed(a, b *Entry) []string {
	var out []string
	note := func(field string, same bool) {
		if !same {
			out = append(out, field)
		}
	}
	note("name", a.Name == b.Name)
	note("config", equal(a.Config, b.Config))
	note("disabled", equal(a.Disabled, b.Disabled))
	note("group", a.Group == b.Group)
	note("inject", maps.EqualFunc(a.Inject, b.Inject, equal))
	note("isolate", maps.Equal(a.Isolate, b.Isolate))
	note("intercept", maps.EqualFunc(a.Intercept, b.Intercept, equal))
	note("parent", a.Parent.id() == b.Parent.id())
	return out
}

func (e *Entry) id() string {
	if e == nil {
		return ""
	}
	return e.ID
}
