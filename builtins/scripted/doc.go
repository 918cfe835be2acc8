// Package scripted is the plugin that registers a model which plays a scenario
// file (adapters/scripted), under the route of its entry's id.
package scripted
