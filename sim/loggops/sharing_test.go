package loggops

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/sim"
)

func inNanoseconds(l, o, g, perByte, s int64) Params {
	return Params{L: dag.Time(l) * dag.Nanosecond, Overhead: dag.Time(o) * dag.Nanosecond,
		Gap: dag.Time(g) * dag.Nanosecond, GPerByte: nsPerByte(perByte, 1), OPerByte: nsPerByte(0, 1), S: s}
}

// strictOn runs a trace with the strict model and the given choice of shared NICs.
func strictOn(t *testing.T, trace *dag.Trace, sharing sim.Sharing, p Params, threads int) *sim.Result {
	t.Helper()
	r, err := newReplay(dag.FromTrace(trace), Strict, &sim.Env{Sharing: sharing, Warn: t.Errorf})
	if err != nil {
		t.Fatal(err)
	}
	result, err := r.Run(Options{Params: p, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete {
		t.Fatal("incomplete")
	}
	return result
}

// onNodes returns a trace in which n jobs run on the same nodes.
func onNodes(t *testing.T, jobs ...*dag.Trace) *dag.Trace {
	t.Helper()
	all := make([]compose.Job, len(jobs))
	var at []int32
	for i, job := range jobs {
		all[i] = compose.Job{Name: fmt.Sprint(i), Trace: job}
		for rank := range job.Ranks {
			at = append(at, int32(rank))
		}
	}
	merged, err := compose.Merge(context.Background(), all)
	if err != nil {
		t.Fatal(err)
	}
	merged.Nodes = at
	return merged
}

// TestSharedNICs compares two jobs that send a message each from node 0 to node 1 with a calculation by hand.
func TestSharedNICs(t *testing.T) {
	job := func(bytes int64) *dag.Trace {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, bytes, 0)
		b.Rank(1).Recv(0, bytes, 0)
		return b.Trace()
	}
	// o = 10, L = 100, g = 5, G = 2 per byte, all in ns. Both sends end at 10. The NIC sends the first message from 10,
	// and the second from 10 + 5 + 2*999 = 2013. Their first bytes arrive 100 later and occupy the receiving NIC as
	// long: the last bytes arrive 1998 later, at 2108 and 4111, and the receives end 10 later.
	p := inNanoseconds(100, 10, 5, 2, 1<<20)
	for _, c := range []struct {
		sharing sim.Sharing
		want    [4]uint64
	}{
		{sim.ShareAmongJobs, [4]uint64{10, 2118, 10, 4121}},
		{sim.ShareAlways, [4]uint64{10, 2118, 10, 4121}},
		{sim.ShareNever, [4]uint64{10, 2118, 10, 2118}},
	} {
		r := strictOn(t, onNodes(t, job(1000), job(1000)), c.sharing, p, 1)
		for rank, want := range c.want {
			if got := r.Finish[rank].Ticks; got != want*1000 {
				t.Errorf("sharing %d: rank %d finishes at %d ps, expected %d ns", c.sharing, rank, got, want)
			}
		}
		if s := r.Section("shared_nodes"); (s != nil) != (c.sharing != sim.ShareNever) || s != nil && s.Value != 2 {
			t.Errorf("sharing %d: section %+v", c.sharing, s)
		}
	}
	// On nodes of their own, or with NICs of their own, jobs do not contend.
	apart := onNodes(t, job(1000), job(1000))
	apart.Nodes = []int32{0, 1, 2, 3}
	separate, err := compose.SeparateNICs(context.Background(), onNodes(t, job(1000), job(1000)),
		[]compose.Job{{Trace: job(1000)}, {Trace: job(1000)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range []*dag.Trace{apart, separate} {
		if r := strictOn(t, trace, sim.ShareAmongJobs, p, 1); r.Makespan.Ticks != 2118_000 ||
			r.Section("shared_nodes") != nil {
			t.Errorf("makespan %v", r.Makespan)
		}
	}
	// Messages between ranks of a node use no NIC.
	local := onNodes(t, job(1000), job(1000))
	local.Nodes = []int32{0, 0, 0, 0}
	if r := strictOn(t, local, sim.ShareAmongJobs, p, 1); r.Makespan.Ticks != 2118_000 {
		t.Errorf("makespan %v within a node", r.Makespan)
	}
}

// TestLocalMessages checks messages between ranks that share NICs, by calculations by hand: with o = 10, L = 100, G = 2
// per byte, a message of 1001 bytes takes 10 + 100 + 2000 + 10 ns, and with a rendezvous 200 more.
func TestLocalMessages(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 1001, 0)
	b.Rank(1).Recv(0, 1001, 0)
	job := b.Trace()
	apart, near := onNodes(t, job, job), onNodes(t, job, job)
	near.Nodes = []int32{0, 0, 0, 0}
	rate, none, latency := big.NewRat(500, 1), new(big.Rat), 7*dag.Nanosecond
	for _, c := range []struct {
		eager     int64
		latency   *dag.Time
		rate      *big.Rat
		near, far uint64 // makespan in ns
	}{
		{1 << 20, nil, nil, 2120, 4125}, // far: the second message waits g + 2000 for the NIC
		{1 << 20, nil, rate, 620, 4125},
		{1 << 20, nil, none, 120, 4125},
		{1 << 20, &latency, nil, 2027, 4125},
		{1 << 20, &latency, rate, 527, 4125},
		{0, nil, nil, 2320, 4325},
		{0, &latency, rate, 541, 4325},
	} {
		p := inNanoseconds(100, 10, 5, 2, c.eager)
		p.LocalLatency, p.LocalPerByte = c.latency, c.rate
		for _, k := range []struct {
			trace *dag.Trace
			want  uint64
		}{{near, c.near}, {apart, c.far}} {
			r := strictOn(t, k.trace, sim.ShareAmongJobs, p, 1)
			if r.Makespan.Ticks != k.want*1000 {
				t.Errorf("%v: makespan %v, expected %d ns", p, r.Makespan, k.want)
			}
			replay, err := newReplay(dag.FromTrace(k.trace), Strict, &sim.Env{})
			if err != nil {
				t.Fatal(err)
			}
			path, err := replay.Run(Options{Params: p, Path: true})
			if err != nil || path.Path.Length() != r.Makespan.Ticks {
				t.Errorf("%v: critical path %v, error %v, expected the makespan %v", p, path.Path.Length(), err, r.Makespan)
			}
		}
	}
	p := inNanoseconds(100, 10, 5, 2, 0)
	p.LocalPerByte = rate
	if p.Check(Strict) != nil || p.Check(ATLAHS) == nil || p.Check(LogGOPSim) == nil {
		t.Error("local rates belong to strict only")
	}
}

// TestSharedNICsOfJoinedRanks checks on random jobs, without equal times, that ranks on shared nodes end when they do if
// the ranks of each node are one rank.
func TestSharedNICsOfJoinedRanks(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	slower := 0
	for n := range 200 {
		ranks, jobs := 2+random.IntN(4), make([]*dag.Trace, 2+random.IntN(2))
		p := inNanoseconds(random.Int64N(200), random.Int64N(20), random.Int64N(9), random.Int64N(3), random.Int64N(2)*500)
		for k := range jobs {
			b := dag.NewBuilder(ranks)
			last := make([]int, ranks)
			for rank := range ranks {
				last[rank] = b.Rank(rank).Calc(dag.Time(random.Int64N(2e6)))
			}
			for m := range 30 {
				from, to := random.IntN(ranks), random.IntN(ranks)
				if from == to {
					continue
				}
				bytes := 1 + random.Int64N(1000)
				work := b.Rank(from).Calc(dag.Time(1+random.Int64N(1e5)), last[from])
				last[from] = b.Rank(from).Send(int32(to), bytes, int64(m), work)
				last[to] = b.Rank(to).Recv(int32(from), bytes, int64(m), last[to])
			}
			jobs[k] = b.Trace()
		}
		merged := onNodes(t, jobs...)
		joined, err := nodes.Join(context.Background(), merged, nodes.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := strictOn(t, joined, sim.ShareNever, p, 1)
		for threads := 1; threads < 5; threads += 3 {
			got := strictOn(t, merged, sim.ShareAmongJobs, p, threads)
			last := make([]uint64, ranks)
			for rank, finish := range got.Finish {
				last[rank%ranks] = max(last[rank%ranks], finish.Ticks)
			}
			for node := range ranks {
				if last[node] != want.Finish[node].Ticks {
					t.Fatalf("case %d, %d threads: node %d ends at %d, expected %v", n, threads, node, last[node],
						want.Finish[node])
				}
			}
			if apart := strictOn(t, merged, sim.ShareNever, p, threads); apart.Makespan.Ticks < got.Makespan.Ticks {
				slower++
			}
		}
	}
	if slower < 100 {
		t.Errorf("%d jobs are slower on shared nodes, too few to tell", slower)
	}
}

// TestSharedNICsOfReferences checks the warning of models without shared NICs.
func TestSharedNICsOfReferences(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 8, 0)
	b.Rank(1).Recv(0, 8, 0)
	job := b.Trace()
	merged := onNodes(t, job, job)
	for _, m := range Models {
		warned := 0
		if _, err := newReplay(dag.FromTrace(merged), m, &sim.Env{Warn: func(string, ...any) { warned++ }}); err != nil {
			t.Fatal(err)
		}
		if (warned > 0) != (m != Strict) {
			t.Errorf("%s: %d warnings", m, warned)
		}
	}
}
