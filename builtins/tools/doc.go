// Package tools is the plugin that provides the tools service: the registry of tools and the pipeline of their calls (seams/tools).
// A composition has it unless another entry provides the service.
package tools
