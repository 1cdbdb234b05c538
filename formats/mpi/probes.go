// This file converts MPI_Probe.
//
// A probe waits for a message that a later call receives, and so does the receive in the DAG. The time of the probe is
// thus no computation, but for the time that SMPI lets pass before it looks for a message. Without such a receive
// nothing else waits for the message: the recorded time has to do.

package mpi

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// probes are the probes of a rank whose messages no call has received so far.
type probes struct {
	open []openProbe
	lone []int32 // ops of probes without a receive
}

// openProbe is a probe: a calc of the time that does not depend on the message.
type openProbe struct {
	op         int32
	peer, comm int32
	tag        int64
}

// probe adds the calc of a probe. It returns false, and does nothing, if the line has another form, or its
// message is from no process.
func (r *rankReader) probe(line []byte, c *call, colon int) bool {
	f := &r.fields
	*f = fields{}
	s := parser{b: line, p: colon}
	if s.parse(c, f); s.expected != "" || !f.hasComm || !f.hasStart || !f.hasEnd || r.over {
		return false
	}
	at, err := r.spanOf(f)
	if err != nil {
		return false
	}
	comm, err := r.communicator(f)
	if err != nil {
		return false
	}
	message, none, err := r.message(f, comm, dag.Recv, 0, 0, f.numbers[0], f.numbers[1])
	if err != nil || none {
		return false
	}
	r.closing = false
	r.closeGap(at.start)
	op := dag.Op{Kind: dag.Calc}
	if r.library == smpi {
		op.Duration = min(smpiPoll, max(0, at.end-max(at.start, r.last)))
		if op.Duration > 0 {
			op.Attrs = attr.CallTime(int64(op.Duration))
		}
	}
	i := r.add(&op, at)
	r.after.clear()
	r.after.ends = append(r.after.ends, i)
	r.leave(at)
	const most = 64
	if len(r.open) == most {
		r.lone = append(r.lone, r.open[0].op)
		r.open = slices.Delete(r.open, 0, 1)
	}
	r.open = append(r.open, openProbe{int32(i), message.Peer, message.Comm, message.Tag})
	return true
}

// received ends the probes whose message a call may receive.
func (r *rankReader) received(by *dag.Op) {
	r.open = slices.DeleteFunc(r.open, func(p openProbe) bool {
		return p.comm == by.Comm && (p.peer == by.Peer || p.peer == dag.AnySource || by.Peer == dag.AnySource) &&
			(p.tag == by.Tag || p.tag == dag.AnyTag || by.Tag == dag.AnyTag)
	})
}

// keepLone gives the probes without a receive their recorded time.
func (r *rankReader) keepLone() {
	for _, p := range r.open {
		r.lone = append(r.lone, p.op)
	}
	if len(r.lone) == 0 {
		return
	}
	calls := map[int]string{}
	for _, i := range r.lone {
		start, end := r.dag.Measured(int(i))
		if took := end - start; took > 0 {
			r.dag.Duration.Set(int(i), took)
			calls[int(i)] = attr.CallTime(int64(took))
		}
	}
	var all dag.Text
	for i := range r.dag.Kind {
		text, lone := calls[i]
		if !lone {
			text = r.dag.Attrs.At(i)
		}
		all.Append(i, text)
	}
	r.dag.Attrs = all
}
