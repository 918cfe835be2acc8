// Package memory is the plugin that provides the memory service: the memory store that lives in this process (seams/memory).
// A composition has it unless another entry provides the service.
package memory
