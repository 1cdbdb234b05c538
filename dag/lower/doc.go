// Package lower holds the parts that lowering passes share, and the pass [Roofline].
//
// A lowering pass replaces high-level ops of a trace by sends, receives and calcs, which every backend can run. The other
// passes are packages of their own: collective, nccl, nodes and storage.
package lower
