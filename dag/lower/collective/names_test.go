package collective

import (
	"context"
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/memory"
)

// TestNames checks that every message of a lowered collective has the name and number of its collective: with several
// communicators, lanes of tags, and messages of collectives that were lowered before.
func TestNames(t *testing.T) {
	b := dag.NewBuilder(6)
	pair := b.AddComm(dag.NewComm("", []int32{4, 2}))
	for rank := range 6 {
		b.Rank(rank).Send(int32(rank+1)%6, 8, dag.CollectiveTag-7)
		b.Rank(rank).Recv(int32(rank+5)%6, 8, dag.CollectiveTag-7)
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 4096, Name: "grads"})
		if rank == 2 || rank == 4 {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 8, Comm: pair, Name: fmt.Sprint("of ", rank)})
		}
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	}
	source := dag.FromTrace(b.Trace())
	if n, err := NamesOf(source); n != nil || err != nil {
		t.Errorf("names %v of a trace that was not lowered, error %v", n, err)
	}
	for _, text := range []string{"", "allreduce=doublebinarytree", "allreduce=ring"} {
		choice, err := ParseChoice(text)
		if err != nil {
			t.Fatal(err)
		}
		lowered, err := LowerSource(context.Background(), source, choice)
		if err != nil {
			t.Fatal(err)
		}
		names, err := NamesOf(lowered)
		if err != nil {
			t.Fatal(err)
		}
		trace, err := memory.ReadTrace(context.Background(), lowered)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"grads", "barrier", "of 4"} // the first member of the communicator names it
		seen := map[int64]bool{}
		for _, r := range trace.Ranks {
			for i := range r.Kind {
				if r.Kind[i] == dag.Calc {
					continue
				}
				name, number, ok := names.Of(r.Tag.At(i))
				if before := r.Tag.At(i) == dag.CollectiveTag-7; ok == before {
					t.Errorf("%q: tag %d has a name: %v", text, r.Tag.At(i), ok)
				} else if ok && (number >= 3 || name != want[number] || (number == 2) != (r.Comm.At(i) == pair)) {
					t.Errorf("%q: tag %d of communicator %d is that of %s #%d", text, r.Tag.At(i), r.Comm.At(i), name, number)
				}
				seen[number] = seen[number] || ok
			}
		}
		if len(seen) != 3 {
			t.Errorf("%q: collectives %v", text, seen)
		}
		for _, tag := range []int64{0, dag.AnyTag, -1 << 63, 1<<63 - 1} {
			if name, _, ok := names.Of(tag); ok {
				t.Errorf("tag %d is that of %s", tag, name)
			}
		}
	}
}
