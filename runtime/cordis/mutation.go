package cordis

// mutation plants a known fault in the scheduler. It is the switch of the
// mutation gate: only tests can set it, and every fault must be found by the
// property tests. The zero value is the correct scheduler.
type mutation uint32

const (
	mutNoGuard          mutation = 1 << iota // undo starts while consumers are committed
	mutGuardAtProvide                        // the guard waits only at the inverse of provide
	mutRetiringMissed                        // a consumer that is being retired is not counted
	mutFIFO                                  // inverses run first to last
	mutLateUnpublish                         // a leaving provider still counts as one
	mutFailRetry                             // a failed fiber begins again on any change
	mutNoRecheck                             // finish without comparing target and view
	mutSkipPrefix                            // a failing apply does not undo what had landed
	mutDoubleUndo                            // the last inverse runs twice
	mutExtUnderInactive                      // mounting under a parent that is not active
	mutChildNotWaited                        // undoing does not wait for a child at its place
	mutLateListener                          // a listener is called after dispose
	mutBoolTarget                            // the target is only satisfied or not
	mutLoseAtInsert                          // N1: the holder is kept only if active when replaced
	mutOneExempt                             // N2: only the one predecessor is exempt from clashes
	mutNoShadow                              // N3: children are visible before their parent is
	mutNoExclude                             // N4: a successor may rely on its predecessor
	mutDirectOnly                            // N4: … or on what relies on it
	mutLateRetire                            // N5: the predecessor leaves in a later step
	mutLeaveAtBegin                          // N5: … or as soon as the successor begins
	mutFailKills                             // N5: a failing successor takes its predecessor along
	mutLazyLeave                             // N6: dependants leave one by one
	mutCallsMissed                           // N7: undo does not wait for calls in flight
)

func (m mutation) has(x mutation) bool { return m&x != 0 }
