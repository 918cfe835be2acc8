// Package cordistools is the plugin that lets an agent look at its own running
// container and change it: the tools cordis_inspect, cordis_mount and
// cordis_unmount. Nothing of it exists unless its entry stands in cordis.yml.
//
//	name: cordis-tools
//	config:
//	  vmTimeoutMs: 5000      # each synchronous turn of a mount
//	  applyTimeoutMs: 10000  # its start
//	  callTimeoutMs: 30000   # a call of its tool
//	  maxMounts: 32
//	  policy: {allow: [fs], wrap: [tools/execute]}
//
// A mount is a plugin an agent has written. It lives in memory only: it writes
// no file, changes no configuration, does not survive the process, and is gone
// without trace when cordis_unmount returns or the plugin itself is disposed.
// Ids dyn-1, dyn-2, … are never used again in the process; one is taken even by
// a mount that fails. A plugin that waits for a service is mounted, and starts,
// stops and starts again as the service comes and goes; each start is a new
// realm, held to the same policy.
//
// A mount that passes a budget (time, memory, calls, call depth) is disposed by
// itself. Its row stays with the reason, as `disposed`, until it is unmounted.
// A tool that unmounts its own plugin has its answer; the plugin goes when that
// call has ended.
//
// # Policy
//
// A mount may inject tools, timer, logger, events, memory and llm, and what
// other mounts provide. It observes events: what its listeners throw, answer or
// wait for changes nothing for others. More is granted by the entry:
// policy.allow names further services, policy.wrap events it may wrap or answer.
// `allow: '*'` grants everything there is; that is as much as a shell. A refusal
// shows the policy that would permit what was refused.
//
// # Concurrency
//
// The tools may be called by any number of agents at a time. All mounts of one
// entry share one table, so one session sees another's.
//
// # Errors
//
// Failed mounts are tool errors whose text says where, why and what to write
// instead: the codes are those of package script and of the container, TOO_MANY
// at the limit of mounts, and NOT_PERMITTED for the policy. A name that is taken
// is DUPLICATE or CLASH, with the way to replace what holds it. What a mount
// fails with when nobody waits for it goes to the container's reports.
package cordistools
