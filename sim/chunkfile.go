// This file reads and writes the chunks of windows.

package sim

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/s2"

	"github.com/tracedag/tracedag/internal/cpu"
)

// chunkFile is a temporary file of compiled ops in chunks, each compressed by itself.
type chunkFile struct {
	file *Scratch
	bits uint // log2 of the number of ops of a chunk

	// By chunk: its position. Each rank has an element more, the end of its last chunk; see chunk.
	at []int64

	mutex  sync.Mutex
	size   int64
	thread *aheadThread // that reads ahead; nil: not yet needed
}

// newChunkFile returns an empty file for the given number of elements of at.
func newChunkFile(bits uint, chunks int64) (*chunkFile, error) {
	file, err := NewScratch("tracedag-replay-*", "of a replay that exceeds the limit of memory")
	if err != nil {
		return nil, err
	}
	return &chunkFile{file: file, bits: bits, at: make([]int64, chunks)}, nil
}

// chunk returns the first chunk of a rank. A rank of n ops from number s on has at most (s+n)>>bits - s>>bits + 1
// chunks, so with its end they fit before those of the next rank.
func (f *chunkFile) chunk(p *Program, rank uint32) uint32 {
	return f.chunkAt(p.Start[rank], rank)
}

func (f *chunkFile) chunkAt(start, rank uint32) uint32 {
	return start>>f.bits + 2*rank
}

// Bits of the first byte of an op in a chunk: which fields follow the byte of Op.Flags, as variable-length integers.
const (
	hasSize  = 1 << iota // Op.Size
	hasPeer              // Op.Peer
	hasMatch             // Op.Match
	hasPlace             // Op.Stream, Op.NIC
	hasWaits             // Op.Waits, otherwise 1
	hasWords             // number and words of the dependents, or 0 and Op.first without listInOp
	hasStart             // number and distances of the start dependents
	hasTime              // release time
)

// chunkWriter encodes the ranks of one goroutine.
type chunkWriter struct {
	f      *chunkFile
	raw    []byte
	packed []byte // the chunks of the rank
}

// newWriter returns a writer for some of the ranks.
func (f *chunkFile) newWriter() *chunkWriter {
	return &chunkWriter{f: f}
}

// write writes the rank that was compiled last, whose first op has the number start.
func (w *chunkWriter) write(c *rankCompiler, start uint32) error {
	n := len(c.ops)
	if n == 0 {
		return nil
	}
	first := w.f.chunkAt(start, uint32(c.rank))
	at := w.f.at[first:]
	w.packed = w.packed[:0]
	for i := 0; i < n; i += 1 << w.f.bits {
		at[i>>w.f.bits] = int64(len(w.packed))
		w.raw = w.raw[:0]
		for k := i; k < min(i+1<<w.f.bits, n); k++ {
			w.appendOp(c, k)
		}
		w.packed = slices.Grow(w.packed, s2.MaxEncodedLen(len(w.raw)))
		free := w.packed[len(w.packed):cap(w.packed)]
		w.packed = w.packed[:len(w.packed)+len(s2.Encode(free, w.raw))]
	}
	chunks := (n-1)>>w.f.bits + 1
	w.f.mutex.Lock()
	position := w.f.size
	w.f.size += int64(len(w.packed))
	w.f.mutex.Unlock()
	for k := range at[:chunks] {
		at[k] += position
	}
	at[chunks] = position + int64(len(w.packed))
	if _, err := w.f.file.WriteAt(w.packed, position); err != nil {
		return w.f.file.Fail(err)
	}
	return nil
}

// appendOp encodes op i of the rank.
func (w *chunkWriter) appendOp(c *rankCompiler, i int) {
	op := &c.ops[i]
	head := uint8(0)
	at := len(w.raw)
	b := append(w.raw, 0, op.Flags)
	if op.Peer != 0 {
		head |= hasPeer
		b = binary.AppendVarint(b, int64(op.Peer)-int64(op.Rank))
	}
	if op.Match != 0 {
		head |= hasMatch
		b = binary.AppendUvarint(b, uint64(op.Match))
	}
	if op.Stream != 0 || op.NIC != 0 {
		head |= hasPlace
		b = binary.AppendUvarint(append(b, op.NIC), uint64(op.Stream))
	}
	if op.Waits != 1 {
		head |= hasWaits
		b = binary.AppendUvarint(b, uint64(op.Waits))
	}
	switch {
	case op.first == noDependents:
	case op.first&listInOp != 0:
		head |= hasWords
		b = binary.AppendUvarint(append(b, 0), uint64(op.first&^listInOp))
	default:
		head |= hasWords
		words := c.words[op.first:]
		words = words[:listWords(words)]
		b = binary.AppendUvarint(b, uint64(len(words)))
		for _, word := range words {
			b = binary.LittleEndian.AppendUint16(b, word)
		}
	}
	if starts := c.ownStarts.of(i); len(starts) > 0 {
		head |= hasStart
		b = binary.AppendUvarint(b, uint64(len(starts)))
		for _, d := range starts {
			b = binary.AppendVarint(b, int64(d)-int64(i))
		}
	}
	if len(c.ownRelease) > 0 && c.ownRelease[i] != 0 {
		head |= hasTime
		b = binary.AppendUvarint(b, c.ownRelease[i])
	}
	if op.Size != 0 {
		head |= hasSize
		b = binary.AppendUvarint(b, op.Size)
	}
	b[at] = head
	w.raw = b
}

// listWords returns the number of words of the first list of dependents.
func listWords(words []uint16) int {
	for k := 0; ; k++ {
		word := words[k]
		if word&^lastDependent == farDependent {
			k += 2
		}
		if word&lastDependent != 0 {
			return k + 1
		}
	}
}

// of returns the start dependents of op i of the rank.
func (s *startDependents) of(i int) []uint32 {
	if s.end == nil {
		return nil
	}
	first := uint32(0)
	if i > 0 {
		first = s.end[i-1]
	}
	return s.ops[first:s.end[i]]
}

// loaded is a chunk in memory. release and starts may be nil.
type loaded struct {
	ops     []Op // as many as a chunk has; those beyond the end of the rank are unchanged
	words   []uint16
	starts  *frameStarts
	release []uint64
	n       uint32 // number of ops
	duties  uint32 // sum over its ops of the calls of Program.Drop that they need

	farthest uint32 // index within the rank of the farthest dependent on the end of an op; 0: none
}

// chunkReader reads chunks, one at a time.
type chunkReader struct {
	f           *chunkFile
	packed, raw []byte
}

func (f *chunkFile) newReader() *chunkReader {
	return &chunkReader{f: f}
}

var errChunk = errors.New("a part of the trace has changed")

// read reads a chunk of a rank, whose first op has the given index.
func (r *chunkReader) read(into *loaded, rank, chunk, first uint32) error {
	for k := 0; k < prefetchAhead; k += prefetchedOps {
		into.prefetch(k)
	}
	from, to := r.f.at[chunk], r.f.at[chunk+1]
	r.packed = slices.Grow(r.packed[:0], int(to-from))[:to-from]
	if _, err := r.f.file.ReadAt(r.packed, from); err != nil {
		return r.f.file.Fail(err)
	}
	raw, err := s2.Decode(r.raw[:cap(r.raw)], r.packed)
	if err != nil {
		return r.f.file.Fail(err)
	}
	r.raw = raw
	if !into.decode(raw, rank, first) {
		return r.f.file.Fail(errChunk)
	}
	return nil
}

const (
	prefetchAhead = 16 // ops
	prefetchedOps = 4  // two cache lines
)

// prefetch prefetches prefetchedOps elements of ops from the k-th on: a frame that was in use long ago is in no cache.
func (l *loaded) prefetch(k int) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(l.ops))) + uintptr(k)*unsafe.Sizeof(Op{})
	cpu.PrefetchLines(at, at+prefetchedOps/2*unsafe.Sizeof(Op{}))
}

// decode decodes the ops of a chunk. It returns false if they are invalid.
func (l *loaded) decode(b []byte, rank, first uint32) bool {
	d := chunkDecoder{b: b}
	l.n, l.duties, l.farthest = 0, 0, 0
	if l.starts != nil {
		l.starts.end, l.starts.index = l.starts.end[:0], l.starts.index[:0]
	}
	for k := 0; len(d.b) >= 2; k++ {
		if k == len(l.ops) {
			return false
		}
		if k%prefetchedOps == 0 {
			l.prefetch(k + prefetchAhead)
		}
		head := d.b[0]
		op := Op{Rank: rank, Flags: d.b[1], Waits: 1, first: noDependents}
		d.b = d.b[2:]
		if head&hasPeer != 0 {
			op.Peer = int32(d.signed() + int64(rank))
		}
		if head&hasMatch != 0 {
			op.Match = uint32(d.number())
		}
		if head&hasPlace != 0 && len(d.b) > 0 {
			op.NIC, d.b = d.b[0], d.b[1:]
			op.Stream = uint16(d.number())
		}
		if head&hasWaits != 0 {
			op.Waits = uint32(d.number())
		}
		if head&hasWords != 0 {
			n := d.number()
			if n > uint64(len(d.b)/2) {
				return false
			}
			if n == 0 {
				op.first = listInOp | uint32(d.number())
				for near := op.first & inOpMask; near != 0; near >>= inOpBits {
					l.farthest = max(l.farthest, first+uint32(k)+near&farthestInOp)
				}
			} else {
				op.first = uint32(len(l.words))
				for i := range n {
					l.words = append(l.words, binary.LittleEndian.Uint16(d.b[2*i:]))
				}
				d.b = d.b[2*n:]
				l.farthest = max(l.farthest, farthestOf(l.words[op.first:], first+uint32(k)))
			}
		}
		if head&hasStart != 0 {
			n := d.number()
			if n > uint64(len(d.b)) {
				return false
			}
			for range n {
				start := uint32(int64(first) + int64(k) + d.signed())
				if l.starts != nil {
					l.starts.index = append(l.starts.index, start)
				}
			}
		}
		if l.starts != nil {
			l.starts.end = append(l.starts.end, uint32(len(l.starts.index)))
		}
		release := uint64(0)
		if head&hasTime != 0 {
			release = d.number()
		}
		if l.release != nil {
			l.release[k] = release
		}
		if head&hasSize != 0 {
			op.Size = d.number()
		}
		l.ops[k] = op
		l.n++
		l.duties++
		if op.Flags&IsColl == IsSend {
			l.duties++
		}
	}
	return !d.bad && len(d.b) == 0
}

// farthestOf returns the farthest dependent of op index of a rank, whose dependents are the given words.
func farthestOf(words []uint16, index uint32) (farthest uint32) {
	for k := 0; k < len(words); k++ {
		near := uint32(words[k]) &^ lastDependent
		if near != farDependent {
			farthest = max(farthest, index+near)
		} else if k+2 < len(words) {
			farthest = max(farthest, uint32(words[k+1])|uint32(words[k+2])<<16)
			k += 2
		}
	}
	return farthest
}

// chunkDecoder decodes numbers from the front of b.
type chunkDecoder struct {
	b   []byte
	bad bool // a number was invalid
}

func (d *chunkDecoder) number() uint64 {
	if len(d.b) > 0 && d.b[0] < 0x80 {
		v := uint64(d.b[0])
		d.b = d.b[1:]
		return v
	}
	return d.long()
}

func (d *chunkDecoder) long() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return math.MaxUint64
	}
	d.b = d.b[n:]
	return v
}

func (d *chunkDecoder) signed() int64 {
	u := d.number()
	return int64(u>>1) ^ -int64(u&1)
}
