package seams

// Codes of the container (runtime/cordis).
const (
	InactiveEffect  Code = "INACTIVE_EFFECT"
	WouldDeadlock   Code = "WOULD_DEADLOCK"
	Clash           Code = "CLASH"
	NotProvided     Code = "NOT_PROVIDED"
	NotInjected     Code = "NOT_INJECTED"
	NotOwner        Code = "NOT_OWNER"
	WrongType       Code = "WRONG_TYPE"
	InvalidPlugin   Code = "INVALID_PLUGIN"
	ApplyFailed     Code = "APPLY_FAILED"
	UndoFailed      Code = "UNDO_FAILED"
	Stuck           Code = "STUCK"
	NextTwice       Code = "NEXT_TWICE"
	ModeConflict    Code = "MODE_CONFLICT"
	Panicked        Code = "PANICKED"
	Unloaded        Code = "UNLOADED"
	Timeout         Code = "TIMEOUT"
	Aborted         Code = "ABORTED"
	Unknown         Code = "UNKNOWN"
	NotFound        Code = "NOT_FOUND"
	Duplicate       Code = "DUPLICATE"
	InvalidArgument Code = "INVALID_ARGUMENT"
	TooLarge        Code = "TOO_LARGE"
	NotJSON         Code = "NOT_JSON"
	NotPermitted    Code = "NOT_PERMITTED"
	TooMany         Code = "TOO_MANY"
)

// Codes of language-model requests (seams/llm, adapters). An unknown HTTP
// status has the code HTTP_<status>, an unknown finish reason its own text in
// upper case.
const (
	NoAdapter                  Code = "NO_ADAPTER"
	InvalidAdapter             Code = "INVALID_ADAPTER"
	DuplicateAdapter           Code = "DUPLICATE_ADAPTER"
	RegistrationDisposed       Code = "REGISTRATION_DISPOSED"
	AmbiguousModel             Code = "AMBIGUOUS_MODEL"
	InvalidCatalog             Code = "INVALID_CATALOG"
	InvalidModelInfo           Code = "INVALID_MODEL_INFO"
	InvalidModelContext        Code = "INVALID_MODEL_CONTEXT"
	InvalidModelMaxTokens      Code = "INVALID_MODEL_MAX_TOKENS"
	InvalidModelReasoning      Code = "INVALID_MODEL_REASONING"
	InvalidPreparedCall        Code = "INVALID_PREPARED_CALL"
	UnsupportedReasoningEffort Code = "UNSUPPORTED_REASONING_EFFORT"
	UnsupportedOption          Code = "UNSUPPORTED_OPTION"
	UnsupportedContent         Code = "UNSUPPORTED_CONTENT"
	Auth                       Code = "AUTH"
	Quota                      Code = "QUOTA"
	RateLimit                  Code = "RATE_LIMIT"
	ContextWindowExceeded      Code = "CONTEXT_WINDOW_EXCEEDED"
	ContentFilter              Code = "CONTENT_FILTER"
	InvalidRequest             Code = "INVALID_REQUEST"
	Server                     Code = "SERVER"
	Transport                  Code = "TRANSPORT"
	StreamClosed               Code = "STREAM_CLOSED"
	StreamProtocol             Code = "STREAM_PROTOCOL"
	MalformedResponse          Code = "MALFORMED_RESPONSE"
	EmptyResponse              Code = "EMPTY_RESPONSE"
	MissingCredential          Code = "MISSING_CREDENTIAL"
	InvalidCredential          Code = "INVALID_CREDENTIAL"
	InvalidScenario            Code = "INVALID_SCENARIO"
	NoRule                     Code = "NO_RULE"
)

// Codes of tool calls (seams/tools).
const (
	UnknownTool           Code = "UNKNOWN_TOOL"
	InvalidArgs           Code = "INVALID_ARGS"
	InvalidToolOutput     Code = "INVALID_TOOL_OUTPUT"
	ToolTimeout           Code = "TOOL_TIMEOUT"
	AbortedBeforeDispatch Code = "ABORTED_BEFORE_DISPATCH"
)

// Codes of sessions (seams/events).
const (
	InvalidEvent         Code = "INVALID_EVENT"
	ReentrantAppend      Code = "REENTRANT_APPEND"
	SessionNotFound      Code = "SESSION_NOT_FOUND"
	SessionNotLive       Code = "SESSION_NOT_LIVE"
	SessionAlreadyLive   Code = "SESSION_ALREADY_LIVE"
	SessionAlreadyExists Code = "SESSION_ALREADY_EXISTS"
	InvalidBoundary      Code = "INVALID_BOUNDARY"
	OpenTurn             Code = "OPEN_TURN"
	ToolNotStarted       Code = "TOOL_NOT_STARTED"
	ToolOutcomeUnknown   Code = "TOOL_OUTCOME_UNKNOWN"
)

// Codes of JavaScript (sandbox).
const (
	CompileFailed      Code = "COMPILE_FAILED"
	ModuleNotAvailable Code = "MODULE_NOT_AVAILABLE"
	NotAvailable       Code = "NOT_AVAILABLE"
	NotExposed         Code = "NOT_EXPOSED"
	ReadOnly           Code = "READ_ONLY"
	OverBudget         Code = "OVER_BUDGET"
	ScriptError        Code = "SCRIPT_ERROR"
)

// Codes of schemas and of cordis.yml (runtime/schema, runtime/config).
const (
	UnsupportedSchema Code = "UNSUPPORTED_SCHEMA"
	InvalidConfig     Code = "INVALID_CONFIG"
)

// Codes of agents (agents).
const (
	NoModel          Code = "NO_MODEL"
	AgentBusy        Code = "AGENT_BUSY"
	Rejected         Code = "REJECTED"
	MaxTokensReached Code = "MAX_TOKENS"
	StepLimit        Code = "STEP_LIMIT"
	RepeatLimit      Code = "REPEAT_LIMIT"
	UnknownToolLimit Code = "UNKNOWN_TOOL_LIMIT"
	SpendLimit       Code = "SPEND_LIMIT"
)

// Codes of memory (seams/memory).
const (
	MemoryUnavailable Code = "MEMORY_UNAVAILABLE"
)

// Codes of the loader (runtime/loader).
const (
	NotWatched Code = "NOT_WATCHED"
)

// Codes of services that guard something of the machine (builtins/fs).
const (
	AccessDenied Code = "ACCESS_DENIED"
)

// codes is the one table. A code that is not in it does not exist: a test
// compares it with docs/errors.md and with every Code constant of the module.
var codes = []CodeInfo{
	{InactiveEffect, "something was registered or used through a context whose plugin is no longer active", "do it from apply or from a live handler; the plugin was unloaded or disposed"},
	{WouldDeadlock, "a wait would wait for itself", "ask for the change and return; await it from outside the call it waits for"},
	{Clash, "two entries provide the same service in the same realm", "remove one of them, or give one an isolated realm; declare `provide` so that it is seen before anything runs"},
	{NotProvided, "a service is not provided", "add a plugin that provides it, or read it as optional"},
	{NotInjected, "a plugin used a service it did not declare", "add the service to the plugin's `inject`"},
	{NotOwner, "only the provider of a service may set it", "set it from the plugin that provides it"},
	{WrongType, "a service or event value has another type than the one asked for", "use the key or event exported by the seam's package"},
	{InvalidPlugin, "a value is not a plugin", "export a function, or an object or class with `apply`"},
	{ApplyFailed, "a plugin's apply failed", "read the cause; the entry starts again when its file, its config or its entry changes"},
	{UndoFailed, "undoing an effect failed", "read the cause; all other effects were undone"},
	{Stuck, "undoing an effect did not end in time", "see what the named effect waits for; the providers it relies on stay until it ends"},
	{NextTwice, "a waterfall listener called next twice", "call next once and return its result"},
	{ModeConflict, "one event is dispatched in two incompatible modes", "use the mode the event's documentation names"},
	{Panicked, "code panicked; it was contained and charged to its owner", "report it with the stack in the log"},
	{Unloaded, "the plugin that ran this was unloaded", "nothing, if the unload was meant"},
	{Timeout, "something did not answer within its limit", "raise the limit in the configuration or look at the peer"},
	{Aborted, "the caller cancelled", "nothing, if the cancel was meant"},
	{Unknown, "a failure without a code", "read the message and its causes"},
	{NotFound, "a named thing does not exist", "check the name against those the message lists"},
	{Duplicate, "a name is already registered in this scope", "remove the older registration or choose another name"},
	{InvalidArgument, "an argument is not of the right form", "see the path and the expectation in the message"},
	{TooLarge, "an input is over its size bound", "make it smaller, or raise the bound in the configuration"},
	{NotPermitted, "the policy does not grant what was asked for", "the message shows the line of cordis.yml that would grant it"},
	{TooMany, "a limit on the number of something is reached", "remove one first, or raise the limit in the configuration"},
	{NotJSON, "a value cannot be carried as JSON without loss", "see the path in the message: no functions, cycles, NaN, infinities or integers beyond 2^53"},
	{NoAdapter, "no adapter is registered for the provider or model asked for", "use one of the routes the message lists, or add an adapter plugin"},
	{InvalidAdapter, "an adapter was registered without a usable route, name or entry", "register at least one non-empty route name"},
	{DuplicateAdapter, "a route is given twice or belongs to another adapter", "remove the other registration or choose another route"},
	{RegistrationDisposed, "an adapter's registration was changed after it was released", "register the adapter again"},
	{AmbiguousModel, "several providers list the model asked for", "name one of the providers beside the model"},
	{InvalidCatalog, "an adapter's model catalogue has a bad or repeated entry", "see the entry in the message; mend the adapter's `models`"},
	{InvalidModelInfo, "an adapter described a model wrongly", "see the field in the message; mend the adapter"},
	{InvalidModelContext, "a model's context window is not a positive whole number", "give its capacity in tokens, or leave it out"},
	{InvalidModelMaxTokens, "a model's default output limit is not a positive whole number", "give it in tokens, or leave it out"},
	{InvalidModelReasoning, "a model's reasoning efforts are empty, repeated or unnamed", "see the field in the message; mend the adapter"},
	{InvalidPreparedCall, "a prepared call was used twice or with another configuration", "prepare one call for each request and send its configuration unchanged"},
	{UnsupportedReasoningEffort, "the model does not offer the reasoning effort asked for", "use one the message lists, or none"},
	{UnsupportedOption, "the adapter cannot represent an option of the request", "leave the option out or use another provider"},
	{UnsupportedContent, "the adapter cannot represent a content block of the request", "leave the content out or use another provider"},
	{Auth, "the provider refused the credentials (HTTP 401 or 403)", "check the API key and what it may use"},
	{Quota, "the account's balance or quota is used up", "top up the account or use another provider"},
	{RateLimit, "the provider throttles requests (HTTP 429)", "wait, or add the llm-retry plugin"},
	{ContextWindowExceeded, "the request is larger than the model's context window", "start a new session, or compact this one"},
	{ContentFilter, "the provider withheld the reply by its content rules", "rephrase the request"},
	{InvalidRequest, "the provider refused the request as ill-formed or too large", "read the provider's message; check the model name and the options"},
	{Server, "the provider failed (HTTP 5xx)", "try again later, or add the llm-retry plugin"},
	{Transport, "the connection to the provider failed or broke", "check the address and the network"},
	{StreamClosed, "the reply ended before it was complete", "try again; if it stays, look at what stands between you and the provider"},
	{StreamProtocol, "a stream of chunks breaks the protocol", "mend the adapter: docs/plugins-js.md has the rules of a stream"},
	{MalformedResponse, "the provider's reply cannot be read", "check the address: is it the API, with its version path?"},
	{EmptyResponse, "the provider's reply holds nothing", "try again"},
	{MissingCredential, "no API key is configured", "set the key in the adapter's config or environment"},
	{InvalidCredential, "the API key is not printable ASCII", "set the key again; it may have a line break or a quote in it"},
	{InvalidScenario, "a scenario file of the scripted model is not valid", "see the place and the expectation in the message"},
	{NoRule, "no rule of the scenario fits the request", "add a rule, or a last one without a condition"},
	{UnknownTool, "the model called a tool that is not there", "use one of the tools the message lists; a tool that was unmounted must be mounted again"},
	{InvalidArgs, "a tool was called with arguments that break its schema", "correct each place the message names and call again"},
	{InvalidToolOutput, "a tool returned a value that breaks its own contract", "mend the tool: its value must be JSON and fit its output schema"},
	{ToolTimeout, "a tool did not end within its time limit", "call it with less to do, or raise the tool's limit"},
	{AbortedBeforeDispatch, "a tool call was cancelled before the tool ran", "nothing, if the cancel was meant; the tool had no effect"},
	{InvalidEvent, "an event breaks the rules of the session log", "see the path and the expectation in the message"},
	{ReentrantAppend, "an observer of a session appended to it, or flushed it, from within the notice", "do it after the observer has returned"},
	{SessionNotFound, "no session has this id", "check the id against those listed"},
	{SessionNotLive, "a session is closed or was not entered", "resume it, or use the live one of its id"},
	{SessionAlreadyLive, "a session that is to be resumed is live already", "use the live one, or close it first"},
	{SessionAlreadyExists, "a session of this id exists", "resume it, or choose another id"},
	{InvalidBoundary, "a session cannot be cut at this place", "cut outside of a turn, at a place within the log"},
	{OpenTurn, "a session's turn is still open", "wait for its end, or cut at a closed turn"},
	{ToolNotStarted, "the process ended before a tool call was started", "call the tool again if it is still needed"},
	{ToolOutcomeUnknown, "the process ended while a tool ran", "verify its effects, or ask, before calling it again"},
	{CompileFailed, "a source could not be compiled", "the message shows file:line:column and the source line of each fault"},
	{ModuleNotAvailable, "a source imports a module that plugins do not have", "use the module or the service that the message names"},
	{NotAvailable, "a global of other runtimes does not exist in this realm", "inject the service that the message names"},
	{NotExposed, "a plugin's ctx has no such member", "use one of those the message lists; the rest is withheld on purpose"},
	{ReadOnly, "a plugin's ctx cannot be written", "publish a value with ctx.provide(name, value)"},
	{OverBudget, "a plugin used more than its budget and was stopped", "make it do less at a time, or raise the named budget in the configuration"},
	{ScriptError, "JavaScript threw an error that has no code", "read the message and the stack"},
	{UnsupportedSchema, "a schema uses what is not supported, or contradicts itself", "change each place the message names as it says"},
	{InvalidConfig, "a configuration is not as its file format or its plugin's schema asks", "correct each place the message names; `ouro check` lists all at once"},
	{NoModel, "an agent has no model to ask", "set `model` (and `provider`) of the agent in cordis.yml, or give --model"},
	{AgentBusy, "an agent is at work and cannot be maintained now", "try again when it is idle"},
	{Rejected, "a plugin refused to let a step begin", "see the plugins that listen to agent/pre-step"},
	{MaxTokensReached, "the model's reply was cut off at its output limit", "raise `maxTokens`, or ask for less at once"},
	{StepLimit, "a turn had as many steps as it may", "send another message to go on, or raise `maxSteps`"},
	{RepeatLimit, "the model made the same call over and over", "tell it what to do differently; a tool that is meant to be polled can be exempted"},
	{UnknownToolLimit, "the model kept calling tools that do not exist", "tell it which tools to use, or mount the one it wants"},
	{SpendLimit, "the session has spent what it may", "raise the limit, or start a new session"},
	{MemoryUnavailable, "a memory store or its embedder did not answer", "read the cause; nothing is said about what is stored"},
	{NotWatched, "files cannot be watched, so that changes are not seen", "raise the limit that the message names; until then, restart to apply changes"},
	{AccessDenied, "a service refused what its configuration does not allow", "stay within what the message names, or change the service's entry in cordis.yml"},
}
