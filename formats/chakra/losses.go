// This file determines the data that Chakra loses.

package chakra

import (
	"fmt"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// losses returns the losses of writing a trace, nil if it cannot be written: writing reports the error.
func losses(t *dag.Trace, o format.WriteOptions, json bool) []format.Loss {
	p, err := newPlan(t, o)
	if err != nil {
		return nil
	}
	return p.losses(json)
}

// lossCounts is the number of ops per loss.
type lossCounts struct {
	release, rounded, starts, streams, nics, jobs, orders, received, renumbered, comms, sizes, ids int64
	hosts, dims, calls, flops, names, measured, markers, untimed, foreign, unknown, groups         int64
}

// losses returns the losses of the protobuf messages or of JSON.
func (p *plan) losses(json bool) []format.Loss {
	t := p.original
	var c lossCounts
	w := new(rankWriter)
	for rank := range t.Ranks {
		if w.begin(p, rank) != nil {
			return nil
		}
		c.count(w)
	}
	var l format.Losses
	l.Add("dependencies on starts of ops, replaced by the dependencies of those ops", c.starts)
	l.Add("release times", c.release)
	l.Add(fmt.Sprintf("release times rounded to whole %s", p.unit()), p.rounded())
	l.Add("release times that calcs delay, because the calcs of the clock take turns with them on the accelerator",
		p.delayed)
	l.Add("durations rounded to whole microseconds", c.rounded)
	l.Add("sizes per member of uneven collectives, which become even ones", p.uneven)
	l.Add("markers, which dependencies replace", p.markers)
	l.Add("markers, which become computations of duration 0", c.markers)
	l.Add("durations of ops without a duration in Chakra", c.untimed)
	l.Add("tags, renumbered", c.renumbered)
	l.Add("communicators of messages", c.comms)
	l.Add("sizes of receives, replaced by the sizes of their messages", c.sizes)
	l.Add("received sizes of collectives", c.received)
	l.Add("names of communicators other than numbers", c.groups)
	l.Add("tags of collectives", c.calls)
	l.Add("floating-point operations of communication and memory accesses", c.flops)
	l.Add("communication on the host", c.hosts)
	l.Add("dimensions and priorities of ops other than collectives", c.dims)
	l.Add("streams", c.streams)
	l.Add("NICs", c.nics)
	l.Add("jobs", c.jobs)
	l.Add("orders of dependents", c.orders)
	l.Add("names in invalid UTF-8", c.names)
	l.Add("measured times", c.measured)
	l.Add("node numbers", c.ids)
	l.Add("attributes", c.foreign)
	l.AddRareFields(t, dag.FieldHost, dag.FieldDims, dag.FieldPriority)
	l.AddNodes(t)
	if json {
		l.Add("fields and values that Chakra's JSON cannot represent", c.unknown)
	}
	return l
}

// count adds the losses of a rank.
func (c *lossCounts) count(w *rankWriter) {
	r, p := w.r, w.p
	c.foreign += w.foreign
	if w.renumbered {
		c.ids += int64(r.Len())
	}
	for i := p.ticks(w.rank); i < r.Len(); i++ {
		op := r.Op(i)
		if a := w.of(i); a != nil {
			if _, _, ok := w.stored(&op, a); !ok && a.describes() {
				c.foreign++
			}
			if a.beyondJSON() {
				c.unknown++
			}
		}
		_, resized := p.sizes[w.rank][int32(i)]
		add(&c.sizes, resized)
		add(&c.orders, r.Order.Count(i) != 0 || r.StartOrder.Count(i) != 0)
		add(&c.starts, r.StartDeps.Count(i) != 0)
		add(&c.measured, op.Timed && w.losesMeasure(i, &op))
		if op.Subkind == dag.Marker && w.node(i).Type == CompNode {
			c.markers++
			add(&c.untimed, op.Duration != 0)
			op.Subkind, op.Duration = dag.NoSubkind, 0
		}
		c.countFields(&op, p)
	}
}

func add(count *int64, lost bool) {
	if lost {
		*count++
	}
}

// describes reports whether the attributes of an op include those of a node.
func (a *opAttrs) describes() bool {
	return a.Layout != "" || a.Wire != nil || len(a.Attr) > 0
}

// beyondJSON reports whether a node has data that JSON cannot represent.
func (a *opAttrs) beyondJSON() bool {
	return a.Wire != nil || a.Unknown != nil || a.Inputs != nil && a.Inputs.Unknown != nil ||
		a.Outputs != nil && a.Outputs.Unknown != nil
}

// losesMeasure reports whether the node of an op has other measured times: its end follows its start by the
// duration, a whole number of microseconds.
func (w *rankWriter) losesMeasure(i int, op *dag.Op) bool {
	n := w.node(i)
	start, length := n.StartTimeMicros, min(n.DurationMicros, maxMicros)
	if start == 0 || start > maxMicros || dag.Time(start)*dag.Microsecond != op.MeasuredStart {
		return true
	}
	return op.MeasuredStart+min(dag.Time(length)*dag.Microsecond, dag.MaxTime-op.MeasuredStart) != op.MeasuredEnd
}

// countFields adds the losses of the fields of an op.
func (c *lossCounts) countFields(op *dag.Op, p *plan) {
	collective := op.Kind == dag.Coll
	transfer := op.Kind == dag.Send || op.Kind == dag.Recv
	add(&c.release, op.Release != 0)
	add(&c.rounded, op.Duration%dag.Microsecond != 0)
	add(&c.comms, transfer && op.Comm != 0)
	add(&c.renumbered, transfer && p.tag(message{op.Comm, op.Tag}) != op.Tag)
	add(&c.received, op.RecvBytes != 0 && !oneSize(op))
	add(&c.groups, collective && !p.keepsName(op.Comm))
	add(&c.calls, collective && op.Tag != 0)
	add(&c.flops, op.Kind != dag.Calc && op.Flops != 0)
	add(&c.hosts, (collective || transfer) && op.Host != 0)
	add(&c.dims, !collective && op.Dims|op.Priority != 0)
	add(&c.streams, op.Stream != streamOf(op))
	add(&c.nics, op.NIC != 0)
	add(&c.jobs, op.Job != 0)
	add(&c.names, !utf8.ValidString(op.Name))
}
