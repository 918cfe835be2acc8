// Package sandbox runs JavaScript and TypeScript plugins in realms that Go can
// bound, interrupt and close.
//
// A realm is one plugin instance: one VM, one queue, one goroutine that exists
// only while there is work, one lifetime. Nothing of a realm is shared with
// another one.
//
// # Usage
//
// A source becomes a [Program] once ([Compiler.Compile]); a program is loaded
// into as many realms as there are instances.
//
//	compiler := sandbox.NewCompiler()
//	program, err := compiler.Compile(compile.Source{Name: "plugins/hi.ts", Text: text})
//	realm, err := sandbox.New(ctx, sandbox.Options{Name: "hi", Facade: facade})
//	defer realm.Close(5 * time.Second)
//	plugin, err := realm.Load(ctx, program) // name, inject, Config: apply has not run
//	err = plugin.Apply(ctx, sandbox.Activation{Host: host, Config: config})
//
// A declaration may be read in one realm and activated in another one that has
// loaded the same program. A restart is a new realm. A [Spare] keeps one
// guarded VM ready so that a mount does not wait for it.
//
// # The outside
//
// A plugin reaches the outside through ctx alone, and ctx is a [Facade]: a
// table of verbs and services. Every call arrives at the activation's [Host]
// as a message of JSON-shaped values and handles, so that the realm may stand
// in another process. What is not in the table does not exist for JavaScript;
// reading it is an error that says what to do (NOT_INJECTED, NOT_EXPOSED).
// Modes (an operator's file, mounted code, a dry run, a test) are different
// Facade, Host and [Ambient] values, nothing else.
//
// A synchronous method runs on the realm's goroutine and must not wait for a
// realm: calling a handle from it answers WOULD_DEADLOCK. An asynchronous one
// runs on a goroutine of its own, which Close joins, and settles a promise.
//
// # Values
//
// From JavaScript: null and undefined become nil, numbers float64, then bool,
// string, []any, map[string]any (members that are undefined are left out; a
// Date is its ISO string, an object with toJSON what that answers, an Error a
// map of its facts). NaN, infinities, integers beyond 2^53, BigInt, cycles,
// symbols, holes, promises, Map, Set and binary data are NOT_JSON errors that
// name the path; so are functions where data is wanted. Elsewhere a function is
// a [*Func], an object with methods an [*Object] where the table says
// [Instance], an AbortSignal a context.Context.
//
// To JavaScript: the same shapes (numbers of any Go kind within 2^53), copied;
// [HostFunc], [AsyncFunc], [Callable], [Later], [Record], iter.Seq2[any, error] (an
// async iterable), context.Context (an AbortSignal), [*Response], error. nil is
// undefined by itself and null inside a value. A [*Func] or
// [*Object] is the original in its own realm, and in any other one a function,
// or an object of functions, that returns promises: that is how one plugin uses
// a service that another one provides. Anything else is NOT_JSON.
//
// Errors cross both ways with code, message, stack and cause ([*Thrown]).
//
// # Bounds
//
// Bounded in this process ([Budgets]): processor time of a turn and of a
// minute, call depth, growth of the heap while a turn runs, time of one regular
// expression match, size of a value, timers, host calls, calls in flight,
// output and log bytes; size and nesting of source. A turn that is over is
// interrupted, the realm is dead, everything that waited for it fails with
// OVER_BUDGET, and its owner is told ([Options.Dead]). The guard prelude
// refuses single calls of built-in functions that would run or allocate
// without end.
//
// Not bounded in this process: what happens inside one native operation that no
// guard covers. These can exhaust memory or hold their goroutine until they
// return: the BigInt operators ** and << on huge operands; doubling a
// string until the heap watchdog sees it (it may reach four times the bound
// first); a native iterator protocol spread over another native, such as
// [...endless] of a native iterator. An engine fault that Go cannot recover
// (stack exhaustion of the process, out of memory) ends the process. Code that
// nobody vouches for belongs in a worker process, where the same realm runs
// behind the same Host messages and an address-space limit and a kill close
// what is open here.
//
// # Concurrency
//
// Every exported method may be called from any goroutine. Entries into one
// realm run one at a time in the order in which they came. A call made from
// inside a turn of the same realm by way of an asynchronous host method is a
// turn of its own.
//
// # Errors
//
// Errors are *seams.Error; a JavaScript exception is the *Thrown below it, with
// a stack of original file:line:column. A closed realm answers UNLOADED, a dead
// one the code it died of.
package sandbox
