// This file says which traces GOAL cannot hold and what it leaves out of the others.

package goal

import (
	"errors"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// lowestTag is the lowest tag whose 32-bit pattern can be written.
const lowestTag = math.MinInt32

// check returns an error if GOAL cannot hold the trace at all. With compat, negative sizes and lengths are written as the
// reference does, as their two's complement.
func check(t *dag.Trace, compat bool) error {
	if len(t.Ranks) == 0 {
		return errors.New("GOAL needs at least one rank")
	}
	high := int64(0)
	for i := range t.Ranks {
		for _, k := range t.Ranks[i].Kind {
			if k > dag.Recv {
				high++
			}
		}
	}
	if high > 0 {
		return fmt.Errorf("%d ops are collectives, memory or storage accesses, which GOAL does not have: "+
			"--lower can turn collectives and storage accesses into messages", high)
	}
	for i := range t.Ranks {
		if err := checkRank(&t.Ranks[i], compat); err != nil {
			return fmt.Errorf("GOAL cannot hold rank %d: %w", i, err)
		}
	}
	return nil
}

func checkRank(r *dag.Rank, compat bool) error {
	for i, d := range r.Duration {
		if d < 0 && !compat && r.Kind[i] == dag.Calc {
			return fmt.Errorf("op %d lasts %v: must not be negative", i, d)
		}
	}
	for i, n := range r.Bytes {
		if n < 0 && !compat && r.Kind[i] != dag.Calc {
			return fmt.Errorf("op %d has %d bytes: must not be negative", i, n)
		}
	}
	for i, tag := range r.Tag {
		if tag < lowestTag || tag >= anyTag {
			return fmt.Errorf("op %d has tag %d: must be in %d..%d", i, tag, lowestTag, int64(anyTag)-1)
		}
	}
	for i := range max(r.Stream.Len(), r.NIC.Len()) {
		if s := r.Stream.At(i); s < 0 || s > math.MaxUint8 {
			return fmt.Errorf("op %d runs on stream %d: must be in 0..%d", i, s, math.MaxUint8)
		}
		if n := r.NIC.At(i); n < 0 || n > math.MaxUint8 {
			return fmt.Errorf("op %d uses NIC %d: must be in 0..%d", i, n, math.MaxUint8)
		}
	}
	if n := uint64(len(r.Deps.Off)) + uint64(len(r.StartDeps.Off)); n > math.MaxUint32 {
		return fmt.Errorf("%d dependencies: at most %d", n, uint32(math.MaxUint32))
	}
	return nil
}

// nanoseconds returns d in whole nanoseconds, half a nanosecond rounded up unless the sum is more than a Time holds.
func nanoseconds(d dag.Time) uint64 {
	ns := int64(d / dag.Nanosecond)
	if d%dag.Nanosecond >= dag.Nanosecond/2 && ns < maxNanoseconds {
		ns++
	}
	return uint64(ns)
}

// commonLosses returns what both forms leave out or change.
func commonLosses(t *dag.Trace) format.Losses {
	var release, rounded, durations, sizes, received, tags, flops, comms, jobs, measured, attrs int64
	for i := range t.Ranks {
		r := &t.Ranks[i]
		for op, d := range r.Duration {
			switch {
			case (r.Kind[op] != dag.Calc || r.Subkind.At(op) == dag.Marker) && d != 0:
				durations++
			case d%dag.Nanosecond != 0:
				rounded++
			}
		}
		for op, n := range r.Bytes {
			if n != 0 && r.Kind[op] == dag.Calc {
				sizes++
			}
		}
		for _, tag := range r.Tag {
			if tag < dag.AnyTag {
				tags++
			}
		}
		release += format.Nonzero(r.Release)
		received += format.Nonzero(r.RecvBytes)
		flops += format.Nonzero(r.Flops)
		comms += format.NonzeroNarrow(&r.Comm)
		jobs += format.NonzeroNarrow(&r.Job)
		measured += format.Measured(r)
		attrs += format.Texts(&r.Attrs)
	}
	var l format.Losses
	l.Add("release times", release)
	l.Add("durations rounded to whole nanoseconds", rounded)
	l.Add("durations of sends and receives", durations)
	l.Add("sizes of calcs", sizes)
	l.Add("received sizes", received)
	l.Add("tags below -1, written as 4294967296 more, where a receive with any tag matches them", tags)
	l.Add("flops", flops)
	l.Add("communicators", comms)
	l.Add("jobs", jobs)
	l.Add("measured times", measured)
	l.Add("attributes", attrs)
	l.AddHints(t)
	l.AddNodes(t)
	return l
}

func binaryLosses(t *dag.Trace) []format.Loss {
	l := commonLosses(t)
	names := int64(0)
	for i := range t.Ranks {
		names += format.Texts(&t.Ranks[i].Name)
	}
	l.Add("names", names)
	return l
}

func textLosses(t *dag.Trace) []format.Loss {
	l := commonLosses(t)
	var calcs, names int64
	for i := range t.Ranks {
		r := &t.Ranks[i]
		for op := range max(len(r.Peer), len(r.Tag), r.NIC.Len()) {
			if r.Kind[op] == dag.Calc && (r.Peer.At(op) != 0 || r.Tag.At(op) != 0 || r.NIC.At(op) != 0) {
				calcs++
			}
		}
		names += lostNames(r)
	}
	l.Add("peers, tags and NICs of calcs", calcs)
	l.Add("names that are no label, or the label of another op", names)
	return l
}
