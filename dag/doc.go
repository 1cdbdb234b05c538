// Package dag is the common model of every workload trace: one directed acyclic graph of operations per rank, stored
// in columns.
//
// A [Trace] has metadata, communicators and one [Rank] for each rank of the traced or synthetic program. An operation
// ("op") is a row of a rank: a computation, a send, a receive, a collective, a memory access or a storage access.
// Only dependencies order the ops of a rank. The index order of ops is part of the trace and survives every round
// trip. It makes no op wait for another, but it matches collectives: the k-th collective of each member of a
// communicator belong together.
//
// All times are [Time], whole picoseconds. All sizes are bytes. All peers are ranks of the trace (not positions in a
// communicator).
//
// [Builder] makes a trace, [Validate] checks it and [Summarize] computes its statistics.
package dag
