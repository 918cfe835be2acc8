// Package agents runs agents: it takes messages, asks a model, runs the tools
// the model calls, and logs all of it in the agent's session.
//
// # Usage
//
//	reg := agents.New(agents.Deps{Bus: bus, LLM: llms, Tools: tools, Sessions: store, Prompt: prompt})
//	a, err := reg.Create(ctx, owner, agents.Spec{
//		Header:  events.Header{ID: "main", CWD: dir},
//		Options: agents.Options{CallConfig: llm.CallConfig{Provider: "openai", Model: "some-model"}},
//	})
//	result := a.Run(ctx, llm.UserText("hello")) // or Followup, and follow a.Session()
//
// # Turns and steps
//
// A message that wakes an idle agent opens a turn: the system prompt is
// assembled, [PreStep] admits the messages, and a step asks the model once. While
// the model calls tools, or messages arrive for the next step, the turn goes on
// with another step. Each step takes the options, the prompt and the list of
// tools anew. What a step did is in the log before anybody acts on it: the inbox
// ([Agent.Followup], [Agent.Steer], [Agent.Inject]) is logged before it changes,
// and a request holds nothing that cannot be derived from the log.
//
// Calls of one reply start in the model's order, their policy phases run in it
// and their results are logged in it; calls that are safe beside others run
// beside others.
//
// # Limits
//
// A turn has 64 steps at most. The third identical call in a row, whatever the
// order of its arguments, brings the model a reminder and the sixth is not run
// and ends the turn; calls of unknown tools are counted alike. A limit on spend
// is an option. A turn that ended on a limit says which ([events.Limited]).
//
// # Cancellation
//
// [Agent.Cancel] ends the context of everything the turn has started: the model
// request, the tools, and agents whose [Agent.Run] a tool waits in. Started tools
// are waited for, calls that were not started are answered as not started, and
// the agent is idle when nothing of it runs any more.
//
// # Concurrency
//
// Everything may be called from any goroutine. A running agent has one goroutine,
// and one for each running call; both are over when [Agent.WhenIdle] returns and
// [Agent.Dispose] waits for them. Listeners run without a lock held. One that
// waits for the agent it is called by gets WOULD_DEADLOCK.
//
// # Errors
//
// A failed turn is an event ([Failed], turn/end in the log) and leaves the agent
// usable. The codes of limits and of wrong use are in the const block of
// seams.NoModel.
package agents
