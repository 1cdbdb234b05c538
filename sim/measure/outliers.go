package measure

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// outlier is the first collective of its kind on a communicator, if it took much longer than the others: libraries set
// up a communicator at its first use by an algorithm that needs it. The time of a collective is the shortest of its
// members, without their waits for each other.
type outlier struct {
	Comm     int32     `json:"comm"`
	Kind     string    `json:"kind"`
	Rank     int       `json:"rank"` // of the shortest time, with its op
	Op       int       `json:"op"`
	Measured sim.Clock `json:"measured_ps"`
	Median   sim.Clock `json:"median_ps"` // of the others
	Others   int       `json:"others"`
	Excluded bool      `json:"excluded"`
}

// outlierFactor is the ratio to the median of the others from which a first collective is an outlier.
const outlierFactor = 5

// Bounds from which it is one if at least two others have its size: ratios to their median and to the longest of them,
// and what it takes longer than the median, as a part of the time of all collectives from the first to the last.
const (
	alikeFactor   = 1.5
	longestFactor = 1.25
	alikePart     = 0.005
)

// instance is the shortest recorded time of a collective.
type instance struct {
	kind     dag.Subkind
	bytes    int64
	rank, op int
	shortest dag.Time // Unmeasured: unknown
}

// outliersOf returns the outliers of a trace by communicator.
func outliersOf(t *dag.Trace) (found []outlier) {
	comms := make([][]instance, len(t.Comms))
	next := make([]int, len(t.Comms))
	first, last := dag.Unmeasured, dag.Unmeasured
	for rank, r := range t.Ranks {
		clear(next)
		for op, kind := range r.Kind {
			comm := r.Comm.At(op)
			if kind != dag.Coll || comm < 0 || int(comm) >= len(comms) {
				continue
			}
			k := next[comm]
			next[comm]++
			if k == len(comms[comm]) {
				comms[comm] = append(comms[comm], instance{kind: r.Subkind.At(op),
					bytes: max(r.Bytes.At(op), r.RecvBytes.At(op)), shortest: dag.Unmeasured})
			}
			start, end := r.Measured(op)
			in := &comms[comm][k]
			if start == dag.Unmeasured || end == dag.Unmeasured || end < start {
				continue
			}
			if first == dag.Unmeasured {
				first, last = start, end
			}
			first, last = min(first, start), max(last, end)
			if in.shortest == dag.Unmeasured || end-start < in.shortest {
				in.rank, in.op, in.shortest = rank, op, end-start
			}
		}
	}
	for comm, all := range comms {
		data := slices.IndexFunc(all, func(in instance) bool { return in.kind != dag.Barrier })
		seen := map[dag.Subkind]bool{}
		for k := range all {
			if seen[all[k].kind] {
				continue
			}
			seen[all[k].kind] = true
			in := &all[k]
			times, alike := comparedWith(all, k, k == 0 || k == data)
			if others := len(times); others > 0 && isOutlier(in.shortest, times, alike, last-first) {
				median := times[others/2]
				found = append(found, outlier{Comm: int32(comm), Kind: in.kind.String(), Rank: in.rank, Op: in.op,
					Measured: clockOf(in.shortest), Median: clockOf(median), Others: others})
			}
		}
	}
	return found
}

// isOutlier reports whether a time is too long, compared with sorted times, of collectives that are alike or not. all
// is the time of all collectives.
func isOutlier(time dag.Time, times []dag.Time, alike bool, all dag.Time) bool {
	median, longest := times[len(times)/2], times[len(times)-1]
	if time/outlierFactor > median {
		return true
	}
	return alike && len(times) >= 2 && float64(time) > alikeFactor*float64(median) &&
		float64(time) > longestFactor*float64(longest) && float64(time-median) > alikePart*float64(all)
}

// comparedWith returns the recorded times, in ascending order, of the collectives that a collective is compared with:
// others of its kind and size, which are alike, or if there are none, of its kind and at least its size, or with
// anyKind, of any kind with data and at least its size.
func comparedWith(all []instance, k int, anyKind bool) (times []dag.Time, alike bool) {
	one := &all[k]
	if one.shortest == dag.Unmeasured {
		return nil, false
	}
	for step, like := range [...]func(in *instance) bool{
		func(in *instance) bool { return in.kind == one.kind && in.bytes == one.bytes },
		func(in *instance) bool { return in.kind == one.kind && in.bytes >= one.bytes },
		func(in *instance) bool {
			return anyKind && one.kind != dag.Barrier && in.kind != dag.Barrier && in.bytes >= one.bytes
		},
	} {
		for i := range all {
			if in := &all[i]; i != k && in.shortest != dag.Unmeasured && like(in) {
				times = append(times, in.shortest)
			}
		}
		if len(times) > 0 {
			slices.Sort(times)
			return times, step == 0
		}
	}
	return nil, false
}

func clockOf(t dag.Time) sim.Clock { return sim.Clock{Ticks: uint64(t), Unit: dag.Picosecond} }

// without returns the recorded times without what the outliers took longer than the median, for all members of their
// communicators.
func (m *Measured) without(t *dag.Trace, outliers []outlier) {
	for i := range outliers {
		o := &outliers[i]
		o.Excluded = true
		excess := dag.Time(o.Measured.Ticks - o.Median.Ticks)
		for _, member := range t.Comms[o.Comm].Members() {
			if r := &m.ranks[member]; r.last != dag.Unmeasured {
				r.excess += excess
			}
		}
	}
}
