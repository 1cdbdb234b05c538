package clock

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Remove returns the rank with release times in place of a clock, given by its ops in ascending order: they are gone,
// and an op that waited for one of them has its end as release time, the latest if it waited for several. The
// references of r must be in range. found is false, and the result r, if the ops are no clock: a chain of calcs, in
// index order, that wait for nothing else and whose starts no op waits for.
func Remove(r *dag.Rank, clock []int32) (out dag.Rank, found bool) {
	ends, ok := endsOf(r, clock)
	if !ok {
		return *r, false
	}
	n := r.Len()
	kept := make([]int32, 0, n-len(clock))
	at := make([]int32, n) // new index of an op that is kept, or -1 less the number of a calc of the clock
	for i := range n {
		if k := len(kept); i-k < len(clock) && clock[i-k] == int32(i) {
			at[i] = -1 - int32(i-k)
		} else {
			at[i] = int32(k)
			kept = append(kept, int32(i))
		}
	}
	if out, ok = r.Gather(kept); !ok {
		return *r, false
	}
	for k, i := range kept {
		release := r.Release.At(int(i))
		for _, off := range r.Deps.Of(int(i)) {
			if on := at[i-off]; on < 0 {
				release = max(release, ends[-1-on])
			} else {
				out.Deps.Append(k, int32(k)-on)
			}
		}
		if release != 0 {
			out.Release.Set(k, release)
		}
		for _, off := range r.StartDeps.Of(int(i)) {
			out.StartDeps.Append(k, int32(k)-at[i-off])
		}
		for _, off := range r.Order.Of(int(i)) {
			out.Order.Append(k, at[i+off]-int32(k))
		}
		for _, off := range r.StartOrder.Of(int(i)) {
			out.StartOrder.Append(k, at[i+off]-int32(k))
		}
	}
	return out, true
}

// On returns the ops on a stream.
func On(r *dag.Rank, stream int32) (ops []int32) {
	for i := range r.Len() {
		if r.Stream.At(i) == stream {
			ops = append(ops, int32(i))
		}
	}
	return ops
}

// endsOf returns the times at which the calcs of a clock end, and whether the ops are a clock.
func endsOf(r *dag.Rank, clock []int32) (ends []dag.Time, ok bool) {
	if len(clock) == 0 {
		return nil, false
	}
	end := dag.Time(0)
	for k, i := range clock {
		op := int(i)
		d := r.Duration.At(op)
		if r.Kind[op] != dag.Calc || r.Subkind.At(op) != dag.NoSubkind || d < 0 || d > dag.MaxTime-end ||
			r.StartDeps.Count(op) != 0 || r.Release.At(op) != 0 {
			return nil, false
		}
		list := r.Deps.Of(op)
		if k == 0 && len(list) != 0 || k > 0 && (len(list) != 1 || i-list[0] != clock[k-1]) {
			return nil, false
		}
		end += d
		ends = append(ends, end)
	}
	start := uint32(0)
	for i, stop := range r.StartDeps.End {
		for _, off := range r.StartDeps.Off[start:stop] {
			if _, on := slices.BinarySearch(clock, int32(i)-off); on {
				return nil, false
			}
		}
		start = stop
	}
	return ends, true
}

// Find returns the stream of the clocks of a trace, and whether it has any. On each rank that uses the stream, its ops
// must be a clock as [Add] inserts it: the first ops of the rank, each of which some op of another stream waits for. If
// there are several such streams, Find returns the one with the most calcs, of these the lowest.
func Find(ranks []*dag.Rank) (stream int32, found bool) {
	type candidate struct {
		clocks, uses int // ranks with a clock on the stream, ranks that use it
		ticks        int
	}
	all := make(map[int32]*candidate)
	for i := range ranks {
		if s, ticks := leading(ranks[i]); ticks > 0 {
			if all[s] == nil {
				all[s] = new(candidate)
			}
			all[s].clocks++
			all[s].ticks += ticks
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	for i := range ranks {
		seen := make(map[int32]bool)
		for op := range ranks[i].Len() {
			s := ranks[i].Stream.At(op)
			if c := all[s]; c != nil && !seen[s] {
				seen[s] = true
				c.uses++
			}
		}
	}
	most := 0
	for s, c := range all {
		if c.clocks == c.uses && (c.ticks > most || c.ticks == most && s < stream) {
			stream, most = s, c.ticks
		}
	}
	return stream, most > 0
}

// leading returns the stream and the number of calcs of a clock with which a rank begins; 0: it begins with none.
func leading(r *dag.Rank) (stream int32, ticks int) {
	if r.Len() == 0 {
		return 0, 0
	}
	stream = r.Stream.At(0)
	clock := On(r, stream)
	if n := len(clock); n == r.Len() || int(clock[n-1]) != n-1 {
		return stream, 0
	}
	ends, ok := endsOf(r, clock)
	if !ok || ends[0] == 0 || len(slices.Compact(ends)) != len(clock) {
		return stream, 0 // times of a clock ascend
	}
	awaited := make([]bool, len(clock))
	for i := len(clock); i < r.Len(); i++ {
		for _, off := range r.Deps.Of(i) {
			if on := i - int(off); on < len(clock) {
				awaited[on] = true
			}
		}
	}
	if slices.Contains(awaited, false) {
		return stream, 0
	}
	return stream, len(clock)
}
