package seams

// Key names a service and carries its Go type. JavaScript and cordis.yml use
// the name; Go code uses the key, which the owning seam exports. The type is
// not part of the identity: two keys of one name are one service, and reading
// it through the wrong type is WRONG_TYPE.
type Key[T any] struct{ Name string }

// Scope is a place in the tree of who may see a registration: the nil *Scope
// is global, others belong to an agent or a preset. Its parent is fixed when it
// is made, so the chain has no cycles. Follows S-01…S-04 of the reference.
type Scope struct {
	name   string
	parent *Scope
}

// NewScope makes a scope below parent (nil: below global). The name is for
// people; two scopes of one name are two scopes.
func NewScope(name string, parent *Scope) *Scope { return &Scope{name, parent} }

// Name returns the scope's name, "" for global.
func (s *Scope) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Parent returns the next outer scope, nil for global.
func (s *Scope) Parent() *Scope {
	if s == nil {
		return nil
	}
	return s.parent
}

// Within reports whether s is outer or lies below it. Every scope, nil
// included, is within nil: an untagged listener hears every dispatch (S-03).
func (s *Scope) Within(outer *Scope) bool {
	for ; s != nil; s = s.parent {
		if s == outer {
			return true
		}
	}
	return outer == nil
}
