package store

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestKinds(t *testing.T) {
	b := dag.NewBuilder(3)
	b.Rank(0).Send(1, 8, 0)
	b.Rank(2).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read})
	var file bytes.Buffer
	if err := Write(&file, b.Trace()); err != nil {
		t.Fatal(err)
	}
	f, err := openBytes(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := f.kinds()
	if want := []dag.Kind{dag.Send, dag.IO}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("got %v, %v, expected %v", kinds, err, want)
	}
}

// TestEmptyBatches checks that many empty ranks, which take memory when they are read, come in several batches.
func TestEmptyBatches(t *testing.T) {
	const first, last, ranks = 2 * mostEmpty, 2*mostEmpty + 1, 5*mostEmpty + 3
	b := dag.NewBuilder(ranks)
	b.Rank(first).Calc(1)
	b.Rank(last).Calc(2)
	var file bytes.Buffer
	if err := Write(&file, b.Trace()); err != nil {
		t.Fatal(err)
	}
	f, err := openBytes(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	next, ops := 0, 0
	read := f.NewReader(dag.Replay)
	for _, batch := range f.batches() {
		if batch.First != next || batch.Last-batch.First > mostEmpty+2 {
			t.Errorf("ranks %d to %d, expected no more than %d from %d on", batch.First, batch.Last-1, mostEmpty+2, next)
		}
		got, err := read(batch)
		if err != nil || len(got) != batch.Last-batch.First {
			t.Fatalf("%d ranks, %v", len(got), err)
		}
		for i := range got {
			ops += got[i].Len() * (batch.First + i)
		}
		next = batch.Last
	}
	if next != ranks || ops != first+last {
		t.Errorf("%d ranks, ops of ranks that sum up to %d, expected %d, %d", next, ops, ranks, first+last)
	}
}
