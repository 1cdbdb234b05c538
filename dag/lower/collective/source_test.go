package collective

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// inBatches is a source with batches of a fixed number of ranks, which reuses their memory.
type inBatches struct {
	dag.Source // of the trace in memory
	trace      *dag.Trace
	size       int
	fail       int // number of the batch that fails, from 1; 0: none
}

func (b *inBatches) Header() (*dag.Header, error) {
	h, err := b.Source.Header()
	if err != nil {
		return nil, err
	}
	header := *h
	header.Batches, header.Stable = nil, false
	for first := 0; first < len(b.trace.Ranks); first += b.size {
		header.Batches = append(header.Batches, dag.Batch{First: first, Last: min(first+b.size, len(b.trace.Ranks))})
	}
	return &header, nil
}

func (b *inBatches) NewReader(dag.Columns) dag.Reader {
	var ranks []*dag.Rank
	return func(batch dag.Batch) ([]*dag.Rank, error) {
		if b.fail > 0 && batch.First/b.size == b.fail-1 {
			return nil, errors.New("a faulty batch")
		}
		for i := range ranks {
			for k := range ranks[i].Kind {
				ranks[i].Kind[k] = 99 // earlier batches must not be used again
			}
		}
		ranks = ranks[:0]
		for rank := batch.First; rank < batch.Last; rank++ {
			ranks = append(ranks, b.trace.Ranks[rank].Clone())
		}
		return ranks, nil
	}
}

// readAll reads all batches of a source with one reader, and checks their sizes.
func readAll(t *testing.T, s dag.Source) *dag.Trace {
	t.Helper()
	h := mustHeader(t, s)
	out := &dag.Trace{Meta: h.Meta, Comms: h.Comms}
	read, total := s.NewReader(dag.All), int64(0)
	for _, b := range h.Batches {
		ranks, err := read(b)
		if err != nil {
			t.Fatal(err)
		}
		if b.First != len(out.Ranks) || b.Last-b.First != len(ranks) || b.First == b.Last {
			t.Fatalf("%d ranks after %d in a batch of %d..%d", len(ranks), len(out.Ranks), b.First, b.Last-1)
		}
		got := dag.Batch{First: b.First, Last: b.Last}
		for i := range ranks {
			got.Ops += int64(ranks[i].Len())
			got.Deps += int64(len(ranks[i].Deps.Off))
			got.StartDeps += int64(len(ranks[i].StartDeps.Off))
			out.Ranks = append(out.Ranks, ranks[i].Clone())
		}
		if got != b {
			t.Fatalf("the batch %+v is %+v", b, got)
		}
		total += got.Ops
	}
	if total != h.Ops || len(out.Ranks) != h.Ranks {
		t.Fatalf("%d ops on %d ranks, expected %d on %d", total, len(out.Ranks), h.Ops, h.Ranks)
	}
	return out
}

func mustHeader(t *testing.T, s dag.Source) *dag.Header {
	t.Helper()
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSource checks that lowering by batches equals lowering the whole trace, for several batch sizes.
func TestSource(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		tr := randomTrace(9, 60, seed)
		for i := range tr.Ranks {
			tr.Meta.Nodes = append(tr.Meta.Nodes, int32(i/3))
		}
		for _, text := range []string{"", "mpich;reduction=0.3ns/B", "collectives=hierarchical,doublebinarytree"} {
			choice, err := ParseChoice(text)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := Lower(context.Background(), tr, choice)
			if err != nil {
				t.Fatal(err)
			}
			want := dump(whole)
			memory := dag.FromTrace(tr)
			for _, s := range []dag.Source{memory, &inBatches{memory, tr, 4, 0}, &inBatches{memory, tr, 100, 0}} {
				lowered, err := LowerSource(context.Background(), s, choice)
				if err != nil {
					t.Fatal(err)
				}
				if got := dump(readAll(t, lowered)); got != want {
					t.Fatalf("seed %d, %q: batches differ from the whole", seed, text)
				}
				again, err := dag.ReadAll(lowered)
				if err != nil || dump(again) != want {
					t.Fatalf("seed %d, %q: the whole differs from itself (error %v)", seed, text, err)
				}
				kinds := slices.Sorted(slices.Values(mustHeader(t, lowered).Kinds))
				if !slices.Equal(kinds, []dag.Kind{dag.Calc, dag.Send, dag.Recv}) {
					t.Errorf("kinds %v", kinds)
				}
			}
		}
	}
}

func TestSourceErrors(t *testing.T) {
	tr := randomTrace(9, 10, 1)
	if _, err := LowerSource(context.Background(), &inBatches{dag.FromTrace(tr), tr, 2, 3}, Choice{}); err == nil || err.Error() !=
		"lowering collectives: a faulty batch" {
		t.Errorf("error %v", err)
	}
	source := &inBatches{dag.FromTrace(tr), tr, 2, 0}
	lowered, err := LowerSource(context.Background(), source, Choice{})
	if err != nil {
		t.Fatal(err)
	}
	read := lowered.NewReader(dag.All)
	if _, err := read(dag.Batch{First: 1, Last: 3}); err == nil || !strings.Contains(err.Error(), "no batch of ranks 1 to 2") {
		t.Errorf("error %v", err)
	}
	source.fail = 1
	if _, err := read(mustHeader(t, lowered).Batches[0]); err == nil || !strings.Contains(err.Error(), "a faulty batch") {
		t.Errorf("error %v", err)
	}
	b := dag.NewBuilder(2)
	b.Rank(0).Calc(1)
	plain := dag.FromTrace(b.Trace())
	if same, err := LowerSource(context.Background(), plain, Choice{}); err != nil || same != plain {
		t.Errorf("a trace without collectives becomes %v (error %v)", same, err)
	}
}

// TestSourceMemory checks that reading a lowered source takes the memory of a batch, not of the whole trace.
func TestSourceMemory(t *testing.T) {
	const ranks = 1024
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoall, Bytes: 1 << 20})
	}
	choice, err := ParseChoice("alltoall=linear")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := LowerSource(context.Background(), dag.FromTrace(b.Trace()), choice)
	if err != nil {
		t.Fatal(err)
	}
	read, ops := s.NewReader(dag.All), int64(0)
	for _, batch := range mustHeader(t, s).Batches {
		lowered, err := read(batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range lowered {
			ops += int64(lowered[i].Len())
		}
	}
	runtime.ReadMemStats(&after)
	if want := int64(ranks * (2*(ranks-1) + 1)); ops != want {
		t.Errorf("%d ops, expected %d", ops, want)
	}
	// All ops together take 60 MB or more; the schedule of a rank, one per processor, takes about 100 kB.
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
		t.Errorf("%d bytes allocated for %d ops", allocated, ops)
	}
}
