package timeline

import (
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim"
)

// Collector collects a run in bounded memory for the timeline of a page, and adds the section "timeline" to its result.
// It is a [sim.Timeline] and an observer of sim/measure.
type Collector struct {
	o       Options
	l       *sim.Layout
	t       *report.Timeline
	numbers *numbering // of collectives that are not lowered; nil before the first one
}

// kinds are the kinds of slices of the spans.
var kinds = [...]report.SliceKind{
	sim.CalcSpan: report.CalcSlice, sim.SendSpan: report.OverheadSlice, sim.RecvSpan: report.OverheadSlice,
	sim.NoiseSpan: report.NoiseSlice, sim.MemSpan: report.MemorySlice, sim.IOSpan: report.StorageSlice,
	sim.CommSpan: report.CommSlice, sim.WaitSpan: report.WaitSlice, sim.CollWaitSpan: report.WaitSlice,
}

// NewCollector returns a collector for runs of a trace. Without the trace, which may be nil, ops have no names. It
// uses only the options that name collectives.
func NewCollector(o Options) *Collector { return &Collector{o: o} }

// Report returns the timeline for a page, nil before a run. c may be nil.
func (c *Collector) Report() *report.Timeline {
	if c == nil {
		return nil
	}
	return c.t
}

// Begin starts the timeline.
func (c *Collector) Begin(l *sim.Layout) {
	c.l, c.t, c.numbers = l, report.NewTimeline(int64(l.Unit), l.Ranks()), nil
	if c.o.Trace != nil && (&Writer{o: c.o, l: l}).checkTrace() != nil {
		c.o.Trace = nil
	}
}

// Span adds a slice.
func (c *Collector) Span(s sim.Span) {
	op := uint32(c.l.Index(s.Rank, s.Op))
	c.t.Add(report.Slice{Kind: kinds[s.Kind], Rank: s.Rank, Number: s.Stream, Op: op, Start: s.Start, End: s.End})
	if c.o.Trace == nil || s.Kind == sim.NoiseSpan {
		return
	}
	r := c.o.Trace.Ranks[s.Rank]
	switch r.Kind[op] {
	case dag.Send, dag.Recv:
		if tag := r.Tag.At(int(op)); tag <= dag.CollectiveTag && c.o.Collective != nil {
			if name, number, ok := c.o.Collective(tag); ok {
				c.t.AddPart(name, number, s.Rank, op, s.Start, s.End)
			}
		}
	case dag.Coll:
		if c.numbers == nil {
			c.numbers = newNumbering(&c.o)
		}
		c.t.AddPart(collName(r, int(op)), c.numbers.of(r, s.Rank, int(op)), s.Rank, op, s.Start, s.End)
	}
}

// collName returns the name of a collective op.
func collName(r *dag.Rank, op int) string {
	if name := r.Name.At(op); name != "" {
		return name
	}
	return r.Subkind.At(op).String()
}

// Transfer adds a message.
func (c *Collector) Transfer(m sim.Transfer) {
	if m.Swapped {
		return
	}
	op, number := uint32(c.l.Index(m.Source, m.Send)), int32(0)
	if c.o.Trace != nil {
		number = c.o.Trace.Ranks[m.Source].NIC.At(int(op))
	}
	c.t.Add(report.Slice{Kind: report.MessageSlice, Rank: m.Source, Number: number, Op: op, Start: m.Start,
		End: max(m.Start, m.Arrived), Peer: m.Target, Bytes: m.Bytes})
}

// End does nothing.
func (c *Collector) End() error { return nil }

// Finish adds the section "timeline" to a result.
func (c *Collector) Finish(r *sim.Result) {
	if c.t == nil {
		return
	}
	if p := r.Path; p != nil {
		for i := range p.Steps {
			s := &p.Steps[i]
			c.t.AddStep(report.Step{Rank: s.Rank, Part: uint8(s.Part), Start: c.ticks(s.Start, p.Unit),
				End: c.ticks(s.End, p.Unit)})
		}
	}
	c.t.Finish(c.ticks(r.Makespan.Ticks, r.Makespan.Unit), c.label)
	if !c.t.Empty() {
		r.Add(sim.Section{Key: "timeline", Value: c.t, At: sim.Detail})
	}
}

// ticks converts a time to ticks of the layout.
func (c *Collector) ticks(t uint64, unit dag.Time) uint64 {
	if unit >= c.l.Unit {
		return t * uint64(unit/c.l.Unit)
	}
	return t / uint64(c.l.Unit/max(unit, 1))
}

// label returns the name of an op.
func (c *Collector) label(kind report.SliceKind, rank, op uint32) string {
	if c.o.Trace == nil || kind == report.NoiseSlice {
		return ""
	}
	r, i := c.o.Trace.Ranks[rank], int(op)
	k := r.Kind[i]
	if k == dag.Coll {
		return string(appendInt([]byte(collName(r, i)+" #"), c.numbers.of(r, rank, i)))
	}
	if k == dag.Send || k == dag.Recv {
		if tag := r.Tag.At(i); tag <= dag.CollectiveTag && c.o.Collective != nil {
			if name, number, ok := c.o.Collective(tag); ok {
				return string(appendInt([]byte(name+" #"), number))
			}
		}
	}
	switch name := strings.ToValidUTF8(r.Name.At(i), "\uFFFD"); {
	case name != "" || k == dag.Calc:
		return name
	case k == dag.Recv && r.Peer.At(i) == dag.AnySource:
		return "recv from any"
	case k == dag.Send:
		return string(appendInt([]byte("send to "), int64(r.Peer.At(i))))
	case k == dag.Recv:
		return string(appendInt([]byte("recv from "), int64(r.Peer.At(i))))
	case r.Subkind.At(i) != dag.NoSubkind:
		return r.Subkind.At(i).String()
	}
	return k.String()
}
