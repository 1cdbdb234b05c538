package ideal

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/tracedag/tracedag/sim"
)

// history keeps the final state of the ops that have left memory, in a temporary file, for the critical path.
type history struct {
	file   *sim.Scratch
	at     []int64 // by chunk: its position; 0: none, since the file begins with a byte of its own
	size   []int32 // by chunk: its bytes
	end    int64
	buffer []byte // chunks to write at end
	raw    []byte
	packed []byte
	chunk  uint32 // the chunk of states
	states []opState
	err    error // the first error
}

// opState is the final state of an op.
type opState struct {
	ready uint64
	cause cause
	link  uint32 // of a receive: the order of the send of its message
}

// noChunk is the number of no chunk.
const noChunk = 1<<32 - 1

// historyBuffer is the number of bytes written at a time.
const historyBuffer = 1 << 20

func newHistory(chunks int) (*history, error) {
	file, err := sim.NewScratch("tracedag-causes-*", "for the critical path")
	if err != nil {
		return nil, err
	}
	return &history{file: file, end: 1, at: make([]int64, chunks), size: make([]int32, chunks), chunk: noChunk}, nil
}

// add stores the states of a chunk, whose ops are at the positions from first on.
func (h *history) add(r *run, chunk, first uint32, n int) {
	h.raw = h.raw[:0]
	order, last := r.p.Order(first), uint64(0)
	for k := range uint32(n) {
		i := first + k
		h.raw = binary.AppendVarint(h.raw, int64(r.ready[i]-last))
		last = r.ready[i]
		c := int64(0)
		if r.cause[i] != 0 {
			c = int64(order) + int64(k) - int64(r.cause[i].op())
			c = c<<2 | int64(r.cause[i]&1)<<1 | 1
		}
		h.raw = binary.AppendVarint(h.raw, c)
		if op := &r.ops[i]; op.Flags&sim.IsRecv != 0 {
			h.raw = binary.AppendVarint(h.raw, int64(op.Link())-int64(order)-int64(k))
		}
		r.cause[i] = 0 // for the next op there
	}
	h.buffer = slices.Grow(h.buffer, s2.MaxEncodedLen(len(h.raw)))
	packed := s2.Encode(h.buffer[len(h.buffer):cap(h.buffer)], h.raw)
	h.at[chunk], h.size[chunk] = h.end+int64(len(h.buffer)), int32(len(packed))
	h.buffer = h.buffer[:len(h.buffer)+len(packed)]
	if len(h.buffer) >= historyBuffer {
		h.write()
	}
}

// write writes the buffer.
func (h *history) write() {
	if _, err := h.file.WriteAt(h.buffer, h.end); err != nil && h.err == nil {
		h.err = h.file.Fail(err)
	}
	h.end += int64(len(h.buffer))
	h.buffer = h.buffer[:0]
}

// state returns the state of an op that has left memory.
func (h *history) state(p *sim.Program, order uint32) opState {
	chunk, k := p.Chunk(order)
	if chunk != h.chunk {
		h.load(p, chunk, order-k)
	}
	if int(k) >= len(h.states) {
		return opState{}
	}
	return h.states[k]
}

// load reads the states of a chunk, whose first op has the given order.
func (h *history) load(p *sim.Program, chunk, first uint32) {
	h.chunk, h.states = chunk, h.states[:0]
	if len(h.buffer) > 0 {
		h.write()
	}
	h.packed = slices.Grow(h.packed[:0], int(h.size[chunk]))[:h.size[chunk]]
	raw, err := []byte(nil), h.err
	if err == nil {
		_, err = h.file.ReadAt(h.packed, h.at[chunk])
	}
	if err == nil {
		raw, err = s2.Decode(h.raw[:cap(h.raw)], h.packed)
	}
	if err != nil {
		if h.err == nil {
			h.err = h.file.Fail(err)
		}
		return
	}
	next := func() int64 {
		v, n := binary.Varint(raw)
		raw = raw[max(n, 0):]
		return v
	}
	last := uint64(0)
	for k := uint32(0); len(raw) > 0; k++ {
		before := len(raw)
		s := opState{ready: last + uint64(next())}
		last = s.ready
		if c := next(); c != 0 {
			s.cause = causedBy(uint32(int64(first)+int64(k)-c>>2), cause(c>>1&1))
		}
		if p.OpAt(first+k).Flags&sim.IsRecv != 0 {
			s.link = uint32(int64(first) + int64(k) + next())
		}
		if h.states = append(h.states, s); len(raw) == before {
			return
		}
	}
}
