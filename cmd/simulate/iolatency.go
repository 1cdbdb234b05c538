// This file measures how long storage accesses take that were lowered to messages: from the start of the first op that
// stands for one on its host to the end of the last.

package main

import (
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/ideal"
)

// ioLatency is the distribution of the latencies of storage accesses: of n in ascending order, percentile p is number
// ceil(p/100 n).
type ioLatency struct {
	Count int64    `json:"count"`
	Mean  dag.Time `json:"mean_ps"`
	P50   dag.Time `json:"p50_ps"`
	P99   dag.Time `json:"p99_ps"`
	P999  dag.Time `json:"p99.9_ps"`
	Max   dag.Time `json:"max_ps"`
}

// isStorage reports whether a trace is one of storage accesses that were lowered.
func isStorage(meta dag.Meta) bool {
	return attr.HasStorage(meta.Attrs)
}

// accessTimes is when the accesses of a trace started and ended, by number. It is a timeline that passes on what it is
// told.
type accessTimes struct {
	sim.Timeline // nil: nobody else listens
	trace        *dag.Trace
	access       []uint32 // of each op of the program, one more than the number of its access; 0: it belongs to none
	start, end   []uint64
	known        []bool // numbers that some op of the trace has
	unit         dag.Time
}

func (a *accessTimes) Begin(p *sim.Program) {
	a.unit = p.Unit
	a.access = make([]uint32, p.NumOps())
	for rank := range a.trace.Ranks {
		a.eachOp(rank, func(op int, access uint32) {
			a.access[p.Start[rank]+uint32(op)] = access + 1
			a.extend(access)
			a.known[access] = true
		})
	}
	if a.Timeline != nil {
		a.Timeline.Begin(p)
	}
}

// eachOp calls found for the ops of a rank that begin or end an access.
func (a *accessTimes) eachOp(rank int, found func(op int, access uint32)) {
	r := &a.trace.Ranks[rank]
	for op := range r.Attrs.Len() {
		if access, ok := attr.ParseIOAccess(r.Attrs.At(op)); ok && access < math.MaxUint32 {
			found(op, uint32(access))
		}
	}
}

func (a *accessTimes) Span(s sim.Span) {
	if access := a.access[s.Op]; access != 0 {
		a.add(access-1, s.Start, s.End)
	}
	if a.Timeline != nil {
		a.Timeline.Span(s)
	}
}

func (a *accessTimes) add(access uint32, start, end uint64) {
	a.extend(access)
	a.start[access], a.end[access] = min(a.start[access], start), max(a.end[access], end)
}

func (a *accessTimes) extend(access uint32) {
	for uint32(len(a.start)) <= access {
		a.start, a.end, a.known = append(a.start, math.MaxUint64), append(a.end, 0), append(a.known, false)
	}
}

func (a *accessTimes) Transfer(t sim.Transfer) {
	if a.Timeline != nil {
		a.Timeline.Transfer(t)
	}
}

func (a *accessTimes) End() error {
	if a.Timeline == nil {
		return nil
	}
	return a.Timeline.End()
}

// from takes the times of a backend that tells when each op ran.
func (a *accessTimes) from(times *ideal.Timeline) {
	a.unit = dag.Picosecond
	for rank := range a.trace.Ranks {
		a.eachOp(rank, func(op int, access uint32) {
			if start, end := times.Start(rank, op), times.End(rank, op); end != ideal.Never {
				a.add(access, uint64(start), uint64(end))
			}
		})
	}
}

// latency returns the distribution of the latencies, nil if there are none. In a complete run, an access that kept no
// stream busy, for it was of no bytes, took no time.
func (a *accessTimes) latency(complete bool) *ioLatency {
	var all []dag.Time
	sum := 0.0
	for k, start := range a.start {
		t := dag.Time(0)
		if start != math.MaxUint64 {
			t = dag.Time(a.end[k]-start) * a.unit
		} else if !complete || !a.known[k] {
			continue
		}
		all = append(all, t)
		sum += float64(t)
	}
	if all == nil {
		return nil
	}
	slices.Sort(all)
	n := len(all)
	percentile := func(p float64) dag.Time { return all[int(math.Ceil(p*float64(n)))-1] }
	return &ioLatency{
		Count: int64(n), Mean: dag.Time(math.Round(sum / float64(n))), P50: percentile(0.5), P99: percentile(0.99),
		P999: percentile(0.999), Max: all[n-1],
	}
}
