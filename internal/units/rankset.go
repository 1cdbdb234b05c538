package units

import (
	"fmt"
	"slices"
)

// RankSet is a flag with a set of ranks: "3", "0,4-7", "0..63". The empty set, the default, selects all ranks.
type RankSet Numbers

// Set adds ranks to the set.
func (s *RankSet) Set(text string) error {
	ranks, err := ParseNumbers(text)
	*s = append(*s, ranks...)
	return err
}

// String returns the ranks in the syntax of Set.
func (s *RankSet) String() string {
	return Numbers(*s).String()
}

// Type returns the placeholder in help.
func (s *RankSet) Type() string { return "ranks" }

// Of returns the ranks of the set in ascending order for a trace of n ranks, or an error if one of them does not exist.
func (s RankSet) Of(n int) ([]int, error) {
	if len(s) == 0 {
		s = RankSet{{First: 0, Last: int64(n) - 1}}
	}
	var ranks []int
	for _, r := range s {
		if r.Last >= int64(n) {
			return nil, fmt.Errorf("there is no rank %d, the trace has %d", r.Last, n)
		}
		for rank := r.First; rank <= r.Last; rank++ {
			ranks = append(ranks, int(rank))
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}
