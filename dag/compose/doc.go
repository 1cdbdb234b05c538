// Package compose merges several traces into one, and changes whole traces. docs/reference/compose.md describes both
// for users.
//
// [Build] makes the trace of a [Plan]: it reads the traces of the jobs, edits, places and merges them, lowers the
// result and joins the ranks of a node. [ReadPlan] reads a plan from a file, [NewPlan] from settings of the command
// line.
//
// The parts can be used alone. [Merge] puts the ranks of each job after those of the jobs before and moves it to its
// start; [Machine] places jobs on nodes, rank by rank or by whole nodes; [OnNodes] merges jobs so that nodes become
// ranks. [SeparateNICs] prepares jobs for sharing a node.
//
// Of a single trace, [Window] and [KeepRanks] leave a part, [Repeat] makes several iterations, [Scale] changes how long
// calcs take, [Only] leaves one job, and [Replicate] has many ranks do what one does.
package compose
