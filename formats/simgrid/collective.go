// This file writes the collectives whose lines state the sizes of other ranks.

package simgrid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// collective writes the line of a collective.
func (c *rankWriter) collective(i int, op *dag.Op) {
	n := int64(c.ranks)
	blocks := c.blocks[c.instance]
	c.instance++
	if op.Duration > 0 {
		c.lost.timed++
	}
	if isPlain(op, c.ranks) {
		if c.out == nil && !c.counts {
			return
		}
		line := plainCollective(op, c.ranks)
		if back, err := c.parse(strings.Fields(line)); err == nil && back.op.RecvBytes != op.RecvBytes {
			c.lost.received++
		}
		c.emit(line)
		return
	}
	if len(blocks) != c.ranks {
		c.err = fmt.Errorf("op %d: expected as many collectives on every rank, found %d ranks with this one", i,
			len(blocks))
		return
	}
	if c.out == nil && !c.counts {
		return
	}
	root := fmt.Sprintf(" %d", op.Peer)
	listOf := func(size func(b block) int64, element int64) string {
		var s strings.Builder
		for _, b := range blocks {
			fmt.Fprintf(&s, " %d", size(b)/element)
		}
		return s.String()
	}
	list := func(size func(b block) int64) string { return listOf(size, 1) }
	received := func(b block) int64 { return b.received }
	types := fmt.Sprintf(" %d %d", typeByte, typeByte)
	switch op.Subkind {
	case dag.Gatherv:
		c.emit(fmt.Sprintf("gatherv %d%s%s%s", op.Bytes, list(block.sent), root, types))
	case dag.Allgatherv:
		datatype, element := typeByte, int64(1)
		if blocks[0].element > 0 {
			datatype, element = elementsOf(blocks, block.sent)
		}
		c.emit(fmt.Sprintf("allgatherv %d%s %d %d", op.Bytes/element, listOf(block.sent, element), datatype, datatype))
	case dag.Scatter, dag.Scatterv:
		c.emit(fmt.Sprintf("scatterv%s %d%s%s", list(received), op.RecvBytes, root, types))
		if op.Subkind == dag.Scatter {
			c.lost.uneven++
		}
	case dag.ReduceScatter:
		whole := int64(0)
		for _, b := range blocks {
			whole += b.received
		}
		if whole == op.Bytes {
			datatype, element := elementsOf(blocks, received)
			c.emit("reducescatter" + listOf(received, element) + fmt.Sprintf(" 0 %d", datatype))
			break
		}
		var s strings.Builder
		for k := range n {
			fmt.Fprintf(&s, " %d", share(op.Bytes, n, k))
		}
		c.lost.uneven++
		c.emit("reducescatter" + s.String() + fmt.Sprintf(" 0 %d", typeByte))
	case dag.Alltoall, dag.Alltoallv:
		if counts, ok := attr.ParseCounts(c.r.Attrs.At(i)); ok && op.Subkind == dag.Alltoallv &&
			len(counts.Send) == c.ranks && len(counts.Recv) == c.ranks {
			c.emit(fmt.Sprintf("alltoallv %d%s %d%s%s", op.Bytes, numbers(counts.Send), op.RecvBytes,
				numbers(counts.Recv), types))
			break
		}
		var sent, got strings.Builder
		total := int64(0)
		for k, b := range blocks {
			fmt.Fprintf(&sent, " %d", share(op.Bytes, n, int64(k)))
			from := share(b.bytes, n, int64(c.rank))
			fmt.Fprintf(&got, " %d", from)
			total += from
		}
		c.lost.uneven++
		c.emit(fmt.Sprintf("alltoallv %d%s %d%s%s", op.Bytes, sent.String(), total, got.String(), types))
	}
}

// elementsOf returns the datatype of a collective with blocks of the given sizes, and the bytes of its elements: those
// that the first member states, or 8, if they divide all blocks; else single bytes.
func elementsOf(blocks []block, size func(b block) int64) (datatype int, element int64) {
	element = cmp.Or(blocks[0].element, sizes[typeDouble])
	datatype = datatypeOf(element)
	if datatype < 0 || slices.ContainsFunc(blocks, func(b block) bool { return size(b)%element != 0 }) {
		return typeByte, 1
	}
	return datatype, element
}

// numbers returns the text of numbers with a blank before each.
func numbers(list []int64) string {
	var s strings.Builder
	for _, n := range list {
		fmt.Fprintf(&s, " %d", n)
	}
	return s.String()
}

// share returns the size of a member's block of a whole: the first are one byte larger if it cannot be divided evenly.
func share(whole, members, k int64) int64 {
	if k < whole%members {
		return whole/members + 1
	}
	return whole / members
}
