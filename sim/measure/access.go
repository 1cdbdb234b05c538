package measure

import (
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
)

// ioLatency is the distribution of storage access latencies, by [NearestRank].
type ioLatency struct {
	Distribution[dag.Time]
}

// MarshalJSON returns the distribution with times in whole picoseconds.
func (l *ioLatency) MarshalJSON() ([]byte, error) {
	picoseconds := func(t dag.Time) string { return strconv.FormatInt(int64(t), 10) }
	return l.JSON("_ps", picoseconds, "count", "mean", "p50", "p99", "p99.9", "max"), nil
}

// IsStorage reports whether a trace consists of lowered storage accesses.
func IsStorage(meta dag.Meta) bool {
	return attr.HasStorage(meta.Attrs)
}

// Accesses returns an observer that measures the latency of each storage access lowered to messages: from the start of
// its first op on its host to the end of its last op. It adds the section "io_latency". trace is the lowered trace with
// its attributes.
func Accesses(trace *dag.Trace) Observer {
	return &accessTimes{trace: trace}
}

// accessTimes records the start and end of each access, by number.
type accessTimes struct {
	trace      *dag.Trace
	access     []uint32 // by op of the program: the number of its access plus 1; 0: none
	start, end []uint64
	known      []bool // by number: some op of the trace belongs to the access
	unit       dag.Time
}

func (a *accessTimes) Begin(l *sim.Layout) {
	a.unit = l.Unit
	a.access = make([]uint32, l.NumOps())
	for rank := range a.trace.Ranks {
		a.eachOp(rank, func(op int, access uint32) {
			a.access[l.Start[rank]+uint32(op)] = access + 1
			a.extend(access)
			a.known[access] = true
		})
	}
}

// eachOp calls found for each op of a rank that starts or ends an access.
func (a *accessTimes) eachOp(rank int, found func(op int, access uint32)) {
	r := a.trace.Ranks[rank]
	for op := range r.Attrs.Len() {
		if access, ok := attr.ParseIOAccess(r.Attrs.At(op)); ok && access < math.MaxUint32 {
			found(op, uint32(access))
		}
	}
}

func (a *accessTimes) Span(s sim.Span) {
	if access := a.access[s.Op]; access != 0 && s.Kind != sim.WaitSpan {
		a.add(access-1, s.Start, s.End)
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

func (a *accessTimes) Transfer(sim.Transfer) {}
func (a *accessTimes) End() error            { return nil }

func (a *accessTimes) Finish(r *sim.Result) {
	io := a.latency(r.Complete)
	if io == nil {
		return
	}
	units := map[string]string{"": "ps"}
	r.Add(sim.Section{Key: "io_latency", Value: io, Units: units, RowsAfter: "messages", Rows: []sim.Row{
		sim.Rowf("I/O latency", "%d accesses, mean %v, p50 %v, p99 %v, p99.9 %v, max %v", io.Count,
			dag.Time(math.Round(io.Mean)), io.P50, io.P99, io.P999, io.Max),
	}})
}

// latency returns the distribution of the latencies, or nil if there are none. In a complete run, an access without
// busy streams has no bytes and therefore latency 0.
func (a *accessTimes) latency(complete bool) *ioLatency {
	var all []dag.Time
	for k, start := range a.start {
		t := dag.Time(0)
		if start != math.MaxUint64 {
			t = dag.Time(a.end[k]-start) * a.unit
		} else if !complete || !a.known[k] {
			continue
		}
		all = append(all, t)
	}
	if all == nil {
		return nil
	}
	return &ioLatency{NearestRank(all)}
}
