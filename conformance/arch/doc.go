// Package arch holds the structure of the project: which room may import which,
// what an exported signature may mention, and what every package must have. It
// has no code but its tests, which fail by name.
package arch
