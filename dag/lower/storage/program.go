// This file copies the ops of hosts that are no storage accesses.

package storage

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// chooseComms sets the communicators of the lowered trace. Collectives of all ranks of the source move to a
// communicator of all hosts. If hosts receive from any source, storage messages get a communicator of their own, so
// that such a receive does not match them.
func (l *lowering) chooseComms() error {
	l.comms = []dag.Comm{dag.World(len(l.ranks))}
	if l.choice.arch.compat() {
		return nil
	}
	ranks := make([]int32, len(l.hosts))
	for i := range l.hosts {
		ranks[i] = l.hosts[i].rank
	}
	for i := 1; i < len(l.trace.Comms); i++ {
		c := &l.trace.Comms[i]
		if err := c.Check(len(ranks)); err != nil {
			return fmt.Errorf("communicator %d: %w", i, err)
		}
		members := c.Members()
		for k, m := range members {
			members[k] = ranks[m]
		}
		l.comms = append(l.comms, c.With(members))
	}
	collectives, anySource := l.survey()
	if collectives {
		l.hostComm = int32(len(l.comms))
		l.comms = append(l.comms, dag.NewComm("hosts", ranks))
	}
	if anySource {
		l.comm = int32(len(l.comms))
		l.comms = append(l.comms, dag.Comm{Name: "storage", Ranges: dag.World(len(l.ranks)).Ranges})
	}
	return nil
}

// survey reports whether the hosts have collectives, and receives from any source.
func (l *lowering) survey() (collectives, anySource bool) {
	for i := range l.hosts {
		h := &l.hosts[i]
		if !h.mixed {
			continue
		}
		for op, kind := range h.source.Kind {
			collectives = collectives || kind == dag.Coll
			anySource = anySource || kind == dag.Recv && h.source.Peer.At(op) == dag.AnySource
		}
	}
	return collectives, anySource
}

// copyBefore writes the ops of a host before op end that are neither accesses nor written yet.
func (l *lowering) copyBefore(h *host, end int) {
	for ; h.copied < end && l.err == nil; h.copied++ {
		if i := h.copied; h.source.Kind[i] != dag.IO {
			l.copy(h, i)
		}
	}
}

// copy writes op i of a host.
func (l *lowering) copy(h *host, i int) {
	op := h.source.Op(i)
	l.renumber(&op, i)
	l.standFor(h.source, i, h.rank)
	at := l.add(h.rank, op.Kind)
	l.requireAs(h, i)
	if !l.filling {
		h.first[i], h.last[i] = at, at
		return
	}
	r, n := &l.ranks[h.rank].rank, int(at)
	r.Bytes[n], r.Peer[n], r.Tag[n] = op.Bytes, op.Peer, op.Tag
	r.Comm.Set(n, op.Comm)
	if h.rest == nil {
		h.rest = new(dag.Copier)
		h.rest.Reset(r, h.source, dag.FieldKind, dag.FieldBytes, dag.FieldPeer, dag.FieldTag, dag.FieldComm,
			dag.FieldStream, dag.FieldNIC, dag.FieldJob, dag.FieldStep)
	}
	if !h.rest.Copy(n, i) {
		l.fail("4 GiB of names or attributes, expected less")
	}
}

// renumber sets the ranks and communicators of op i of a host to those of the lowered trace.
func (l *lowering) renumber(op *dag.Op, i int) {
	if op.Kind != dag.Send && op.Kind != dag.Recv && op.Kind != dag.Coll {
		return
	}
	if comms := int32(len(l.trace.Comms)); op.Comm < 0 || op.Comm >= max(1, comms) {
		l.fail("op %d is of communicator %d, expected 0..%d", i, op.Comm, comms-1)
		return
	}
	if op.Kind == dag.Coll && op.Comm == 0 {
		op.Comm = l.hostComm
	}
	switch {
	case op.Kind == dag.Recv && op.Peer == dag.AnySource:
	case op.Kind == dag.Coll && (!op.Subkind.Rooted() || op.Peer == dag.UnknownRoot):
	case op.Peer < 0 || int(op.Peer) >= len(l.hosts):
		l.fail("op %d: %v with rank %d, expected 0..%d", i, op.Kind, op.Peer, len(l.hosts)-1)
	default:
		op.Peer = l.hosts[op.Peer].rank
	}
}

// requireAs copies the dependencies of op i of the source to the last op of the host.
func (l *lowering) requireAs(h *host, i int) {
	for _, off := range h.source.Deps.Of(i) {
		l.require(h.rank, h.last[i-int(off)])
	}
	if !l.filling {
		return
	}
	r := &l.ranks[h.rank]
	for _, off := range h.source.StartDeps.Of(i) {
		r.rank.StartDeps.Append(int(r.ops-1), r.ops-1-h.first[i-int(off)])
	}
}

// checkCycles returns an error if the ops of a host form a cycle: an access of its program waits for one that follows
// in the order of the records.
func (l *lowering) checkCycles(ctx context.Context) error {
	if l.choice.common.order.distance() == 0 {
		return nil
	}
	for i := range l.hosts {
		h := &l.hosts[i]
		if !h.mixed {
			continue
		}
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		r := &l.ranks[h.rank].rank
		order := dag.Trace{Comms: []dag.Comm{dag.World(1)}, Ranks: []*dag.Rank{
			{Kind: make([]dag.Kind, r.Len()), Deps: r.Deps, StartDeps: r.StartDeps},
		}}
		if problems, n := dag.ValidateLimit(&order, 1); n > 0 {
			return fmt.Errorf("rank %d: with order=%v, accesses that are issued later come first in its program (%s, "+
				"in the lowered trace): order=none and order=timed leave that to the program", i,
				&l.choice.common.order,
				problems[0].Message)
		}
	}
	return nil
}
