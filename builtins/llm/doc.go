// Package llm is the plugin that provides the llm service: the registry of model adapters (seams/llm).
// A composition has it unless another entry provides the service.
package llm
