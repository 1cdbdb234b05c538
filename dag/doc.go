// Package dag is the common model of every workload trace: one directed acyclic graph of operations per rank,
// kept in columns.
//
// A [Trace] holds metadata, communicators and one [Rank] for each rank of the traced or synthetic program. An
// operation ("op") is a row of a rank: a computation, a send, a receive, a collective, a memory access or a storage
// access. Ops of one rank are ordered by dependencies alone. Their index order is part of the trace and survives every
// round trip; it makes no op wait for another, but says which collectives of a communicator's members belong together:
// the k-th of each.
//
// All times are [Time], whole picoseconds. All sizes are bytes. All peers are ranks of the trace (not positions in a
// communicator).
//
// Traces are made with a [Builder], checked with [Validate] and summarised with [Summarize].
package dag
