package collective

import (
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

// Call is the part of one member in one instance of a collective. What Bytes means for each collective is the table in
// docs/lowering.md.
type Call struct {
	Kind    dag.Subkind
	Members int     // size of the communicator
	Me      int     // position of this member in the communicator
	Root    int     // position of the root, where there is one
	Bytes   int64   // size of the instance where all members have the same, at most the largest int64 / Members
	Starts  []int64 // where members have sizes of their own: the sum of those before each, and that of all; else nil
	Nodes   *Nodes  // which members share a node; nil: none

	// The algorithm's parameters, as the choice has them.
	K       int   // radix of a tree, or how many chains
	Segment int64 // size of the messages that the data is cut into; 0: it is not
}

// relative returns the member's position as counted from the root.
func (c *Call) relative() int {
	return (c.Me - c.Root + c.Members) % c.Members
}

// absolute is the inverse of relative for any member v.
func (c *Call) absolute(v int) int {
	if v += c.Root; v >= c.Members {
		v -= c.Members
	}
	return v
}

// whole returns the vector of a bcast, reduce, allreduce or scan.
func (c *Call) whole() span {
	return span{0, c.Bytes}
}

// block returns what member i contributes to a gather or an allgather, or gets from a scatter or a reduce-scatter.
func (c *Call) block(i int) span {
	from := c.offset(i)
	return span{from, c.offset(i+1) - from}
}

// blocks returns the blocks of count <= Members members from position first on; after the last member comes the first.
func (c *Call) blocks(first, count int) span {
	from, last := c.offset(first), first+count
	if last <= c.Members {
		return span{from, c.offset(last) - from}
	}
	return span{from, c.offset(c.Members) - from + c.offset(last-c.Members)}
}

// offset returns where the block of member i begins, for i = Members where all end.
func (c *Call) offset(i int) int64 {
	switch {
	case c.Starts != nil:
		return c.Starts[i]
	case c.cut():
		return start(c.Bytes, c.Members, i)
	}
	return int64(i) * c.Bytes
}

// cut reports whether Bytes is the size of the whole, of which every member has a part.
func (c *Call) cut() bool {
	return c.Kind == dag.Scatter || c.Kind == dag.ReduceScatter
}

// parts returns the parts first to last-1 of the vector, cut into n.
func (c *Call) parts(n, first, last int) span {
	from := start(c.Bytes, n, first)
	return span{from, start(c.Bytes, n, last) - from}
}

// share returns what member i sends to member j in an all-to-all.
func (c *Call) share(i, j int) span {
	own := c.block(i)
	from := start(own.bytes, c.Members, j)
	return span{own.from + from, start(own.bytes, c.Members, j+1) - from}
}

// start returns where part i begins of total bytes cut into n parts as equal as can be, the larger ones first.
func start(total int64, n, i int) int64 {
	return int64(i)*(total/int64(n)) + min(int64(i), total%int64(n))
}

// part returns the size of part i of total bytes cut into n parts as equal as can be, the larger ones first.
func part(total int64, n, i int) int64 {
	return start(total, n, i+1) - start(total, n, i)
}

// maxSegments is how many segments there may be, for the memory that a member's schedule takes.
const maxSegments = 1 << 20

// segments returns how many messages x is cut into, at least one.
func (c *Call) segments(x span) int {
	if c.Segment == 0 || x.bytes <= c.Segment {
		return 1
	}
	return int((x.bytes-1)/c.Segment + 1)
}

// segment returns message i of those that x is cut into.
func (c *Call) segment(x span, i int) span {
	if c.Segment == 0 {
		return x
	}
	before := int64(i) * c.Segment
	return span{x.from + before, min(c.Segment, x.bytes-before)}
}

// floorPower returns the largest power of two that is not above n.
func floorPower(n int) int {
	return 1 << (bits.Len(uint(n)) - 1)
}
