package store

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestPackColumn checks columns whose values differ by up to every width, at the ends of their types.
func TestPackColumn(t *testing.T) {
	check := func(values []int64, packed []packedColumn, width uint8) {
		t.Helper()
		if len(packed) != 1 || packed[0].column != 7 || packed[0].frame(0).width != width {
			t.Fatalf("%d values: packed %+v, expected width %d", len(values), packed, width)
		}
		for first := range len(values) + 1 {
			for n := range 3 {
				want := make([]int64, n+1)
				copy(want, values[first:])
				got := slices.Repeat([]int64{-77}, n+1)
				if set := unpack(&packed[0], got, first); set != (first < len(values)) || set && !slices.Equal(got, want) {
					t.Fatalf("width %d from %d: %v, %v, expected %v", width, first, set, got, want)
				}
			}
		}
	}
	for _, c := range []struct {
		least, most int64
		width       uint8
	}{
		{5, 5, 0}, {-3, -3, 0}, {0, 255, 1}, {-255, 0, 1}, {0, 256, 2}, {-1, 65534, 2}, {-1, 65535, 4},
		{math.MinInt64, math.MinInt64 + math.MaxUint32, 4}, {math.MaxInt64 - math.MaxUint32 - 1, math.MaxInt64, 8},
		{math.MinInt64, math.MaxInt64, 8},
	} {
		values := []int64{c.most, c.least, c.most, c.least + (c.most-c.least)/2, c.least}
		if uint64(c.most)-uint64(c.least) > math.MaxInt64 {
			values[3] = 0
		}
		check(values, packColumn(nil, 7, values), c.width)
	}
	for _, c := range []struct {
		values []int64
		width  uint8
	}{
		{[]int64{-1500, 6_000_000_000_500, -500}, 8}, // too far from each other
		{[]int64{7, 4_000_000_000_007, 1007}, 4},
		{[]int64{-4_000_000_000_000, 0, -1000}, 4},
		{[]int64{0, 4_000_000_000_001, 1000}, 8},
		{[]int64{0, math.MaxUint32 * 1000, 1000}, 4},
		{[]int64{0, (math.MaxUint32 + 1) * 1000, 1000}, 8},
	} {
		check(c.values, packColumn(nil, 7, c.values), c.width)
	}
	narrow := []int32{math.MinInt32, math.MaxInt32, 0, -1}
	wide := make([]int64, len(narrow))
	for i, v := range narrow {
		wide[i] = int64(v)
	}
	check(wide, packColumn(nil, 7, narrow), 4)
	if packed := packColumn(nil, 7, []int32{}); packed != nil {
		t.Errorf("an empty column is packed: %v", packed)
	}
}

// TestPackFrames checks columns of several frames whose values differ by other widths and units.
func TestPackFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, frameRows - 1, frameRows, frameRows + 1, 5*frameRows + 77} {
		values := make([]dag.Time, n)
		for i := range values {
			unit := []int64{1, 1000, 1, 1000, 1 << 40, 1000}[i/frameRows]
			values[i] = dag.Time(rng.Int64N(1<<(4+5*(i/frameRows))) * unit)
		}
		var p packedColumn
		for range 2 { // the second time in the memory of the first
			p = packValues(values, p.data)
		}
		for range 100 {
			first := rng.IntN(n)
			got := make([]dag.Time, 1+rng.IntN(n-first))
			if !unpack(&p, got, first) || !slices.Equal(got, values[first:first+len(got)]) {
				t.Fatalf("%d values: other ones from %d to %d", n, first, first+len(got))
			}
		}
	}
}

// TestFrugal checks that writing with little memory, from a source whose ranks have to be copied, gives the bytes of
// writing the trace in memory.
func TestFrugal(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := dag.NewBuilder(30)
	for rank := range 30 {
		r := b.Rank(rank)
		for i := range rng.IntN(400) {
			r.Add(dag.Op{Kind: dag.Send, Bytes: rng.Int64N(1 << (1 + rank)), Peer: rng.Int32N(30), Tag: int64(rng.IntN(3)) - 1,
				Duration: dag.Time(rng.Int64N(1 << (2 * rank))), Stream: rng.Int32N(3)})
			if i > 0 && rng.IntN(2) == 0 {
				r.Requires(i, rng.IntN(i))
			}
		}
	}
	trace := b.Trace()
	want := encode(t, trace)
	for _, frugal := range []bool{true, false} {
		var file bytes.Buffer
		s := &renewed{dag.FromTrace(trace)}
		if err := writeSource(&file, s, frugal); err != nil || !bytes.Equal(file.Bytes(), want) {
			t.Errorf("frugal %v: %d bytes, error %v, expected %d bytes", frugal, file.Len(), err, len(want))
		}
	}
}

// TestFrugalDenseRanks checks ranks that are compressed while they wait, with values that can and that cannot be.
func TestFrugalDenseRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := dag.NewBuilder(5)
	for rank := range 5 {
		r := b.Rank(rank)
		for i := range leastDense + rng.IntN(1000) {
			op := dag.Op{Kind: dag.Calc, Duration: dag.Time(rng.Uint64() >> 1)}
			if i%3 > 0 {
				op = dag.Op{Kind: dag.Kind(i % 3), Bytes: rng.Int64N(1 << (1 + 9*rank)), Peer: int32(i % 5), Tag: int64(i / 7),
					Stream: int32(i % 2)}
			}
			r.Add(op)
			if i > 0 {
				r.Requires(i, i-1-rng.IntN(min(i, 300)))
			}
		}
	}
	trace := b.Trace()
	dense := pack(trace.Ranks[1])
	dense.compress(nil)
	if p := dense.find(fieldColumn + int(dag.FieldTag)); !p.dense {
		t.Error("regular tags are not compressed")
	}
	var file bytes.Buffer
	err := writeSource(&file, &renewed{dag.FromTrace(trace)}, true)
	if want := encode(t, trace); err != nil || !bytes.Equal(file.Bytes(), want) {
		t.Errorf("%d bytes, error %v, expected %d bytes", file.Len(), err, len(want))
	}
}

// TestFrugalLongRank checks lists of a packed rank that several row groups share.
func TestFrugalLongRank(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	for i := range 2*maxGroupRows + 5 {
		r.Calc(7)
		for k := range i % 3 {
			r.Requires(i, i-1-k)
		}
	}
	trace := b.Trace()
	var file bytes.Buffer
	if err := writeSource(&file, &renewed{dag.FromTrace(trace)}, true); err != nil || !bytes.Equal(file.Bytes(), encode(t, trace)) {
		t.Errorf("%d bytes, error %v", file.Len(), err)
	}
}

// renewed is a trace whose ranks are overwritten by the next call of the reader.
type renewed struct{ dag.Source }

func (s *renewed) Header() (*dag.Header, error) {
	h, err := s.Source.Header()
	header := *h
	header.Stable = false
	return &header, err
}

func (s *renewed) NewReader(columns dag.Columns) dag.Reader {
	read := s.Source.NewReader(columns)
	var last []*dag.Rank
	return func(b dag.Batch) ([]*dag.Rank, error) {
		for _, r := range last {
			clear(r.Kind)
			clear(r.Bytes)
			clear(r.Duration)
			clear(r.Deps.Off)
		}
		ranks, err := read(b)
		last = nil
		for _, r := range ranks {
			last = append(last, r.Clone())
		}
		return last, err
	}
}
