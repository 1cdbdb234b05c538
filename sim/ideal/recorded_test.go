package ideal

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// TestReplay replays the recorded durations of a collective and of a message that nobody sends.
func TestReplay(t *testing.T) {
	b := dag.NewBuilder(2)
	for rank := range 2 {
		r := b.Rank(rank)
		first := r.Calc(dag.Time(rank) * 100)
		coll := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 8, Duration: 30}, first)
		r.Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 8, Duration: 7}, coll)
	}
	trace := dag.FromTrace(b.Trace())
	replay, err := (&backend{replay: true}).Compile(trace, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := replay.Run(sim.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if result.Finish[0].Ticks != 37 || result.Finish[1].Ticks != 137 || !result.Complete {
		t.Errorf("%+v", result.Finish)
	}
}
