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
			if start != dag.Unmeasured && end != dag.Unmeasured && end >= start &&
				(in.shortest == dag.Unmeasured || end-start < in.shortest) {
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
			median, others := medianOf(all, k, k == 0 || k == data)
			if others > 0 && in.shortest/outlierFactor > median {
				found = append(found, outlier{Comm: int32(comm), Kind: in.kind.String(), Rank: in.rank, Op: in.op,
					Measured: clockOf(in.shortest), Median: clockOf(median), Others: others})
			}
		}
	}
	return found
}

// medianOf returns the median of the recorded times of the collectives that a collective is compared with: others of
// its kind and size, or if there are none, of its kind and at least its size, or with anyKind, of any kind with data
// and at least its size.
func medianOf(all []instance, k int, anyKind bool) (median dag.Time, count int) {
	one := &all[k]
	if one.shortest == dag.Unmeasured {
		return 0, 0
	}
	for _, like := range [...]func(in *instance) bool{
		func(in *instance) bool { return in.kind == one.kind && in.bytes == one.bytes },
		func(in *instance) bool { return in.kind == one.kind && in.bytes >= one.bytes },
		func(in *instance) bool {
			return anyKind && one.kind != dag.Barrier && in.kind != dag.Barrier && in.bytes >= one.bytes
		},
	} {
		var times []dag.Time
		for i := range all {
			if in := &all[i]; i != k && in.shortest != dag.Unmeasured && like(in) {
				times = append(times, in.shortest)
			}
		}
		if len(times) > 0 {
			slices.Sort(times)
			return times[len(times)/2], len(times)
		}
	}
	return 0, 0
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
