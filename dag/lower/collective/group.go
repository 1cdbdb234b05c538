package collective

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// group maps positions in a communicator to ranks and ranks to positions.
type group struct {
	size    int
	single  dag.Range // the members, if ordered is nil
	ordered []int32   // rank of each position
	sorted  []int32   // positions in ascending order of rank
}

func newGroup(c *dag.Comm, ranks int) (*group, error) {
	if err := c.Check(ranks); err != nil {
		return nil, err
	}
	if len(c.Ranges) == 1 {
		return &group{size: c.Size(), single: c.Ranges[0]}, nil
	}
	g := &group{size: c.Size(), ordered: c.Members()}
	g.sorted = make([]int32, g.size)
	for i := range g.sorted {
		g.sorted[i] = int32(i)
	}
	slices.SortFunc(g.sorted, func(a, b int32) int { return int(g.ordered[a]) - int(g.ordered[b]) })
	return g, nil
}

// rank returns the rank at a position.
func (g *group) rank(position int) int32 {
	if g.ordered != nil {
		return g.ordered[position]
	}
	return g.single.First + int32(position)*g.single.Stride
}

// position returns the position of a rank, and whether it is a member.
func (g *group) position(rank int32) (int, bool) {
	if g.ordered != nil {
		i, found := slices.BinarySearchFunc(g.sorted, rank, func(p, rank int32) int {
			return int(g.ordered[p]) - int(rank)
		})
		if !found {
			return 0, false
		}
		return int(g.sorted[i]), true
	}
	if g.single.Count == 1 {
		return 0, rank == g.single.First
	}
	distance := int64(rank) - int64(g.single.First)
	stride := int64(g.single.Stride)
	position := distance / stride
	if distance%stride != 0 || position < 0 || position >= int64(g.single.Count) {
		return 0, false
	}
	return int(position), true
}
