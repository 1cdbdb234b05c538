// This file has the flag that selects ranks.

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rankSet is a set of ranks, as a flag: "3", "0,4-7". The empty set, the flag not being given, stands for all.
type rankSet []rankRange

type rankRange struct{ first, last int }

// Set adds ranks to the set.
func (s *rankSet) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 31)
		last, err2 := strconv.ParseUint(high, 10, 31)
		if err != nil || err2 != nil || last < first {
			return fmt.Errorf("expected ranks such as 3 or 0,4-7, found %q", part)
		}
		*s = append(*s, rankRange{int(first), int(last)})
	}
	return nil
}

// String returns the ranks as Set takes them.
func (s *rankSet) String() string {
	parts := make([]string, len(*s))
	for i, r := range *s {
		parts[i] = strconv.Itoa(r.first)
		if r.last > r.first {
			parts[i] += "-" + strconv.Itoa(r.last)
		}
	}
	return strings.Join(parts, ",")
}

// Type names the kind of value in the help.
func (s *rankSet) Type() string { return "ranks" }

// of returns the ranks of the set, ascending, for a trace of n ranks, or an error if one of them does not exist.
func (s rankSet) of(n int) ([]int, error) {
	if len(s) == 0 {
		s = rankSet{{0, n - 1}}
	}
	var ranks []int
	for _, r := range s {
		if r.last >= n {
			return nil, fmt.Errorf("there is no rank %d, the trace has %d", r.last, n)
		}
		for rank := r.first; rank <= r.last; rank++ {
			ranks = append(ranks, rank)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}
