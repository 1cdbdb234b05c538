// This file implements links that fail or change their rate during a run.

package flow

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// change is the start or the end of a failure.
type change struct {
	at      uint64 // picoseconds
	failure *topology.Failure
	ends    bool
}

// changes returns the starts and ends of failures in the order of time.
func changes(failures []topology.Failure) (list []change) {
	for i := range failures {
		f := &failures[i]
		list = append(list, change{uint64(f.At), f, false})
		if f.Until > 0 {
			list = append(list, change{uint64(f.Until), f, true})
		}
	}
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return list
}

// parseFailures parses the failures.
func (b *backend) parseFailures() error {
	b.failures = nil
	var find func(name string) ([]int, error)
	if b.platform != nil {
		find = b.platform.LinkByName
	} else {
		find = b.network.LinkByName
	}
	for _, text := range b.failTexts {
		f, err := topology.ParseFailure(text, find)
		if err != nil {
			return &param.Error{Name: "fail", Err: err}
		}
		b.failures = append(b.failures, f)
	}
	return nil
}

// nextChange returns the time of the next change, or math.MaxUint64.
func (c *coupling) nextChange() uint64 {
	if len(c.changes) == 0 {
		return math.MaxUint64
	}
	return c.changes[0].at
}

// apply makes the next change. Flows under way get new paths, or wait if there is none.
func (c *coupling) apply(a *sim.Actor) {
	ch := &c.changes[0]
	c.changes = c.changes[1:]
	c.fluid.advance(float64(ch.at))
	if c.marks != nil {
		c.marks.Mark(ch.at/uint64(c.program.Unit), ch.failure.Mark(c.linkName, ch.ends))
	}
	if c.err = c.change(ch); c.err != nil {
		return
	}
	clear(c.cache)
	clear(c.latest)
	for f := range c.active {
		if c.active[f].running {
			c.reroute(uint32(f))
		}
	}
	messages := c.waiting
	c.waiting = nil
	for _, w := range messages {
		if c.err == nil {
			c.err = c.start(a, w.message, w.at, ch.at)
		}
	}
}

// change changes the rate of links, or the number of their failures.
func (c *coupling) change(ch *change) error {
	f := ch.failure
	if f.Rate == 0 {
		number := 1
		if ch.ends {
			number = -1
		}
		return c.paths.fail(c.ctx, f.Links, number)
	}
	for _, l := range f.Links {
		for _, i := range c.paths.linksOf(l) {
			rate := float64(f.Rate) / 8 // in each direction
			if ch.ends {
				rate = c.rates[i]
			}
			c.fluid.resize(i, rate)
		}
	}
	return nil
}

// reroute gives a flow the path that a flow which starts now would have, from and to ports of GPUs that work. With the
// policy least, it keeps a path that works.
func (c *coupling) reroute(f uint32) {
	x := &c.active[f]
	r := &c.records[x.record]
	s := &c.fluid.flows[f]
	c.fluid.freeze(f)
	c.carry(f)
	for _, port := range x.used {
		c.load[port] -= r.bytes
	}
	keep := x.used
	if !c.paths.works(keep) {
		r.source, r.target = c.ends.Of(&c.program.Ops[x.message], x.message)
		keep = nil
	}
	route, err := c.route(r.source, r.target, x.number, keep)
	if err != nil {
		route = nil
	}
	if c.cache == nil && s.route != nil {
		c.unused = append(c.unused, s.route)
	}
	x.used = x.used[:0]
	if route == nil {
		c.fluid.redirect(f, nil)
		return
	}
	if c.load != nil {
		x.used = append(x.used, c.used...)
		for _, port := range x.used {
			c.load[port] += r.bytes
		}
	}
	d := c.model.flow(r.bytes, route)
	c.fluid.redirect(f, &d)
}

// waiting is a message without a path.
type waiting struct {
	message uint32
	at      uint64 // time of its handover
}

// listedCutOff is the largest number of messages without a path that are listed.
const listedCutOff = 10

// cutOff describes the messages that have no path: flows under way when their last path failed, then messages that
// never became a flow, both in the order of their start. A run that ends before the last change describes none.
func (c *coupling) cutOff() (list []string) {
	if len(c.changes) > 0 {
		return nil
	}
	count := 0
	add := func(source, target uint32, bytes, at uint64) {
		if count++; count <= listedCutOff {
			list = append(list, fmt.Sprintf("no path is left for %d bytes from host %d to host %d, sent at %v: links "+
				"of all paths have failed for good", bytes, source, target, dag.Time(at)))
		}
	}
	var broken []uint32 // records
	for f := range c.active {
		if x := &c.active[f]; x.running && c.fluid.flows[f].route == nil {
			broken = append(broken, x.record)
		}
	}
	slices.Sort(broken)
	for _, i := range broken {
		r := &c.records[i]
		add(r.source, r.target, r.bytes, r.start)
	}
	for _, w := range c.waiting {
		op := &c.program.Ops[w.message]
		source, target := c.ends.Of(op, w.message)
		add(source, target, c.bytes(op), w.at)
	}
	if count > listedCutOff {
		list = append(list, fmt.Sprintf("and %d more without a path", count-listedCutOff))
	}
	return list
}

// carry adds the bytes that a flow has moved on its path since it got it.
func (c *coupling) carry(f uint32) {
	x, s := &c.active[f], &c.fluid.flows[f]
	if s.route != nil {
		for k, i := range s.route.links {
			c.carried[i] += (x.left - s.left) / s.factor * s.route.weights[k]
		}
	}
	x.left = s.left
}

// advance sets the time of the solver to one between two events.
func (s *fluid) advance(t float64) { s.now = max(s.now, t) }

// resize changes the capacity of a link.
func (s *fluid) resize(i uint32, capacity float64) {
	l := &s.links[i]
	l.capacity = capacity
	s.loads[i].most = l.load().most
	if len(l.users) > 0 {
		s.pending.lower(i, 0)
	}
}

// freeze computes the bytes that a flow has left now.
func (s *fluid) freeze(f uint32) {
	if x := &s.flows[f]; x.active {
		x.left = max(0, x.left-x.share*x.factor*(s.now-x.changed)/psPerSecond)
		x.changed, x.share = s.now, 0
	}
}

// redirect gives a frozen flow another path; nil: none. A flow in its latency phase keeps the end of that phase.
func (s *fluid) redirect(f uint32, d *demand) {
	x := &s.flows[f]
	waiting := x.active || !s.starting.has(f)
	if x.active {
		s.leave(f)
		s.ending.remove(f)
	}
	x.route = nil
	s.limits[f], s.marks[f] = limit{by: noLink}, mark{}
	if d == nil {
		return
	}
	x.route, x.penalty, x.inverse, x.most = d.route, d.penalty, 1/d.penalty, d.route.bound*d.penalty
	if waiting {
		s.enter(f)
	}
}

// unfinished is the end of a flow that has not ended.
const unfinished = math.MaxUint64
