// Package lower holds the passes that turn the high-level ops of a trace into sends, receives and calcs, which every
// backend can run.
//
// [Collectives] lowers collectives. Each collective has a file with its algorithms, each of which names its
// source; algorithms.go lists them all. docs/lowering.md says what the sizes of a collective mean, which messages each
// algorithm sends, and how the replacement is tied into the DAG.
package lower
