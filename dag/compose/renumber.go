package compose

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// numbering maps the ranks, communicators and jobs of a trace to those of a merged trace.
type numbering struct {
	ranks, comms, jobs          int32   // numbers before those of the trace
	to                          []int32 // new number of each rank; nil: ranks + the old number
	ownRanks, ownComms, ownJobs int32   // numbers of the trace itself
	column                      []int32
}

// rank returns the new number of a rank of the trace.
func (n *numbering) rank(own int32) int32 {
	if n.to != nil {
		return n.to[own]
	}
	return n.ranks + own
}

// comm returns a communicator of the trace with new ranks.
func (n *numbering) comm(own *dag.Comm) dag.Comm {
	if n.to != nil {
		members := own.Members()
		for i, rank := range members {
			members[i] = n.to[rank]
		}
		return own.With(members)
	}
	ranges := slices.Clone(own.Ranges)
	for i := range ranges {
		ranges[i].First += n.ranks
	}
	return dag.Comm{Name: own.Name, Ranges: ranges, Undefined: own.Undefined}
}

// renumber replaces the numbers of a rank by those of the merged trace.
func (n *numbering) renumber(r *dag.Rank) error {
	if err := n.renumberPeers(r); err != nil {
		return err
	}
	comm, err := n.renumberColumn(r, &r.Comm, n.ownComms, "communicator", usesComm,
		func(kind dag.Kind, comm int32) int32 {
			if comm == 0 && kind != dag.Coll {
				return 0
			}
			return comm + n.comms
		})
	if err != nil {
		return err
	}
	job, err := n.renumberColumn(r, &r.Job, n.ownJobs, "job", func(dag.Kind) bool { return true },
		func(_ dag.Kind, job int32) int32 { return job + n.jobs })
	r.Comm, r.Job = comm, job
	return err
}

// usesComm reports whether ops of this kind use their communicator.
func usesComm(kind dag.Kind) bool {
	return kind == dag.Send || kind == dag.Recv || kind == dag.Coll
}

func (n *numbering) renumberPeers(r *dag.Rank) error {
	peers := r.Peer
	moved := n.ranks > 0 || n.to != nil
	if moved {
		peers = slices.Clone(peers)
	}
	for i, kind := range r.Kind {
		peer := r.Peer.At(i)
		switch {
		case !usesComm(kind), kind == dag.Recv && peer == dag.AnySource:
			continue
		case kind == dag.Coll && (!r.Subkind.At(i).Rooted() || peer == dag.UnknownRoot):
			continue
		}
		if peer < 0 || peer >= n.ownRanks {
			return fmt.Errorf("op %d: %v with rank %d, expected 0..%d", i, kind, peer, n.ownRanks-1)
		}
		if moved {
			peers.Set(i, n.rank(peer))
		}
	}
	r.Peer = peers
	return nil
}

// renumberColumn returns a column with new numbers for the ops whose kind uses it. Old numbers must be below own.
func (n *numbering) renumberColumn(r *dag.Rank, c *dag.Narrow, own int32, what string, uses func(dag.Kind) bool,
	renumber func(kind dag.Kind, number int32) int32) (dag.Narrow, error) {
	if cap(n.column) < r.Len() {
		n.column = make([]int32, r.Len())
	}
	column := n.column[:r.Len()]
	c.Copy(column, 0)
	for i, kind := range r.Kind {
		if !uses(kind) {
			continue
		}
		if column[i] < 0 || column[i] >= own {
			return dag.Narrow{}, fmt.Errorf("op %d: %s %d, expected 0..%d", i, what, column[i], own-1)
		}
		column[i] = renumber(kind, column[i])
	}
	var renumbered dag.Narrow
	renumbered.SetRange(0, column)
	return renumbered, nil
}
