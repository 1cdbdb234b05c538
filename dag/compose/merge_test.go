package compose

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// first and second are two jobs with something in every column.
func first() *dag.Trace {
	b := dag.NewBuilder(3)
	*b.Meta() = dag.Meta{Title: "one", Provenance: []dag.Provenance{{Program: "a"}, {Program: "b"}}, Attrs: `{"x": 1}`}
	pair := b.AddComm(dag.NewComm("pair", []int32{2, 0}))
	r := b.Rank(0)
	c := r.Add(dag.Op{Duration: 5, Flops: 6, Release: 7, Stream: 1, Name: "c", Comm: pair, Peer: 9,
		Timed: true, MeasuredStart: 10, MeasuredEnd: 11})
	s := r.Add(dag.Op{Kind: dag.Send, Peer: 2, Bytes: 8, Tag: 4, NIC: 1, Attrs: `{"rank":2}`}, c)
	r.RequiresStart(r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: pair, Peer: 1}), s)
	b.Rank(2).Add(dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Tag: dag.AnyTag, Bytes: 8})
	b.Rank(2).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: pair})
	return b.Trace()
}

func second() *dag.Trace {
	b := dag.NewBuilder(2)
	even := b.AddComm(dag.Comm{Ranges: []dag.Range{{First: 1, Stride: -1, Count: 2}}})
	for rank := range 2 {
		r := b.Rank(rank)
		bcast := r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Comm: even, Peer: 0, Bytes: 3})
		w := r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Bytes: 9, Release: 100}, bcast)
		if rank == 0 {
			r.Send(1, 7, 4, w)
		} else {
			r.Recv(0, 7, 4, w)
		}
	}
	return b.Trace()
}

func mustMerge(t *testing.T, jobs ...Job) *dag.Trace {
	t.Helper()
	merged, err := Merge(context.Background(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return merged
}

func TestMerge(t *testing.T) {
	merged := mustMerge(t, Job{"a", first(), 0}, Job{"b", second(), 1000})
	if problems := dag.Validate(merged); len(problems) != 0 {
		t.Errorf("problems: %v", problems)
	}
	wantMeta := dag.Meta{Title: "one + b", Provenance: []dag.Provenance{{Program: "a"}, {Program: "b"}},
		Jobs: []string{"a", "b"}, Attrs: `{"jobs":[{"x":1},null]}`}
	if !reflect.DeepEqual(merged.Meta, wantMeta) {
		t.Errorf("metadata %+v, expected %+v", merged.Meta, wantMeta)
	}
	wantComms := []dag.Comm{dag.World(5), dag.World(3), dag.NewComm("pair", []int32{2, 0}),
		dag.NewComm("", []int32{3, 4}), dag.NewComm("", []int32{4, 3})}
	if !slices.EqualFunc(merged.Comms, wantComms, func(c, d dag.Comm) bool { return c.Equal(&d) }) {
		t.Errorf("communicators %v, expected %v", merged.Comms, wantComms)
	}
	for _, c := range []struct {
		rank, op int
		want     dag.Op
	}{
		{0, 0, dag.Op{Duration: 5, Flops: 6, Release: 7, Stream: 1, Name: "c", Comm: 1, Peer: 9, Timed: true,
			MeasuredStart: 10, MeasuredEnd: 11}},
		{0, 1, dag.Op{Kind: dag.Send, Peer: 2, Bytes: 8, Tag: 4, NIC: 1, Attrs: `{"rank":2}`}},
		{0, 2, dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: 2, Peer: 1}},
		{2, 0, dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Tag: dag.AnyTag, Bytes: 8}},
		{3, 0, dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Comm: 4, Peer: 3, Bytes: 3, Release: 1000, Job: 1}},
		{3, 1, dag.Op{Kind: dag.IO, Subkind: dag.Write, Bytes: 9, Release: 1100, Job: 1}},
		{3, 2, dag.Op{Kind: dag.Send, Peer: 4, Bytes: 7, Tag: 4, Job: 1}},
		{4, 2, dag.Op{Kind: dag.Recv, Peer: 3, Bytes: 7, Tag: 4, Job: 1}},
	} {
		if got := merged.Ranks[c.rank].Op(c.op); got != c.want {
			t.Errorf("rank %d op %d: %+v, expected %+v", c.rank, c.op, got, c.want)
		}
	}
}

// TestMergeOne checks that a single job keeps its numbers.
func TestMergeOne(t *testing.T) {
	trace := first()
	if merged := mustMerge(t, Job{"a", trace, 0}); merged != trace {
		t.Error("a job that starts at 0 is not returned as it is")
	}
	merged, want := mustMerge(t, Job{"a", trace, 50}), first()
	want.Ranks[0].Release[0] = 57
	want.Ranks[0].MeasuredStart[0], want.Ranks[0].MeasuredEnd[0] = 60, 61
	want.Ranks[2].Release = []dag.Time{50, 50}
	if !reflect.DeepEqual(merged, want) {
		t.Errorf("delayed by 50 it is %+v, expected %+v", merged, want)
	}
	if !reflect.DeepEqual(trace, first()) {
		t.Error("the trace was changed")
	}
}

// TestMergeMerged checks that merging in steps gives the same as merging at once, but for names and communicators.
func TestMergeMerged(t *testing.T) {
	inner := mustMerge(t, Job{"x", second(), 5}, Job{"y", first(), 0})
	merged := mustMerge(t, Job{"a", first(), 7}, Job{"b", inner, 10}, Job{"b", inner, 0})
	if want := []string{"a", "b/x", "b/y", "b/x#2", "b/y#2"}; !slices.Equal(merged.Jobs, want) {
		t.Errorf("jobs %q, expected %q", merged.Jobs, want)
	}
	flat := mustMerge(t, Job{"a", first(), 7}, Job{"x", second(), 15}, Job{"y", first(), 10}, Job{"x", second(), 5},
		Job{"y", first(), 0})
	for i := range flat.Ranks {
		for k := range flat.Ranks[i].Len() {
			got, want := merged.Ranks[i].Op(k), flat.Ranks[i].Op(k)
			if usesComm(got.Kind) && !merged.Comms[got.Comm].Equal(&flat.Comms[want.Comm]) {
				t.Errorf("rank %d op %d: on communicator %v, expected %v", i, k, merged.Comms[got.Comm], flat.Comms[want.Comm])
			}
			got.Comm, want.Comm = 0, 0
			if got != want {
				t.Errorf("rank %d op %d: %+v, expected %+v", i, k, got, want)
			}
		}
	}
	if problems := dag.Validate(merged); len(problems) != 0 {
		t.Errorf("problems: %v", problems)
	}
}

// TestMergeUnknownRoot checks that an unknown root does not become a rank, and that other fields stay.
func TestMergeUnknownRoot(t *testing.T) {
	op := dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: dag.UnknownRoot, Bytes: 8, Host: 1, Dims: 6, Priority: -3}
	b := dag.NewBuilder(2)
	for rank := range 2 {
		b.Rank(rank).Add(op)
		b.Rank(rank).Add(dag.Op{Subkind: dag.Marker, Host: 1})
	}
	merged := mustMerge(t, Job{"a", first(), 0}, Job{"b", b.Trace(), 0})
	op.Comm, op.Job = 3, 1
	if got := merged.Ranks[4].Op(0); got != op {
		t.Errorf("the broadcast is %+v, expected %+v", got, op)
	}
	if got, want := merged.Ranks[4].Op(1), (dag.Op{Subkind: dag.Marker, Host: 1, Job: 1}); got != want {
		t.Errorf("the marker is %+v, expected %+v", got, want)
	}
	if problems := dag.Validate(merged); len(problems) != 0 {
		t.Errorf("problems: %v", problems)
	}
}

func TestMergeNodes(t *testing.T) {
	placed := func(nodes ...int32) Job {
		b := dag.NewBuilder(len(nodes))
		b.Meta().Nodes = nodes
		return Job{Trace: b.Trace()}
	}
	free := Job{Trace: dag.NewBuilder(2).Trace()}
	for _, c := range []struct {
		jobs []Job
		want []int32
	}{
		{[]Job{free, free}, nil},
		{[]Job{free, placed(2, 2, 0), free}, []int32{0, 1, 4, 4, 2, 5, 6}},
		{[]Job{placed(), placed(3)}, []int32{3}},
	} {
		if got := mustMerge(t, c.jobs...).Nodes; !slices.Equal(got, c.want) {
			t.Errorf("nodes %v, expected %v", got, c.want)
		}
	}
}

func TestMergeErrors(t *testing.T) {
	one := func(op dag.Op) Job {
		b := dag.NewBuilder(2)
		b.Rank(1).Add(op)
		return Job{Name: "bad", Trace: b.Trace()}
	}
	good := Job{Name: "good", Trace: first()}
	changed := func(change func(*Job)) Job {
		job := Job{Name: "bad", Trace: first()}
		change(&job)
		return job
	}
	for _, c := range []struct {
		jobs []Job
		want string
	}{
		{nil, "no jobs, expected at least one"},
		{[]Job{one(dag.Op{Kind: dag.Send, Peer: 2}), good}, "job bad: rank 1: op 0: send with rank 2, expected 0..1"},
		{[]Job{good, one(dag.Op{Kind: dag.Send, Peer: -1})}, "job bad: rank 1: op 0: send with rank -1, expected 0..1"},
		{[]Job{good, one(dag.Op{Kind: dag.Recv, Peer: -2})}, "job bad: rank 1: op 0: recv with rank -2, expected 0..1"},
		{[]Job{good, one(dag.Op{Kind: dag.Coll, Subkind: dag.Reduce, Peer: 7})},
			"job bad: rank 1: op 0: coll with rank 7, expected 0..1"},
		{[]Job{good, one(dag.Op{Kind: dag.Recv, Comm: 1})}, "job bad: rank 1: op 0: communicator 1, expected 0..0"},
		{[]Job{good, one(dag.Op{Job: 1})}, "job bad: rank 1: op 0: job 1, expected 0..0"},
		{[]Job{changed(func(j *Job) { j.Trace.Comms[1].Ranges[0].First = 3 }), good}, "job bad: communicator 1: range of"},
		{[]Job{good, changed(func(j *Job) { j.Start = -1 })}, "job bad: starts at -1ps, expected 0s or later"},
		{[]Job{changed(func(j *Job) { j.Start = dag.MaxTime })}, "job bad: rank 0: op 0: release 7ps plus"},
		{[]Job{changed(func(j *Job) { j.Start, j.Trace.Ranks[0].MeasuredEnd[0] = 1, dag.MaxTime })},
			"job bad: rank 0: op 0: measured time 9223372.036854775807s plus start 1ps"},
		{[]Job{changed(func(j *Job) { j.Start, j.Trace.Ranks[0].Release[0] = 1, -1 })}, "release -1ps plus"},
		{[]Job{good, changed(func(j *Job) { j.Trace.Attrs = "{" })}, "job bad: the attributes of the trace are not JSON"},
		{[]Job{good, changed(func(j *Job) { j.Trace.Nodes = []int32{1} })}, "job bad: nodes of 1 ranks, expected 3"},
		{[]Job{good, changed(func(j *Job) { j.Trace.Nodes = []int32{0, 1, 1<<31 - 1} })},
			"job bad: rank 2 is on node 2147483647, expected 0..2147483644"},
	} {
		merged, err := Merge(context.Background(), c.jobs)
		if err == nil || !strings.Contains(err.Error(), c.want) || merged != nil {
			t.Errorf("error %v, expected %q", err, c.want)
		}
	}
}

// TestManyCommunicators checks numbers beyond those of a narrow column.
func TestManyCommunicators(t *testing.T) {
	var jobs []Job
	for i := range 300 {
		jobs = append(jobs, Job{Name: "j", Trace: second(), Start: dag.Time(i)})
	}
	merged := mustMerge(t, jobs...)
	if problems := dag.Validate(merged); len(problems) != 0 {
		t.Errorf("%d problems, such as %v", len(problems), problems[0])
	}
	bcast, recv, name := merged.Ranks[599].Op(0), merged.Ranks[599].Op(2), merged.Jobs[299]
	if bcast.Comm != 600 || bcast.Job != 299 || recv.Peer != 598 || name != "j#300" {
		t.Errorf("ops of the last rank are %+v and %+v, of job %s", bcast, recv, name)
	}
}

func TestUniqueNames(t *testing.T) {
	for _, c := range []struct{ names, want []string }{
		{nil, []string{}},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a", "a", "a#2", "a", "a#2"}, []string{"a", "a#2", "a#2#2", "a#3", "a#2#3"}},
		{[]string{"", ""}, []string{"", "#2"}},
	} {
		if got := UniqueNames(c.names); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, expected %q", c.names, got, c.want)
		}
	}
}

// randomJob returns a trace of messages, some received with wildcards if wild is set, and collectives, on several
// communicators. Few traces with wildcards run to their end: a receive may take what another was meant to.
func randomJob(draw *rand.Rand, wild bool) *dag.Trace {
	n := 2 + draw.IntN(6)
	b := dag.NewBuilder(n)
	var members []int32
	for _, rank := range draw.Perm(n)[:1+draw.IntN(n)] {
		members = append(members, int32(rank))
	}
	group := b.AddComm(dag.NewComm("group", members))
	again := b.AddComm(dag.World(n))
	add := func(rank int, op dag.Op) {
		r := b.Rank(rank)
		if draw.IntN(20) == 0 {
			op.Release = dag.Time(draw.IntN(20)) * dag.Microsecond
		}
		i := r.Add(op)
		if i == 0 || draw.IntN(8) == 0 {
			return
		}
		for range 1 + draw.IntN(2) {
			r.Requires(i, draw.IntN(i))
		}
		if draw.IntN(8) == 0 {
			r.RequiresStart(i, draw.IntN(i))
		}
	}
	for rank := range n {
		add(rank, dag.Op{Duration: 1 + dag.Time(draw.IntN(3))*dag.Microsecond})
	}
	for range 10 + draw.IntN(60) {
		rank, tag, comm := draw.IntN(n), int64(draw.IntN(2)), int32(draw.IntN(2))*again
		switch draw.IntN(8) {
		case 0:
			add(rank, dag.Op{Duration: dag.Time(draw.IntN(3)) * dag.Microsecond, Stream: int32(draw.IntN(2))})
		case 1:
			if draw.IntN(3) == 0 {
				for _, m := range members {
					add(int(m), dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Comm: group, Peer: members[0], Bytes: 1000})
				}
			} else {
				for m := range n {
					add(m, dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Comm: comm, Bytes: 64})
				}
			}
		default:
			to := draw.IntN(n)
			bytes := int64(draw.IntN(3)) * 50_000 // eager and rendezvous
			add(rank, dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: tag, Comm: comm})
			from := int32(rank)
			if wild && draw.IntN(3) == 0 {
				from = dag.AnySource
			}
			if wild && draw.IntN(3) == 0 {
				tag = dag.AnyTag
			}
			add(to, dag.Op{Kind: dag.Recv, Peer: from, Bytes: bytes, Tag: tag, Comm: comm})
		}
	}
	return b.Trace()
}

func randomJobs(seed uint64) []Job {
	draw := rand.New(rand.NewPCG(seed, 0))
	var jobs []Job
	wild := draw.IntN(2) == 0
	for i := range 2 + draw.IntN(3) {
		jobs = append(jobs, Job{fmt.Sprint("job", i), randomJob(draw, wild), dag.Time(draw.IntN(3)) * 10 * dag.Microsecond})
	}
	return jobs
}

// TestProperties checks on random jobs that merging changes only the documented fields, and does not change the jobs.
func TestProperties(t *testing.T) {
	for seed := range uint64(200) {
		jobs, before := randomJobs(seed), randomJobs(seed)
		merged := mustMerge(t, jobs...)
		if !reflect.DeepEqual(jobs, before) {
			t.Fatalf("seed %d: merging changed a job", seed)
		}
		if problems := dag.Validate(merged); len(problems) != 0 {
			t.Fatalf("seed %d: %v", seed, problems[0])
		}
		at, comms := 0, 1
		for j, job := range jobs {
			for i := range job.Trace.Ranks {
				r, m := job.Trace.Ranks[i], merged.Ranks[at+i]
				if !reflect.DeepEqual(r.Deps, m.Deps) || !reflect.DeepEqual(r.StartDeps, m.StartDeps) || r.Len() != m.Len() {
					t.Fatalf("seed %d: dependencies of rank %d differ", seed, at+i)
				}
				for k := range r.Len() {
					want := r.Op(k)
					want.Job = int32(j)
					if want.Kind == dag.Coll || want.Kind != dag.Calc && want.Comm > 0 {
						want.Comm += int32(comms)
					}
					if want.Kind == dag.Send || want.Kind == dag.Recv && want.Peer >= 0 || want.Subkind == dag.Bcast {
						want.Peer += int32(at)
					}
					if want.Release > 0 || r.Deps.Count(k)+r.StartDeps.Count(k) == 0 {
						want.Release += job.Start
					}
					if got := m.Op(k); got != want {
						t.Fatalf("seed %d: rank %d op %d is %+v, expected %+v", seed, at+i, k, got, want)
					}
				}
			}
			at += len(job.Trace.Ranks)
			comms += len(job.Trace.Comms)
		}
	}
}
