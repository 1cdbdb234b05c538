package compose

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
)

// Removed counts what a filter took out of a trace.
type Removed struct {
	Ranks       int   // ranks
	Ops         int64 // ops of these ranks, or outside the window
	Messages    int64 // sends and receives whose other side went
	Collectives int64 // parts in collectives of which the root, or a part outside the window, went
	Smaller     int64 // parts in collectives that are left, of fewer ranks than before
}

// KeepRanks returns a trace of the given ranks of t, which must be ascending; the first becomes rank 0 and so on. The
// references of t must be in range ([dag.Rank.CheckReferences]); it changes nothing of it, and the result shares with
// it what is the same in both.
//
// Messages with other ranks are taken out; what waited for them waits for what they waited for. Communicators have
// the ranks that are left, those of which none is left go. Collectives are those of the ranks that are left, with the
// same sizes: RecvBytes, where it is the sum of what all contribute, becomes 0, not stated. A collective whose root
// went is taken out. Nodes are numbered anew without gaps. Attributes stay as they are.
//
// It fails where what is left would mean something else: a receive from any source that could have had a message from
// a rank that went; and a collective of which ranks went and of which every rank has something for every other, or
// whose attributes say how NCCL does it among all. These have to be lowered first.
//
// KeepRanks ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func KeepRanks(ctx context.Context, t *dag.Trace, ranks []int32) (*dag.Trace, Removed, error) {
	k := &keeping{trace: t, to: slices.Repeat([]int32{-1}, len(t.Ranks))}
	for i, rank := range ranks {
		if rank < 0 || int(rank) >= len(t.Ranks) || i > 0 && rank <= ranks[i-1] {
			return nil, Removed{}, fmt.Errorf("rank %d is to be kept, expected ascending ranks of 0..%d", rank,
				len(t.Ranks)-1)
		}
		k.to[rank] = int32(i)
	}
	if len(ranks) == len(t.Ranks) {
		return t, Removed{}, nil
	}
	k.removed.Ranks = len(t.Ranks) - len(ranks)
	out := &dag.Trace{Meta: t.Meta, Ranks: make([]dag.Rank, len(ranks))}
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
		if out.Ranks[to], err = k.keep(rank); err != nil {
			return nil, Removed{}, fmt.Errorf("rank %d %w", rank, err)
		}
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

// keeping is a trace of which ranks go.
type keeping struct {
	trace   *dag.Trace
	to      []int32 // what becomes of each rank; -1: it goes
	comms   []int32 // what becomes of each communicator; -1: it goes
	smaller []bool  // which communicators lose ranks
	senders []bool  // which ranks get messages from ranks that go
	removed Removed
}

// keepComms returns the communicators that are left.
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

// findSenders finds the ranks that get messages from ranks that go.
func (k *keeping) findSenders() {
	k.senders = make([]bool, len(k.to))
	for rank := range k.trace.Ranks {
		r := &k.trace.Ranks[rank]
		for i, kind := range r.Kind {
			if peer := r.Peer.At(i); kind == dag.Send && k.to[rank] < 0 && uint(peer) < uint(len(k.to)) {
				k.senders[peer] = true
			}
		}
	}
}

// keep returns what is left of a rank.
func (k *keeping) keep(rank int) (dag.Rank, error) {
	out := k.trace.Ranks[rank]
	gone := make([]bool, out.Len())
	any, unstated := false, false
	for i := range gone {
		var err error
		if gone[i], err = k.goes(&out, i); err != nil {
			return out, err
		}
		if out.Kind[i] == dag.Recv && out.Peer.At(i) == dag.AnySource && k.senders[rank] {
			return out, fmt.Errorf("op %d receives from any source, and ranks that are not kept send to this one", i)
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

// goes reports whether op i of a rank goes.
func (k *keeping) goes(r *dag.Rank, i int) (bool, error) {
	kind, peer, comm := r.Kind[i], r.Peer.At(i), r.Comm.At(i)
	if !usesComm(kind) {
		return false, nil
	}
	if comm < 0 || int(comm) >= len(k.comms) || k.comms[comm] < 0 {
		return false, fmt.Errorf("op %d is of communicator %d, which does not exist or has no rank that is kept", i,
			comm)
	}
	unnamed := kind == dag.Recv && peer == dag.AnySource ||
		kind == dag.Coll && (!r.Subkind.At(i).Rooted() || peer == dag.UnknownRoot)
	if !unnamed && (peer < 0 || int(peer) >= len(k.to)) {
		return false, fmt.Errorf("op %d is a %v with rank %d, expected 0..%d", i, kind, peer, len(k.to)-1)
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
		return false, fmt.Errorf("op %d is a collective %v of ranks that are not all kept: lower it first", i, subkind)
	}
	if attr.HasNCCLCall(r.Attrs.At(i)) {
		return false, fmt.Errorf("op %d is a collective of NCCL with ranks that are not all kept: lower it first", i)
	}
	if gone {
		k.removed.Collectives++
	} else {
		k.removed.Smaller++
	}
	return gone, nil
}

// isSum reports whether what op i receives is the sum of what all ranks contribute, of which some went.
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

// renumber gives what is left of a rank the new numbers.
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

// dense returns the numbers of nodes without gaps, in the same order, and how many nodes there are.
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
