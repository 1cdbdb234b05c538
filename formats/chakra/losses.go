// This file says what Chakra leaves out of a trace, or changes.

package chakra

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

func losses(t *dag.Trace) []format.Loss {
	l, _ := commonLosses(t)
	return l
}

// jsonLosses adds what only JSON loses.
func jsonLosses(t *dag.Trace) []format.Loss {
	l, unknown := commonLosses(t)
	l.Add("fields and values that Chakra's JSON does not have", unknown)
	return l
}

// lossCounts is how many ops lose what.
type lossCounts struct {
	release, rounded, starts, streams, nics, jobs, orders, received, renumbered, comms, sizes, ids int64
	hosts, dims, priorities, calls, flops, names, measured, foreign, unknown, groups               int64
}

// commonLosses returns what both forms leave out or change, and how many ops have something that JSON has not.
func commonLosses(t *dag.Trace) (format.Losses, int64) {
	p, err := newPlan(t)
	if err != nil {
		return nil, 0 // writing will say why it cannot be done
	}
	var c lossCounts
	w := new(rankWriter)
	for rank := range t.Ranks {
		if w.begin(p, rank) != nil {
			return nil, 0
		}
		c.count(w)
	}
	var l format.Losses
	l.Add("dependencies on starts of ops, which become ones on what those wait for", c.starts)
	l.Add("release times", c.release)
	l.Add("durations rounded to whole microseconds", c.rounded)
	l.Add("tags, renumbered", c.renumbered)
	l.Add("communicators of messages", c.comms)
	l.Add("sizes of receives, which become those of their messages", c.sizes)
	l.Add("received sizes of collectives", c.received)
	l.Add("names of communicators that are no numbers", c.groups)
	l.Add("tags of collectives", c.calls)
	l.Add("floating-point operations of communication and memory accesses", c.flops)
	l.Add("communication on the host", c.hosts)
	l.Add("dimensions and priorities of what is no collective", c.dims)
	l.Add("streams", c.streams)
	l.Add("network interfaces", c.nics)
	l.Add("jobs", c.jobs)
	l.Add("orders of dependents", c.orders)
	l.Add("names that are not UTF-8", c.names)
	l.Add("measured times", c.measured)
	l.Add("numbers of nodes", c.ids)
	l.Add("attributes", c.foreign)
	l.AddNodes(t)
	return l, c.unknown
}

// count adds what a rank loses.
func (c *lossCounts) count(w *rankWriter) {
	r, p := w.r, w.p
	c.foreign += w.foreign
	if w.ids0 {
		c.ids += int64(r.Len())
	}
	for i := range r.Kind {
		op := r.Op(i)
		a := w.of(i)
		if a != nil {
			if _, _, ok := w.stored(&op, a); !ok && (a.Layout != "" || a.Wire != nil || len(a.Attr) > 0) {
				c.foreign++
			}
			if a.Wire != nil || a.Unknown != nil || a.Inputs != nil && a.Inputs.Unknown != nil ||
				a.Outputs != nil && a.Outputs.Unknown != nil {
				c.unknown++
			}
		}
		c.add(&op, p)
		if r.Deps.Count(i) != 0 && r.Order.Count(i) != 0 || r.Order.Count(i) != 0 {
			c.orders++
		}
		if r.StartDeps.Count(i) != 0 {
			c.starts++
		}
		if _, other := p.sizes[w.rank][int32(i)]; other {
			c.sizes++
		}
		if lostMeasure(&op) {
			c.measured++
		}
	}
}

// add adds what the fields of an op lose.
func (c *lossCounts) add(op *dag.Op, p *plan) {
	communication := op.Kind == dag.Send || op.Kind == dag.Recv || op.Kind == dag.Coll
	message := communication && op.Kind != dag.Coll
	for _, x := range [...]struct {
		lost  bool
		count *int64
	}{
		{op.Release != 0, &c.release},
		{op.Duration%dag.Microsecond != 0, &c.rounded},
		{op.NIC != 0, &c.nics},
		{op.Job != 0, &c.jobs},
		{op.RecvBytes != 0, &c.received},
		{message && op.Comm != 0, &c.comms},
		{message && p.tag(mes(op)) != op.Tag, &c.renumbered},
		{op.Kind == dag.Coll && op.Tag != 0, &c.calls},
		{op.Kind == dag.Coll && op.Comm != 0 && !p.keepsName(op.Comm), &c.groups},
		{op.Kind != dag.Calc && op.Flops != 0, &c.flops},
		{communication && op.Host != 0, &c.hosts},
		{op.Kind != dag.Coll && op.Dims|op.Priority != 0, &c.dims},
		{op.Stream != streamOf(op), &c.streams},
	} {
		if x.lost {
			*x.count++
		}
	}
}

func mes(op *dag.Op) message {
	return message{op.Comm, op.Tag}
}
