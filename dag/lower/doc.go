// Package lower holds the pass [Roofline], and the packages of the other lowering passes: collective, nccl, nodes and
// storage. A lowering pass replaces high-level ops of a trace by sends, receives and calcs, which every backend can
// run.
package lower
