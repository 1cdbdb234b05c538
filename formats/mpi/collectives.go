// This file reads collectives.

package mpi

import (
	"fmt"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// collective reads a rank's part in a collective.
func (r *rankReader) collective(c *call, f *fields, at span) error {
	comm, err := r.communicator(f)
	if err != nil {
		return err
	}
	op := dag.Op{Kind: dag.Coll, Subkind: c.kind, Comm: comm}
	part := participation{r: r, f: f}
	if part.setSizes(&op); part.err != nil {
		return part.err
	}
	if c.later {
		r.startRequest(f.request, &op, at)
		return nil
	}
	r.closeGap(at.start)
	i := r.add(&op, at)
	r.after.clear()
	r.after.ends = append(r.after.ends, i)
	r.leave(at)
	return nil
}

// participation is a part in a collective during the parsing of its sizes. After an error its methods return 0.
type participation struct {
	r   *rankReader
	f   *fields
	err error
}

// setSizes sets the root and the sizes as defined in docs/reference/lowering.md. It ignores arguments without a
// meaning at this rank, which may have any value. MPI requires that a member sends itself as many bytes as it receives,
// so that the sizes of one side suffice; those of the other have no meaning if a buffer is MPI_IN_PLACE, whose value
// depends on the library.
func (p *participation) setSizes(op *dag.Op) {
	n, size := &p.f.numbers, &p.f.sizes
	switch op.Subkind {
	case dag.Bcast:
		if p.root(op, n[1]) {
			op.Bytes = p.block(n[0], size[0])
		} else {
			op.RecvBytes = p.block(n[0], size[0])
		}
	case dag.Reduce:
		op.Bytes = p.block(n[0], size[0])
		if p.root(op, n[1]) {
			op.RecvBytes = op.Bytes
		}
		p.element(op, size[0])
	case dag.Allreduce:
		op.Bytes = p.block(n[0], size[0])
		p.element(op, size[0])
	case dag.Scan, dag.Exscan:
		op.Bytes = p.block(n[0], size[0])
	case dag.Gather:
		if p.root(op, n[2]) {
			op.Bytes = p.block(n[1], size[1])
			op.RecvBytes = p.all(op.Bytes)
		} else {
			op.Bytes = p.block(n[0], size[0])
		}
	case dag.Gatherv:
		if p.root(op, n[1]) {
			op.RecvBytes, op.Bytes = p.blocks(0, size[1])
		} else {
			op.Bytes = p.block(n[0], size[0])
		}
	case dag.Scatter:
		if p.root(op, n[2]) {
			op.RecvBytes = p.block(n[0], size[0])
			op.Bytes = p.all(op.RecvBytes)
		} else {
			op.RecvBytes = p.block(n[1], size[1])
		}
	case dag.Scatterv:
		if p.root(op, n[1]) {
			op.Bytes, op.RecvBytes = p.blocks(0, size[0])
		} else {
			op.RecvBytes = p.block(n[0], size[1])
		}
	case dag.Allgather:
		op.Bytes = p.block(n[1], size[1])
		op.RecvBytes = p.all(op.Bytes)
	case dag.Allgatherv:
		op.RecvBytes, op.Bytes = p.blocks(0, size[1])
		p.element(op, size[1])
	case dag.Alltoall:
		op.Bytes = p.all(p.block(n[1], size[1]))
		op.RecvBytes = op.Bytes
	case dag.Alltoallv:
		inPlace := isInPlace(p.f.address)
		op.RecvBytes, _ = p.blocks(2, size[1])
		op.Bytes = op.RecvBytes
		if !inPlace {
			op.Bytes, _ = p.blocks(0, size[0])
		}
		p.counts(op, inPlace)
	case dag.ReduceScatter:
		if p.f.arrays[0] != nil {
			op.Bytes, op.RecvBytes = p.blocks(0, size[0])
		} else {
			op.RecvBytes = p.block(n[0], size[0])
			op.Bytes = p.all(op.RecvBytes)
		}
		p.element(op, size[0])
	}
}

// element keeps the size of an element other than the 8 bytes that readers of the trace assume. MPI libraries choose
// the algorithm of an allgatherv or a reduce-scatter by the number of elements, and divide the vector of a reduction
// into parts of whole elements.
func (p *participation) element(op *dag.Op, size int64) {
	if p.err == nil && size > 0 && size != 8 {
		op.Attrs = attr.WithElement(op.Attrs, size)
	}
}

// counts keeps the bytes by partner of an alltoallv unless they are all equal.
func (p *participation) counts(op *dag.Op, inPlace bool) {
	if p.err != nil {
		return
	}
	list := func(array []byte, size int64) (bytes []int64) {
		numbers := parser{b: array}
		for numbers.p < len(array) { // sumArray has checked the array
			bytes = append(bytes, numbers.number()*size)
			numbers.p++
		}
		return bytes
	}
	c := attr.Counts{Recv: list(p.f.arrays[2], p.f.sizes[1])}
	c.Send = c.Recv
	if !inPlace {
		c.Send = list(p.f.arrays[0], p.f.sizes[0])
	}
	if !c.Even() {
		op.Attrs = attr.WithCounts(op.Attrs, &c)
	}
}

// isInPlace reports whether a buffer is MPI_IN_PLACE of a C program: 1 in Open MPI, -1 in MPICH, -222 in SMPI.
func isInPlace(address uint64) bool {
	switch int64(address) {
	case 1, -1, 1<<32 - 1, smpiInPlace:
		return true
	}
	return false
}

// root sets the root and reports whether it is this rank.
func (p *participation) root(op *dag.Op, value int64) bool {
	members := int64(p.f.comm.size)
	if value < 0 || value >= members {
		p.fail(fmt.Sprintf("a root in 0..%d", members-1), strconv.FormatInt(value, 10))
		return false
	}
	op.Peer = int32(value)
	return value == int64(p.f.comm.rank)
}

func (p *participation) fail(expected, found string) {
	if p.err == nil {
		p.err = p.r.fail(inValue, expected, found)
	}
}

// block returns the size of count items.
func (p *participation) block(count, size int64) int64 {
	if p.err != nil {
		return 0
	}
	bytes, err := p.r.product(count, size)
	p.err = err
	return bytes
}

// all returns the total size of one block per member.
func (p *participation) all(bytes int64) int64 {
	return p.block(int64(p.f.comm.size), bytes)
}

// blocks returns the total size of the k-th array's blocks, and the size of this rank's block.
func (p *participation) blocks(k int, size int64) (all, own int64) {
	sum, mine, n, err := sumArray(p.f.arrays[k], int(p.f.comm.rank))
	switch {
	case err != nil:
		p.fail(err.Error(), strconv.Quote(excerpt(p.f.arrays[k])))
	case n != int(p.f.comm.size):
		p.fail(fmt.Sprintf("%d counts, one for each member of the communicator", p.f.comm.size), strconv.Itoa(n))
	}
	return p.block(sum, size), p.block(mine, size)
}
