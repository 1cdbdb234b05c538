package storage

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// lowering is the state of lowering one trace.
type lowering struct {
	writer
	layout
	choice *Choice
	hosts  []host
	access access

	comms    []dag.Comm // of the lowered trace
	hostComm int32      // communicator of all hosts, for collectives of all ranks of the source
}

func newLowering(t *dag.Trace, c *Choice, units []unit) (*lowering, error) {
	l := &lowering{choice: c, layout: layout{trace: t, units: units}}
	hosts := int64(len(t.Ranks))
	if c.arch.compat() {
		if err := checkPlain(t); err != nil {
			return nil, err
		}
		hosts = int64(units[len(units)-1].number) + 1
	}
	components := append([]int64{hosts}, c.arch.kinds()...)
	total := int64(0)
	for _, n := range components {
		if total += n; total > maxRanks {
			return nil, fmt.Errorf("more than %d ranks", maxRanks)
		}
	}
	ranks := arrange(c.common.place == "spread", components)
	l.servers = ranks[1:]
	l.writer = writer{ranks: make([]rankWriter, total), header: c.common.header}
	l.hosts = make([]host, hosts)
	for i := range l.hosts {
		l.hosts[i] = host{rank: ranks[0][i], stream: 1}
		if !c.arch.compat() {
			l.hosts[i].setSource(t.Ranks[i])
		}
	}
	return l, l.chooseComms()
}

// checkPlain returns an error if a trace has other ops than storage accesses, or dependencies.
func checkPlain(t *dag.Trace) error {
	for rank := range t.Ranks {
		if !isPlain(t.Ranks[rank]) {
			return fmt.Errorf("rank %d has dependencies or ops besides storage accesses, which compat does not support",
				rank)
		}
	}
	return nil
}

// run makes one pass over all records.
func (l *lowering) run(ctx context.Context) error {
	watch := par.Watch{Context: ctx}
	server, err := l.choice.arch.serve(&l.layout)
	if err != nil {
		return err
	}
	for i := range l.hosts {
		l.hosts[i].begin(l.filling)
	}
	number, start := int64(0), dag.Time(0)
	for rank, op := range l.trace.Records() {
		if err := watch.Err(); err != nil {
			return err
		}
		r := l.trace.Ranks[rank]
		at := rank
		if l.choice.arch.compat() {
			at = int(r.Peer.At(op))
		}
		if number == 0 {
			start = r.Release.At(op)
		}
		l.record(server, &l.hosts[at], r, op, number, r.Release.At(op)-start)
		if l.err != nil {
			return fmt.Errorf("rank %d, op %d: %w", rank, op, l.err)
		}
		number++
	}
	for i := range l.hosts {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		if h := &l.hosts[i]; h.mixed {
			l.copyBefore(h, h.source.Len())
			if l.err != nil {
				return fmt.Errorf("rank %d: %w", i, l.err)
			}
		}
	}
	return nil
}

// record writes op i of r, record number of the trace. time is its release relative to the first record.
func (l *lowering) record(s server, h *host, r *dag.Rank, i int, number int64, time dag.Time) {
	if h.mixed {
		l.copyBefore(h, i)
	}
	l.standFor(r, i, h.rank)
	if h.records == 0 {
		h.mount = s.mount(&l.writer, h.rank)
	}
	a := &l.access
	a.begin(l, h, r, i, number)
	switch o := &l.choice.common.order; {
	case o.kind == "timed":
		a.awaitOps(l.tick(h, time), h.mount)
	case o.distance() > 0 && h.records >= o.distance():
		a.await = h.ends.Of(h.records - o.distance())
	default:
		a.awaitOps(h.mount)
	}
	s.access(a)
	a.finish()
	h.records++
}

// tick writes the calc that advances the timer chain of a host to a time relative to the first record of the trace,
// rounded to the nearest nanosecond.
func (l *lowering) tick(h *host, time dag.Time) (op int32) {
	now := int64(time / dag.Nanosecond)
	if time%dag.Nanosecond >= dag.Nanosecond/2 && now < maxNS {
		now++
	}
	if h.stream < 0 {
		l.fail("no stream is left for the chain of times")
	}
	op = l.busy(h.rank, now-h.now)
	l.require(h.rank, h.tick)
	if l.filling {
		l.ranks[h.rank].rank.Stream.Set(int(op), h.stream)
	}
	l.report.Gaps++
	h.now, h.tick = now, op
	return op
}

// written returns the lowered trace.
func (l *lowering) written(ctx context.Context) (*dag.Trace, error) {
	out := &dag.Trace{Meta: l.trace.Meta, Comms: l.comms, Ranks: dag.NewRanks(len(l.ranks))}
	for i := range l.ranks {
		out.Ranks[i] = l.ranks[i].rank.Keep()
	}
	if err := l.checkCycles(ctx); err != nil {
		return nil, err
	}
	var err error
	if out.Nodes, err = l.nodes(); err != nil {
		return nil, err
	}
	out.Attrs, err = l.choice.addTo(out.Attrs)
	return out, err
}

// nodes returns the nodes of all ranks. Hosts keep their nodes; each server has a node of its own.
func (l *lowering) nodes() ([]int32, error) {
	given := l.trace.Nodes
	if given == nil || l.choice.arch.compat() {
		return nil, nil
	}
	if len(given) != len(l.hosts) {
		return nil, fmt.Errorf("the trace names the nodes of %d ranks, expected %d", len(given), len(l.hosts))
	}
	next := int64(0)
	nodes := make([]int32, len(l.ranks))
	for i, node := range given {
		nodes[l.hosts[i].rank] = node
		next = max(next, int64(node)+1)
	}
	for _, kind := range l.servers {
		for _, rank := range kind {
			if next > 1<<31-1 {
				return nil, fmt.Errorf("no node numbers above %d are left for servers", next-1)
			}
			nodes[rank] = int32(next)
			next++
		}
	}
	return nodes, nil
}
