package measure

import (
	"cmp"
	"slices"
)

// intervals is a set of intervals. Before unite they may overlap, and few of them are out of order.
type intervals struct {
	all     []interval
	mixed   bool // all is not sorted or has overlaps
	compact int  // number of intervals at which add unites them
}

type interval struct{ start, end uint64 }

// reordered is the largest number of intervals that add moves to insert one in order. Reports of a run are nearly in
// order.
const reordered = 8

// add adds an interval. It ignores an interval that ends before it starts, which occurs with clocks that wrap around.
func (s *intervals) add(start, end uint64) {
	if start >= end {
		return
	}
	n := len(s.all)
	if n == 0 || start > s.all[n-1].end {
		s.append(interval{start, end})
		return
	}
	if s.mixed {
		if last := &s.all[n-1]; last.start <= start {
			last.end = max(last.end, end)
			return
		}
		s.append(interval{start, end})
		return
	}
	// The new interval unites with those from first on that it touches.
	first := n
	for first > 0 && s.all[first-1].end >= start {
		if first--; n-first > reordered {
			s.mixed = true
			s.append(interval{start, end})
			return
		}
	}
	last := first
	for last < n && s.all[last].start <= end {
		start, end = min(start, s.all[last].start), max(end, s.all[last].end)
		last++
	}
	if first == last {
		s.all = slices.Insert(s.all, first, interval{start, end})
		return
	}
	s.all[first] = interval{start, end}
	s.all = slices.Delete(s.all, first+1, last)
}

// fewIntervals is the number of intervals that are kept without uniting them. Above it, memory suffices for twice the
// number of disjoint intervals.
const fewIntervals = 64

func (s *intervals) append(i interval) {
	if s.mixed && len(s.all) >= max(s.compact, fewIntervals) {
		s.unite()
		s.compact = 2 * len(s.all)
		s.mixed = len(s.all) > 0 && i.start <= s.all[len(s.all)-1].end
	}
	s.all = append(s.all, i)
}

// unite merges overlapping intervals and sorts them.
func (s *intervals) unite() {
	if !s.mixed {
		return
	}
	s.mixed = false
	slices.SortFunc(s.all, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	united := s.all[:0]
	for _, i := range s.all {
		if n := len(united); n > 0 && i.start <= united[n-1].end {
			united[n-1].end = max(united[n-1].end, i.end)
		} else {
			united = append(united, i)
		}
	}
	s.all = united
}

// beside returns the length of the union, and of its part outside the other union.
func (s *intervals) beside(other *intervals) (all, outside uint64) {
	s.unite()
	other.unite()
	covers := other.all
	for _, i := range s.all {
		all += i.end - i.start
		outside += i.end - i.start
		for len(covers) > 0 && covers[0].end <= i.start {
			covers = covers[1:]
		}
		for _, c := range covers {
			if c.start >= i.end {
				break
			}
			outside -= min(c.end, i.end) - max(c.start, i.start)
		}
	}
	return all, outside
}
