// This file keeps a part of a program's ops in memory, for replays of traces that do not fit.

package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/memory"
)

// MaxWindowedOps is the largest number of ops of a program that is replayed in windows: keys of events have 32 bits for
// a count of ops and messages.
const MaxWindowedOps = 1<<31 - 2

// opWindows holds those ops of a program that its replay needs now. The ops of each rank are divided into chunks of
// equal length, which a temporary file has in compiled form. A chunk that is in memory has a frame: as many consecutive
// elements of Program.Ops, and of the arrays that the replay loop has by op. It comes into memory when one of its ops
// may become ready, that is with the first dependency that is met, and leaves it when nothing can refer to any of them
// (see [Program.Drop]).
type opWindows struct {
	file  *chunkFile // shared with clones
	room  *Room      // shared with clones
	limit int64      // of memory, in bytes
	bits  uint       // log2 of the number of ops of a chunk
	mask  uint32
	most  uint32 // number of frames without those for reading ahead

	frameOf []int32 // by chunk: its frame plus 1; 0: not yet in memory; dropped

	ops []Op // Program.Ops

	// By frame:
	chunk  []uint32   // its chunk
	index  []uint32   // index within its rank of its first op
	size   []uint32   // number of its ops
	held   []uint32   // number of reasons to keep it
	far    []uint32   // index within its rank of the farthest dependent of its ops
	words  [][]uint16 // dependents; see dependents.go. Op.first is a position in these
	starts []frameStarts

	free  []uint32 // frames whose chunks have been dropped
	used  uint32   // number of frames that have had a chunk, or are assigned to one
	count uint32   // number of chunks in memory that the replay needs, at most most
	ahead *readAhead

	onDrop func(chunk, first uint32, n int) // see Program.OnDrop; nil: none

	release []uint64 // by element of Ops: see Program.ReleaseTimes; nil: the loop needs none
	reader  *chunkReader
	view    *chunkView // for op; created when needed
	list    []uint32   // scratch space of startDependents
	err     error      // the first error
}

// dropped is the frame of a chunk that has left memory for good: all of its ops have ended.
const dropped = -1

// frameStarts are the start dependents of the ops in a frame.
type frameStarts struct {
	end   []uint32 // by op: the end of its list in index; empty if there are none
	index []uint32 // indices within the rank
}

const (
	// windowedFrom is the default of CompileOptions.OpBytes.
	windowedFrom = 64
	// slotBytes is the memory of an element of Ops, with its share of the arrays of the loop and the dependents.
	slotBytes = 64
	// mostChunkBits limits the length of a chunk. Longer ones compress better, but ranks have unneeded ops in memory.
	mostChunkBits = 8
	// fewestFrames is the number of frames per rank for which chunks are made shorter.
	fewestFrames = 8
)

// wantsWindows reports whether a trace of the given number of ops is replayed in windows.
func (o *CompileOptions) wantsWindows(h *dag.Header, ops int64) bool {
	if !o.Windows || o.HighLevel && slices.Contains(h.Kinds, dag.Coll) {
		return false
	}
	return ops > MaxOps || ops > memory.Limit(o.Context)/cmp.Or(o.OpBytes, windowedFrom)
}

// newWindows returns the windows of a program to compile, with an empty file. first is the number of the first op of
// each batch.
func newWindows(ctx context.Context, h *dag.Header, first []int64) (*opWindows, error) {
	ops, ranks := first[len(first)-1], int64(h.Ranks)
	limit := memory.Limit(ctx)
	w := &opWindows{limit: limit, room: newRoom()}
	slots := limit / 2 / slotBytes
	for w.bits = mostChunkBits; w.bits > 0 && slots>>w.bits < ranks*fewestFrames; w.bits-- {
	}
	w.mask = 1<<w.bits - 1
	chunks := ops>>w.bits + 2*ranks + 2
	if chunks<<w.bits > MaxWindowedOps {
		return nil, fmt.Errorf("the trace has %d ops, expected at most %d", ops, MaxWindowedOps-(2*ranks+2)<<w.bits)
	}
	if err := memory.Check(ctx, "parts of the trace", chunkBytes, chunks); err != nil {
		return nil, err
	}
	w.most = uint32(min(max(slots>>w.bits, 1), MaxOps>>w.bits*aheadShare/(aheadShare+1), chunks))
	file, err := newChunkFile(w.bits, chunks)
	if err != nil {
		return nil, err
	}
	w.file = file
	return w, nil
}

// chunkBytes is the memory of a chunk outside windows, in bytes.
const chunkBytes = 8 + 4

// clone returns windows without a chunk in memory, with the part of the frames that the next clone has.
func (w *opWindows) clone() *opWindows {
	most := w.room.frames(w.most)
	return &opWindows{file: w.file, room: w.room, limit: w.limit, bits: w.bits, mask: w.mask, most: most}
}

// open makes w, which has no chunk in memory, the windows of the program.
func (p *Program) open(w *opWindows) {
	p.windows = w
	w.frameOf = make([]int32, len(w.file.at))
	frames := w.most + w.most/aheadShare
	w.chunk, w.index = make([]uint32, frames), make([]uint32, frames)
	w.size, w.held = make([]uint32, frames), make([]uint32, frames)
	w.far, w.words = make([]uint32, frames), make([][]uint16, frames)
	if p.anyStarts {
		w.starts = make([]frameStarts, frames)
	}
	w.reader = w.file.newReader()
	w.ops = cpu.InHugePages(make([]Op, int(frames)<<w.bits))
	p.Ops, w.ahead = w.ops, newReadAhead(p, w)
}

// openWindows completes the compilation.
func (p *Program) openWindows(explain func(message string, args ...any)) {
	p.open(p.windows)
	if explain != nil {
		explain("replays in windows: %d ops exceed the limit of memory of %s; %s in a temporary file",
			p.NumOps(), units.FormatSize(p.windows.limit), units.FormatSize(p.windows.file.size>>20<<20))
	}
}

// Windowed reports whether only a part of the ops is in memory at a time: the program has more ops than fit into the
// limit of memory, and was compiled with CompileOptions.Windows. Then the replay loop calls [Program.Drop] and, unless
// nothing refers to ops that have ended, [Program.Hold], checks [Program.Failed] and has no timeline.
func (p *Program) Windowed() bool {
	return p.windows != nil
}

// ErrWindowedTimeline reports that a timeline or the critical path needs all ops in memory.
var ErrWindowedTimeline = errors.New("timelines and critical paths need all ops in memory, more than the limit; " +
	"set a higher limit with --max-memory")

// Failed returns an error if ops that the replay needs could not be brought into memory. It is nil in a program with
// all ops in memory.
func (p *Program) Failed() error {
	if p.windows == nil {
		return nil
	}
	return p.windows.err
}

// Close removes the temporary file of a program in windows and of its clones.
func (p *Program) Close() error {
	if p.windows == nil {
		return nil
	}
	return p.windows.file.close()
}

// Hold keeps op i in memory until an additional call of [Program.Drop]. Without windows, it does nothing.
func (p *Program) Hold(i uint32) {
	if w := p.windows; w != nil {
		w.held[i>>w.bits]++
	}
}

// Drop reports that one of the reasons to keep op i in memory has ended. An op has one, which ends when it has ended
// and its dependents know it; a send has one more, which ends when a receive has taken its message. After the last
// Drop, the op must not be used, at the latest when another op comes into memory. Without windows, Drop does nothing.
func (p *Program) Drop(i uint32) {
	if w := p.windows; w != nil {
		w.drop(i >> w.bits)
	}
}

func (w *opWindows) drop(frame uint32) {
	if w.held[frame]--; w.held[frame] == 0 {
		chunk := w.chunk[frame]
		if w.onDrop != nil {
			w.onDrop(chunk, frame<<w.bits, int(w.size[frame]))
		}
		w.frameOf[chunk] = dropped
		w.free = append(w.free, frame)
		w.count--
	}
}

// number returns the number of the op at element i of Ops.
func (w *opWindows) number(p *Program, i uint32) uint32 {
	return p.Start[p.Ops[i].Rank] + w.index[i>>w.bits] + i&w.mask
}

// Numbers replaces positions in Ops by the numbers of ops.
func (p *Program) Numbers(list []uint32) []uint32 {
	if p.windows != nil {
		for k, i := range list {
			list[k] = p.Number(i)
		}
	}
	return list
}

// at returns the element of Ops with an op of a rank, which it brings into memory if necessary; NoOp if the op has been
// dropped or on an error. The op depends on the one at element on; NoOp: none.
func (w *opWindows) at(p *Program, rank, index, on uint32) uint32 {
	chunk := w.file.chunk(p, rank) + index>>w.bits
	frame := w.frameOf[chunk]
	switch {
	case frame > 0:
		return uint32(frame-1)<<w.bits | index&w.mask
	case frame == dropped || !w.load(p, rank, chunk, index, on):
		return NoOp
	}
	return uint32(w.frameOf[chunk]-1)<<w.bits | index&w.mask
}

// load brings a chunk into memory, because of the op with the given index, and reports whether it could.
func (w *opWindows) load(p *Program, rank, chunk, index, on uint32) bool {
	if w.err != nil {
		return false
	}
	if w.count == w.most {
		w.err = w.noRoom(p, rank, index, on)
		return false
	}
	frame, decoded, ok := w.take(rank, chunk)
	if !ok {
		frame = w.freeFrame()
	}
	w.chunk[frame], w.index[frame] = chunk, index&^w.mask
	if !decoded {
		if err := w.fill(w.reader, frame, rank); err != nil {
			w.err = err
			return false
		}
	}
	w.frameOf[chunk] = int32(frame + 1)
	w.count++
	w.request(p, rank, w.far[frame])
	return true
}

// freeFrame returns a frame without a chunk. There is one as long as the chunks that are needed and those that are read
// ahead do not exceed their limits.
func (w *opWindows) freeFrame() uint32 {
	n := len(w.free)
	if n == 0 {
		w.used++
		return w.used - 1
	}
	frame := w.free[n-1]
	w.free = w.free[:n-1]
	return frame
}

// fill decodes the chunk of a frame. It may run beside the replay, which then does not use the frame.
func (w *opWindows) fill(r *chunkReader, frame, rank uint32) error {
	from, to := frame<<w.bits, (frame+1)<<w.bits
	into := loaded{ops: w.ops[from:to], words: w.words[frame][:0]}
	if w.release != nil {
		into.release = w.release[from:to]
	}
	if w.starts != nil {
		into.starts = &w.starts[frame]
	}
	err := r.read(&into, rank, w.chunk[frame], w.index[frame])
	w.words[frame], w.size[frame], w.held[frame], w.far[frame] = into.words, into.n, into.duties, into.farthest
	return err
}

// noRoom returns the error that too many ops are in use.
func (w *opWindows) noRoom(p *Program, rank, index, on uint32) error {
	what := fmt.Sprintf("the ops that can start at the same time, such as rank %d op %d, which depends on no other,",
		rank, index)
	if on != NoOp {
		what = fmt.Sprintf("the ops that can start at the same time, such as rank %d op %d, which waits for op %d but "+
			"not for those between,", rank, index, p.Index(on))
	}
	return &noRoomError{&memory.Error{What: what, Limit: w.limit}}
}

// noRoomError reports that too many ops are in use for the windows of a replay.
type noRoomError struct{ limit *memory.Error }

func (e *noRoomError) Error() string { return e.limit.Error() }
func (e *noRoomError) Unwrap() error { return e.limit }

// roots returns the ops of a rank without dependencies.
func (w *opWindows) roots(p *Program, rank int) []uint32 {
	roots := make([]uint32, 0, len(p.ranks[rank].roots))
	for _, index := range p.ranks[rank].roots {
		if i := w.at(p, uint32(rank), index, NoOp); i != NoOp {
			roots = append(roots, i)
		}
	}
	return roots
}

// appendDependents is [Program.AppendDependents] for an op that has dependents.
func (w *opWindows) appendDependents(p *Program, list []uint32, i uint32) []uint32 {
	op, index := &p.Ops[i], w.index[i>>w.bits]+i&w.mask
	if op.first&listInOp != 0 {
		for near := op.first & inOpMask; near != 0; near >>= inOpBits {
			d := i + near&farthestInOp
			if d>>w.bits != i>>w.bits {
				d = w.at(p, op.Rank, index+near&farthestInOp, i)
			}
			if d != NoOp {
				list = append(list, d)
			}
		}
		return list
	}
	words := w.words[i>>w.bits][op.first:]
	for k := 0; ; k++ {
		word := words[k]
		near := uint32(word) &^ lastDependent
		d := i + near
		switch {
		case near == farDependent:
			d = w.at(p, op.Rank, uint32(words[k+1])|uint32(words[k+2])<<16, i)
			k += 2
		case d>>w.bits != i>>w.bits:
			d = w.at(p, op.Rank, index+near, i)
		}
		if d != NoOp {
			list = append(list, d)
		}
		if word&lastDependent != 0 {
			return list
		}
	}
}

// releaseDependents is [Program.Release] for an op that has dependents.
func (w *opWindows) releaseDependents(p *Program, ready []uint32, i uint32, skipped uint8) []uint32 {
	w.list = w.appendDependents(p, w.list[:0], i)
	for _, d := range w.list {
		if dependent := &p.Ops[d]; dependent.Flags&skipped == 0 {
			if dependent.Waits--; dependent.Waits == 0 {
				ready = append(ready, d)
			}
		}
	}
	return ready
}

// startDependents is [Program.StartDependents].
func (w *opWindows) startDependents(p *Program, i uint32) []uint32 {
	w.list = w.list[:0]
	for _, index := range w.starts[i>>w.bits].of(i & w.mask) {
		if d := w.at(p, p.Ops[i].Rank, index, i); d != NoOp {
			w.list = append(w.list, d)
		}
	}
	return w.list
}

// of returns the start dependents of an op of the frame.
func (s *frameStarts) of(op uint32) []uint32 {
	if len(s.end) == 0 {
		return nil
	}
	first := uint32(0)
	if op > 0 {
		first = s.end[op-1]
	}
	return s.index[first:s.end[op]]
}

// ran is [Program.Ran]: the set has the ops in memory with the flag, and those that were dropped.
func (w *opWindows) ran(p *Program, n int64, flag uint8) Set {
	if n == int64(p.NumOps()) {
		return nil
	}
	s := newSet(p.NumOps())
	for rank := range uint32(p.Ranks()) {
		chunk, start := w.file.chunk(p, rank), p.Start[rank]
		for first := uint32(0); first < p.Start[rank+1]-start; first += 1 << w.bits {
			frame := w.frameOf[chunk+first>>w.bits]
			if frame == 0 {
				continue
			}
			for k := range min(1<<w.bits, p.Start[rank+1]-start-first) {
				if frame == dropped || p.Ops[uint32(frame-1)<<w.bits+k].Flags&flag != 0 {
					s.Add(start + first + k)
				}
			}
		}
	}
	return s
}

// chunkView is a chunk that is not in memory, for a look at its ops.
type chunkView struct {
	loaded
	chunk, rank, first uint32
}

// Order returns a number of the op at position i of Ops that orders ops as their numbers do. Without windows, it is the
// number and the position.
func (p *Program) Order(i uint32) uint32 {
	if w := p.windows; w != nil {
		return w.chunk[i>>w.bits]<<w.bits | i&w.mask
	}
	return i
}

// Orders is more than every result of Order.
func (p *Program) Orders() int {
	if w := p.windows; w != nil {
		return len(w.file.at) << w.bits
	}
	return len(p.Ops)
}

// At returns the position in Ops of the op with an order. It returns false if the op is not in memory.
func (p *Program) At(order uint32) (i uint32, ok bool) {
	w := p.windows
	if w == nil {
		return order, true
	}
	frame := w.frameOf[order>>w.bits]
	return uint32(frame-1)<<w.bits | order&w.mask, frame > 0
}

// Locate returns the rank of the op with an order, and its index within the rank.
func (p *Program) Locate(order uint32) (rank, index uint32) {
	w := p.windows
	if w == nil {
		return p.Ops[order].Rank, uint32(p.Index(order))
	}
	chunk := order >> w.bits
	after := sort.Search(p.Ranks(), func(rank int) bool { return w.file.chunk(p, uint32(rank)) > chunk })
	rank = uint32(after - 1)
	return rank, (chunk-w.file.chunk(p, rank))<<w.bits | order&w.mask
}

// OpAt returns the op with an order. One that is not in memory has its state before the replay, and is valid until the
// next call.
func (p *Program) OpAt(order uint32) *Op {
	if i, ok := p.At(order); ok {
		return &p.Ops[i]
	}
	rank, index := p.Locate(order)
	return &p.windows.look(p, rank, index).ops[index&p.windows.mask]
}

// Chunk returns the number of the part of the trace with an op of the given order, below Chunks, and the position of
// the op in it.
func (p *Program) Chunk(order uint32) (chunk, k uint32) {
	return order >> p.windows.bits, order & p.windows.mask
}

// Chunks returns the number of parts of the trace that come into memory together. It is 0 without windows.
func (p *Program) Chunks() int {
	if p.windows == nil {
		return 0
	}
	return len(p.windows.file.at)
}

// OnDrop makes Drop call do when ops leave memory: a whole chunk, see [Program.Chunk], whose n ops are at the positions
// from first on.
func (p *Program) OnDrop(do func(chunk, first uint32, n int)) {
	p.windows.onDrop = do
}

// op returns the op of a number. An op that is not in memory has its state before the replay.
func (p *Program) op(number uint32) *Op {
	if p.folded != nil {
		op := p.folded.op(number)
		return &op
	}
	if p.windows == nil {
		return &p.Ops[number]
	}
	rank, index := p.locate(number)
	w := p.windows
	if frame := w.frameOf[w.file.chunk(p, rank)+index>>w.bits]; frame > 0 {
		return &p.Ops[uint32(frame-1)<<w.bits|index&w.mask]
	}
	return &w.look(p, rank, index).ops[index&w.mask]
}

// locate returns rank and index of an op.
func (p *Program) locate(number uint32) (rank, index uint32) {
	k, _ := slices.BinarySearchFunc(p.Start, number, func(start, number uint32) int {
		if start <= number {
			return -1
		}
		return 1
	})
	rank = uint32(k - 1)
	return rank, number - p.Start[rank]
}

// look returns the chunk of an op, read again. If that fails, its ops are zero and the error is recorded.
func (w *opWindows) look(p *Program, rank, index uint32) *chunkView {
	if w.view == nil {
		w.view = &chunkView{chunk: NoOp}
		w.view.ops = make([]Op, 1<<w.bits)
		w.view.starts = new(frameStarts)
	}
	v := w.view
	if chunk := w.file.chunk(p, rank) + index>>w.bits; v.chunk != chunk {
		v.chunk, v.rank, v.first = chunk, rank, index&^w.mask
		v.words = v.words[:0]
		w.err = cmp.Or(w.err, w.reader.read(&v.loaded, rank, chunk, v.first))
	}
	return v
}

// waitsForEnd returns how often op i depends on the end of op on. Both are numbers of ops of a rank.
func (p *Program) waitsForEnd(i, on uint32) (n int) {
	if p.windows == nil {
		return count(p.AppendDependents(nil, on), i)
	}
	rank, index := p.locate(on)
	v := p.windows.look(p, rank, index)
	op := &v.ops[index&p.windows.mask]
	if p.windows.err != nil {
		return 0
	}
	if op.first&listInOp != 0 {
		for near := op.first & inOpMask; near != 0; near >>= inOpBits {
			if near&farthestInOp == i-on {
				n++
			}
		}
		return n
	}
	words := v.words[op.first:]
	for k := 0; ; k++ {
		word := words[k]
		d := index + uint32(word)&^lastDependent
		if d == index { // farDependent
			d = uint32(words[k+1]) | uint32(words[k+2])<<16
			k += 2
		}
		if d == index+i-on {
			n++
		}
		if word&lastDependent != 0 {
			return n
		}
	}
}

// waitsForStart returns how often op i depends on the start of op on. Both are numbers of ops of a rank.
func (p *Program) waitsForStart(i, on uint32) int {
	if p.windows == nil {
		return count(p.StartDependents(on), i)
	}
	rank, index := p.locate(on)
	return count(p.windows.look(p, rank, index).starts.of(index&p.windows.mask), index+i-on)
}

func count(list []uint32, i uint32) (n int) {
	for _, k := range list {
		if k == i {
			n++
		}
	}
	return n
}

// EachInMemory calls do with each op in memory, by number, and its position in Ops: with all ops, except in windows.
func (p *Program) EachInMemory(do func(i uint32, op *Op)) {
	if p.windows == nil {
		for i := range p.Ops {
			do(uint32(i), &p.Ops[i])
		}
		return
	}
	w := p.windows
	for rank := range uint32(p.Ranks()) {
		chunk, n := w.file.chunk(p, rank), p.Start[rank+1]-p.Start[rank]
		for first := uint32(0); first < n; first += 1 << w.bits {
			if frame := w.frameOf[chunk+first>>w.bits]; frame > 0 {
				for k := range min(1<<w.bits, n-first) {
					i := uint32(frame-1)<<w.bits + k
					do(i, &p.Ops[i])
				}
			}
		}
	}
}

// EachOp calls do with each op, in order, and its index within the rank. In windows, it reads all ops again.
func (p *Program) EachOp(do func(op *Op, index uint32)) error {
	if p.windows == nil {
		for rank := range p.Ranks() {
			for index := range p.Start[rank+1] - p.Start[rank] {
				do(p.op(p.Start[rank]+index), index)
			}
		}
		return nil
	}
	w := p.windows
	for rank := range uint32(p.Ranks()) {
		n := p.Start[rank+1] - p.Start[rank]
		for index := uint32(0); index < n; index++ {
			v := w.look(p, rank, index)
			if w.err != nil {
				return w.err
			}
			do(&v.ops[index&w.mask], index)
		}
	}
	return nil
}

// compileChunks compiles a rank into chunks of the file.
func (c *rankCompiler) compileChunks() error {
	n, start := c.r.Len(), c.base
	if n > MaxOps {
		return fmt.Errorf("rank %d has %d ops, expected at most %d", c.rank, n, MaxOps)
	}
	size := int64(unsafe.Sizeof(Op{}))
	if err := memory.Check(c.o.Context, "ops of a rank of the simulation", size, int64(n)); err != nil {
		return err
	}
	c.ops = slices.Grow(c.ops[:0], n)[:n]
	c.base = 0
	c.ownStarts, c.ownRelease = startDependents{}, c.ownRelease[:0]
	if err := c.compile(); err != nil {
		return err
	}
	err := c.chunks.write(c, start)
	c.words, c.encoded = c.words[:0], c.encoded[:0]
	return err
}
