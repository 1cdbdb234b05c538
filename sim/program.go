package sim

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
)

// Op is an op and its state in a replay. Its 32 bytes are adjacent, since with many ranks each memory location that an
// event accesses is a cache miss.
type Op struct {
	Size uint64 // calc: length in Program.Unit; send, recv: bytes; coll: bytes contributed by the rank
	Peer int32  // send, recv: partner rank; coll: position of its rank in the communicator

	// send, recv: number of the pair of tag and communicator; recv with AnyTag: the communicator; coll: index in
	// Program.Instances; others: their dag.Kind.
	Match uint32

	Rank   uint32
	Waits  uint32 // number of unmet dependencies on ends and starts; once that is 0, see Link
	first  uint32 // dependents, see dependents.go
	Stream uint16
	NIC    uint8
	Flags  uint8
}

// Link returns another op, which the replay loop or a List has set. It is undefined while the op has unmet
// dependencies.
func (op *Op) Link() uint32 {
	return op.Waits
}

// SetLink sets the op that Link returns. The op must have no unmet dependencies.
func (op *Op) SetLink(i uint32) {
	op.Waits = i
}

// Bits of Op.Flags. An op with neither IsSend nor IsRecv is a calc or compiled like one; an op with both is a
// collective. The replay loop may use the three highest bits, or the two highest of a collective.
const (
	IsSend uint8 = 1 << iota
	IsRecv
	AnySource // a receive from any rank
	AnyTag    // a receive of any tag of its communicator; a send with GOAL's any-tag
	Internal  // the tag belongs to a lowered collective; AnyTag does not match it

	IsColl = IsSend | IsRecv
)

// Program is a trace compiled for replay: the ops of all ranks in one array, with dependents instead of dependencies.
// Ops are numbered through all ranks: those of rank r are Start[r] to Start[r+1]-1. In a program that is replayed in
// windows, see [Program.Windowed], Ops has only some of the ops, at positions that are not their numbers. A program
// that is folded, see [Program.Folded], has none.
type Program struct {
	Ops   []Op
	Start []uint32
	Unit  dag.Time // unit of Op.Size of calcs

	// Plain reports that no send has the any-tag.
	Plain bool
	// Releases reports whether an op has a release time.
	Releases bool
	// Rounded is the number of calcs whose length was rounded to the nearest unit.
	Rounded int64

	Streams int // 1 + the highest Op.Stream, or 0 if that is 0
	NICs    int // 1 + the highest Op.NIC, or 0 if that is 0

	EmptySend bool   // some send has no bytes
	Sends     uint64 // number of sends
	SendBytes uint64 // sum of all sends; math.MaxUint64 on overflow
	CalcTime  uint64 // sum of all calcs; math.MaxUint64 on overflow

	Instances []Instance // of collectives

	LargestMessage uint64 // size of the largest send or receive, in bytes
	LongestCalc    uint64 // in Unit

	dependents [][]uint16 // by rank; see dependents.go
	release    []uint64   // by op: release time in picoseconds; nil without Releases
	anyStarts  bool
	starts     []startDependents // by rank; nil if there are none
	ranks      []rankFacts
	tags       *tagTable
	streams    [][]int32 // with DenseStreams, by rank: the trace's stream of each Op.Stream

	participations [][]participation // by rank; nil after compilation

	// lengths is the sum of the hashes of all sends, minus those of all receives, without messages to ranks with
	// wildcard receives: 0 if they have equal sizes, the usual case.
	lengths uint64

	windows       *opWindows // nil: all ops are in Ops, or folded
	folded        *Folded    // nil: no ops are shared
	latestRelease uint64     // in picoseconds
}

// startDependents are the start dependents of a rank's ops.
type startDependents struct {
	end []uint32 // by op: the end of its list in ops; nil if there are none
	ops []uint32
}

// rankFacts are properties of a rank that replays need before they start.
type rankFacts struct {
	roots       []uint32 // ops without dependencies, in ascending order
	largestSend uint64   // bytes
	calcs       uint64   // sum of all calcs, in Program.Unit
	wildcards   bool     // the rank has receives from any source or of any tag
}

// MaxOps is the largest number of ops of a Program: replay loops use three bits of an op number.
const MaxOps = 1<<29 - 2

// StreamClocks returns a layout of one clock per stream of all ranks. The clocks of rank r start at first[r], one for
// each number up to the highest stream of an op of r or of an op that sends to r or receives from it. It returns an
// error if high numbers on many ranks would need a disproportionate amount of memory.
func (p *Program) StreamClocks() (first []int, err error) {
	return p.clocks(p.Streams, func(op *Op) int { return int(op.Stream) })
}

// NICClocks returns a layout of one clock per NIC of all ranks; see [Program.StreamClocks].
func (p *Program) NICClocks() (first []int, err error) {
	return p.clocks(p.NICs, func(op *Op) int { return int(op.NIC) })
}

// clocks lays out clocks by a number of each op, which is less than most, or 0.
func (p *Program) clocks(most int, number func(op *Op) int) (first []int, err error) {
	ranks := p.Ranks()
	first = make([]int, ranks+1)
	if most <= 1 {
		for r := range first {
			first[r] = r
		}
		return first, nil
	}
	fromAny := 0 // number of clocks needed by receives from any rank
	err = p.EachOp(func(op *Op, _ uint32) {
		n := number(op) + 1
		first[op.Rank+1] = max(first[op.Rank+1], n)
		switch {
		case !op.IsMessage():
		case op.Flags&AnySource != 0:
			fromAny = max(fromAny, n)
		default:
			first[op.Peer+1] = max(first[op.Peer+1], n)
		}
	})
	if err != nil {
		return nil, err
	}
	for r := range ranks {
		first[r+1] = first[r] + max(first[r+1], fromAny)
	}
	if n := first[ranks]; n > 1<<27+4*p.NumOps() {
		return nil, fmt.Errorf("stream or NIC numbers are too high: they need %d clocks; renumber them from 0", n)
	}
	return first, nil
}

// Clone returns a copy of a program for another replay, since a replay modifies its ops. p must not have been replayed.
// The copy has its own ops and shares all other data with p.
func (p *Program) Clone() *Program {
	c := *p
	if p.windows != nil {
		c.open(p.windows.clone())
		return &c
	}
	if p.folded != nil {
		c.folded = p.folded.clone()
		return &c
	}
	if spare, is := spareOps.Get().(*[]Op); is && cap(*spare) >= len(p.Ops) {
		c.Ops = append((*spare)[:0], p.Ops...)
	} else {
		c.Ops = slices.Clone(p.Ops)
	}
	return &c
}

// spareOps are the ops of clones that are no longer used: points of a grid would else spend much of their time on their
// memory.
var spareOps sync.Pool

// Recycle passes the ops of a clone on to later clones. The program and results of its replay must not be used again.
func (p *Program) Recycle() {
	if ops := p.Ops; ops != nil && p.windows == nil { // nil: folded
		p.Ops = nil
		spareOps.Put(&ops)
	}
}

// Layout returns the numbering of the ops for timelines.
func (p *Program) Layout() *Layout {
	return &Layout{Unit: p.Unit, Start: p.Start}
}

// NumOps returns the number of ops of the trace.
func (p *Program) NumOps() int {
	return int(p.Start[p.Ranks()])
}

// Ranks returns the number of ranks.
func (p *Program) Ranks() int {
	return len(p.ranks)
}

// Divide divides the ranks into n ranges with about equal numbers of ops: range k is ranks first[k] to first[k+1]-1.
func (p *Program) Divide(n int) (first []int) {
	first = make([]int, n+1)
	for k := range n - 1 {
		last := first[k]
		for last < p.Ranks() && int64(p.Start[last])*int64(n) < int64(p.NumOps())*int64(k+1) {
			last++
		}
		first[k+1] = last
	}
	first[n] = p.Ranks()
	return first
}

// Roots returns the ops of a rank without dependencies, in ascending order.
func (p *Program) Roots(rank int) []uint32 {
	if p.windows != nil {
		return p.windows.roots(p, rank)
	}
	return p.ranks[rank].roots
}

// ReleaseTimes returns a new array with the release time of each op in picoseconds. In windows, it has an element for
// each element of Ops, which is set when the op comes into memory.
func (p *Program) ReleaseTimes() []uint64 {
	times := cpu.InHugePages(make([]uint64, len(p.Ops)))
	if p.windows != nil {
		p.windows.release = times
		return times
	}
	copy(times, p.release)
	return times
}

// LatestRelease returns the latest release time in picoseconds, or 0 if there is none.
func (p *Program) LatestRelease() uint64 {
	return p.latestRelease
}

// MostCalcTime returns the largest sum of a rank's calcs, in Unit.
func (p *Program) MostCalcTime() uint64 {
	most := uint64(0)
	for i := range p.ranks {
		most = max(most, p.ranks[i].calcs)
	}
	return most
}

// WaitsForStarts reports whether some op waits for the start of another; see [Program.StartDependents].
func (p *Program) WaitsForStarts() bool {
	return p.anyStarts
}

// StartDependents returns the ops that depend on the start of op i, in order. They are valid until the next call.
func (p *Program) StartDependents(i uint32) []uint32 {
	if !p.anyStarts {
		return nil
	}
	if p.windows != nil {
		return p.windows.startDependents(p, i)
	}
	return p.startDependents(i)
}

func (p *Program) startDependents(i uint32) []uint32 {
	rank := p.Ops[i].Rank
	s := &p.starts[rank]
	if s.end == nil {
		return nil
	}
	k, first := i-p.Start[rank], uint32(0)
	if k > 0 {
		first = s.end[k-1]
	}
	return s.ops[first:s.end[k]]
}

// Index returns the index of op i within its rank.
func (p *Program) Index(i uint32) int {
	return int(p.Number(i) - p.Start[p.Ops[i].Rank])
}

// Number returns the number of the op at a position of Ops.
func (p *Program) Number(i uint32) uint32 {
	if p.windows == nil || i == NoOp {
		return i
	}
	return p.windows.number(p, i)
}

// Kind returns the kind of op i.
func (p *Program) Kind(i uint32) dag.Kind {
	return p.Ops[i].Kind()
}

// Kind returns the kind of the op.
func (op *Op) Kind() dag.Kind {
	switch op.Flags & IsColl {
	case IsSend:
		return dag.Send
	case IsRecv:
		return dag.Recv
	case IsColl:
		return dag.Coll
	default:
		return dag.Kind(op.Match)
	}
}

// Tag returns the trace's tag of a send or receive.
func (p *Program) Tag(op *Op) int64 {
	if op.Flags&AnyTag != 0 {
		return dag.AnyTag
	}
	return p.tags.tag(op.Match)
}

// Stream returns the trace's stream number of an op.
func (p *Program) Stream(op *Op) int32 {
	return p.StreamNumber(op.Rank, uint32(op.Stream))
}

// Comm returns the communicator of a send, receive or collective.
func (p *Program) Comm(op *Op) int32 {
	if op.Flags&IsColl == IsColl {
		return p.Instances[op.Match].Comm
	}
	if op.Flags&(IsRecv|AnyTag) == IsRecv|AnyTag {
		return int32(op.Match)
	}
	return p.tags.comm(op.Match)
}

// StreamNumber returns the trace's number of a stream of a rank.
func (p *Program) StreamNumber(rank, stream uint32) int32 {
	if p.streams == nil {
		return int32(stream)
	}
	return p.streams[rank][stream]
}
