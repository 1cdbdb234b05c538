// Package collective lowers collectives to sends, receives and calcs.
//
// Each collective has a file with its algorithms; each algorithm cites its source. algorithms.go lists all algorithms.
// docs/reference/lowering.md defines the sizes of a collective, the messages of each algorithm, and the dependencies
// between the messages and the other ops of the trace.
package collective
