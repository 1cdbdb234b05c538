package compose

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
)

// Removed counts the parts of a trace that a filter removed.
type Removed struct {
	Ranks       int   // ranks
	Ops         int64 // ops of removed ranks, or outside the window
	Messages    int64 // sends and receives whose partner was removed
	Collectives int64 // parts of collectives whose root, or a part outside the window, was removed
	Smaller     int64 // parts of kept collectives with fewer ranks than before
}

// KeepRanks returns a trace of the given ranks of t, which must be ascending; the first becomes rank 0 and so on. The
// references of t must be in range ([dag.Rank.CheckReferences]). KeepRanks does not change t; the result shares
// unchanged data with it.
//
// Messages with removed ranks are removed; an op that waited for one waits for the dependencies of that message.
// Communicators keep the remaining ranks; communicators without ranks are removed. Collectives continue among the
// remaining ranks with the same sizes; a RecvBytes that is the sum of all contributions becomes 0, not stated.
// Collectives whose root was removed are removed. Nodes are renumbered without gaps. Attributes do not change.
//
// KeepRanks returns an error if the result would have another meaning: for a receive from any source that could match
// a message of a removed rank; and for a collective with removed ranks in which every rank has data for every other
// rank, or whose attributes describe the algorithm of NCCL among all ranks. Lower these first.
//
// KeepRanks ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func KeepRanks(ctx context.Context, t *dag.Trace, ranks []int32) (*dag.Trace, Removed, error) {
	k := &keeping{trace: t, to: slices.Repeat([]int32{-1}, len(t.Ranks))}
	for i, rank := range ranks {
		if rank < 0 || int(rank) >= len(t.Ranks) || i > 0 && rank <= ranks[i-1] {
			return nil, Removed{}, fmt.Errorf("rank %d to keep, expected ascending ranks of 0..%d", rank,
				len(t.Ranks)-1)
		}
		k.to[rank] = int32(i)
	}
	if len(ranks) == len(t.Ranks) {
		return t, Removed{}, nil
	}
	k.removed.Ranks = len(t.Ranks) - len(ranks)
	out := &dag.Trace{Meta: t.Meta, Ranks: dag.NewRanks(len(ranks))}
	var err error
	if out.Comms, err = k.keepComms(); err != nil {
		return nil, Removed{}, err
	}
	k.findSenders()
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, Removed{}, err
		}
		to := k.to[rank]
		if to < 0 {
			k.removed.Ops += int64(t.Ranks[rank].Len())
			continue
		}
		kept, err := k.keep(rank)
		if err != nil {
			return nil, Removed{}, fmt.Errorf("rank %d: %w", rank, err)
		}
		out.Ranks[to] = kept.Keep()
	}
	if t.Nodes != nil {
		if len(t.Nodes) != len(t.Ranks) {
			return nil, Removed{}, fmt.Errorf("nodes of %d ranks, expected %d", len(t.Nodes), len(t.Ranks))
		}
		nodes := make([]int32, len(ranks))
		for i, rank := range ranks {
			nodes[i] = t.Nodes[rank]
		}
		out.Nodes, _ = dense(nodes)
	}
	return out, k.removed, nil
}

// keeping is the state of KeepRanks.
type keeping struct {
	trace   *dag.Trace
	to      []int32 // new number of each rank; -1: removed
	comms   []int32 // new number of each communicator; -1: removed
	smaller []bool  // by communicator: it loses ranks
	senders []bool  // by rank: a removed rank sends to it
	removed Removed
}

// keepComms returns the remaining communicators.
func (k *keeping) keepComms() ([]dag.Comm, error) {
	var out []dag.Comm
	for i := range k.trace.Comms {
		c := &k.trace.Comms[i]
		if err := c.Check(len(k.to)); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
		var members []int32
		for _, rank := range c.Members() {
			if to := k.to[rank]; to >= 0 {
				members = append(members, to)
			}
		}
		k.smaller = append(k.smaller, len(members) < c.Size())
		if len(members) == 0 && i > 0 {
			k.comms = append(k.comms, -1)
			continue
		}
		k.comms = append(k.comms, int32(len(out)))
		out = append(out, c.With(members))
	}
	return out, nil
}

// findSenders finds the ranks to which removed ranks send.
func (k *keeping) findSenders() {
	k.senders = make([]bool, len(k.to))
	for rank := range k.trace.Ranks {
		r := k.trace.Ranks[rank]
		for i, kind := range r.Kind {
			if peer := r.Peer.At(i); kind == dag.Send && k.to[rank] < 0 && uint(peer) < uint(len(k.to)) {
				k.senders[peer] = true
			}
		}
	}
}

// keep returns the remaining ops of a rank.
func (k *keeping) keep(rank int) (dag.Rank, error) {
	out := *k.trace.Ranks[rank]
	gone := make([]bool, out.Len())
	any, unstated := false, false
	for i := range gone {
		var err error
		if gone[i], err = k.removes(&out, i); err != nil {
			return out, err
		}
		if out.Kind[i] == dag.Recv && out.Peer.At(i) == dag.AnySource && k.senders[rank] {
			return out, fmt.Errorf("op %d: receive from any source, on a rank to which removed ranks send", i)
		}
		any = any || gone[i]
		unstated = unstated || k.isSum(&out, i)
	}
	if unstated {
		out.RecvBytes = slices.Clone(out.RecvBytes)
		for i := range gone {
			if k.isSum(&out, i) {
				out.RecvBytes[i] = 0
			}
		}
	}
	if any {
		var err error
		if out, err = remove(&out, gone); err != nil {
			return out, err
		}
	}
	k.renumber(&out)
	return out, nil
}

// removes reports whether op i of a rank is removed.
func (k *keeping) removes(r *dag.Rank, i int) (bool, error) {
	kind, peer, comm := r.Kind[i], r.Peer.At(i), r.Comm.At(i)
	if !usesComm(kind) {
		return false, nil
	}
	if comm < 0 || int(comm) >= len(k.comms) || k.comms[comm] < 0 {
		return false, fmt.Errorf("op %d: communicator %d, which does not exist or has no kept rank", i,
			comm)
	}
	unnamed := kind == dag.Recv && peer == dag.AnySource ||
		kind == dag.Coll && (!r.Subkind.At(i).Rooted() || peer == dag.UnknownRoot)
	if !unnamed && (peer < 0 || int(peer) >= len(k.to)) {
		return false, fmt.Errorf("op %d: %v with rank %d, expected 0..%d", i, kind, peer, len(k.to)-1)
	}
	gone := !unnamed && k.to[peer] < 0
	if kind != dag.Coll {
		if gone {
			k.removed.Messages++
		}
		return gone, nil
	}
	if !k.smaller[comm] {
		return false, nil
	}
	switch subkind := r.Subkind.At(i); subkind {
	case dag.Scatter, dag.Scatterv, dag.Alltoall, dag.Alltoallv, dag.ReduceScatter:
		return false, fmt.Errorf("op %d: %v with removed ranks: lower collectives first", i, subkind)
	}
	if attr.HasNCCLCall(r.Attrs.At(i)) {
		return false, fmt.Errorf("op %d: NCCL collective with removed ranks: lower it first", i)
	}
	if gone {
		k.removed.Collectives++
	} else {
		k.removed.Smaller++
	}
	return gone, nil
}

// isSum reports whether RecvBytes of op i is the sum of the contributions of all ranks, some of which are removed.
func (k *keeping) isSum(r *dag.Rank, i int) bool {
	if r.RecvBytes.At(i) == 0 || r.Kind[i] != dag.Coll {
		return false
	}
	switch r.Subkind.At(i) {
	case dag.Gather, dag.Gatherv, dag.Allgather, dag.Allgatherv:
		return k.smaller[r.Comm.At(i)]
	}
	return false
}

// renumber replaces the ranks and communicators of the remaining ops by their new numbers.
func (k *keeping) renumber(r *dag.Rank) {
	r.Peer = slices.Clone(r.Peer)
	comm := make([]int32, r.Len())
	r.Comm.Copy(comm, 0)
	for i, kind := range r.Kind {
		if !usesComm(kind) {
			continue
		}
		comm[i] = k.comms[comm[i]]
		peer := r.Peer.At(i)
		if peer >= 0 && (kind != dag.Coll || r.Subkind.At(i).Rooted()) {
			r.Peer.Set(i, k.to[peer])
		}
	}
	r.Comm = dag.Narrow{}
	r.Comm.SetRange(0, comm)
}

// dense returns the nodes renumbered without gaps, in the same order, and their number.
func dense(nodes []int32) ([]int32, int) {
	sorted := slices.Clone(nodes)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	out := make([]int32, len(nodes))
	for i, node := range nodes {
		at, _ := slices.BinarySearch(sorted, node)
		out[i] = int32(at)
	}
	return out, len(sorted)
}
