package sim

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tracedag/tracedag/dag"
)

// Op is an op as the replay loops see it, with its state in the run: 48 bytes in one place, for with many ranks every
// place that an event touches is a cache miss.
type Op struct {
	Size   uint64 // calc: length in Program.Unit; send, recv: bytes
	Ready  uint64 // the replay loop's own; at first the release time, in picoseconds
	Peer   int32  // send, recv: partner rank
	Match  uint32 // send, recv: tag and communicator as a number, equal for equal pairs; of an AnyTag receive the communicator
	Rank   uint32
	Waits  uint32 // dependencies of either sort that are still open
	Link   uint32 // the replay loop's own; Matcher links with it what waits
	first  uint32 // where its dependents start in Program.dependents; they end where the next op's start
	Stream uint16
	NIC    uint8
	Flags  uint8
}

// The bits of Op.Flags. An op with neither IsSend nor IsRecv is a calc. The three highest are the replay loop's own.
const (
	IsSend uint8 = 1 << iota
	IsRecv
	AnySource // a receive from any rank
	AnyTag    // a receive of any tag of its communicator; a send with the any-tag, which GOAL allows
	Internal  // the tag belongs to a lowered collective, which AnyTag does not match
)

// Program is a trace compiled for replay: the ops of all ranks in one array, dependents instead of dependencies.
// Ops are numbered through all ranks; those of rank r are Start[r] to Start[r+1]-1.
type Program struct {
	Ops      []Op // one more than there are ops: the last only ends the one before
	Start    []uint32
	NICs     int      // more than the highest Op.NIC
	Unit     dag.Time // of Op.Size of calcs
	Releases bool     // whether any op has a release time

	// Plain says that no send has the any-tag.
	Plain bool

	// Rounded counts the calcs whose length was no whole number of units and was rounded to the nearest.
	Rounded int64

	dependents      []uint32
	startFirst      []uint32 // as Op.first, for startDependents; nil if no op has any
	startDependents []uint32
	tags            *tagTable
	streams         [][]int32 // with DenseStreams: of each rank, the trace's stream for each Op.Stream
}

// MaxOps is the largest number of ops of a Program: three bits of an index are left to the replay loops.
const MaxOps = 1<<29 - 2

// CompileOptions says how to compile.
type CompileOptions struct {
	Unit dag.Time // unit of Op.Size of calcs; 0: picoseconds

	// DenseStreams numbers the streams of every rank from 0 without gaps, whatever their numbers in the trace, so that a
	// rank may have up to 65536. Without it the numbers are the trace's, which must be below 65536. NICs have the trace's
	// numbers, below 256.
	DenseStreams bool
}

// Compile returns the program of a trace, compiling ranks in parallel. It fails on ops that no replay loop runs (coll,
// mem and io, which are to be lowered first; calcs with flops only), on peers that do not exist, and on more than
// MaxOps ops. The trace's references must be in range (dag.Rank.CheckReferences).
func Compile(t *dag.Trace, o CompileOptions) (*Program, error) {
	if o.Unit == 0 {
		o.Unit = dag.Picosecond
	}
	ops, deps, starts := int64(0), int64(0), int64(0)
	releases := false
	for i := range t.Ranks {
		r := &t.Ranks[i]
		ops += int64(r.Len())
		deps += int64(len(r.Deps.Off))
		starts += int64(len(r.StartDeps.Off))
		releases = releases || len(r.Release) > 0
	}
	if ops > MaxOps || deps > math.MaxUint32 || starts > math.MaxUint32 {
		return nil, fmt.Errorf("the trace has %d ops and %d dependencies; a replay takes at most %d and %d",
			ops, deps+starts, int64(MaxOps), int64(math.MaxUint32))
	}
	p := &Program{
		Ops:        inHugePages(make([]Op, ops+1)),
		Start:      make([]uint32, len(t.Ranks)+1),
		Unit:       o.Unit,
		dependents: inHugePages(make([]uint32, deps)),
		tags:       newTagTable(),
	}
	if starts > 0 {
		p.startFirst = make([]uint32, ops+1)
		p.startDependents = make([]uint32, starts)
	}
	p.Releases = releases
	if o.DenseStreams {
		p.streams = make([][]int32, len(t.Ranks))
	}

	compilers := make([]rankCompiler, len(t.Ranks))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	at, atDep, atStart := uint32(0), uint32(0), uint32(0)
	for i := range t.Ranks {
		r := &t.Ranks[i]
		c := &compilers[i]
		*c = rankCompiler{p: p, r: r, rank: i, ranks: len(t.Ranks), base: at, depBase: atDep, startBase: atStart, o: o}
		group.Go(c.compile)
		at += uint32(r.Len())
		atDep += uint32(len(r.Deps.Off))
		atStart += uint32(len(r.StartDeps.Off))
		p.Start[i+1] = at
	}
	if err := group.Wait(); err != nil {
		errs := make([]error, 0, len(compilers)) // the first by rank, whichever came first in time
		for i := range compilers {
			errs = append(errs, compilers[i].err)
		}
		return nil, slices.DeleteFunc(errs, func(e error) bool { return e == nil })[0]
	}
	p.Ops[ops].first = uint32(deps)
	if starts > 0 {
		p.startFirst[ops] = uint32(starts)
	}
	p.Plain = true
	for i := range compilers {
		p.Plain = p.Plain && !compilers[i].special
		p.Rounded += compilers[i].rounded
		p.NICs = max(p.NICs, compilers[i].nics)
	}
	return p, nil
}

// Clocks returns how to lay out clocks for the streams and the NICs of all ranks: those of rank r stand from
// streams[r] and nics[r] on, one for each number up to the highest that an op of r has, or one of another rank that sends
// to r or receives from it. It fails where that takes out of proportion much memory, as high numbers on very many ranks do.
func (p *Program) Clocks() (streams, nics []int, err error) {
	ranks := p.Ranks()
	streams, nics = make([]int, ranks+1), make([]int, ranks+1)
	anyStream, anyNIC := 0, 0 // of receives from any rank
	for i := range p.NumOps() {
		op := &p.Ops[i]
		at := [2]uint32{op.Rank, op.Rank}
		switch {
		case op.Flags&AnySource != 0:
			anyStream, anyNIC = max(anyStream, int(op.Stream)+1), max(anyNIC, int(op.NIC)+1)
		case op.Flags&(IsSend|IsRecv) != 0:
			at[1] = uint32(op.Peer)
		}
		for _, r := range at {
			streams[r+1] = max(streams[r+1], int(op.Stream)+1)
			nics[r+1] = max(nics[r+1], int(op.NIC)+1)
		}
	}
	for r := range ranks {
		streams[r+1] = max(streams[r+1], anyStream)
		nics[r+1] = max(nics[r+1], anyNIC)
	}
	for r := range ranks {
		streams[r+1] += streams[r]
		nics[r+1] += nics[r]
	}
	if n := max(streams[ranks], nics[ranks]); n > 1<<27+4*p.NumOps() {
		return nil, nil, fmt.Errorf("the streams and NICs of the trace have numbers so high that they take %d clocks", n)
	}
	return streams, nics, nil
}

// Clone returns a copy of a program that has not been replayed: a replay uses up its ops. The copy has ops of its own, and
// all else in common with p.
func (p *Program) Clone() *Program {
	c := *p
	c.Ops = slices.Clone(p.Ops)
	return &c
}

// NumOps returns the number of ops.
func (p *Program) NumOps() int {
	return len(p.Ops) - 1
}

// Ranks returns the number of ranks.
func (p *Program) Ranks() int {
	return len(p.Start) - 1
}

// Dependents returns the ops that wait for the end of op i, in order.
func (p *Program) Dependents(i uint32) []uint32 {
	return p.dependents[p.Ops[i].first:p.Ops[i+1].first]
}

// StartDependents returns the ops that wait for the start of op i, in order.
func (p *Program) StartDependents(i uint32) []uint32 {
	if p.startFirst == nil {
		return nil
	}
	return p.startDependents[p.startFirst[i]:p.startFirst[i+1]]
}

// Index returns the index of op i within its rank.
func (p *Program) Index(i uint32) int {
	return int(i - p.Start[p.Ops[i].Rank])
}

// Tag returns the tag of a send or receive as the trace has it.
func (p *Program) Tag(op *Op) int64 {
	if op.Flags&AnyTag != 0 {
		return dag.AnyTag
	}
	return p.tags.tag(op.Match)
}

// Stream returns the stream of an op as the trace numbers it.
func (p *Program) Stream(op *Op) int32 {
	return p.StreamNumber(op.Rank, uint32(op.Stream))
}

// Comm returns the communicator of a send or receive.
func (p *Program) Comm(op *Op) int32 {
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

// rankCompiler compiles one rank into its part of a program.
type rankCompiler struct {
	p                        *Program
	r                        *dag.Rank
	rank, ranks              int
	base, depBase, startBase uint32
	o                        CompileOptions

	nics    int
	special bool // not Program.Plain
	rounded int64
	err     error
}

// errCompile makes the errgroup stop; the rank's own error stays in rankCompiler.err.
var errCompile = errors.New("compile failed")

func (c *rankCompiler) compile() error {
	if c.err = c.ops(); c.err != nil {
		return errCompile
	}
	c.dependents()
	return nil
}

func (c *rankCompiler) ops() error {
	r, p := c.r, c.p
	var streams numbering
	unit := uint64(c.o.Unit)
	for i := range r.Len() {
		op := &p.Ops[c.base+uint32(i)]
		op.Rank = uint32(c.rank)
		switch r.Kind[i] {
		case dag.Calc:
			d := uint64(r.Duration.At(i))
			if d == 0 && r.Flops.At(i) > 0 {
				return c.fail(i, "gives flops but no duration, which needs a backend with a roofline model")
			}
			if unit != 1 {
				if d%unit != 0 {
					c.rounded++
				}
				d = (d + unit/2) / unit
			}
			op.Size = d
		case dag.Send:
			op.Flags, op.Size, op.Peer = IsSend, uint64(r.Bytes.At(i)), r.Peer.At(i)
			if uint64(op.Peer) >= uint64(c.ranks) {
				return c.fail(i, fmt.Sprintf("sends to rank %d, expected 0..%d", op.Peer, c.ranks-1))
			}
			c.match(op, i)
		case dag.Recv:
			op.Flags, op.Size, op.Peer = IsRecv, uint64(r.Bytes.At(i)), r.Peer.At(i)
			if op.Peer == dag.AnySource {
				op.Flags |= AnySource
			} else if uint64(op.Peer) >= uint64(c.ranks) {
				return c.fail(i, fmt.Sprintf("receives from rank %d, expected 0..%d or any", op.Peer, c.ranks-1))
			}
			c.match(op, i)
		default:
			return c.fail(i, fmt.Sprintf("is of kind %s, which must be lowered to send, recv and calc first", r.Kind[i]))
		}
		stream, nic := int(r.Stream.At(i)), r.NIC.At(i)
		if c.o.DenseStreams {
			stream = streams.of(int32(stream))
		}
		if uint(stream) > math.MaxUint16 || uint32(nic) > math.MaxUint8 {
			return c.fail(i, fmt.Sprintf("is on stream %d, NIC %d, expected 0..65535 and 0..255", r.Stream.At(i), nic))
		}
		op.Stream, op.NIC = uint16(stream), uint8(nic)
		c.nics = max(c.nics, int(op.NIC)+1)
	}
	for i, release := range r.Release {
		p.Ops[c.base+uint32(i)].Ready = uint64(release)
	}
	if p.streams != nil {
		p.streams[c.rank] = streams.numbers
	}
	return nil
}

func (c *rankCompiler) fail(i int, what string) error {
	return fmt.Errorf("rank %d op %d %s", c.rank, i, what)
}

func (c *rankCompiler) match(op *Op, i int) {
	tag, comm := c.r.Tag.At(i), c.r.Comm.At(i)
	c.special = c.special || tag == dag.AnyTag && op.Flags&IsSend != 0
	if tag == dag.AnyTag {
		op.Flags |= AnyTag
		if op.Flags&IsRecv != 0 {
			op.Match = uint32(comm)
			return
		}
	}
	if tag < dag.AnyTag {
		op.Flags |= Internal
	}
	op.Match = c.p.tags.number(comm, tag)
}

func (c *rankCompiler) dependents() {
	r, p := c.r, c.p
	d := r.Dependents()
	turn(d, c.base, p.dependents[c.depBase:])
	start := uint32(0)
	for i := range r.Len() {
		p.Ops[c.base+uint32(i)].first = c.depBase + start
		start = d.End[i]
	}
	for i := range r.Deps.End {
		p.Ops[c.base+uint32(i)].Waits = uint32(r.Deps.Count(i))
	}
	if p.startFirst == nil {
		return
	}
	d = r.StartDependents()
	turn(d, c.base, p.startDependents[c.startBase:])
	start = 0
	for i := range r.Len() {
		p.startFirst[c.base+uint32(i)] = c.startBase + start
		start = d.End[i]
	}
	for i := range r.StartDeps.End {
		p.Ops[c.base+uint32(i)].Waits += uint32(r.StartDeps.Count(i))
	}
}

// turn writes the dependents, numbered within their rank, into dst, numbered through all ranks.
func turn(d dag.Dependents, base uint32, dst []uint32) {
	for k, op := range d.Op {
		dst[k] = base + uint32(op)
	}
}

// numbering numbers the values it is asked for 0, 1, 2, ... in the order of first use.
type numbering struct {
	numbers []int32
	index   map[int32]int
	last    int32 // the value asked for last, and its number
	lastIs  int
}

func (n *numbering) of(v int32) int {
	if len(n.numbers) > 0 && n.last == v {
		return n.lastIs
	}
	k, known := n.index[v]
	if !known {
		if n.index == nil {
			n.index = make(map[int32]int)
		}
		k = len(n.numbers)
		n.index[v] = k
		n.numbers = append(n.numbers, v)
	}
	n.last, n.lastIs = v, k
	return k
}

// tagTable turns pairs of communicator and tag into numbers: a tag of communicator 0 that fits into 31 bits is its own
// number, the others are numbered from 1<<31 on. The numbers depend on which rank is compiled first, so they may be
// compared for equality only.
type tagTable struct {
	mutex sync.RWMutex
	index map[commTag]uint32
	pairs []commTag
}

type commTag struct {
	comm int32
	tag  int64
}

const firstPair = 1 << 31

func newTagTable() *tagTable {
	return &tagTable{index: make(map[commTag]uint32)}
}

func (t *tagTable) number(comm int32, tag int64) uint32 {
	if comm == 0 && uint64(tag) < firstPair {
		return uint32(tag)
	}
	pair := commTag{comm, tag}
	t.mutex.RLock()
	n, known := t.index[pair]
	t.mutex.RUnlock()
	if known {
		return n
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if n, known = t.index[pair]; !known {
		n = firstPair + uint32(len(t.pairs))
		t.index[pair] = n
		t.pairs = append(t.pairs, pair)
	}
	return n
}

func (t *tagTable) tag(n uint32) int64 {
	if n < firstPair {
		return int64(n)
	}
	return t.pairs[n-firstPair].tag
}

// comm returns the communicator of a match number.
func (t *tagTable) comm(n uint32) int32 {
	if n < firstPair {
		return 0
	}
	return t.pairs[n-firstPair].comm
}
