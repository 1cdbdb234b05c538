// This file groups collective ops of a program into instances.

package sim

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// Instance is one collective operation of a communicator. The k-th collective op of a rank on a communicator, in index
// order, belongs to instance k of the communicator. Instances of all communicators are numbered consecutively.
type Instance struct {
	Kind dag.Subkind
	Comm int32
	Size int32 // number of ranks in the communicator
	Root int32 // position of the root in the communicator; 0 if the collective has no root
}

// subkindShift is the position in Op.Flags of the four bits of a collective's subkind.
const subkindShift = 2

const _ = uint(1<<4 - 1 - (dag.Exscan - dag.Barrier)) // four bits suffice

// Collective returns the subkind of op, which must be a collective.
func (op *Op) Collective() dag.Subkind {
	return dag.Barrier + dag.Subkind(op.Flags>>subkindShift&(1<<4-1))
}

// IsMessage reports whether op is a send or a receive: exactly one of the two bits is set.
func (op *Op) IsMessage() bool {
	return (op.Flags+1)&IsRecv != 0
}

// DataPattern defines which ranks of a collective receive data from which other ranks and therefore wait for them.
type DataPattern uint8

// Data patterns: the ranks that a rank waits for.
const (
	AllToAll  DataPattern = iota // every rank waits for all others
	FromRoot                     // every rank waits for the root
	ToRoot                       // the root waits for all others
	FromLower                    // every rank waits for those at lower positions
)

// DataPatternOf returns the data pattern of a collective.
func DataPatternOf(kind dag.Subkind) DataPattern {
	switch kind {
	case dag.Bcast, dag.Scatter, dag.Scatterv:
		return FromRoot
	case dag.Reduce, dag.Gather, dag.Gatherv:
		return ToRoot
	case dag.Scan, dag.Exscan:
		return FromLower
	}
	return AllToAll
}

// awaits reports whether collective op i waits for k, another rank's op of the same instance.
func (p *Program) awaits(i, k uint32) bool {
	waiting, other := &p.Ops[i], &p.Ops[k]
	root := p.Instances[waiting.Match].Root
	switch DataPatternOf(waiting.Collective()) {
	case FromRoot:
		return other.Peer == root
	case ToRoot:
		return waiting.Peer == root
	case FromLower:
		return other.Peer < waiting.Peer
	}
	return true
}

// participation is the collectives of one rank on one communicator.
type participation struct {
	comm     int32
	ops      uint32 // number of ops
	position int32  // position of the rank in the communicator
	first    uint32 // number of the communicator's first instance
}

// cursor counts a rank's collectives per communicator.
type cursor struct {
	participations []participation // in order of first use
	index          []int32         // by communicator: index in participations plus 1; 0: none
}

// of returns the participation in one of n communicators. The pointer is valid until the next call.
func (c *cursor) of(comm int32, n int) *participation {
	if c.index == nil {
		c.index = make([]int32, n)
	}
	if c.index[comm] == 0 {
		c.participations = append(c.participations, participation{comm: comm})
		c.index[comm] = int32(len(c.participations))
	}
	return &c.participations[c.index[comm]-1]
}

func (c *cursor) reset() {
	for i := range c.participations {
		c.index[c.participations[i].comm] = 0
	}
	c.participations = c.participations[:0]
}

// collectives counts the collectives of a tile. Until all ranks are compiled, Op.Match is the communicator and Op.Peer
// the root's rank.
func (c *rankCompiler) collectives(t []Op, first int) error {
	for i := range t {
		if t[i].Flags&IsColl != IsColl {
			continue
		}
		comm := c.r.Comm.At(first + i)
		if uint32(comm) >= uint32(c.comms) {
			return c.fail(first+i, fmt.Sprintf("is a collective of communicator %d, expected one of the trace's %d",
				comm, c.comms))
		}
		t[i].Match = uint32(comm)
		c.cursor.of(comm, c.comms).ops++
	}
	return nil
}

// participate stores the rank's counts.
func (c *rankCompiler) participate() {
	if n := len(c.cursor.participations); n > 0 {
		c.p.participations[c.rank] = append(make([]participation, 0, n), c.cursor.participations...)
		c.cursor.reset()
	}
}

// linkCollectives assigns instances to the collectives of a program after all ranks are compiled. It returns an error
// if the ranks of a communicator disagree on the number of collectives, or on the kind or root of one. It does not
// compare sizes, since valid sizes depend on the algorithm.
func (p *Program) linkCollectives(comms []dag.Comm) error {
	if err := p.numberInstances(comms); err != nil || len(p.Instances) == 0 {
		return err
	}
	roots := make([]int32, len(p.Instances)) // by instance: rank of the root
	err := p.eachCollective(len(comms), func(q *participation) bool { return q.position == 0 },
		func(q *participation, k uint32, op *Op) error {
			if q.position == 0 {
				in := &p.Instances[k]
				in.Kind = op.Collective()
				if in.Kind.Rooted() {
					if in.Root, roots[k] = -1, op.Peer; op.Peer == dag.UnknownRoot {
						in.Root = 0
					}
				}
			}
			return nil
		})
	if err != nil {
		return err
	}
	err = p.eachCollective(len(comms), func(*participation) bool { return true },
		func(q *participation, k uint32, op *Op) error {
			in := &p.Instances[k]
			if kind := op.Collective(); kind != in.Kind {
				return p.differs(q, k, op, kind.String(), in.Kind.String())
			}
			if in.Kind.Rooted() {
				if op.Peer != roots[k] {
					return p.differs(q, k, op, fmt.Sprintf("a %s with root %d", in.Kind, op.Peer),
						fmt.Sprintf("root %d", roots[k]))
				}
				if op.Rank == uint32(roots[k]) {
					in.Root = q.position
				}
			}
			op.Peer, op.Match = q.position, k
			return nil
		})
	if err != nil {
		return err
	}
	for k := range p.Instances {
		if in := &p.Instances[k]; in.Root < 0 {
			return fmt.Errorf("the root of a %s of communicator %d is rank %d, which is no member", in.Kind,
				in.Comm, roots[k])
		}
	}
	p.participations = nil
	return nil
}

// numberInstances completes the participations and creates the instances, without kinds and roots.
func (p *Program) numberInstances(comms []dag.Comm) error {
	if p.participations == nil {
		return nil
	}
	type part struct {
		rank int
		*participation
	}
	of := make([][]part, len(comms)) // by communicator: its ranks in ascending order
	for rank, participations := range p.participations {
		for i := range participations {
			q := &participations[i]
			of[q.comm] = append(of[q.comm], part{rank, q})
		}
	}
	byRank := make([]*participation, p.Ranks())
	for c, parts := range of {
		if len(parts) == 0 {
			continue
		}
		if err := comms[c].Check(p.Ranks()); err != nil {
			return fmt.Errorf("communicator %d: %w", c, err)
		}
		for _, q := range parts {
			byRank[q.rank] = q.participation
		}
		usual, members := parts[0].ops, comms[c].Members()
		for position, rank := range members {
			q := byRank[rank]
			if q == nil {
				return fmt.Errorf("rank %d has no collective of communicator %d, expected %d as rank %d has", rank, c,
					usual, parts[0].rank)
			}
			if q.ops != usual {
				return fmt.Errorf("rank %d has %d collectives of communicator %d, expected %d as rank %d has", rank,
					q.ops, c, usual, parts[0].rank)
			}
			q.position, q.first = int32(position), uint32(len(p.Instances))
			byRank[rank] = nil
		}
		for _, q := range parts {
			if byRank[q.rank] != nil {
				return fmt.Errorf("rank %d has a collective of communicator %d, of which it is no member", q.rank, c)
			}
		}
		for range usual {
			p.Instances = append(p.Instances, Instance{Comm: int32(c), Size: int32(len(members))})
		}
	}
	return nil
}

// eachCollective calls visit with the participation, instance number and op of every collective op of the wanted
// participations. It visits ranks concurrently and the ops of a rank in order.
func (p *Program) eachCollective(comms int, wanted func(q *participation) bool,
	visit func(q *participation, k uint32, op *Op) error) error {
	type state struct {
		at   []*participation // by communicator
		next []uint32
	}
	start := func() state { return state{make([]*participation, comms), make([]uint32, comms)} }
	_, err := par.EachWith(p.Ranks(), start, func(s state, rank int) error {
		at, next := s.at, s.next
		participations, some := p.participations[rank], false
		for i := range participations {
			q := &participations[i]
			at[q.comm], next[q.comm] = q, q.first
			some = some || wanted(q)
		}
		if !some {
			return nil
		}
		ops := p.Ops[p.Start[rank]:p.Start[rank+1]]
		for i := range ops {
			op := &ops[i]
			if op.Flags&IsColl == IsColl {
				comm := op.Match
				if err := visit(at[comm], next[comm], op); err != nil {
					return err
				}
				next[comm]++
			}
		}
		return nil
	})
	return err
}

// differs returns the error for a collective op that disagrees with the op of the rank at position 0.
func (p *Program) differs(q *participation, k uint32, op *Op, found, expected string) error {
	for i := p.Start[op.Rank]; ; i++ {
		if &p.Ops[i] == op {
			return &NotCompiledError{Rank: int(op.Rank), Op: p.Index(i), Kind: dag.Coll,
				Why: fmt.Sprintf("is collective %d of communicator %d, %s, expected %s as the first member has",
					k-q.first, q.comm, found, expected)}
		}
	}
}
