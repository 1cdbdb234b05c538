// Package collective generates micro-benchmarks of collectives: every rank takes part in one collective, or in several
// in sequence.
//
// docs/reference/generators/collective.md defines the model.
package collective

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Params describe a benchmark.
type Params struct {
	Type dag.Subkind // one of Types

	// Size is the input of each rank; for allgather and gather the contribution of each rank, for bcast and scatter the
	// data of the root; ignored for barrier: 0..2^38 bytes.
	Size int64

	Ranks    int      // 1..2^24
	Group    int      // members of each group; every group runs its own collectives; 0: one group of all ranks
	Stride   int      // distance of neighbours in a group; Ranks must be a multiple of Group * Stride
	Root     int      // bcast, reduce, gather and scatter: index of the root in its group
	Repeat   int      // number of collectives in sequence: 1 or more
	Compute  dag.Time // computation between two of them: 0 or more
	Dims     int32    // network dimensions that take part, bit d for dimension d; 0: all
	Priority int32    // for backends that schedule by it
}

// Default returns an allreduce of 1 GiB on 8 ranks.
func Default() Params {
	return Params{Type: dag.Allreduce, Size: 1 << 30, Ranks: 8, Stride: 1, Repeat: 1}
}

// Types returns the collectives that can be benchmarked: those that one size describes.
func Types() []dag.Subkind {
	return []dag.Subkind{
		dag.Allreduce, dag.Allgather, dag.ReduceScatter, dag.Alltoall, dag.Bcast, dag.Reduce, dag.Gather, dag.Scatter,
		dag.Scan, dag.Exscan, dag.Barrier,
	}
}

// Limits that keep sizes and counts in range.
const (
	maxRanks = 1 << 24
	maxSize  = 1 << 38
)

// stream is the stream of collectives in traces of Chakra's format.
const stream = 2

// NewSource returns the trace of a benchmark.
func NewSource(p Params) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("collective: %w", err)
	}
	m := rankwise.Model{
		Title: fmt.Sprintf("%v of %d bytes on %d ranks", p.Type, p.Size, p.Ranks),
		Ranks: p.Ranks,
		Comms: p.comms(),
		Kinds: []dag.Kind{dag.Coll},
		Count: func(int) (ops, deps int64) {
			ops = int64(p.Repeat)
			if p.Compute > 0 {
				ops += int64(p.Repeat) - 1
			}
			return ops, ops - 1
		},
		Fill: p.fill,
	}
	if p.Group > 0 {
		m.Title += fmt.Sprintf(" in groups of %d", p.Group)
	}
	if p.Compute > 0 && p.Repeat > 1 {
		m.Kinds = []dag.Kind{dag.Calc, dag.Coll}
	}
	s, err := rankwise.NewSource(m)
	if err != nil {
		return nil, fmt.Errorf("collective: %w", err)
	}
	return s, nil
}

// typeNames returns the names of Types with commas between them.
func typeNames() string {
	var names []string
	for _, t := range Types() {
		names = append(names, t.String())
	}
	return strings.Join(names, ", ")
}

func (p *Params) check() error {
	known := false
	for _, t := range Types() {
		known = known || p.Type == t
	}
	switch {
	case !known:
		return fmt.Errorf("type is %q, expected one of %s", p.Type, typeNames())
	case p.Size < 0 || p.Size > maxSize:
		return fmt.Errorf("size is %d, expected 0..%d", p.Size, int64(maxSize))
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return fmt.Errorf("ranks is %d, expected 1..%d", p.Ranks, maxRanks)
	case p.Group < 0 || p.Group > p.Ranks:
		return fmt.Errorf("group is %d, expected 0..%d", p.Group, p.Ranks)
	case p.Stride < 1 || p.Stride > p.Ranks:
		return fmt.Errorf("stride is %d, expected 1..%d", p.Stride, p.Ranks)
	case p.Group == 0 && p.Stride > 1:
		return fmt.Errorf("stride is %d, but there are no groups", p.Stride)
	case p.Group > 0 && p.Ranks%(p.Group*p.Stride) != 0:
		return fmt.Errorf("ranks is %d, expected a multiple of group x stride, %d", p.Ranks, p.Group*p.Stride)
	case p.Root < 0 || p.Root >= p.members():
		return fmt.Errorf("root is %d, expected 0..%d", p.Root, p.members()-1)
	case p.Repeat < 1:
		return fmt.Errorf("repeat is %d, expected 1 or more", p.Repeat)
	case p.Compute < 0:
		return fmt.Errorf("compute time is %v, expected 0 or more", p.Compute)
	case p.Dims < 0:
		return fmt.Errorf("dims is %d, expected a bit mask of 31 dimensions", p.Dims)
	}
	return nil
}

// members returns the number of ranks of a group.
func (p *Params) members() int {
	if p.Group == 0 {
		return p.Ranks
	}
	return p.Group
}

// comms returns all ranks and the groups, in the order of their first ranks.
func (p *Params) comms() []dag.Comm {
	comms := []dag.Comm{dag.World(p.Ranks)}
	if p.Group == 0 {
		return comms
	}
	ranges := make([]dag.Range, p.Ranks/p.Group)
	for g := range ranges {
		ranges[g] = dag.Range{First: p.rank(g, 0), Stride: int32(p.Stride), Count: int32(p.Group)}
		comms = append(comms, dag.Comm{Name: strconv.Itoa(g + 1), Ranges: ranges[g : g+1 : g+1]})
	}
	return comms
}

// rank returns the rank of a member of a group, both from 0.
func (p *Params) rank(group, member int) int32 {
	return int32((group/p.Stride*p.members()+member)*p.Stride + group%p.Stride)
}

// fill appends the ops of a rank.
func (p *Params) fill(rank int, b *dag.RankBuilder) {
	group := rank/(p.members()*p.Stride)*p.Stride + rank%p.Stride
	op := dag.Op{
		Kind: dag.Coll, Subkind: p.Type, Bytes: p.Size, Stream: stream, Dims: p.Dims, Priority: p.Priority,
	}
	if p.Group > 0 {
		op.Comm = int32(group + 1)
	}
	if p.Type.Rooted() {
		op.Peer = p.rank(group, p.Root)
	}
	if p.Type == dag.Barrier || p.Type == dag.Scatter && int(op.Peer) != rank {
		op.Bytes = 0
	}
	last := b.Add(op)
	for range p.Repeat - 1 {
		if p.Compute > 0 {
			last = b.Calc(p.Compute, last)
		}
		last = b.Add(op, last)
	}
}
