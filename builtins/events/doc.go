// Package events is the plugin that provides the events service: the store of session logs that lives in this process (seams/events).
// A composition has it unless another entry provides the service.
package events
