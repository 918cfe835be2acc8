// Package events is the events seam: the session log, from which everything a
// model sees is derived, and the service that keeps logs.
//
// Law: what a model sees was logged first. A log is a sequence of [Event]
// values whose Seq counts from 0 without a gap. Those of type user/message,
// assistant/message and tool/result are nodes of the surface, the list of
// messages a request is made of; all others are for people and programs.
// Events of unknown type are kept as they are.
//
// # Usage
//
//	s, err := events.Create(ctx, store, events.Spec{Header: events.Header{ID: "main"}})
//	defer s.Close(ctx)
//	e, err := s.Append(ctx, events.UserMessage.New(events.Message{Message: llm.UserText("hello")}))
//	if err := s.Flush(ctx); err != nil { … } // what was appended is acknowledged
//	request.Messages = s.Messages()
//
// [Log] is the log alone: pure, without a container, for stores to build on.
// [Memory] is the store that keeps its sessions in this process.
//
// # Append and Flush
//
// Append checks an event, copies it, gives it its number, commits it and then
// tells observers ([Appended], [Session.Follow]); it has no side effect if it
// fails. What Flush was not called for may be lost with the process. Flush has
// returned before a model request goes out, before a tool's body runs and before
// a turn is reported done.
//
// # Concurrency
//
// Sessions and stores are safe for concurrent use. Observers run after the
// commit, in order of Seq, without a lock held, one event at a time for each
// session. An observer must not append to the session that calls it from within
// the call: REENTRANT_APPEND. Data of events is shared and must not be modified.
//
// # Errors
//
// INVALID_EVENT names the event, the path and what was expected; the codes of
// sessions are in the const block of seams.SessionNotFound.
package events
