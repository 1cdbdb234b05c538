package collective

import (
	"cmp"
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

// Participant is one member of a communicator in one instance of a collective. docs/reference/lowering.md defines
// Bytes for each collective.
type Participant struct {
	Kind    dag.Subkind
	Members int   // size of the communicator, 1 or more
	Me      int   // position of this member in the communicator, 0..Members-1
	Root    int   // position of the root of a rooted collective
	Bytes   int64 // size of the instance, 0..MaxInt64/Members

	// bytes of an alltoallv by partner, those that the member sends and receives; nil: equal shares of Bytes
	sends, recvs []int64
	origin       func(i, j int) int64 // first byte of a share, in tests; nil: unknown

	base      int64    // first byte of the data of a phase of a composed collective, for a vector
	blockSize int64    // size of the blocks of a whole, the last ones excepted; 0: as equal as possible
	starts    []int64  // prefix sums of the members' sizes if they differ, Members+1 entries; otherwise nil
	nodes     *nodeMap // nodes of the members; nil: each member has a node of its own
	element   int64    // bytes of one element of a reduction; 0: unknown
	level     levels   // 0: levelWhole

	choice *Choice // selects the algorithms of the phases of a composed collective; nil: the table "default"

	// Parameters of the algorithm.
	k           int   // radix of a tree, or number of chains
	segmentSize int64 // largest message in bytes; 0: no segmentation
}

// relative returns the member's position relative to the root, 0 for the root.
func (p *Participant) relative() int {
	return (p.Me - p.Root + p.Members) % p.Members
}

// absolute returns the position of the member with relative position v.
func (p *Participant) absolute(v int) int {
	if v += p.Root; v >= p.Members {
		v -= p.Members
	}
	return v
}

// whole returns the whole vector of a bcast, reduce, allreduce or scan.
func (p *Participant) whole() span {
	return span{p.base, p.Bytes}
}

// block returns the block of member i: its contribution to a gather or allgather, its result of a scatter or
// reduce-scatter.
func (p *Participant) block(i int) span {
	from := p.offset(i)
	return span{from, p.offset(i+1) - from}
}

// blocks returns the blocks of count <= Members consecutive members, starting at position first and wrapping around
// after the last member.
func (p *Participant) blocks(first, count int) span {
	from, last := p.offset(first), first+count
	if last <= p.Members {
		return span{from, p.offset(last) - from}
	}
	return span{from, p.offset(p.Members) - from + p.offset(last-p.Members)}
}

// offset returns the first byte of member i's block; offset(Members) is the total size.
func (p *Participant) offset(i int) int64 {
	switch {
	case p.starts != nil:
		return p.starts[i]
	case p.blockSize > 0:
		return p.base + min(int64(i)*p.blockSize, p.Bytes)
	case p.splitsTotal():
		return p.base + partStart(p.Bytes, p.Members, i)
	}
	return int64(i) * p.Bytes
}

// splitsTotal reports whether Bytes is the total size, divided among the members. Otherwise Bytes is the size of one
// block.
func (p *Participant) splitsTotal() bool {
	return p.Kind == dag.Scatter || p.Kind == dag.ReduceScatter
}

// parts divides the vector into n parts and returns parts first to last-1.
func (p *Participant) parts(n, first, last int) span {
	from := partStart(p.Bytes, n, first)
	return span{p.base + from, partStart(p.Bytes, n, last) - from}
}

// share returns the data that member i sends to member j in an all-to-all; one of them is the participant.
func (p *Participant) share(i, j int) span {
	if p.sends != nil {
		x := span{}
		if p.origin != nil {
			x.from = p.origin(i, j)
		}
		if x.bytes = p.recvs[i]; i == p.Me {
			x.bytes = p.sends[j]
		}
		return x
	}
	own := p.block(i)
	from := partStart(own.bytes, p.Members, j)
	return span{own.from + from, partStart(own.bytes, p.Members, j+1) - from}
}

// partStart returns the first byte of part i of total bytes divided into n parts. The sizes of the parts differ by at
// most one byte; the larger parts come first.
func partStart(total int64, n, i int) int64 {
	return int64(i)*(total/int64(n)) + min(int64(i), total%int64(n))
}

// partSize returns the size of part i in the division of [partStart].
func partSize(total int64, n, i int) int64 {
	return partStart(total, n, i+1) - partStart(total, n, i)
}

// maxSegments limits the number of segments of one message, which bounds the memory of a member's schedule.
const maxSegments = 1 << 20

// segments returns the number of messages that carry x, 1 or more.
func (p *Participant) segments(x span) int {
	if p.segmentSize == 0 || x.bytes <= p.segmentSize {
		return 1
	}
	return int((x.bytes-1)/p.segmentSize + 1)
}

// segment returns segment i of x.
func (p *Participant) segment(x span, i int) span {
	if p.segmentSize == 0 {
		return x
	}
	before := int64(i) * p.segmentSize
	return span{x.from + before, min(p.segmentSize, x.bytes-before)}
}

// elements returns a function that returns parts first to last-1 of the vector, which is divided into n parts of whole
// elements; the last part has the rest as well. A vector that is no multiple of an element is divided into bytes.
func (p *Participant) elements(n int) func(first, last int) span {
	element := p.wholeElement()
	part := p.Bytes / element / int64(n) * element
	return func(first, last int) span {
		from, end := int64(first)*part, int64(last)*part
		if last == n {
			end = p.Bytes
		}
		return span{from, end - from}
	}
}

// wholeElement returns the bytes of one element of the vector, 1 if the vector is no multiple of it.
func (p *Participant) wholeElement() int64 {
	if element := cmp.Or(p.element, defaultElement); p.Bytes%element == 0 {
		return element
	}
	return 1
}

// phase appends a collective of all members by the algorithm that the choice selects, as a stage of a composed one.
// bytes is the size of the instance. An error is that of the whole schedule.
func (p *Participant) phase(kind dag.Subkind, root int, bytes int64, s *Schedule) {
	part := *p
	part.Kind, part.Bytes, part.Root, part.starts = kind, bytes, root, nil
	p.choose(kind, bytes, &part, s)
}

// choose appends the part of a participant by the algorithm that the choice selects for the size, as a stage.
func (p *Participant) choose(kind dag.Subkind, size int64, part *Participant, s *Schedule) {
	chosen := p.choice.find(kind, traits{
		size: size, members: p.Members, element: p.element, layout: p.layout(), level: p.level,
	})
	s.stage(samePosition, func() { s.err = chosen.plan(part, s) })
}

func samePosition(position int32) int32 { return position }

// floorPower returns the largest power of two <= n, for n >= 1.
func floorPower(n int) int {
	return 1 << (bits.Len(uint(n)) - 1)
}
