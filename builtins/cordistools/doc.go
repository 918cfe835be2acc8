// Package cordistools is the plugin that lets an agent look at its own running
// container and change it: the tools cordis_inspect, cordis_mount and
// cordis_unmount. Nothing of it exists unless its entry stands in cordis.yml.
//
//   - name: cordis-tools
//     config:
//     policy: {allow: [fs]}
//
// A mount is a plugin an agent has written. It lives in memory only: it writes
// no file, changes no configuration, does not survive the process, and is gone
// without trace when cordis_unmount returns or the plugin itself is disposed.
// Ids dyn-1, dyn-2, … are never used again; one is taken even by a mount that
// fails.
//
// # Policy
//
// A mount may inject tools, timer, logger, events, memory and llm and observe
// events. More is granted by the entry: policy.allow names further services,
// policy.wrap waterfalls it may wrap. `allow: '*'` grants everything there is;
// that is as much as a shell. A refusal names the line of policy that would
// permit what was refused.
//
// # Concurrency
//
// The tools may be called by any number of agents at a time. All mounts of one
// entry share one table, so one session sees another's.
//
// # Errors
//
// Failed mounts are tool errors whose text teaches the fix: the codes are those
// of package script, of the container and, for the policy, NOT_PERMITTED.
package cordistools
