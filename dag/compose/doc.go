// Package compose merges traces into one, and edits whole traces. docs/reference/compose.md describes both for users.
//
// [Build] makes the trace of a [Plan]: it reads, edits, places and merges the traces of the jobs, lowers the result
// and joins the ranks of each node. [ReadPlan] reads a plan from a file, [NewPlan] from settings of the command line.
//
// The parts can be used separately. [Merge] numbers the ranks of each job after those of the previous jobs and delays
// the job until its start; [Machine] places jobs on nodes, rank by rank or by whole nodes; [OnNodes] merges jobs so
// that nodes become ranks. [SeparateNICs] prepares jobs that share a node.
//
// Edits of a single trace: [Window] and [KeepRanks] select a part, [Repeat] repeats iterations, [Scale] scales the
// durations of calcs, [Only] selects one job, and [Replicate] runs the ops of one rank on many.
package compose
