// Package lower replaces high-level ops of a trace by sends, receives and calcs, which every backend can run. [Parse]
// reads the rules of --lower, and [Passes] runs the passes in a fixed order: those of the packages storage, nccl,
// collective and nodes, and [Roofline].
package lower
