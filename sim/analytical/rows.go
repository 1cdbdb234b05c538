package analytical

// A collective of all NPUs that involves some dimensions runs apart in each row: the NPUs whose addresses differ in
// these dimensions only. Rows issue their collectives independently of each other.

// row is the NPUs that take part in a collective. The zero row is all NPUs.
type row struct {
	dims  uint32 // one bit per dimension that the collective involves; 0: all
	first int32  // lowest NPU
}

// rowOf returns the row of an NPU for a collective on the given dimensions, one bit per dimension; 0 means all.
func (c *collectives) rowOf(npu int32, dims uint32) row {
	if dims &= c.all; dims == 0 || dims == c.all {
		return row{}
	}
	first, stride := npu, int32(1)
	for i, n := range c.sizes {
		if dims>>i&1 != 0 {
			first -= npu / stride % n * stride
		}
		stride *= n
	}
	return row{dims, first}
}

// inRow reports whether two NPUs are in one row of the given dimensions, one bit per dimension; 0 means all.
func (c *collectives) inRow(a, b int32, dims uint32) bool {
	return c.rowOf(a, dims) == c.rowOf(b, dims)
}

// members returns the number of NPUs of a row; all is that of the zero row.
func (c *collectives) members(r row, all int) int {
	if r.dims == 0 {
		return all
	}
	count := 1
	for i, n := range c.sizes {
		if r.dims>>i&1 != 0 {
			count *= int(n)
		}
	}
	return count
}

// halve returns the rings, and one bit per ring, of a collective that involves the given dimensions or halves of
// dimensions. A ring of one half has its NPUs only, in the queues of the dimension.
func (e *engine) halve(rings []ring, dims uint32) (halves []ring, involved uint32) {
	bit := 0
	for i, r := range rings {
		half := int32(e.o.Network.inner(r.dim))
		parts := dims >> bit & 1
		bit++
		if half > 0 {
			parts |= dims >> bit & 1 << 1
			bit++
		}
		switch {
		case half == 0 || r.algorithm.One || parts == 3:
		case parts == 1:
			r.n = half
		case parts == 2:
			r.n, r.stride = r.n/half, r.stride*half
		}
		halves = append(halves, r)
		if parts != 0 {
			involved |= 1 << i
		}
	}
	return halves, involved
}
