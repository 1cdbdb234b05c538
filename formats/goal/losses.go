// This file determines which traces GOAL cannot represent and which data it loses of the others.

package goal

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/clock"
	"github.com/tracedag/tracedag/formats/format"
)

// lowestTag is the lowest tag whose 32-bit pattern can be written.
const lowestTag = math.MinInt32

// survey is the data about a trace, or a part of it, that writing needs before the first byte.
type survey struct {
	ops     int64
	foreign int64 // ops that GOAL does not have
	refused int   // first rank that GOAL cannot represent
	why     error // reason, nil: there is no such rank
	lost    tally // only if requested

	// for the header of a binary
	units    unitMax
	sections []uint64 // size of each rank's section
}

// add adds the next rank.
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

// bad reports whether GOAL cannot represent the ranks.
func (s *survey) bad() bool { return s.why != nil || s.foreign > 0 }

// takeFrom adds the survey of the next part, and empties that.
func (s *survey) takeFrom(next *survey) {
	s.ops += next.ops
	s.foreign += next.foreign
	if s.why == nil {
		s.refused, s.why = next.refused, next.why
	}
	s.lost.add(&next.lost)
	s.units = s.units.with(next.units)
	s.sections = append(s.sections, next.sections...)
	*next = survey{sections: next.sections[:0]}
}

// err returns an error if GOAL cannot represent the trace.
func (s *survey) err() error {
	switch {
	case s.foreign > 0:
		return fmt.Errorf("GOAL has no collectives, memory or storage accesses; found %d; "+
			"--lower needed sends them as messages", s.foreign)
	case s.why != nil:
		return fmt.Errorf("GOAL cannot represent rank %d: %w", s.refused, s.why)
	}
	return nil
}

// check returns an error if the rank cannot be written. With compat, negative sizes and durations become their
// two's complement, as in the reference.
func (p plan) check(r *dag.Rank) error {
	for i, d := range r.Duration {
		if d < 0 && !p.compat && r.Kind[i] == dag.Calc {
			return fmt.Errorf("op %d: expected a duration of 0 or more, found %v", i, d)
		}
	}
	for i, n := range r.Bytes {
		if n < 0 && !p.compat && r.Kind[i] != dag.Calc {
			return fmt.Errorf("op %d: expected a size of 0 or more, found %d", i, n)
		}
	}
	for i, tag := range r.Tag {
		if tag < lowestTag || tag >= anyTag {
			return fmt.Errorf("op %d: expected a tag in %d..%d, found %d", i, lowestTag, int64(anyTag)-1, tag)
		}
	}
	highest := int32(math.MaxInt32)
	if p.binary {
		highest = math.MaxUint8
	}
	for i := range max(r.Stream.Len(), r.NIC.Len()) {
		if s := r.Stream.At(i); s < 0 || s > highest {
			return fmt.Errorf("op %d: expected a stream in 0..%d, found %d", i, highest, s)
		}
		if n := r.NIC.At(i); n < 0 || n > highest {
			return fmt.Errorf("op %d: expected a NIC in 0..%d, found %d", i, highest, n)
		}
	}
	if n := uint64(len(r.Deps.Off)) + uint64(len(r.StartDeps.Off)); n > math.MaxUint32 {
		return fmt.Errorf("expected at most %d dependencies, found %d", uint32(math.MaxUint32), n)
	}
	return nil
}

// nanoseconds returns d in whole nanoseconds. It rounds halves up, unless the result exceeds the largest time.
func nanoseconds(d dag.Time) uint64 {
	ns := int64(d / dag.Nanosecond)
	if d%dag.Nanosecond >= dag.Nanosecond/2 && ns < maxNanoseconds {
		ns++
	}
	return uint64(ns)
}

// Losses in the order of reporting.
const (
	lostReleases = iota
	lostClock    // in binaries only
	lostReleasePicoseconds
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
	lostNodes // preceded by the rare fields
	lostCalcs // in texts only, as the next two
	lostUnits
	lostLabels
	lostNames // in binaries only
	numLosses
)

var lossTexts = [numLosses]string{
	lostReleases:           "release times",
	lostClock:              "release times, which become calcs of a clock (--clock-stream auto reads them back)",
	lostReleasePicoseconds: "release times rounded to whole nanoseconds",
	lostPicoseconds:        "durations rounded to whole nanoseconds",
	lostDurations:          "durations of sends and receives",
	lostSizes:              "sizes of calcs",
	lostReceived:           "received sizes",
	lostTags:               "tags below -1, written plus 4294967296 (receives with any tag match them)",
	lostFlops:              "flops",
	lostComms:              "communicators",
	lostJobs:               "jobs",
	lostTimes:              "measured times",
	lostAttrs:              "attributes",
	lostNodes:              format.LossNodes,
	lostCalcs:              "peers, tags and NICs of calcs",
	lostUnits:              "streams or NICs above 255, beyond the range of GOAL binaries and LogGOPSim",
	lostLabels:             "names that are not unique labels",
	lostNames:              "names",
}

// tally is the number of ops per loss.
type tally struct {
	own  [numLosses]int64
	rare [dag.NumFields]int64 // of format.RareFields
}

// add adds the losses of other ops.
func (t *tally) add(other *tally) {
	for i, count := range other.own {
		t.own[i] += count
	}
	for i, count := range other.rare {
		t.rare[i] += count
	}
}

// count adds the losses of a rank.
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
		t.rare[id] += dag.Fields[id].Of(r).Present()
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

// addClock adds the losses of a clock; nil: there is none.
func (s *survey) addClock(c *clock.Clock, binary bool) {
	if c == nil {
		return
	}
	if binary {
		s.lost.own[lostClock] = c.Released
	}
	s.lost.own[lostReleasePicoseconds] = c.Rounded
}

// losses returns the losses of a trace whose ranks run on the given nodes.
func (s *survey) losses(nodes []int32) []format.Loss {
	if format.Placed(nodes) {
		s.lost.own[lostNodes] = s.ops
	}
	var l format.Losses
	for i, count := range s.lost.own {
		if i == lostNodes {
			for _, id := range format.RareFields {
				l.Add(dag.Fields[id].Lost, s.lost.rare[id])
			}
		}
		l.Add(lossTexts[i], count)
	}
	return l
}
