// Package timer provides the service "timer": the right to use timers.
//
// Go plugins have the timers of their context whether or not the service is
// there. A JavaScript plugin that injects it gets the timer verbs on ctx
// (setTimeout, setInterval, timeout, interval, sleep, throttle, debounce), whose
// timers end with the plugin (package script).
//
//	root.Plugin(timer.Plugin(), nil)
//
// # Concurrency and errors
//
// There is nothing to call. A configuration is refused with INVALID_CONFIG: the
// plugin has none.
package timer
