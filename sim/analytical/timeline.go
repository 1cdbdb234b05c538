package analytical

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// flight is the time in the network of a message of the trace.
type flight struct{ begun, start, arrived uint64 }

// layout returns the numbering of all ops.
func (p *Program) layout() (*sim.Layout, error) {
	l := &sim.Layout{Unit: dag.Nanosecond, Start: make([]uint32, len(p.graphs)+1)}
	ops := 0
	for r, g := range p.graphs {
		if ops += len(g.waits); ops > sim.MaxOps {
			return nil, fmt.Errorf("the trace has more than %d ops, too many to observe one by one; "+
				"run it without a timeline, breakdown or jobs", sim.MaxOps)
		}
		l.Start[r+1] = uint32(ops)
	}
	return l, nil
}

// reportOp reports an op that ends now to the timeline.
func (e *engine) reportOp(r int32, i uint32, issued uint64) {
	g := e.npus[r].g
	o := &g.ops[i]
	s := sim.Span{Rank: uint32(r), Op: e.layout.Start[r] + i, Start: issued, End: e.queue.now}
	if k := int(o.lane) - laneStreams; k >= 0 && k < len(g.streams) && g.streams[k] >= 0 {
		s.Stream = g.streams[k]
	}
	switch {
	case o.kind == opMarker:
		return
	case o.kind == opMemory:
		s.Kind = sim.MemSpan
	case o.kind == opRecv && !e.system.ReplayOnly:
		s.Kind = sim.WaitSpan
	case o.kind != opCompute:
		s.Kind = sim.CommSpan
	}
	e.o.Timeline.Span(s)
	if o.kind == opRecv {
		s.Kind, s.Start = sim.RecvSpan, s.End
		e.o.Timeline.Span(s)
	}
}

// departs records that a message is sent now.
func (e *engine) departs(m uint32) {
	for len(e.flights) <= int(m) {
		e.flights = append(e.flights, flight{})
	}
	e.flights[m] = flight{begun: e.queue.now}
}

// arrives records that a message arrives now.
func (e *engine) arrives(m uint32) {
	if int(m) < len(e.flights) {
		e.flights[m].arrived = e.queue.now
	}
}

// transferred reports a message of the trace and its receive to the timeline, if any.
func (e *engine) transferred(m, recv uint32) {
	if e.layout == nil && !e.o.Path {
		return
	}
	message := &e.matcher.messages[m]
	if message.sender == noOp || message.control || message.custom {
		return
	}
	if e.o.Path {
		c := &e.opTimes[message.to].causes[recv]
		c.rank, c.op = message.from, message.sender+1
	}
	if e.layout == nil {
		return
	}
	f := &e.flights[m]
	e.o.Timeline.Transfer(sim.Transfer{Source: uint32(message.from), Target: uint32(message.to),
		Send: e.layout.Start[message.from] + message.sender, Recv: e.layout.Start[message.to] + recv, Begun: f.begun,
		Start: f.start, End: e.queue.now, Arrived: f.arrived, Bytes: message.size})
}
