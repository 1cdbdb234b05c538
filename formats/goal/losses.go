// This file says which traces GOAL cannot hold and what it leaves out of the others.

package goal

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// lowestTag is the lowest tag whose 32-bit pattern can be written.
const lowestTag = math.MinInt32

// survey is what must be known of a trace, or of a part of it, before the first byte is written.
type survey struct {
	ops     int64
	foreign int64 // ops that GOAL does not have
	refused int   // the first rank that GOAL cannot hold
	why     error // why it cannot, nil: there is no such rank
	lost    tally // only where it is asked for

	// For the header of a binary.
	units    unitMax
	sections []uint64 // size of each rank's section
}

// add adds a rank that comes after all that the survey has.
func (s *survey) add(p plan, rank int, r *dag.Rank) {
	s.ops += int64(r.Len())
	for _, k := range r.Kind {
		if k > dag.Recv {
			s.foreign++
		}
	}
	if s.why == nil {
		s.refused, s.why = rank, p.check(r)
	}
	if p.counts {
		s.lost.count(r, p.binary)
	}
	if p.binary {
		s.units = s.units.with(unitMax{highest(&r.Stream), highest(&r.NIC)})
		s.sections = append(s.sections, sectionSize(r))
	}
}

// append adds a survey of what comes after all that the survey has.
func (s *survey) append(next *survey) {
	s.ops += next.ops
	s.foreign += next.foreign
	if s.why == nil {
		s.refused, s.why = next.refused, next.why
	}
	s.lost.add(&next.lost)
	s.units = s.units.with(next.units)
	s.sections = append(s.sections, next.sections...)
}

// err returns an error if GOAL cannot hold the trace at all.
func (s *survey) err() error {
	switch {
	case s.foreign > 0:
		return fmt.Errorf("%d ops are collectives, memory or storage accesses, which GOAL does not have: "+
			"--lower can turn collectives and storage accesses into messages", s.foreign)
	case s.why != nil:
		return fmt.Errorf("GOAL cannot hold rank %d: %w", s.refused, s.why)
	}
	return nil
}

// check returns an error if the rank cannot be written. With compat, negative sizes and lengths are written as the
// reference does, as their two's complement.
func (p plan) check(r *dag.Rank) error {
	for i, d := range r.Duration {
		if d < 0 && !p.compat && r.Kind[i] == dag.Calc {
			return fmt.Errorf("op %d lasts %v: must not be negative", i, d)
		}
	}
	for i, n := range r.Bytes {
		if n < 0 && !p.compat && r.Kind[i] != dag.Calc {
			return fmt.Errorf("op %d has %d bytes: must not be negative", i, n)
		}
	}
	for i, tag := range r.Tag {
		if tag < lowestTag || tag >= anyTag {
			return fmt.Errorf("op %d has tag %d: must be in %d..%d", i, tag, lowestTag, int64(anyTag)-1)
		}
	}
	highest := int32(math.MaxInt32)
	if p.binary {
		highest = math.MaxUint8
	}
	for i := range max(r.Stream.Len(), r.NIC.Len()) {
		if s := r.Stream.At(i); s < 0 || s > highest {
			return fmt.Errorf("op %d runs on stream %d: must be in 0..%d", i, s, highest)
		}
		if n := r.NIC.At(i); n < 0 || n > highest {
			return fmt.Errorf("op %d uses NIC %d: must be in 0..%d", i, n, highest)
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

// What is left out or changed, in the order in which it is reported.
const (
	lostReleases = iota
	lostPicoseconds
	lostDurations
	lostSizes
	lostReceived
	lostTags
	lostFlops
	lostComms
	lostJobs
	lostTimes
	lostAttrs
	lostNodes // preceded by the hints
	lostCalcs // only of texts, as the next two
	lostUnits
	lostLabels
	lostNames // only of binaries
	numLosses
)

var lossTexts = [numLosses]string{
	lostReleases:    "release times",
	lostPicoseconds: "durations rounded to whole nanoseconds",
	lostDurations:   "durations of sends and receives",
	lostSizes:       "sizes of calcs",
	lostReceived:    "received sizes",
	lostTags:        "tags below -1, written as 4294967296 more, where a receive with any tag matches them",
	lostFlops:       "flops",
	lostComms:       "communicators",
	lostJobs:        "jobs",
	lostTimes:       "measured times",
	lostAttrs:       "attributes",
	lostNodes:       format.LossNodes,
	lostCalcs:       "peers, tags and NICs of calcs",
	lostUnits:       "streams or NICs above 255, which the binary form and LogGOPSim do not have",
	lostLabels:      "names that are no label, or the label of another op",
	lostNames:       "names",
}

// tally is how many ops are touched by each loss.
type tally struct {
	own   [numLosses]int64
	hints [dag.NumFields]int64 // of format.RareFields
}

// add adds the losses of other ops.
func (t *tally) add(other *tally) {
	for i, count := range other.own {
		t.own[i] += count
	}
	for i, count := range other.hints {
		t.hints[i] += count
	}
}

// count adds what a rank loses.
func (t *tally) count(r *dag.Rank, binary bool) {
	for op, d := range r.Duration {
		switch {
		case (r.Kind[op] != dag.Calc || r.Subkind.At(op) == dag.Marker) && d != 0:
			t.own[lostDurations]++
		case d%dag.Nanosecond != 0:
			t.own[lostPicoseconds]++
		}
	}
	for op, n := range r.Bytes {
		if n != 0 && r.Kind[op] == dag.Calc {
			t.own[lostSizes]++
		}
	}
	for _, tag := range r.Tag {
		if tag < dag.AnyTag {
			t.own[lostTags]++
		}
	}
	t.own[lostReleases] += r.Release.Present()
	t.own[lostReceived] += r.RecvBytes.Present()
	t.own[lostFlops] += r.Flops.Present()
	t.own[lostComms] += r.Comm.Present()
	t.own[lostJobs] += r.Job.Present()
	t.own[lostTimes] += format.Measured(r)
	t.own[lostAttrs] += r.Attrs.Present()
	for _, id := range format.RareFields {
		t.hints[id] += dag.Fields[id].Of(r).Present()
	}
	if binary {
		t.own[lostNames] += r.Name.Present()
		return
	}
	for op := range max(len(r.Peer), len(r.Tag), r.NIC.Len()) {
		if r.Kind[op] == dag.Calc && (r.Peer.At(op) != 0 || r.Tag.At(op) != 0 || r.NIC.At(op) != 0) {
			t.own[lostCalcs]++
		}
	}
	for op := range max(r.Stream.Len(), r.NIC.Len()) {
		if r.Stream.At(op) > math.MaxUint8 || r.NIC.At(op) > math.MaxUint8 && r.Kind[op] != dag.Calc {
			t.own[lostUnits]++
		}
	}
	t.own[lostLabels] += namesLost(r)
}

// losses returns what is left out or changed of a trace whose ranks run on these nodes.
func (s *survey) losses(nodes []int32) []format.Loss {
	if format.Placed(nodes) {
		s.lost.own[lostNodes] = s.ops
	}
	var l format.Losses
	for i, count := range s.lost.own {
		if i == lostNodes {
			for _, id := range format.RareFields {
				l.Add(dag.Fields[id].Lost, s.lost.hints[id])
			}
		}
		l.Add(lossTexts[i], count)
	}
	return l
}
