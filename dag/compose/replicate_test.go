package compose

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// one returns a trace of a rank that takes part in collectives of the communicators.
func one(comms ...dag.Comm) *dag.Trace {
	b := dag.NewBuilder(1)
	b.Meta().Title, b.Meta().Nodes = "one", []int32{7}
	r := b.Rank(0)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1000}, r.Calc(5))
	for _, c := range comms {
		r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Comm: b.AddComm(c), Peer: 1, Bytes: 8})
	}
	r.Add(dag.Op{Kind: dag.Calc, Stream: 1})
	return b.Trace()
}

func TestReplicate(t *testing.T) {
	odd := dag.NewComm("odd", []int32{1, 3})
	trace := one(dag.NewComm("back", []int32{3, 2, 1, 0}))
	trace.Comms = append(trace.Comms, odd) // which rank 0 does not use
	got, err := Replicate(trace, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range dag.Validate(got) {
		t.Errorf("problem: %v", p)
	}
	want := dag.Trace{Meta: dag.Meta{Title: "one"}, Comms: []dag.Comm{dag.World(4), trace.Comms[1], odd}}
	for range 4 {
		want.Ranks = append(want.Ranks, trace.Ranks[0])
	}
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("it is %+v, expected %+v", *got, want)
	}
	if len(trace.Ranks) != 1 || trace.Comms[0].Size() != 1 || trace.Nodes == nil {
		t.Error("the trace was changed")
	}
	for _, c := range []struct {
		trace *dag.Trace
		n     int
		want  string
	}{
		{dag.NewBuilder(0).Trace(), 4, "rank 0 of 0 ranks for 4 ranks"},
		{one(), 0, "rank 0 of 1 ranks for 0 ranks"},
		{one(dag.NewComm("", []int32{0, 4})), 4,
			"communicator 1: range of 2 ranks from 0 in steps of 4, expected ranks in 0..3"},
		{one(dag.NewComm("", []int32{0})), 4,
			"rank 0: op 2: communicator 1 has 1 members, expected 4"},
	} {
		if got, err := Replicate(c.trace, c.n); got != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
	bad := one()
	bad.Ranks[0].Comm.Set(1, 5)
	if _, err := Replicate(bad, 2); err == nil || err.Error() != "rank 0: op 1: communicator 5, expected 0..0" {
		t.Errorf("error %v", err)
	}
}
