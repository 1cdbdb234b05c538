// Package storage lowers storage accesses: it replaces io ops by the messages and computation of a distributed block
// store, on its servers and on the hosts that issue the accesses. docs/reference/storage.md describes the mapping
// and all parameters.
//
// All systems share the pass over the records (lowering.go), the order of the accesses of a host (order.go, host.go),
// the writer with message tags and report (writer.go), and the placement on ranks (placement.go). A system is one file,
// such as directdrive.go, and one line in the list systems.
package storage

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// systems are the storage systems; the first is the default.
var systems = []system{
	{"directdrive", "Azure Direct Drive, from public sources", newDirectDrive},
}

// system is a named architecture.
type system struct {
	name, about string
	new         func() architecture
}

// architecture is a storage system with its parameters, initially the defaults.
type architecture interface {
	// params returns the table of the parameters.
	params() param.Set
	// check returns an error for contradictory parameters, and computes derived ones. given has the names of the
	// parameters that were set.
	check(given map[string]bool) error
	// compat reports whether the mapping is that of a published tool: one host per unit number up to the highest, and
	// no other ops than io ops.
	compat() bool
	// kinds returns the number of servers of each kind.
	kinds() []int64
	// serve returns a server for one pass over the accesses of a trace.
	serve(l *layout) (server, error)
}

// layout is the input of a system.
type layout struct {
	trace   *dag.Trace
	units   []unit    // ascending
	servers [][]int32 // ranks of the servers of each kind
}

// unit is a storage unit of a trace.
type unit struct {
	number int32
	end    int64 // end of the highest access in bytes
}

// server lowers accesses in the order of the records.
type server interface {
	// mount writes the ops before the first access of a host, and returns the last of them on the host, none if there
	// are none.
	mount(w *writer, host int32) (end int32)
	// access writes an access.
	access(a *access)
}

// Report counts the ops of a lowering.
type Report struct {
	Messages  int64 `json:"messages"`
	Calcs     int64 `json:"calcs"`      // calcs that serve requests
	SendBytes int64 `json:"send_bytes"` // of all messages
	CalcNS    int64 `json:"calc_ns"`    // duration of these calcs, ns
	SliceOps  int64 `json:"slice_ops"`  // parts of accesses, one for each slice that an access touches
	Ranks     int64 `json:"ranks"`
	Gaps      int64 `json:"gaps"`    // calcs of the timer chains of order=timed
	Markers   int64 `json:"markers"` // calcs of zero duration

	*CompatReport // nil unless the parameter compat is on
}

// CompatReport has the counts that the public converter prints.
type CompatReport struct {
	Sends    int64 `json:"sends"`
	Recvs    int64 `json:"recvs"`
	Requires int64 `json:"requires"`
}

// Lower returns the trace with every io op replaced by the ops of the chosen storage system, and a report. The
// references of t must be in range ([dag.Rank.CheckReferences]). Lower does not change t; it returns a trace without io
// ops as it is.
//
// The ranks of t are the hosts. They keep their other ops in order. The first messages of an access inherit the
// dependencies of the io op; dependents of the io op wait for the last messages. Ops that issue or end record N,
// counted from 0 in the order of [dag.Trace.Records], have the attribute attr.IOAccess.
//
// Lower returns an error for records that touch more than 2^20 slices, and for traces of more than 2^30 ops, 3 * 2^30
// dependencies or 2^63 bytes.
//
// Lower ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Lower(ctx context.Context, t *dag.Trace, c Choice) (*dag.Trace, *Report, error) {
	c.complete()
	lowered, report, err := lowerTrace(ctx, t, &c)
	if err != nil {
		return nil, nil, fmt.Errorf("lowering storage accesses to %s: %w", c.system.name, err)
	}
	return lowered, report, nil
}

func lowerTrace(ctx context.Context, t *dag.Trace, c *Choice) (*dag.Trace, *Report, error) {
	units, err := findUnits(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if len(units) == 0 {
		return t, &Report{Ranks: int64(len(t.Ranks))}, nil
	}
	l, err := newLowering(t, c, units)
	if err != nil {
		return nil, nil, err
	}
	if err := l.run(ctx); err != nil { // counts
		return nil, nil, err
	}
	l.fill()
	if err := l.run(ctx); err != nil {
		return nil, nil, err
	}
	out, err := l.written(ctx)
	if err != nil {
		return nil, nil, err
	}
	report := l.report
	report.Ranks = int64(len(out.Ranks))
	if c.arch.compat() {
		report.CompatReport = &CompatReport{Sends: report.Messages, Recvs: report.Messages}
		for i := range out.Ranks {
			report.Requires += int64(len(out.Ranks[i].Deps.Off))
		}
	}
	return out, &report, nil
}
