// This file reads sets of numbers, such as ranks and nodes.

package cli

import (
	"fmt"
	"strconv"
	"strings"
)

// Numbers are numbers of ranks or nodes, in order.
type Numbers []NumberRange

// NumberRange is the numbers First to Last.
type NumberRange struct{ First, Last int64 }

// ParseNumbers reads numbers from 0 to 2^31-1 such as 3 or 0-7,12.
func ParseNumbers(text string) (set Numbers, err error) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 31)
		last, err2 := strconv.ParseUint(high, 10, 31)
		if err != nil || err2 != nil || last < first {
			return nil, fmt.Errorf("expected numbers such as 3 or 0-7,12, found %.40q", part)
		}
		set = append(set, NumberRange{int64(first), int64(last)})
	}
	return set, nil
}

// size returns how many numbers there are.
func (s Numbers) size() (n int64) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// all returns the numbers. There must be few enough of them.
func (s Numbers) all() []int32 {
	all := make([]int32, 0, s.size())
	for _, r := range s {
		for n := r.First; n <= r.Last; n++ {
			all = append(all, int32(n))
		}
	}
	return all
}
