package stream

import "github.com/ouro-run/ouro/seams/llm"

// Rule is one law.
type Rule struct {
	ID   string
	Text string
}

// Laws beyond those of llm.Grammar.
const (
	ruleOutcome    = "S1"
	ruleWhole      = "S2"
	ruleEmpty      = "S3"
	ruleCall       = "S4"
	ruleReason     = "S5"
	ruleErrorLast  = "S6"
	ruleCoded      = "S7"
	ruleUsage      = "S8"
	ruleEnds       = "S9"
	ruleCancel     = "S10"
	ruleLeave      = "S11"
	rulePanic      = "S12"
	ruleReadOnly   = "S13"
	ruleRefuse     = "S14"
	ruleNothing    = "S15"
	ruleNoSecret   = "S16"
	ruleRepeatable = "S17"
	ruleLazy       = "S18"
)

// Rules returns all laws.
func Rules() []Rule {
	return []Rule{
		{llm.RuleUnion, "a chunk is one of the union, with all its members"},
		{llm.RuleIndex, "an index is a non-negative safe integer"},
		{llm.RuleStart, "a block is started once"},
		{llm.RuleOpen, "deltas and ends belong to an open block"},
		{llm.RuleKind, "deltas and ends are of the kind of their block"},
		{llm.RuleUsage, "usage comes at most once"},
		{llm.RuleClosed, "no block is open at a finish, but of kind error or aborted"},
		{llm.RuleLast, "nothing comes after the finish"},
		{llm.RuleFinish, "a stream that does not fail ends in a finish"},
		{ruleOutcome, "the reply says what the service said"},
		{ruleWhole, "a block's end holds what its deltas told"},
		{ruleEmpty, "no text or reasoning block is empty"},
		{ruleCall, "a tool call has an id, the same throughout and no other's of the reply, and a name"},
		{ruleReason, "a finish has a known kind: tool-calls exactly where there are calls and the reply is whole; a failure where it failed"},
		{ruleErrorLast, "an error comes once, without a chunk, and last"},
		{ruleCoded, "a failure has a code other than UNKNOWN and a text of at most 2000 bytes"},
		{ruleUsage, "usage has no negative count, and no more reasoning than output"},
		{ruleEnds, "a stream ends"},
		{ruleCancel, "a cancelled request ends at once, with ABORTED or the finish that was due"},
		{ruleLeave, "a reader may leave after any chunk, and nothing is yielded to it afterwards"},
		{rulePanic, "an adapter does not panic"},
		{ruleReadOnly, "an adapter does not change the request"},
		{ruleRefuse, "what cannot be represented is refused with an UNSUPPORTED_ code, before any chunk and any I/O"},
		{ruleNothing, "nothing is left running after the last stream"},
		{ruleNoSecret, "no failure tells a secret"},
		{ruleRepeatable, "a request can be sent again, and by several readers at once"},
		{ruleLazy, "nothing is sent before a stream is ranged over"},
	}
}
