package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	joining "github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

const ns = dag.Nanosecond

func measuredTrace() *dag.Trace {
	b := dag.NewBuilder(4)
	b.Rank(0).Add(dag.Op{Duration: 100 * ns, Timed: true, MeasuredStart: 1000 * ns, MeasuredEnd: 1080 * ns})
	b.Rank(1).Calc(10 * ns)
	b.Rank(1).Add(dag.Op{Duration: 25 * ns, Timed: true, MeasuredStart: -20 * ns, MeasuredEnd: 40 * ns}, 0)
	b.Rank(1).Add(dag.Op{Duration: 25 * ns, Timed: true, MeasuredStart: -60 * ns, MeasuredEnd: -40 * ns}, 1)
	b.Rank(2).Add(dag.Op{Duration: 7 * ns, Timed: true, MeasuredStart: 3, MeasuredEnd: dag.Unmeasured})
	return b.Trace()
}

func TestLowered(t *testing.T) {
	during := func(first, last dag.Time) measured { return measured{first: first, last: last} }
	none := unmeasured
	for _, c := range []struct {
		name  string
		nodes []int32 // of the ranks of measuredTrace
		ranks int     // of the lowered trace; 0: as package nodes joins them
		same  bool    // the lowered trace has the same nodes
		want  []measured
		err   string
	}{
		{name: "as it was", ranks: 4,
			want: []measured{during(1000*ns, 1080*ns), during(-60*ns, 40*ns), during(3, dag.Unmeasured), none}},
		{name: "placed", nodes: []int32{3, 2, 1, 0}, ranks: 4, same: true,
			want: []measured{during(1000*ns, 1080*ns), during(-60*ns, 40*ns), during(3, dag.Unmeasured), none}},
		{name: "joined", nodes: []int32{1, 0, 1, 0}, want: []measured{during(-60*ns, 40*ns), during(3, 1080*ns)}},
		{name: "joined, none with others", nodes: []int32{3, 2, 1, 0},
			want: []measured{none, during(3, dag.Unmeasured), during(-60*ns, 40*ns), during(1000*ns, 1080*ns)}},
		{name: "joined, with gaps", nodes: []int32{2, 0, 2, 4},
			want: []measured{during(-60*ns, 40*ns), none, during(3, 1080*ns), none, none}},
		{name: "numbered without gaps", nodes: []int32{2, 0, 2, 4}, ranks: 3,
			want: []measured{during(-60*ns, 40*ns), during(3, 1080*ns), none}},
		{name: "without nodes", ranks: 2,
			err: "--compare: cannot map the 4 ranks of the trace to the 2 ranks after --lower: the trace does not have the nodes of its ranks"},
		{name: "more", ranks: 9,
			err: "--compare: cannot map the 4 ranks of the trace to the 9 ranks after --lower: the trace does not have the nodes of its ranks"},
		{name: "others", nodes: []int32{5, 5, 5, 6}, ranks: 6,
			err: "--compare: cannot map the 4 ranks of the trace to the 6 ranks after --lower: expected one rank per node, found 2 nodes"},
	} {
		trace := measuredTrace()
		trace.Nodes = c.nodes
		ranks, err := MeasuredOf(trace, MeasuredOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lowered := &dag.Trace{Ranks: dag.NewRanks(c.ranks)}
		if c.same {
			lowered.Nodes = c.nodes
		}
		if c.ranks == 0 {
			if lowered, err = joining.Join(context.Background(), trace, joining.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		all, err := ranks.Lowered(trace, lowered)
		var got []measured
		if all != nil {
			got = all.ranks
		}
		for i := range got {
			if joins := c.ranks == 0; joins && got[i].first != dag.Unmeasured && got[i].computed >= 0 {
				t.Errorf("%s: rank %d has the calcs of several ranks apart", c.name, i)
			}
			got[i].computed = 0
		}
		if err != nil && err.Error() != c.err || err == nil && c.err != "" ||
			err == nil && fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, error %v, expected %v, %q", c.name, got, err, c.want, c.err)
		}
	}
}

// TestLoweredStart checks that the ranks of a node start together with the first of them that has recorded times.
func TestLoweredStart(t *testing.T) {
	trace := measuredTrace()
	trace.Nodes = []int32{0, 1, 1, 0}
	ranks, err := MeasuredOf(trace, MeasuredOptions{Starts: []dag.Time{1060 * ns, 0, 60*ns + 3, 0}})
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := ranks.Lowered(trace, &dag.Trace{Ranks: dag.NewRanks(2)})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range []dag.Time{1060 * ns, 0} {
		if got := lowered.ranks[node].start; got != want {
			t.Errorf("node %d starts at %v, expected %v", node, got, want)
		}
	}
}

func TestCompareExtremes(t *testing.T) {
	m := &Measured{ranks: []measured{{first: math.MinInt64 + 1, last: math.MaxInt64}, {first: 5, last: 5}}}
	c := m.Compare(nil, nil).(*comparer)
	got := c.compare([]sim.Clock{{Ticks: math.MaxUint64, Unit: ns}, {Ticks: 1, Unit: ns}})
	text, err := json.Marshal(got)
	want := `{"ranks":[{"rank":0,"measured_ps":18446744073709551614,"predicted_ps":18446744073709551615000,"error":999},` +
		`{"rank":1,"measured_ps":0,"predicted_ps":1000,"error":null}],"overall":{"measured_ps":18446744073709551614,` +
		`"predicted_ps":18446744073709551615000,"error":999},"mean_abs_error":999,"max_abs_error":999}`
	if err != nil || string(text) != want {
		t.Errorf("%v, %s, expected %s", err, text, want)
	}
}

// FuzzGrid checks that a grid is refused, or has points that all set the same parameters in the same order.
func FuzzGrid(f *testing.F) {
	f.Add("L=1us..10us:10;G=0.02,0.04")
	f.Add("S=0..1MiB:3,7;L=5")
	f.Add("G=100Gbps..400Gbps:4")
	var latency dag.Time
	var gap *big.Rat
	var size int64
	set := param.Set{
		param.TimeIn(&latency, dag.Nanosecond, "L", "latency").Sweep(), param.RateIn(&gap, "ns/B", "G", "gap").Sweep(),
		param.Size(&size, "S", "size").Sweep(),
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 100 {
			return // much text makes many points, which takes long and shows nothing new
		}
		points, err := ParseGrid(text, set)
		if err != nil {
			return
		}
		if len(points) == 0 || len(points) > maxPoints {
			t.Fatalf("%d points", len(points))
		}
		for _, point := range points {
			if len(point) != len(points[0]) {
				t.Fatalf("a point sets %d parameters, the first %d", len(point), len(points[0]))
			}
			for k, s := range point {
				if s.Name != points[0][k].Name || s.Number.Sign() < 0 {
					t.Fatalf("a point sets %s to %v", s.Name, s.Number)
				}
			}
		}
	})
}

func TestIntervals(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var sets [2][2000]bool
		var unions [2]intervals
		for k := range unions {
			for range random.IntN(300) {
				start := 5 + random.IntN(1900)
				end := start + random.IntN(20) - 3
				unions[k].add(uint64(start), uint64(end))
				for p := start; p < end; p++ {
					sets[k][p] = true
				}
			}
		}
		wantAll, wantOutside := uint64(0), uint64(0)
		for p, in := range sets[0] {
			if in {
				wantAll++
				if !sets[1][p] {
					wantOutside++
				}
			}
		}
		if all, outside := unions[0].beside(&unions[1]); all != wantAll || outside != wantOutside {
			t.Fatalf("seed %d: %d, of which %d are outside, expected %d and %d", seed, all, outside, wantAll, wantOutside)
		}
	}
}

func TestLongRuns(t *testing.T) {
	times := newJobTimes(&Jobs{jobs: []job{{name: "a"}}, ranks: slices.Repeat([]jobRank{{jobs: []int32{0}}}, 3)})
	for rank := range times.ranks {
		times.ranks[rank][0].compute.add(0, 1<<63)
		times.ranks[rank][0].comm.add(1<<62, 1<<63+1)
	}
	finish := []sim.Clock{{Ticks: 1 << 63}, {}, {}}
	got := times.outcomes(&sim.Result{Finish: finish, Makespan: sim.Clock{Ticks: 1 << 63, Unit: ns}})[0]
	if got.Compute.String() != "27670116110564327424000" || got.ExposedCompute.String() != "13835058055282163712000" ||
		got.ExposedShare != 0.5 {
		t.Errorf("%+v", got)
	}
}

// TestComputed: calcs on one stream add up without their calls of MPI, those on several do not.
func TestComputed(t *testing.T) {
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	r.Calc(3)
	r.Send(0, 1, 0)
	r.Calc(4)
	r.Add(dag.Op{Kind: dag.Calc, Stream: 7}) // takes no time
	r.Add(dag.Op{Kind: dag.Calc, Duration: 9, Attrs: attr.CallTime(9)})
	r.Add(dag.Op{Kind: dag.Calc, Duration: 5, Attrs: attr.CallTime(4)})
	if got := computed(b.Trace().Ranks[0]); got != 8 {
		t.Errorf("%d ps, expected 8", got)
	}
	b = dag.NewBuilder(1)
	b.Rank(0).Calc(3)
	b.Rank(0).Add(dag.Op{Kind: dag.Calc, Stream: 7, Duration: 1})
	if got := computed(b.Trace().Ranks[0]); got >= 0 {
		t.Errorf("%d ps on two streams, expected none", got)
	}
}
