package nccl

// cut is a chunk of data in the pieces that one message carries each.
type cut struct {
	call     *call
	elements int64
	bytes    []int64 // of each message
	data     []int64 // what of these is data
}

// begin has the pieces be those of a call.
func (c *cut) begin(of *call) {
	if c.call != of {
		c.call, c.elements = of, -1
	}
}

// of cuts so many elements. Their number may be below 0: NCCL has chunks that are empty, for which the protocols with flags
// exchange a line all the same, and the protocol Simple nothing.
func (c *cut) of(elements int64) {
	elements = max(elements, 0)
	if elements == c.elements {
		return
	}
	c.elements = elements
	c.bytes, c.data = c.bytes[:0], c.data[:0]
	t := c.call.typeSize
	switch c.call.protocol {
	case ll:
		c.add(lineBytes(elements*t), elements*t)
	case ll128:
		c.add((elements*t+1919)/1920*2048, elements*t)
	default:
		// As ATLAHS does, the least slice is step_size * slice_steps / 32 elements, where NCCL has bytes.
		size := max((elements+16*c.call.slices-1)/(16*c.call.slices)*16, c.call.slice)
		for k := int64(0); k < c.call.slices && elements > 0; k++ {
			size = min(size, elements)
			c.add(size*t, size*t)
			elements -= size
		}
	}
}

func (c *cut) add(bytes, data int64) {
	c.bytes, c.data = append(c.bytes, max(bytes, 1)), append(c.data, data)
}

// lineBytes returns what so many bytes are with the flags of the protocol LL, of which every 8 bytes have 8.
func lineBytes(data int64) int64 { return (data + 7) / 8 * 16 }
