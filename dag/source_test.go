package dag

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
)

// sourceTrace returns a trace of some ranks, of which rank i has i ops, the k-th of them named by k.
func sourceTrace(ranks int) *Trace {
	b := NewBuilder(ranks)
	b.Meta().Title = "ranks"
	for rank := range ranks {
		for k := range rank {
			b.Rank(rank).Add(Op{Kind: Kind(rank % 3), Duration: Time(k), Name: fmt.Sprint(k)})
		}
	}
	return b.Trace()
}

// threes delivers a trace three ranks at a time and overwrites them when it is called again. It fails in the batches of
// the given ranks.
type threes struct {
	trace *Trace
	fails []int
	lacks int           // ranks that are missing from the last batch
	asked atomic.Uint32 // columns of the last reader
}

var errThree = errors.New("a faulty batch")

func (s *threes) Header() (*Header, error) {
	h := &Header{Meta: s.trace.Meta, Comms: s.trace.Comms, Ranks: len(s.trace.Ranks), Ops: s.trace.Ops()}
	for first := 0; first < h.Ranks; first += 3 {
		h.Batches = append(h.Batches, Batch{First: first, Last: min(first+3, h.Ranks)})
	}
	return h, nil
}

func (s *threes) NewReader(c Columns) Reader {
	s.asked.Store(uint32(c))
	var ranks []*Rank
	return func(b Batch) ([]*Rank, error) {
		for i := range ranks {
			clear(ranks[i].Kind)
			clear(ranks[i].Duration)
		}
		for rank := b.First; rank < b.Last; rank++ {
			if slices.Contains(s.fails, rank) {
				return nil, fmt.Errorf("rank %d: %w", rank, errThree)
			}
		}
		ranks = ranks[:0]
		for rank := b.First; rank < b.Last; rank++ {
			ranks = append(ranks, s.trace.Ranks[rank].Clone())
		}
		if b.Last == len(s.trace.Ranks) {
			return ranks[:len(ranks)-s.lacks], nil
		}
		return ranks, nil
	}
}

func (s *threes) Close() error { return nil }

func TestReadAll(t *testing.T) {
	want := sourceTrace(20)
	s := &threes{trace: want}
	got, err := ReadAll(s)
	if err != nil || !reflect.DeepEqual(got, want) || s.asked.Load() != uint32(All) {
		t.Errorf("got another trace, error %v", err)
	}
	s.fails = []int{17, 10, 11}
	if _, err := ReadAll(s); !errors.Is(err, errThree) || err.Error() != "rank 10: a faulty batch" {
		t.Errorf("error %v, expected that of the first batch", err)
	}
	s.fails, s.lacks = nil, 1
	if _, err := ReadAll(s); err == nil || err.Error() != "reader returned 1 ranks, expected ranks 18 to 19" {
		t.Errorf("error %v for a missing rank", err)
	}
}

func TestFromTrace(t *testing.T) {
	want := sourceTrace(5)
	s := FromTrace(want)
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Header(); again != h {
		t.Error("the header is made twice")
	}
	if h.Title != "ranks" || h.Ranks != 5 || h.Ops != 10 || !h.Stable || !reflect.DeepEqual(h.Comms, want.Comms) ||
		!slices.Equal(h.Kinds, []Kind{Calc, Send, Recv}) {
		t.Errorf("header %+v", h)
	}
	read := s.NewReader(Replay)
	if batches := []Batch{{0, 2, 1, 0, 0}, {2, 3, 2, 0, 0}, {3, 4, 3, 0, 0}, {4, 5, 4, 0, 0}}; !slices.Equal(h.Batches,
		batches) {
		t.Errorf("batches %+v, expected %+v: one per rank with ops", h.Batches, batches)
	}
	for i, b := range h.Batches {
		ranks, err := read(b)
		if err != nil || !slices.Equal(ranks, want.Ranks[b.First:b.Last]) {
			t.Errorf("batch %d is %+v, or a copy, error %v", i, b, err)
		}
	}
	got, err := ReadAll(s)
	if err != nil || got == want || !reflect.DeepEqual(got, want) || got.Ranks[0] != want.Ranks[0] {
		t.Errorf("the whole is another trace, or copied, error %v", err)
	}
	if kinds := new(Trace).Kinds(); kinds != nil {
		t.Errorf("a trace without ops has the kinds %v", kinds)
	}
}

func TestWithHeader(t *testing.T) {
	trace := sourceTrace(7)
	for _, s := range []Source{FromTrace(trace), &threes{trace: trace}} {
		h, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		other := *h
		other.Title = "other"
		renamed := WithHeader(s, &other)
		got, err := ReadAll(renamed)
		if err != nil || got.Title != "other" || trace.Title != "ranks" || !reflect.DeepEqual(got.Ranks, trace.Ranks) {
			t.Errorf("title %q, error %v", got.Title, err)
		}
		if h, err := renamed.Header(); err != nil || h != &other {
			t.Errorf("another header, error %v", err)
		}
	}
}

func TestWithContext(t *testing.T) {
	trace := sourceTrace(7)
	for _, s := range []Source{FromTrace(trace), &threes{trace: trace}} {
		ctx, cancel := context.WithCancel(context.Background())
		until := WithContext(ctx, s)
		got, err := ReadAll(until)
		if err != nil || !reflect.DeepEqual(got.Ranks, trace.Ranks) {
			t.Errorf("before the end: error %v", err)
		}
		cancel()
		if _, err := ReadAll(until); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: error %v", err)
		}
		if _, err := until.NewReader(All)(Batch{First: 0, Last: 1}); !errors.Is(err, context.Canceled) {
			t.Errorf("a reader after the end: error %v", err)
		}
	}
}

// BenchmarkHeader makes the header of a trace in memory, which looks at the kind of every op.
func BenchmarkHeader(b *testing.B) {
	builder := NewBuilder(64)
	for rank := range 64 {
		for range 1 << 16 {
			builder.Rank(rank).Calc(1)
		}
	}
	trace := builder.Trace()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromTrace(trace).Header(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(trace.Ops())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}
