package dag

import "slices"

// Range is a strided run of ranks: First, First+Stride, ..., Count of them. Stride may be negative, and is ignored
// where Count is 1.
type Range struct {
	First, Stride, Count int32
}

// Comm is a communicator: an ordered group of ranks. The order is that of the ranks within the communicator.
type Comm struct {
	Name   string // optional
	Ranges []Range
}

// World returns the communicator of all ranks of a trace with n ranks.
func World(n int) Comm {
	if n == 0 {
		return Comm{}
	}
	return Comm{Ranges: []Range{{First: 0, Stride: 1, Count: int32(n)}}}
}

// NewComm returns the communicator of the given ranks, in their order, as few ranges as a single pass finds.
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

// Size returns the number of ranks of the communicator.
func (c *Comm) Size() int {
	n := 0
	for _, r := range c.Ranges {
		n += int(r.Count)
	}
	return n
}

// Members returns the ranks of the communicator in their order.
func (c *Comm) Members() []int32 {
	members := make([]int32, 0, c.Size())
	for _, r := range c.Ranges {
		for k := range r.Count {
			members = append(members, r.First+k*r.Stride)
		}
	}
	return members
}

// Equal reports whether both communicators have the same name, ranks and order.
func (c *Comm) Equal(d *Comm) bool {
	return c.Name == d.Name && slices.Equal(c.Members(), d.Members())
}

// problem returns what is wrong with the communicator in a trace of n ranks, "" if nothing is.
func (c *Comm) problem(n int) string {
	size := int64(0)
	for _, r := range c.Ranges {
		last := int64(r.First) + int64(r.Stride)*(int64(r.Count)-1)
		if r.Count < 1 || r.First < 0 || int64(r.First) >= int64(n) || last < 0 || last >= int64(n) {
			return "has a range outside the ranks of the trace"
		}
		if size += int64(r.Count); size > int64(n) {
			return "has more members than the trace has ranks"
		}
	}
	if c.isWorld(n) {
		return ""
	}
	seen := make(map[int32]bool, size)
	for _, m := range c.Members() {
		if seen[m] {
			return "names a rank twice"
		}
		seen[m] = true
	}
	return ""
}

// isWorld reports whether c is written as the single range of all n ranks.
func (c *Comm) isWorld(n int) bool {
	return len(c.Ranges) == 1 && c.Ranges[0] == Range{First: 0, Stride: 1, Count: int32(n)}
}
