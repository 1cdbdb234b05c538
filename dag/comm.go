package dag

import (
	"fmt"
	"slices"
)

// Range is a strided sequence of Count ranks: First, First+Stride, ... Stride may be negative; it is ignored if Count
// is 1.
type Range struct {
	First, Stride, Count int32
}

// Comm is a communicator: an ordered group of ranks.
type Comm struct {
	Name   string // optional
	Ranges []Range

	// Undefined marks a communicator that ops name and the input does not define. Its members are the ranks that use
	// it. Stores keep it in the attributes of the trace (attr.ChakraGroups).
	Undefined bool
}

// World returns the communicator of all n ranks of a trace.
func World(n int) Comm {
	if n == 0 {
		return Comm{}
	}
	return Comm{Ranges: []Range{{First: 0, Stride: 1, Count: int32(n)}}}
}

// NewComm returns a communicator of the given ranks, in this order. A single greedy pass finds its ranges.
func NewComm(name string, ranks []int32) Comm {
	c := Comm{Name: name}
	for _, r := range ranks {
		if n := len(c.Ranges); n > 0 {
			last := &c.Ranges[n-1]
			if last.Count == 1 {
				last.Stride, last.Count = r-last.First, 2
				continue
			}
			if int64(last.First)+int64(last.Stride)*int64(last.Count) == int64(r) {
				last.Count++
				continue
			}
		}
		c.Ranges = append(c.Ranges, Range{First: r, Stride: 1, Count: 1})
	}
	return c
}

// With returns a copy of the communicator with other members.
func (c *Comm) With(members []int32) Comm {
	out := NewComm(c.Name, members)
	out.Undefined = c.Undefined
	return out
}

// Size returns the number of ranks of the communicator.
func (c *Comm) Size() int {
	n := 0
	for _, r := range c.Ranges {
		n += int(max(0, r.Count))
	}
	return n
}

// Members returns the ranks of the communicator in order. Call Check first if the communicator comes from an
// untrusted input: a range of twelve bytes can describe two thousand million ranks.
func (c *Comm) Members() []int32 {
	members := make([]int32, 0, c.Size())
	for _, r := range c.Ranges {
		for k := range r.Count {
			members = append(members, r.First+k*r.Stride)
		}
	}
	return members
}

// Contains reports whether the rank is a member of the communicator.
func (c *Comm) Contains(rank int32) bool {
	for _, r := range c.Ranges {
		if r.contains(rank) {
			return true
		}
	}
	return false
}

func (r Range) contains(rank int32) bool {
	distance, stride := int64(rank)-int64(r.First), int64(r.Stride)
	switch {
	case r.Count < 1:
		return false
	case distance == 0:
		return true
	case stride == 0 || distance%stride != 0:
		return false
	}
	k := distance / stride
	return k > 0 && k < int64(r.Count)
}

// Equal reports whether both communicators have the same name, ranks and order.
func (c *Comm) Equal(d *Comm) bool {
	return c.Name == d.Name && slices.Equal(c.Members(), d.Members())
}

// Check returns an error unless the communicator is an ordered set of ranks in 0..n-1. Its time and memory do not
// grow with the sizes that the ranges claim.
func (c *Comm) Check(n int) error {
	size := int64(0)
	for _, r := range c.Ranges {
		last := int64(r.First) + int64(r.Stride)*(int64(r.Count)-1)
		if r.Count < 1 || r.First < 0 || int64(r.First) >= int64(n) || last < 0 || last >= int64(n) {
			return fmt.Errorf("range of %d ranks from %d in steps of %d, expected ranks in 0..%d", r.Count, r.First,
				r.Stride, n-1)
		}
		if size += int64(r.Count); size > int64(n) {
			return fmt.Errorf("more members than the %d ranks of the trace", n)
		}
	}
	if rank, twice := c.duplicate(size); twice {
		return fmt.Errorf("rank %d is listed twice", rank)
	}
	return nil
}

// duplicate returns a rank that the communicator contains twice, if there is one. The ranges must be valid and
// contain size ranks in total. It compares all pairs of ranges or marks all ranks, whichever is cheaper, so a few
// ranges that claim many ranks cost little.
func (c *Comm) duplicate(size int64) (int32, bool) {
	for _, r := range c.Ranges {
		if r.Stride == 0 && r.Count > 1 {
			return r.First, true
		}
	}
	if ranges := int64(len(c.Ranges)); ranges*ranges > size {
		members := c.Members()
		slices.Sort(members)
		for i := 1; i < len(members); i++ {
			if members[i] == members[i-1] {
				return members[i], true
			}
		}
		return 0, false
	}
	for i, r := range c.Ranges {
		for _, q := range c.Ranges[:i] {
			if rank, ok := r.common(q); ok {
				return rank, true
			}
		}
	}
	return 0, false
}

// common returns the lowest rank that is in both ranges, if there is one.
func (r Range) common(q Range) (int32, bool) {
	rLow, rHigh, rStep := r.ascending()
	qLow, qHigh, qStep := q.ascending()
	low, high := max(rLow, qLow), min(rHigh, qHigh)
	// Except for the bounds, the common ranks are rLow + x rStep for each x with rLow + x rStep = qLow modulo qStep.
	gcd, inverse := invert(rStep%qStep, qStep)
	if (qLow-rLow)%gcd != 0 {
		return 0, false
	}
	period := qStep / gcd
	x := (qLow - rLow) / gcd % period * inverse % period
	rank, step := rLow+x*rStep, rStep*period
	if rank < low {
		rank += (low - rank + step - 1) / step * step
	}
	return int32(rank), rank <= high
}

// ascending returns the lowest and the highest rank of the range, and the difference of neighbors, at least 1.
func (r Range) ascending() (low, high, step int64) {
	first, last := int64(r.First), int64(r.First)+int64(r.Stride)*(int64(r.Count)-1)
	return min(first, last), max(first, last), max(int64(r.Stride), -int64(r.Stride), 1)
}

// invert returns the greatest common divisor of a and m, and b with a*b = gcd modulo m, -m < b < m.
func invert(a, m int64) (gcd, b int64) {
	x, y, u, v := a, m, int64(1), int64(0) // a*u = x and a*v = y modulo m
	for x != 0 {
		q := y / x
		x, y, u, v = y-q*x, x, v-q*u, u
	}
	return y, v
}

// isWorld reports whether c is the ranks 0..n-1 in this order.
func (c *Comm) isWorld(n int) bool {
	next := int64(0)
	for _, r := range c.Ranges {
		if int64(r.First) != next || r.Count < 1 || r.Stride != 1 && r.Count > 1 {
			return false
		}
		next += int64(r.Count)
	}
	return next == int64(n)
}
