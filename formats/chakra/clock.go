// This file expresses release times, which Chakra lacks, as computations of a clock, and restores them.

package chakra

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/clock"
)

// Names of a clock's nodes and of their attributes, which are tracedag's own; other programs ignore them.
const (
	clockName     = "clock"
	clockMark     = "release_clock"
	clockTimeName = "release_ns" // end of the node in nanoseconds, with the roofline model
)

// clocks are the clocks of a trace that is written.
type clocks struct {
	clock    *clock.Clock // nil: none
	roofline bool
	delayed  int64 // ops that wait for a clock which takes turns with computations
}

// ticks returns the number of nodes of a rank's clock, which precede all others.
func (c *clocks) ticks(rank int) int {
	if c.clock == nil {
		return 0
	}
	return c.clock.Ticks(rank)
}

// withClocks returns the trace with clocks in place of release times.
func withClocks(t *dag.Trace, o *WriteOptions) (*dag.Trace, *clocks, error) {
	c := &clocks{roofline: o.Clock == ClockRoofline}
	if !slices.ContainsFunc(t.Ranks, func(r *dag.Rank) bool { return r.Release.Present() > 0 }) {
		return t, c, nil
	}
	unit := dag.Microsecond
	if c.roofline {
		unit = dag.Nanosecond
	}
	var err error
	if c.clock, err = clock.Add(context.Background(), dag.FromTrace(t),
		clock.Options{Unit: unit, HighestStream: math.MaxInt32, Readers: 1}); err != nil {
		return nil, nil, fmt.Errorf("%w; --no-clock discards the release times", err)
	}
	out, err := dag.ReadAll(c.clock)
	if err != nil {
		return nil, nil, err
	}
	for rank := range out.Ranks {
		if c.ticks(rank) > 0 {
			if err := c.place(out.Ranks[rank], t.Ranks[rank], rank, o); err != nil {
				return nil, nil, err
			}
		}
	}
	return out, c, nil
}

// place gives the calcs of a rank's clock a resource of a simulator: the host, one op at a time, if no other op of the
// rank uses it, else the accelerator. The roofline model determines durations on the accelerator only.
func (c *clocks) place(r, original *dag.Rank, rank int, o *WriteOptions) error {
	host, accelerator := uses(original)
	onHost := !c.roofline && !host
	if !onHost && accelerator {
		for _, t := range original.Release {
			add(&c.delayed, t > 0)
		}
	}
	for i := range c.ticks(rank) {
		r.Name.Append(i, clockName)
		r.Stream.Set(i, computeStream)
		if onHost {
			r.Stream.Set(i, hostStream)
			r.Host.Set(i, 1)
		}
		if !c.roofline {
			continue
		}
		d := r.Duration.At(i)
		ops, ok := opsOf(uint64(d/dag.Nanosecond), o.Peak)
		if !ok {
			return fmt.Errorf("rank %d: release times %v apart need more operations than 64 bits or a double can "+
				"count at the peak performance of --chakra-clock: choose a lower one, or --chakra-clock micros",
				rank, d)
		}
		r.Flops.Set(i, ops)
		r.Bytes.Set(i, 1)
	}
	return nil
}

// unit returns the unit of release times in losses.
func (c *clocks) unit() string {
	if c.roofline {
		return "nanoseconds"
	}
	return "microseconds"
}

// rounded returns the number of ops whose release time is rounded.
func (c *clocks) rounded() int64 {
	if c.clock == nil {
		return 0
	}
	return c.clock.Rounded
}

// markClock marks the current node as the next one of a clock.
func (w *rankWriter) markClock(length dag.Time) {
	end := w.ticked + length
	w.n.DurationMicros = micros(end) - micros(w.ticked)
	w.usual = appendNumber(w.usual, clockMark, BoolVal, 1)
	if w.p.roofline {
		w.usual = appendNumber(w.usual, clockTimeName, Uint64Val, uint64(end/dag.Nanosecond))
	}
	w.n.wired, w.ticked = w.usual, end
}

// uses reports whether the rank has ops on the host, and computations on the accelerator.
func uses(r *dag.Rank) (host, accelerator bool) {
	for i, kind := range r.Kind {
		switch {
		case kind != dag.Calc && kind != dag.Mem:
		case r.Host.At(i) != 0:
			host = true
		case kind == dag.Calc:
			accelerator = true
		}
	}
	return host, accelerator
}

// opsOf returns a number of operations that takes the given whole nanoseconds at a peak performance in operations per
// second, by the arithmetic of simulators: the quotient of doubles, without its fraction.
func opsOf(ns uint64, peak int64) (ops int64, ok bool) {
	perNS := float64(peak) / 1e9
	n := (float64(ns) + 0.5) * perNS
	for range 8 {
		if n < 1 || n >= math.MaxInt64 {
			return 0, false
		}
		ops = int64(n)
		got := uint64(float64(ops) / float64(peak) * 1e9)
		if got == ns {
			return ops, true
		}
		n += (float64(ns) - float64(got)) * perNS / 2
	}
	return 0, false
}

// isClock reports whether the current node is marked as one of a clock.
func (r *rankReader) isClock() bool {
	return r.node.typ == CompNode && r.number(clockMark, BoolVal) == 1
}

// number returns the value of an attribute, 0 if there is none of the kind.
func (r *rankReader) number(name string, kind Kind) uint64 {
	for i := range r.attrs {
		if a := &r.attrs[i]; a.kind == kind && string(a.name) == name {
			return a.num
		}
	}
	return 0
}

// addTick adds the op of the current node, which is one of a clock.
func (r *rankReader) addTick(op *dag.Op) {
	if ns := r.number(clockTimeName, Uint64Val); ns > 0 {
		end := dag.Time(min(ns, uint64(dag.MaxTime/dag.Nanosecond))) * dag.Nanosecond
		op.Duration = max(0, end-r.ticked)
		r.ticked = end
	}
	r.ticks = append(r.ticks, int32(r.b.Len()))
}

// restoreReleases replaces the clock of a rank by release times. It reports whether the marked nodes are a clock.
func (r *rankReader) restoreReleases(rank *dag.Rank) bool {
	if len(r.ticks) == 0 {
		return true
	}
	out, found := clock.Remove(rank, r.ticks)
	if found {
		*rank = out
	}
	return found
}
