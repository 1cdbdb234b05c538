// Package rescale extrapolates a trace of an SPMD program from P ranks to N.
//
// [Rescale] aligns the ops of all ranks to one list of calls, the skeleton, and expresses the partner of each message
// as a function of the rank: a neighbor on a grid or a ring, a partner by exclusive or, a fixed rank, or a permutation
// of ranks. Ranks lack the calls whose partner does not exist, such as those at the border of a grid. From the skeleton
// it generates the ranks of the new trace. It refuses traces that no such skeleton reproduces, and never guesses
// partners. It also refuses what fits several rules that differ on the new ranks; [Decide] lets other traces decide.
// The idea of extrapolating communication from a compressed trace is that of ScalaExtrap (Wu and Mueller, Elastic and
// Scalable Tracing and Accurate Replay of Non-Deterministic Events, ICS 2013; ScalaExtrap: Trace-Based Communication
// Extrapolation for SPMD Programs, PPoPP 2011).
//
// docs/reference/rescale.md describes the rules for users.
package rescale
