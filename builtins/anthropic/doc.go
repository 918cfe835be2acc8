// Package anthropic is the plugin that registers an adapter for the Anthropic
// Messages API (adapters/anthropic), under the route of its entry's id.
package anthropic
