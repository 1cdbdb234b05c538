// This file has the flag that selects ranks.

package tracecat

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/internal/units"
)

// rankSet is a set of ranks, as a flag: "3", "0,4-7". The empty set, the flag not being given, stands for all.
type rankSet units.Numbers

// Set adds ranks to the set.
func (s *rankSet) Set(text string) error {
	ranks, err := units.ParseNumbers(text)
	*s = append(*s, ranks...)
	return err
}

// String returns the ranks as Set takes them.
func (s *rankSet) String() string {
	return units.Numbers(*s).String()
}

// Type names the kind of value in the help.
func (s *rankSet) Type() string { return "ranks" }

// of returns the ranks of the set, ascending, for a trace of n ranks, or an error if one of them does not exist.
func (s rankSet) of(n int) ([]int, error) {
	if len(s) == 0 {
		s = rankSet{{First: 0, Last: int64(n) - 1}}
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
