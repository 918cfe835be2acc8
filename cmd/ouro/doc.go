// Command ouro runs agents that can inspect and change their own container.
//
//	ouro demo             watch an agent write, mount, repair and remove a tool
//	ouro run "task"       one task with the composition in ./cordis.yml
//	ouro check [file]     everything that is wrong with a composition
//	ouro inspect [file]   the container a composition makes
//	ouro explain CODE     what an error code means
//
// Answers and JSON go to stdout, progress and logs to stderr. Exit codes: 0 done,
// 1 the run failed, 2 usage or configuration, 3 provider or credentials, 4
// refused by policy, 5 a limit was reached, 124 timeout, 130 and 143 signals.
package main
