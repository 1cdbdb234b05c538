package lower

import "github.com/tracedag/tracedag/dag"

// Call is the part of one member in one instance of a collective. What Bytes and Sizes mean for each collective is
// the table in docs/lowering.md.
type Call struct {
	Kind    dag.Subkind
	Members int     // size of the communicator
	Me      int     // position of this member in the communicator
	Root    int     // position of the root, where there is one
	Bytes   int64   // size of the instance where all members have the same, at most the largest int64 / Members
	Sizes   []int64 // size of every member, where they have their own; nil otherwise
}

// relative returns the member's position as counted from the root.
func (c *Call) relative() int {
	return (c.Me - c.Root + c.Members) % c.Members
}

// absolute is the inverse of relative for any member v.
func (c *Call) absolute(v int) int {
	return (v + c.Root) % c.Members
}

// block returns the size of what member i contributes to a gather or an allgather, or gets from a scatter or a
// reduce-scatter.
func (c *Call) block(i int) int64 {
	switch {
	case c.Sizes != nil:
		return c.Sizes[i]
	case c.cut():
		return part(c.Bytes, c.Members, i)
	}
	return c.Bytes
}

// blocks returns the size of the blocks of count <= Members members from position first on; after the last member
// comes the first.
func (c *Call) blocks(first, count int) int64 {
	switch {
	case c.Sizes != nil:
		sum := int64(0)
		for k := range count {
			sum += c.Sizes[(first+k)%c.Members]
		}
		return sum
	case !c.cut():
		return int64(count) * c.Bytes
	case first+count <= c.Members:
		return c.start(first+count) - c.start(first)
	}
	return c.Bytes - c.start(first) + c.start(first+count-c.Members)
}

// cut reports whether Bytes is the size of the whole, of which every member has a part.
func (c *Call) cut() bool {
	return c.Kind == dag.Scatter || c.Kind == dag.ReduceScatter
}

// start returns where part i of Bytes begins.
func (c *Call) start(i int) int64 {
	n := int64(c.Members)
	return int64(i)*(c.Bytes/n) + min(int64(i), c.Bytes%n)
}

// share returns how much member i sends to member j in an all-to-all.
func (c *Call) share(i, j int) int64 {
	if c.Sizes != nil {
		return part(c.Sizes[i], c.Members, j)
	}
	return part(c.Bytes, c.Members, j)
}

// part returns the size of part i of total bytes cut into n parts as equal as can be, the larger ones first.
func part(total int64, n, i int) int64 {
	size := total / int64(n)
	if int64(i) < total%int64(n) {
		size++
	}
	return size
}
