package units

import (
	"fmt"
	"strconv"
	"strings"
)

// Numbers is a list of ranges of rank or node numbers, in the given order.
type Numbers []NumberRange

// NumberRange is the numbers from First to Last (inclusive).
type NumberRange struct{ First, Last int64 }

// ParseNumbers parses numbers from 0 to 2^31-1 such as 3 or 0-7,12. Ranges may also be written 0..7.
func ParseNumbers(text string) (set Numbers, err error) {
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "..")
		if !isRange {
			low, high, isRange = strings.Cut(part, "-")
		}
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

// String formats the numbers as ParseNumbers reads them.
func (s Numbers) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = strconv.FormatInt(r.First, 10)
		if r.Last > r.First {
			parts[i] += "-" + strconv.FormatInt(r.Last, 10)
		}
	}
	return strings.Join(parts, ",")
}

// Len returns the count of numbers. A number in several ranges counts several times.
func (s Numbers) Len() (n int64) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// All returns the numbers. Call Len first: a short text may have 2^31 numbers.
func (s Numbers) All() []int32 {
	all := make([]int32, 0, s.Len())
	for _, r := range s {
		for n := r.First; n <= r.Last; n++ {
			all = append(all, int32(n))
		}
	}
	return all
}
