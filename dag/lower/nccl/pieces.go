package nccl

// cut divides a chunk of data into messages.
type cut struct {
	call     *call
	elements int64
	bytes    []int64 // of each message
	data     []int64 // payload of each message
}

// begin selects the call.
func (c *cut) begin(of *call) {
	if c.call != of {
		c.call, c.elements = of, -1
	}
}

// of divides a chunk of the given number of elements, which may be below 0. For an empty chunk, the protocols LL and
// LL128 exchange one line, and the protocol Simple nothing.
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
		// The minimum slice is step_size * slice_steps / 32 elements as in ATLAHS; NCCL has that many bytes.
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

// lineBytes returns the wire size of data bytes with the protocol LL, which adds 8 bytes of flags to every 8 bytes.
func lineBytes(data int64) int64 { return (data + 7) / 8 * 16 }
