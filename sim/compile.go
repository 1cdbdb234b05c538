// This file compiles traces into programs.

package sim

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// CompileOptions are the options of [Compile].
type CompileOptions struct {
	Unit dag.Time // unit of Op.Size of calcs; 0: picoseconds

	// DenseStreams renumbers the streams of every rank from 0 without gaps, which permits up to 65536 streams per rank
	// with any numbers. Otherwise stream numbers are those of the trace and must be below 65536. NIC numbers are always
	// those of the trace and must be below 256.
	DenseStreams bool

	// HighLevel makes collectives ops of the program and compiles mem and io ops like calcs. Otherwise these ops are
	// errors.
	HighLevel bool

	// Fold permits that the program is folded; see [Folded]. Then the replay loop calls [Program.Folded] first, and
	// [Program.Unfold] if it needs all ops in Program.Ops.
	Fold bool

	// Windows says that the replay loop supports programs whose ops are not all in memory; see [Program.Windowed].
	Windows bool
	// OpBytes is the memory in bytes that the replay of an op takes if all ops are in memory, with a share of all else.
	// More ops than the limit of memory has room for are replayed in windows. 0: 64, as measured on whole runs of
	// backends that keep nothing of an op that has ended (BENCHMARKS.md).
	OpBytes int64
	// Explain prints that the program is one of these; nil: discard.
	Explain func(message string, args ...any)

	Context context.Context // ends the compilation early; see [Interrupted]. nil: no limit
}

// NotCompiledError reports an op that cannot be compiled.
type NotCompiledError struct {
	Rank, Op int
	Why      string
	Kind     dag.Kind // Coll, Mem and IO can be lowered before compilation
}

func (e *NotCompiledError) Error() string {
	return fmt.Sprintf("rank %d op %d %s", e.Rank, e.Op, e.Why)
}

// rankBytes is the memory of a rank without ops in a program.
const rankBytes = 4 + int64(unsafe.Sizeof([]uint16{})+unsafe.Sizeof(rankFacts{}))

// Compile compiles a trace into a program. It reads and compiles batches of ranks in parallel. It returns a
// [*NotCompiledError] for a calc with flops only; without HighLevel, for a coll, mem or io op, which must be lowered
// first; for a peer that does not exist; and if the ranks of a communicator disagree on a collective. It also fails for
// a trace with more than MaxOps ops, unless that is replayed in windows. References within the trace must be in range
// (dag.Rank.CheckReferences).
func Compile(t dag.Source, o CompileOptions) (*Program, error) {
	if o.Unit == 0 {
		o.Unit = dag.Picosecond
	}
	h, err := t.Header()
	if err != nil {
		return nil, err
	}
	batches, ranks, comms := h.Batches, h.Ranks, h.Comms
	firstOps := layOut(batches)
	numOps := firstOps[len(batches)]
	windowed := o.wantsWindows(h, numOps)
	if err := o.check(numOps, int64(ranks), windowed); err != nil {
		return nil, err
	}
	p := &Program{
		Start: make([]uint32, ranks+1),
		Unit:  o.Unit,
		Plain: true,
		tags:  newTagTable(),
		ranks: make([]rankFacts, ranks),
	}
	if windowed {
		w, err := newWindows(o.Context, h, firstOps)
		if err != nil {
			return nil, err
		}
		p.windows = w
		defer func() {
			if p.Ops == nil { // the compilation failed
				p.Close()
			}
		}()
	} else {
		p.Ops, p.dependents = make([]Op, numOps), make([][]uint16, ranks)
	}
	folding := o.newFolding(p, numOps)
	if folding == nil { // otherwise few ops are used; see folding.halt
		cpu.InHugePages(p.Ops)
	}
	if o.DenseStreams {
		p.streams = make([][]int32, ranks)
	}
	if o.HighLevel {
		p.participations = make([][]participation, ranks)
	}
	release := sync.OnceValue(func() []uint64 {
		p.release = make([]uint64, numOps)
		return p.release
	})
	var mutex sync.Mutex
	var starts sync.Once
	var compilers []*rankCompiler
	newCompiler := func() *rankCompiler {
		c := &rankCompiler{
			p: p, o: o, makeStarts: &starts, tags: tagCache{table: p.tags}, comms: len(comms), release: release,
			lengths: make([]uint64, ranks),
		}
		if p.windows != nil {
			c.chunks = p.windows.file.newWriter()
		}
		if folding != nil {
			c.folder = &folder{folding: folding, c: c}
		}
		mutex.Lock()
		defer mutex.Unlock()
		compilers = append(compilers, c)
		return c
	}
	readers := BatchReaders(h)
	err = inBatches(o.Context, t, batches, readers, func() func(k int, ranks []*dag.Rank) error {
		c := newBatchCompiler(p, runtime.GOMAXPROCS(0)/readers, newCompiler)
		return func(k int, ranks []*dag.Rank) error {
			return c.compile(ranks, batches[k], firstOps[k], firstOps[k+1])
		}
	})
	if err != nil {
		return nil, err
	}
	p.Start[ranks] = uint32(numOps)
	if folding != nil {
		folding.end(p)
	}
	for _, c := range compilers {
		p.add(&c.totals)
		for rank, sum := range c.lengths {
			if !p.ranks[rank].wildcards {
				p.lengths += sum
			}
		}
	}
	if windowed {
		p.openWindows(o.Explain)
		return p, nil
	}
	if err := p.linkCollectives(comms); err != nil {
		return nil, err
	}
	return p, nil
}

// BatchReaders returns the number of goroutines on which [Compile] reads batches. Each has a batch in memory, so there
// are the fewer, the larger batches are compared with the trace; they share the processors.
func BatchReaders(h *dag.Header) int {
	const share = 16 // of the trace that may be in batches in memory
	largest := int64(1)
	for i := range h.Batches {
		largest = max(largest, h.Batches[i].Ops)
	}
	n := int64(runtime.GOMAXPROCS(0))
	if !h.Stable { // otherwise the trace is in memory
		n = min(n, h.Ops/share/largest)
	}
	return int(max(1, min(n, int64(len(h.Batches)))))
}

// inBatches reads batches on several goroutines. Each goroutine calls work once, and then the returned function for
// each batch that it reads. inBatches returns the error of the first failed batch, or the context's error if it ends.
func inBatches(ctx context.Context, t dag.Source, batches []dag.Batch, readers int,
	work func() (do func(k int, ranks []*dag.Rank) error)) error {
	type reader struct {
		read dag.Reader
		do   func(k int, ranks []*dag.Rank) error
	}
	start := func() reader { return reader{do: work(), read: t.NewReader(dag.Replay)} }
	_, err := par.EachOnWith(readers, len(batches), start, func(r reader, k int) error {
		if err := Interrupted(ctx); err != nil {
			return err
		}
		ranks, err := r.read(batches[k])
		if err != nil {
			return err
		}
		return r.do(k, ranks)
	})
	return err
}

// layOut returns the number of the first op of each batch, and at the end the number of ops.
func layOut(batches []dag.Batch) []int64 {
	first := make([]int64, len(batches)+1)
	for k, b := range batches {
		first[k+1] = first[k] + b.Ops
	}
	return first
}

// check checks the size of a program.
func (o *CompileOptions) check(ops, ranks int64, windowed bool) error {
	most := int64(MaxOps)
	if windowed {
		most = MaxWindowedOps
	}
	if ops > most {
		return fmt.Errorf("the trace has %d ops, expected at most %d", ops, most)
	}
	if !windowed {
		if err := memory.Check(o.Context, "ops of the simulation", int64(unsafe.Sizeof(Op{})), ops); err != nil {
			return err
		}
	}
	return memory.Check(o.Context, "ranks of the simulation", rankBytes, ranks)
}

// totals are properties of all ops.
type totals struct {
	special bool // the program is not Program.Plain
	starts  bool // some op waits for the start of another

	rounded   int64
	streams   int // more than the highest Op.Stream
	nics      int
	releases  bool
	emptySend bool
	sends     uint64
	sendBytes uint64
	calcs     uint64
	longest   uint64 // the longest calc
	largest   uint64 // the largest message
	released  uint64 // the latest release time in picoseconds
}

// add adds the totals of other ops.
func (t *totals) add(other *totals) {
	t.special, t.starts = t.special || other.special, t.starts || other.starts
	t.releases, t.emptySend = t.releases || other.releases, t.emptySend || other.emptySend
	t.rounded += other.rounded
	t.sends += other.sends
	t.streams, t.nics = max(t.streams, other.streams), max(t.nics, other.nics)
	t.sendBytes, t.calcs = addUp(t.sendBytes, other.sendBytes), addUp(t.calcs, other.calcs)
	t.longest, t.largest = max(t.longest, other.longest), max(t.largest, other.largest)
	t.released = max(t.released, other.released)
}

// add adds the totals of one goroutine's ranks to the program.
func (p *Program) add(t *totals) {
	p.Plain = p.Plain && !t.special
	p.Rounded += t.rounded
	p.NICs = max(p.NICs, t.nics)
	p.Streams = max(p.Streams, t.streams)
	p.Releases = p.Releases || t.releases
	p.EmptySend = p.EmptySend || t.emptySend
	p.Sends += t.sends
	p.SendBytes = addUp(p.SendBytes, t.sendBytes)
	p.LargestMessage = max(p.LargestMessage, t.largest)
	p.LongestCalc = max(p.LongestCalc, t.longest)
	p.CalcTime = addUp(p.CalcTime, t.calcs)
	p.latestRelease = max(p.latestRelease, t.released)
	p.anyStarts = p.anyStarts || t.starts
}

// addUp returns a + b, or math.MaxUint64 on overflow.
func addUp(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// rankCompiler compiles ranks one after another into their parts of a program.
type rankCompiler struct {
	p          *Program
	o          CompileOptions
	makeStarts *sync.Once // allocates p.starts
	totals     totals
	lengths    []uint64 // by receiver: see Program.lengths
	folder     *folder  // nil: ranks do not share ops
	tags       tagCache
	comms      int
	cursor     cursor

	release func() []uint64 // creates Program.release

	chunks     *chunkWriter // writes compiled ranks to the file of a program in windows; otherwise nil
	ownRelease []uint64     // with chunks: release times of the rank
	ownStarts  startDependents

	words   []uint16 // encoded dependents of the ranks since the last storeDependents
	encoded []rankWords

	// Scratch space of dependents:
	long     []uint32     // ops whose dependents do not fit into Op.first
	rest     []dependency // on these, by op
	inverted []uint32     // their dependents, by index within the rank

	// State of the current rank:
	r    *dag.Rank
	rank int
	ops  []Op
	base uint32 // number of the rank's first op
}

// batchCompiler compiles batches one after another. Each worker compiles a range of a batch's ranks.
type batchCompiler struct {
	p       *Program
	workers []*rankCompiler
	first   []int64 // by rank of the batch: number of its first op
}

func newBatchCompiler(p *Program, workers int, newCompiler func() *rankCompiler) *batchCompiler {
	c := &batchCompiler{p: p}
	for range max(1, workers) {
		c.workers = append(c.workers, newCompiler())
	}
	return c
}

// compile compiles the ranks of a batch into the program, as ops at to end-1.
func (c *batchCompiler) compile(ranks []*dag.Rank, b dag.Batch, at, end int64) error {
	if len(ranks) != b.Last-b.First {
		return fmt.Errorf("the trace reader returned %d ranks for ranks %d to %d", len(ranks), b.First, b.Last-1)
	}
	c.first = c.first[:0]
	for i := range ranks {
		c.first = append(c.first, at)
		if at += int64(ranks[i].Len()); at > end {
			return fmt.Errorf("rank %d has more ops than its batch", b.First+i)
		}
	}
	if at != end {
		return fmt.Errorf("the batch from rank %d on lacks %d ops", b.First, end-at)
	}
	return par.EachOn(len(c.workers), len(c.workers), func(k int) error {
		w, n := c.workers[k], len(c.workers)
		if w.folder != nil {
			w.folder.last = sharer{} // its memory is that of the batch before
		}
		for i := len(ranks) * k / n; i < len(ranks)*(k+1)/n; i++ {
			first := c.first[i]
			w.r, w.rank, w.base = ranks[i], b.First+i, uint32(first)
			c.p.Start[w.rank] = w.base
			if w.chunks != nil {
				if err := w.compileChunks(); err != nil {
					return err
				}
				continue
			}
			w.ops = c.p.Ops[first : first+int64(ranks[i].Len())]
			if err := w.compileFolded(); err != nil {
				return err
			}
			if len(w.words) >= mostStoredLater {
				w.storeDependents()
			}
		}
		w.storeDependents()
		return nil
	})
}

// tile is the number of ops compiled column by column at a time. A tile fits into the first-level cache.
const tile = 256

// checkOps is the number of ops of a rank between two checks of the context, a multiple of tile.
const checkOps = 256 * tile

func (c *rankCompiler) compile() error {
	var streams numbering
	for first := 0; first < len(c.ops); first += tile {
		last := min(first+tile, len(c.ops))
		t := c.ops[first:last]
		if first%checkOps == 0 {
			if err := Interrupted(c.o.Context); err != nil {
				return err
			}
		}
		highLevel, err := c.kinds(t, first)
		if err != nil {
			return err
		}
		if err := c.sizes(t, first); err != nil {
			return err
		}
		if err := c.peers(t, first); err != nil {
			return err
		}
		c.matches(t, first)
		if err := c.places(t, first, &streams); err != nil {
			return err
		}
		if highLevel {
			if err := c.collectives(t, first); err != nil {
				return err
			}
		}
		c.facts(t)
	}
	c.participate()
	if len(c.r.Release) > 0 {
		c.totals.releases = true
		release := c.releaseTimes()
		for i, t := range c.r.Release {
			release[i] = uint64(t)
			c.totals.released = max(c.totals.released, uint64(t))
		}
	}
	if c.p.streams != nil {
		c.p.streams[c.rank] = streams.list()
	}
	if err := c.dependents(); err != nil {
		return err
	}
	if len(c.r.StartDeps.Off) > 0 {
		c.startDependents()
	}
	c.roots()
	return nil
}

// kindFlags are the flags of the op kinds that all replay loops run.
var kindFlags = [256]uint8{dag.Send: IsSend, dag.Recv: IsRecv}

// kinds initializes the ops of a tile and reports whether it has ops other than calcs, sends and receives.
func (c *rankCompiler) kinds(t []Op, first int) (highLevel bool, err error) {
	rank := uint32(c.rank)
	for i, kind := range c.r.Kind[first : first+len(t)] {
		flags := kindFlags[kind]
		t[i] = Op{Rank: rank, Flags: flags, first: noDependents}
		if flags == 0 && kind != dag.Calc {
			highLevel = true
			if err := c.highLevel(&t[i], first+i, kind); err != nil {
				return false, err
			}
		}
	}
	return highLevel, nil
}

func (c *rankCompiler) highLevel(op *Op, i int, kind dag.Kind) error {
	switch {
	case !c.o.HighLevel || kind >= dag.NumKinds:
		why := fmt.Sprintf("is of kind %s, which this backend does not run", kind)
		switch kind {
		case dag.IO:
			why += "; lower storage accesses first (--lower directdrive)"
		case dag.Coll:
			why += "; lower collectives first (--lower collectives)"
		}
		return c.fail(i, why)
	case kind != dag.Coll:
		op.Match = uint32(kind)
		return nil
	}
	subkind := c.r.Subkind.At(i)
	if !subkind.Of(dag.Coll) {
		return c.fail(i, fmt.Sprintf("is the collective %q, expected one such as %q", subkind, dag.Allreduce))
	}
	op.Flags = IsColl | uint8(subkind-dag.Barrier)<<subkindShift
	return nil
}

// part returns a column's values for the ops of a tile.
func part[T ~int32 | ~int64](column dag.Column[T], first, n int) []T {
	if first >= len(column) {
		return nil
	}
	return column[first:min(first+n, len(column))]
}

func (c *rankCompiler) sizes(t []Op, first int) error {
	for i, bytes := range part(c.r.Bytes, first, len(t)) {
		if t[i].Flags != 0 {
			t[i].Size = uint64(bytes)
		}
	}
	for i, duration := range part(c.r.Duration, first, len(t)) {
		if duration != 0 && t[i].Flags == 0 { // otherwise the size is right already
			t[i].Size = c.length(duration)
		}
	}
	for i := range min(len(t), max(0, len(c.r.Subkind)-first)) {
		if c.r.Subkind[first+i] == dag.Marker {
			t[i].Size = 0
		}
	}
	for i, flops := range part(c.r.Flops, first, len(t)) {
		if flops > 0 && t[i].Flags == 0 && c.r.Duration.At(first+i) == 0 {
			return c.fail(first+i, "gives flops but no duration; compute durations first "+
				"(--lower roofline:peak-flops=RATE,mem-bw=RATE)")
		}
	}
	return nil
}

// length returns a duration in Program.Unit, and counts whether it was rounded.
func (c *rankCompiler) length(duration dag.Time) uint64 {
	unit, d := uint64(c.o.Unit), uint64(duration)
	switch {
	case unit == 1:
		return d
	case duration < 0: // two's complement, as in the reference
		return uint64(int64(duration) / int64(unit))
	}
	whole := d / unit
	if d != whole*unit {
		c.totals.rounded++
		whole = (d + unit/2) / unit
	}
	return whole
}

func (c *rankCompiler) peers(t []Op, first int) error {
	ranks := uint32(len(c.p.ranks))
	for i, peer := range part(c.r.Peer, first, len(t)) {
		op := &t[i]
		if op.Flags == 0 {
			continue
		}
		op.Peer = peer
		if uint32(peer) < ranks {
			continue
		}
		switch {
		case op.Flags == IsSend:
			return c.fail(first+i, fmt.Sprintf("sends to rank %d, expected 0..%d", peer, ranks-1))
		case op.Flags&IsColl == IsColl:
			continue // Whether this collective has a root is not known yet.
		case peer != dag.AnySource:
			return c.fail(first+i, fmt.Sprintf("receives from rank %d, expected 0..%d or any", peer, ranks-1))
		}
		op.Flags |= AnySource
	}
	return nil
}

// matches sets Op.Match and the tag flags. The loop skips tag 0 of communicator 0, the zero value.
func (c *rankCompiler) matches(t []Op, first int) {
	if c.r.Comm.Len() > first {
		for i := range t {
			if t[i].IsMessage() {
				c.match(&t[i], c.r.Comm.At(first+i), c.r.Tag.At(first+i))
			}
		}
		return
	}
	for i, tag := range part(c.r.Tag, first, len(t)) {
		switch {
		case !t[i].IsMessage():
		case uint64(tag) < firstPair:
			t[i].Match = uint32(tag)
		default:
			c.match(&t[i], 0, tag)
		}
	}
}

func (c *rankCompiler) match(op *Op, comm int32, tag int64) {
	c.totals.special = c.totals.special || tag == dag.AnyTag && op.Flags&IsSend != 0
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
	op.Match = c.tags.number(comm, tag)
}

// places sets streams and NICs.
func (c *rankCompiler) places(t []Op, first int, streams *numbering) error {
	if c.r.Stream.Len() > first || len(streams.numbers) > 0 {
		for i := range t {
			stream := int(c.r.Stream.At(first + i))
			if c.o.DenseStreams {
				if first > 0 && len(streams.numbers) == 0 {
					streams.of(0) // number 0 belongs to the earlier ops
				}
				stream = streams.of(int32(stream))
			}
			if uint(stream) > math.MaxUint16 {
				return c.failPlace(first + i)
			}
			t[i].Stream = uint16(stream)
			c.totals.streams = max(c.totals.streams, stream+1)
		}
	}
	if c.r.NIC.Len() > first {
		for i := range t {
			nic := c.r.NIC.At(first + i)
			if uint32(nic) > math.MaxUint8 {
				return c.failPlace(first + i)
			}
			t[i].NIC = uint8(nic)
			c.totals.nics = max(c.totals.nics, int(nic)+1)
		}
	}
	return nil
}

func (c *rankCompiler) failPlace(i int) error {
	return c.fail(i, fmt.Sprintf("is on stream %d, NIC %d, expected 0..65535 and 0..255", c.r.Stream.At(i),
		c.r.NIC.At(i)))
}

func (c *rankCompiler) fail(i int, why string) error {
	return &NotCompiledError{Rank: c.rank, Op: i, Kind: c.r.Kind[i], Why: why}
}

func (c *rankCompiler) startDependents() {
	d := c.r.StartDependents()
	s := c.startsOfRank()
	*s = startDependents{end: d.End, ops: make([]uint32, len(d.Op))}
	for k, op := range d.Op {
		s.ops[k] = c.base + uint32(op)
	}
	for i := range c.r.StartDeps.End {
		c.ops[i].Waits += uint32(c.r.StartDeps.Count(i))
	}
	c.totals.starts = true
}

// roots collects the rank's ops without dependencies.
func (c *rankCompiler) roots() {
	f, first := &c.p.ranks[c.rank], uint32(0)
	for i, end := range c.r.Deps.End {
		if end == first && c.ops[i].Waits == 0 { // it may wait for starts
			f.roots = append(f.roots, c.base+uint32(i))
		}
		first = end
	}
	for i := len(c.r.Deps.End); i < len(c.ops); i++ {
		if c.ops[i].Waits == 0 {
			f.roots = append(f.roots, c.base+uint32(i))
		}
	}
}

// startsOfRank returns where the start dependents of the rank belong.
func (c *rankCompiler) startsOfRank() *startDependents {
	if c.chunks != nil {
		return &c.ownStarts
	}
	c.makeStarts.Do(func() { c.p.starts = make([]startDependents, c.p.Ranks()) })
	return &c.p.starts[c.rank]
}

// releaseTimes returns where the release times of the rank's ops belong; they are 0.
func (c *rankCompiler) releaseTimes() []uint64 {
	if c.chunks == nil {
		return c.release()[c.base:]
	}
	c.ownRelease = slices.Grow(c.ownRelease[:0], len(c.ops))[:len(c.ops)]
	clear(c.ownRelease)
	return c.ownRelease
}

// facts collects the properties of a tile that replays need before they start.
func (c *rankCompiler) facts(ops []Op) {
	f, t := &c.p.ranks[c.rank], &c.totals
	for i := range ops {
		op := &ops[i]
		switch op.Flags & IsColl {
		case IsSend:
			f.largestSend = max(f.largestSend, op.Size)
			t.sends++
			t.sendBytes = addUp(t.sendBytes, op.Size)
			t.emptySend = t.emptySend || op.Size == 0
			if op.Flags&AnyTag == 0 {
				c.lengths[op.Peer] += lengthHash(op.Rank, uint32(op.Peer), uint64(op.Match), op.Size)
			}
		case IsRecv:
			t.largest = max(t.largest, op.Size)
			if op.Flags&(AnySource|AnyTag) != 0 {
				f.wildcards = true
			} else {
				c.lengths[op.Rank] -= lengthHash(uint32(op.Peer), op.Rank, uint64(op.Match), op.Size)
			}
		case 0:
			f.calcs += op.Size
			t.calcs = addUp(t.calcs, op.Size)
			t.longest = max(t.longest, op.Size)
		}
	}
	t.largest = max(t.largest, f.largestSend)
}

// numbering numbers values 0, 1, 2, ... in order of first use.
type numbering struct {
	numbers []int32
	index   map[int32]int
	small   [64]int32 // by value below 64: its number plus 1; 0: none
}

// list returns the values in order of their numbers, or only 0 if there are none.
func (n *numbering) list() []int32 {
	if len(n.numbers) == 0 {
		return onlyZero
	}
	return n.numbers
}

var onlyZero = []int32{0}

func (n *numbering) of(v int32) int {
	if uint32(v) < uint32(len(n.small)) {
		if n.small[v] == 0 {
			n.small[v] = int32(len(n.numbers) + 1)
			n.numbers = append(n.numbers, v)
		}
		return int(n.small[v]) - 1
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
	return k
}
