// Package openai is the plugin that registers an adapter for services that
// speak the OpenAI chat format (adapters/openai), under the route of its
// entry's id.
package openai
