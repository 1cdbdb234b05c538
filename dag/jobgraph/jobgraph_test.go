package jobgraph_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/sim/backends"
)

// randomJobs returns jobs whose edges point from lower to higher ops, numbered at random apart from source and sink.
func randomJobs(random *rand.Rand, ranks, jobs int) []jobgraph.Job {
	all := make([]jobgraph.Job, jobs)
	for k := range all {
		j := &all[k]
		inner := 1 + random.IntN(12)
		j.Name, j.Ops, j.Arrival = fmt.Sprintf("job_%d", k), int32(inner+2), dag.Time(k*700)
		number := random.Perm(inner)
		op := func(at int) int32 {
			if at == 0 || at == inner+1 {
				return int32(at)
			}
			return int32(1 + number[at-1])
		}
		add := func(tail, head int) {
			e := jobgraph.Edge{Tail: op(tail), Head: op(head), Source: random.Int32N(int32(ranks)),
				Destination: random.Int32N(int32(ranks)), Control: random.IntN(4) == 0}
			if !e.Control {
				e.Bytes = random.Int64N(1000)
			}
			if tail > 0 {
				e.Run = dag.Time(random.Int64N(3) * 100)
			}
			j.Edges = append(j.Edges, e)
		}
		for at := 1; at <= inner; at++ {
			add(random.IntN(at), at)
			add(at, at+1+random.IntN(inner+1-at))
		}
		random.Shuffle(len(j.Edges), func(a, b int) { j.Edges[a], j.Edges[b] = j.Edges[b], j.Edges[a] })
	}
	return all
}

// finish returns the time at which a job has ended if messages take no time, by relaxation of all edges.
func finish(j *jobgraph.Job) dag.Time {
	ready := make([]dag.Time, j.Ops)
	for changed := true; changed; {
		changed = false
		for _, e := range j.Edges {
			if end := ready[e.Tail] + e.Run; end > ready[e.Head] {
				ready[e.Head], changed = end, true
			}
		}
	}
	return j.Arrival + slices.Max(ready)
}

// TestTrace checks that traces are valid, run as the job graphs require without a network, and give the same graphs
// again.
func TestTrace(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		ranks := 1 + random.IntN(9)
		jobs := randomJobs(random, ranks, 1+random.IntN(5))
		for _, control := range []jobgraph.Control{jobgraph.Messages, jobgraph.Attributes} {
			trace, err := jobgraph.Trace(context.Background(), ranks, jobs, control)
			if err != nil {
				t.Fatal(err)
			}
			if problems := dag.Validate(trace); len(problems) > 0 {
				t.Fatalf("seed %d: %v", seed, problems[0])
			}
			again, err := jobgraph.Read(trace)
			if err != nil || !reflect.DeepEqual(again, jobs) {
				t.Fatalf("seed %d: %+v, expected %+v, error %v", seed, again, jobs, err)
			}
			result, err := backends.Run(trace, "ideal")
			if err != nil || !result.Complete {
				t.Fatalf("seed %d: complete %v, error %v", seed, result.Complete, err)
			}
			end := dag.Time(0)
			for k := range jobs {
				end = max(end, finish(&jobs[k]))
			}
			got := dag.Time(result.Makespan.Ticks) * result.Makespan.Unit
			if control == jobgraph.Messages && got != end || got > end {
				t.Errorf("seed %d, control %d: makespan %v, expected %v", seed, control, got, end)
			}
		}
	}
}

// TestControlMessages counts the messages of a diamond: each op but the last waits for data on
// the machine where its edges begin, or for a message.
func TestControlMessages(t *testing.T) {
	jobs := []jobgraph.Job{{Name: "diamond", Ops: 5, Edges: []jobgraph.Edge{
		{Tail: 0, Head: 1, Source: 0, Destination: 1, Bytes: 10},
		{Tail: 0, Head: 2, Source: 0, Destination: 2, Bytes: 10},
		{Tail: 1, Head: 3, Source: 1, Destination: 2, Bytes: 10, Run: 5},
		{Tail: 2, Head: 3, Source: 1, Destination: 2, Control: true, Run: 7},
		{Tail: 3, Head: 4, Source: 0, Destination: 3, Bytes: 10, Run: 1},
	}}}
	for control, want := range map[jobgraph.Control]string{
		jobgraph.Messages: "2>0 2>1", jobgraph.Attributes: "",
	} {
		trace, err := jobgraph.Trace(context.Background(), 4, jobs, control)
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		for rank, r := range trace.Ranks {
			for i := range r.Len() {
				if _, edge := attr.ParseJobEdge(r.Attrs.At(i)); r.Kind[i] == dag.Send && !edge {
					sent = append(sent, fmt.Sprintf("%d>%d", rank, r.Peer.At(i)))
				}
			}
		}
		slices.Sort(sent)
		if got := strings.Join(sent, " "); got != want {
			t.Errorf("control messages %q, expected %q", got, want)
		}
	}
}

// TestMalformed checks the errors of graphs.
func TestMalformed(t *testing.T) {
	edge := func(tail, head int32) jobgraph.Edge { return jobgraph.Edge{Tail: tail, Head: head} }
	for want, j := range map[string]jobgraph.Job{
		"2 or more ops":             {Ops: 1},
		"each with an edge":         {Ops: 5, Edges: []jobgraph.Edge{edge(0, 1)}},
		"expected ops 0..1":         {Ops: 2, Edges: []jobgraph.Edge{edge(0, 2)}},
		"expected machines 0..1":    {Ops: 2, Edges: []jobgraph.Edge{{Head: 1, Destination: 2}}},
		"0 bytes of a control edge": {Ops: 2, Edges: []jobgraph.Edge{{Head: 1, Control: true, Bytes: 1}}},
		"edges into op 0":           {Ops: 2, Edges: []jobgraph.Edge{edge(0, 1), edge(1, 0)}},
		"edges out of op 1":         {Ops: 3, Edges: []jobgraph.Edge{edge(0, 1), edge(0, 2)}},
		"a cycle of ops, which contains or precede": {Ops: 4, Edges: []jobgraph.Edge{edge(0, 1), edge(1, 2),
			edge(2, 1), edge(2, 3)}},
	} {
		if err := j.Check(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}

// TestReadOthers reads traces without job graphs, and with other messages.
func TestReadOthers(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 8, 0)
	b.Rank(1).Recv(0, 8, 0)
	if jobs, err := jobgraph.Read(b.Trace()); jobs != nil || err != nil {
		t.Errorf("%v, error %v", jobs, err)
	}
	for attrs, want := range map[string]string{
		`{"edge":[0,0,1]}`: "rank 0, op 1: a send that is no edge",
		`{"edge":[1,0,1]}`: "rank 0, op 1: a send that is no edge",
	} {
		b := dag.NewBuilder(2)
		b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Attrs: attrs})
		b.Rank(0).Send(1, 8, 1)
		b.Rank(1).Recv(0, 0, 0)
		b.Rank(1).Recv(0, 8, 1)
		if _, err := jobgraph.Read(b.Trace()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	for attrs, want := range map[string]string{
		`{"edge":[1,0,1]}`: "edge number 1, expected edges 0..0", `{"edge":[0,0,2147483647]}`: "expected at most op 1",
	} {
		b := dag.NewBuilder(2)
		b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Attrs: attrs})
		if _, err := jobgraph.Read(b.Trace()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}
