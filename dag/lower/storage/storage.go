// Package storage lowers storage accesses: io ops become the messages and the computation of a distributed block store,
// on its servers as well as on the hosts that issue them. docs/storage.md describes the mapping and all parameters.
//
// What every storage system needs is common: the records in the order of the trace, how those of a host wait for each
// other (order.go, host.go), messages with tags of their own and the report (writer.go), the placement on ranks
// (placement.go). A system is one file, such as directdrive.go, and one line in the list below.
package storage

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// systems are the storage systems; the first is the default.
var systems = []system{
	{"directdrive", "Azure Direct Drive, as far as it is publicly known", newDirectDrive},
}

// system is an architecture by name.
type system struct {
	name, about string
	new         func() architecture
}

// architecture is a storage system with its parameters, which begin as the defaults.
type architecture interface {
	// parameters returns the parameters, in the order of the documentation.
	parameters() []parameter
	// check returns an error for parameters that contradict each other; given are the names of those that were set. It
	// completes what follows from others.
	check(given map[string]bool) error
	// compat reports whether the trace is to be lowered as by a published tool: a host for every number up to the highest
	// unit's, and nothing but io ops.
	compat() bool
	// kinds returns how many servers there are of each kind.
	kinds() []int64
	// serve returns what lowers the accesses of a trace, from the first on.
	serve(l *layout) (server, error)
}

// layout is what a system needs to know of a trace.
type layout struct {
	trace   *dag.Trace
	units   []unit    // ascending
	servers [][]int32 // the ranks of the servers of each kind
}

// unit is a storage unit of a trace.
type unit struct {
	number int32
	end    int64 // of the highest access, in bytes
}

// server lowers accesses, one after the other in the order of the records.
type server interface {
	// mount writes what a host does before its first access, and returns the host's op that ends it, none for nothing.
	mount(w *writer, host int32) (end int32)
	// access writes what stands for an access.
	access(a *access)
}

// Report says what a lowering made of a trace. Ops that stand for no access, but for how accesses wait for each other,
// are counted apart: calcs of the chain of times of order=timed are Gaps, those that take no time are Markers.
type Report struct {
	Messages  int64 `json:"messages"`
	Calcs     int64 `json:"calcs"`      // service of requests
	SendBytes int64 `json:"send_bytes"` // of all messages
	CalcNS    int64 `json:"calc_ns"`    // of all calcs, in nanoseconds
	SliceOps  int64 `json:"slice_ops"`  // parts of accesses, one for each slice that an access touches
	Ranks     int64 `json:"ranks"`
	Gaps      int64 `json:"gaps"`
	Markers   int64 `json:"markers"`

	*CompatReport // nil unless the choice is to do what a published tool does
}

// CompatReport has the counts that such tools print.
type CompatReport struct {
	Sends    int64 `json:"sends"`
	Recvs    int64 `json:"recvs"`
	Requires int64 `json:"requires"`
}

// Lower returns the trace with every io op replaced by what the chosen storage system does for it, and a report. The
// references of t must be in range ([dag.Rank.CheckReferences]); t is not changed. A trace without io ops is returned
// as it is.
//
// Ranks of t are the hosts. They keep their other ops, in order: what waits for an io op waits for the end of its last
// message, and what an io op waits for, its first messages wait for. The ops that issue record N (counted from 0 in the
// order of [dag.Trace.Records]) and those that end it have the attributes {"io":N}.
//
// It fails for accesses that no trace can hold: records that touch more than 2^20 slices, more than 2^30 ops or 3 *
// 2^30 dependencies in all, 2^63 bytes.
func Lower(t *dag.Trace, c Choice) (*dag.Trace, *Report, error) {
	c.complete()
	lowered, report, err := lowerTrace(t, &c)
	if err != nil {
		return nil, nil, fmt.Errorf("lowering storage accesses to %s: %w", c.system.name, err)
	}
	return lowered, report, nil
}

func lowerTrace(t *dag.Trace, c *Choice) (*dag.Trace, *Report, error) {
	units, err := findUnits(t)
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
	if err := l.run(); err != nil { // which counts
		return nil, nil, err
	}
	l.fill()
	if err := l.run(); err != nil {
		return nil, nil, err
	}
	out, err := l.written()
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
