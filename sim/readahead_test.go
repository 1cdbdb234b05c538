package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestReadAhead checks that the next chunk of a rank and one with a far dependent are decoded before they are needed,
// that they have the ops of the file, and that they take no frame from the replay.
func TestReadAhead(t *testing.T) {
	const ops = 20000
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r, random := b.Rank(rank), rand.New(rand.NewPCG(1, uint64(rank)))
		for i := range ops {
			r.Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(random.Int64N(1 << 40))})
			if i > 0 {
				r.Requires(i, i-1)
			}
		}
		r.Requires(ops-1, 0)
	}
	p := windowed(t, b.Trace(), 2*ops*windowedFrom-1)
	w := p.windows
	first := w.file.chunk(p, 1)
	last := first + (ops-1)>>w.bits
	if i := p.Roots(1); len(i) != 1 || w.count != 1 {
		t.Fatalf("roots %v, %d chunks", i, w.count)
	}
	for slot, chunk := range []uint32{first + 1, last} {
		if f := w.ahead.frame[1][slot]; f == 0 || w.chunk[f-1] != chunk {
			t.Fatalf("slot %d has frame %d, expected one with chunk %d", slot, f, chunk)
		} else {
			w.fulfil(w.file.newReader(), f-1)
		}
	}
	if w.frameOf[first+1] != 0 || w.count != 1 {
		t.Error("a chunk that is read ahead counts as in memory")
	}
	free := w.ahead.free
	for _, chunk := range []uint32{last, first + 1} {
		frame, decoded, ok := w.take(1, chunk)
		if !ok || !decoded || w.chunk[frame] != chunk {
			t.Fatalf("frame %d with chunk %d, %v, %v; expected %d", frame, w.chunk[frame], decoded, ok, chunk)
		}
		index := w.index[frame]
		v := w.look(p, 1, index)
		n := uint32(len(v.ops))
		if chunk == last {
			n = ops - index
		}
		if got := w.ops[frame<<w.bits:]; w.size[frame] != n || !slices.Equal(got[:n], v.ops[:n]) || w.err != nil {
			t.Errorf("chunk %d has %d ops, expected %d, or they differ", chunk, w.size[frame], n)
		}
	}
	if w.ahead.free != free+2 {
		t.Errorf("%d frames for reading ahead, expected %d", w.ahead.free, free+2)
	}
	if _, _, ok := w.take(1, last); ok {
		t.Error("a frame was taken twice")
	}
}
