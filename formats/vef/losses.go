// This file determines the data that VEF loses.

package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// losses lists the data that write drops or changes.
func losses(t *dag.Trace) []format.Loss {
	var l format.Losses
	l.Add("collectives that VEF does not have, decomposed into messages", foreign(t))
	original := t
	t, err := lowered(t)
	if err != nil || checkReferences(t) != nil {
		return l // write reports the error
	}
	p := &plan{t: t, first: make([]int, len(t.Ranks)+1)}
	for i := range t.Ranks {
		p.first[i+1] = p.first[i] + t.Ranks[i].Len()
	}
	p.matchByTag()
	var c lossCounts
	for rank := range t.Ranks {
		if err := c.count(t, rank, p.matched); err != nil {
			return l
		}
	}
	l.Add("dependencies on several events, replaced by the latest event on the ideal timeline", c.unclear)
	l.Add("receives that wait for an event before they can match", c.late)
	l.Add("wildcard receives", c.wildcards)
	l.Add("tags", c.tags)
	if c.tail > 0 {
		l.Add(fmt.Sprintf("computation after the last communication of a rank, %v in total", c.tailTime), c.tail)
	}
	l.Add("memory and storage accesses, written as computation", c.accesses)
	l.Add("durations of communication", c.durations)
	l.Add("sizes of computation", c.sizes)
	l.Add("flops", c.flops)
	l.Add("streams", c.streams)
	l.Add("NICs", c.nics)
	l.Add("communicators of messages", c.comms)
	l.Add("roots of collectives without data, replaced by their first task", c.roots)
	l.Add("jobs", c.jobs)
	l.Add("names", c.names)
	l.Add("attributes", c.attrs)
	l.Add("measured times", c.measured)
	l.AddRareFields(original)
	l.AddNodes(original)
	return l
}

func checkReferences(t *dag.Trace) error {
	for i := range t.Ranks {
		if err := t.Ranks[i].CheckReferences(); err != nil {
			return err
		}
	}
	return nil
}

// lossCounts is the number of ops per loss.
type lossCounts struct {
	unclear, late, wildcards, tags, tail, accesses, durations, sizes, flops, streams, nics, comms, roots int64
	jobs, names, attrs, measured                                                                         int64
	tailTime                                                                                             dag.Time
}

// count adds the losses of a rank.
func (c *lossCounts) count(t *dag.Trace, rank int, ownTags bool) error {
	r := t.Ranks[rank]
	n := r.Len()
	var clear bool
	p := &rankPlan{r: r, rank: rank, waits: make([]wait, n), selfs: r.Attrs.Len() > 0,
		clear: &clear}
	if err := p.find(); err != nil {
		return err
	}
	c.countTail(p)
	for i, kind := range r.Kind {
		self := p.selfs && selfPart(r, i) != ""
		switch kind {
		case dag.Calc:
			if r.Bytes.At(i) != 0 && !self {
				c.sizes++
			}
		case dag.Recv:
			if p.waits[i].event != origin || p.waits[i].delay > 0 {
				c.late++
			}
			if r.Peer.At(i) == dag.AnySource || r.Tag.At(i) == dag.AnyTag {
				c.wildcards++
			}
		case dag.Mem, dag.IO:
			c.accesses++
		}
		if p.waits[i].event == unclear && recorded(r, i) {
			c.unclear++
		}
		message := kind == dag.Send || kind == dag.Recv
		if message && !ownTags && r.Tag.At(i) != 0 {
			c.tags++
		}
		if message && r.Comm.At(i) != 0 {
			c.comms++
		}
		if (message || kind == dag.Coll || r.Subkind.At(i) == dag.Marker) && r.Duration.At(i) != 0 {
			c.durations++
		}
		if r.Stream.At(i) != 0 && (kind != dag.Calc || p.waits[i].event != origin) {
			c.streams++
		}
		if kind == dag.Coll && hidesRoot(t, r, rank, i) {
			c.roots++
		}
		if !self && i < r.Attrs.Len() && r.Attrs.At(i) != "" {
			c.attrs++
		}
	}
	c.flops += r.Flops.Present()
	c.nics += r.NIC.Present()
	c.jobs += r.Job.Present()
	c.names += r.Name.Present()
	c.measured += format.Measured(r)
	return nil
}

// countTail counts the computation that no record waits for.
func (c *lossCounts) countTail(p *rankPlan) {
	r := p.r
	used, reached := make([]bool, r.Len()), make([]bool, r.Len()) // by a record: its end, or at least its start
	var stack []int32
	reach := func(op int32, end bool) {
		used[op] = used[op] || end
		if !reached[op] {
			reached[op] = true
			stack = append(stack, op)
		}
	}
	for i := range r.Kind {
		if recorded(r, i) {
			reach(int32(i), true)
		}
		for len(stack) > 0 {
			op := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, off := range r.Deps.Of(int(op)) {
				reach(op-off, true)
			}
			for _, off := range r.StartDeps.Of(int(op)) {
				reach(op-off, false)
			}
		}
	}
	for i := range r.Duration {
		if d := r.CalcTime(i); d > 0 && !used[i] && !p.communicates(i) {
			c.tail++
			c.tailTime += min(d, dag.MaxTime-c.tailTime)
		}
	}
}

// hidesRoot reports whether a rooted collective has a root that its records do not show, because only sizes show
// it.
func hidesRoot(t *dag.Trace, r *dag.Rank, rank, i int) bool {
	kind, comm := r.Subkind.At(i), r.Comm.At(i)
	if !kind.Rooted() || r.Peer.At(i) != int32(rank) || uint32(comm) >= uint32(len(t.Comms)) {
		return false
	}
	members := t.Comms[comm].Ranges
	return r.Bytes.At(i) == 0 && r.RecvBytes.At(i) == 0 && len(members) > 0 && members[0].First != int32(rank)
}
