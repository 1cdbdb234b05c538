package pattern

import (
	"fmt"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/permute"
)

// permutations returns the patterns in which every rank sends one message and receives one. The ranks are a ring for
// those that depend on dimensions.
func permutations() (all []Pattern) {
	for _, p := range permute.All() {
		all = append(all, Pattern{p.Name, "to one rank each: " + p.Title, func(q *Params, rank int,
			s *collective.Schedule) error {
			return exchange(&p, q, rank, s)
		}})
	}
	return all
}

// exchange appends the messages of a rank. A rank that is its own target has none.
func exchange(p *permute.Permutation, q *Params, rank int, s *collective.Schedule) error {
	shape := permute.Shape{Hosts: q.Ranks}
	if err := p.Check(&shape); err != nil {
		return fmt.Errorf("ranks: %w", err)
	}
	if to := p.To(&shape, uint32(rank)); int(to) != rank {
		s.Send(int(to), q.Bytes)
		s.Recv(int(p.From(&shape, uint32(rank))), q.Bytes)
	}
	return nil
}
