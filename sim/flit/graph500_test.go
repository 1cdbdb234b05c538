package flit

import (
	"fmt"
	"os"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/graph500"
)

// levels cuts the trace of a search into its levels. The last op of each is of its broadcast.
func levels(tr *dag.Trace) []*dag.Trace {
	const broadcast, tags = 3, 4
	var builders []*dag.Builder
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		level, first := 0, 0
		for i := 0; i < r.Len(); i++ {
			end := i
			for last := false; !last; end++ {
				op := r.Op(end)
				isLast := op.Kind != dag.Calc && op.Tag == int64(tags*level+broadcast)
				last = isLast && (end+1 == r.Len() || r.Op(end+1).Kind == dag.Calc || r.Op(end+1).Tag != op.Tag)
			}
			if level == len(builders) {
				builders = append(builders, dag.NewBuilder(len(tr.Ranks)))
			}
			b := builders[level].Rank(rank)
			for first = i; i < end; i++ {
				at := b.Add(r.Op(i))
				for _, back := range r.Deps.Of(i) {
					if on := i - int(back); on >= first {
						b.Requires(at, on-first)
					}
				}
			}
			i--
			level++
		}
	}
	var all []*dag.Trace
	for _, b := range builders {
		all = append(all, b.Trace())
	}
	return all
}

// fogsim500 is the results of searches on the reference simulator: means over three seeds; table IV: one seed.
var fogsim500 = []struct {
	name         string
	scale, nodes int
	root         int             // process
	degree       int64           // of the root
	query        float64         // time of a query in cycles
	ends         [3]float64      // cycles in which levels 0 to 2 end
	cycles       map[int]float64 // in all, by the number of levels that there were
}{
	{"UN/MIN", 16, 72, 60, 1, 0.015625, [3]float64{1209, 3365, 6362}, map[int]float64{5: 12144, 6: 14983}},
	{"UN/MIN", 16, 72, 60, 1, 0.0625, [3]float64{1217, 3392, 7043}, map[int]float64{5: 13597, 6: 16329}},
	{"UN/MIN", 16, 72, 60, 1, 0.25, [3]float64{1227, 3384, 10906}, map[int]float64{5: 22248, 6: 24674}},
	{"UN/MIN", 16, 72, 60, 1, 1, [3]float64{1261, 4546, 27888}, map[int]float64{5: 62682, 6: 62906}},
	{"UN/MIN", 16, 72, 60, 16, 0.015625, [3]float64{1313, 4171, 7117}, map[int]float64{4: 10541}},
	{"UN/MIN", 16, 72, 60, 16, 0.0625, [3]float64{1332, 4242, 7314}, map[int]float64{4: 11645}},
	{"UN/MIN", 16, 72, 60, 16, 0.25, [3]float64{1436, 4505, 9847}, map[int]float64{4: 19631}},
	{"UN/MIN", 16, 72, 60, 16, 1, [3]float64{1868, 7170, 23698}, map[int]float64{4: 54847}},
	{"UN/MIN", 16, 72, 60, 1000, 0.015625, [3]float64{1769, 4700, 7620}, map[int]float64{6: 15779}},
	{"UN/MIN", 16, 72, 60, 1000, 0.0625, [3]float64{1853, 4953, 8136}, map[int]float64{6: 16578}},
	{"UN/MIN", 16, 72, 60, 1000, 0.25, [3]float64{2317, 7494, 13911}, map[int]float64{6: 24498}},
	{"UN/MIN", 16, 72, 60, 1000, 1, [3]float64{4283, 19737, 40151}, map[int]float64{6: 63794}},
	{"UN/MIN", 14, 36, 30, 16, 0.0625, [3]float64{916, 2875, 4866}, map[int]float64{4: 7608, 5: 9426}},
	{"tableIV", 16, 72, 60, 16, 1.875, [3]float64{126222, 428204, 741645}, map[int]float64{4: 1117566}},
	{"tableIV", 16, 72, 60, 16, 18.75, [3]float64{127431, 424741, 839200}, map[int]float64{4: 1589586}},
}

// search returns the trace of a row, and the network and the parameters that it runs on. Messages take a rank as many cycles to
// hand over as a packet has flits, and all others, which are whole packets on the network, too, one.
func search(t testing.TB, name string, query float64, seed int64, change func(g *graph500.Params)) (*dag.Trace, Options) {
	t.Helper()
	const cycle = 64 * dag.Nanosecond // a query's time is a whole number of picoseconds
	_, p, _ := configure(t, name)
	p.Cycle = cycle
	o := Options{Params: p, Network: mustParse(t, "dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=640ns,globallatency=6400ns")}
	if name == "tableIV" {
		o.Network = mustParse(t, "dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=3200ns,globallatency=32us")
	}
	g := graph500.Default()
	g.HIntDiv, g.QueryTime, g.PacketPhits = true, dag.Time(query*float64(cycle)), int64(p.PacketFlits)
	g.Cycle = cycle
	g.MessageBytes, g.ControlBytes = int64(p.PacketFlits*p.FlitBytes), int64(p.FlitBytes)
	change(&g)
	tr, err := readAll(graph500.NewSource(g, seed))
	if err != nil {
		t.Fatal(err)
	}
	return tr, o
}

// replay runs a trace and returns how many cycles it takes, and the report.
func replay(t testing.TB, tr *dag.Trace, o Options) (float64, *Report) {
	t.Helper()
	c, err := Compile(dag.FromTrace(tr))
	if err != nil {
		t.Fatal(err)
	}
	result, report, err := c.Run(o)
	if err != nil || !result.Complete {
		t.Fatalf("not complete, error %v", err)
	}
	return float64(report.Cycles), report
}

// TestGraph500 compares the ends of levels with those of the reference, which begins each level at all processes at once, in
// the cycle after all have heard of the end of the last. In the whole trace each begins when it has heard itself: there a
// level begins at the last process while others are up to 72 packets of the broadcast ahead.
func TestGraph500(t *testing.T) {
	for _, c := range fogsim500 {
		long := os.Getenv("TRACEDAG_LONG") != ""
		if testing.Short() && c.scale != 14 || !long && c.degree != 16 {
			continue
		}
		seeds := int64(4)
		switch {
		case c.name == "tableIV":
			seeds = 2
		case long:
			seeds = 10
		}
		t.Run(fmt.Sprintf("%s/%d/%v/%v", c.name, c.scale, c.degree, c.query), func(t *testing.T) {
			t.Parallel()
			var ends [3]float64
			total, runs := map[int]float64{}, map[int]float64{}
			overlap := 0.0
			var o Options
			for seed := range seeds {
				var tr *dag.Trace
				tr, o = search(t, c.name, c.query, seed+1, func(g *graph500.Params) {
					g.Scale, g.Nodes, g.RootProcess, g.RootDegree = c.scale, c.nodes, c.root, c.degree
				})
				end := -1.0
				all := levels(tr)
				for l, level := range all {
					cycles, _ := replay(t, level, o)
					end += cycles + 1
					if l < 3 {
						ends[l] += end / float64(seeds)
					}
				}
				total[len(all)] += end + 1
				runs[len(all)]++
				whole, _ := replay(t, tr, o)
				overlap += (end + 1 - whole) / float64(len(all)-1) / float64(seeds)
			}
			t.Logf("levels end at %.0f, want %.0f; levels overlap by %.0f", ends, c.ends, overlap)
			level0 := 0.02
			if c.query >= 0.1 && c.name != "tableIV" {
				level0 = 0.1 // drawn times of few messages
			}
			near(t, "end of level 0", ends[0], c.ends[0], level0)
			near(t, "end of level 1", ends[1], c.ends[1], 0.05)
			near(t, "end of level 2", ends[2], c.ends[2], 0.05)
			for count, want := range c.cycles {
				if runs[count] > 0 {
					t.Logf("%d levels: %.0f, want %.0f", count, total[count]/runs[count], want)
					near(t, fmt.Sprintf("end of %d levels", count), total[count]/runs[count], want, 0.05)
				}
			}
			// Without overlap at all, levels may even take each other's time.
			most := 72. * float64(o.Params.PacketFlits)
			if overlap < -0.2*most || overlap > most {
				t.Errorf("levels overlap by %.0f cycles, want 0 to %.0f", overlap, most)
			}
		})
	}
}

// TestRegimes: the time of a search grows in proportion to that of a query where processes are the bottleneck, and does not
// hang on it where the network is; then bandwidth counts, and latency does not; the share of the network that a process uses,
// which sends or receives one thing at a time, ends near a half.
func TestRegimes(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	const (
		phits = 64
		ns    = 64 // picoseconds for a nanosecond, so that queries of a hundredth of one are more than none
	)
	// run returns nanoseconds and the load. A cycle is 1/bandwidth ns, links are 10 and 100 times latency ns long, a full
	// message takes query ns to process.
	run := func(query, bandwidth, latency float64) (float64, float64) {
		cycle := dag.Time(ns * 16 / bandwidth)
		tr, o := search(t, "UN/MIN", 0, 1, func(g *graph500.Params) {
			g.Scale, g.RootDegree, g.Injection = 17, 16, graph500.PaperInjection
			g.QueryTime = dag.Time(query * ns * 16 / 256)
			g.ConsumeMin = phits * cycle
			g.MessageBytes = phits * 4
			g.Cycle = cycle
		})
		p := &o.Params
		p.Cycle, p.PacketFlits = cycle, phits
		p.InjectionBuffer, p.LocalBuffer, p.GlobalBuffer, p.OutputBuffer = 32*phits, 8*phits, 32*phits, 8*phits
		o.Network = mustParse(t, fmt.Sprintf("dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=%dps,globallatency=%dps",
			int(latency*10*ns*16), int(latency*100*ns*16)))
		cycles, report := replay(t, tr, o)
		return cycles * float64(cycle) / (ns * 16), report.Accepted
	}
	free, use := run(0, 1, 1)
	short, _ := run(1, 1, 1)
	within(t, "time with short queries", short/free, 1, 1.05)
	within(t, "use of the network", use, 0.45, 0.55)
	long, _ := run(1024, 1, 1)
	longer, _ := run(2048, 1, 1)
	within(t, "time with queries twice as long", longer/long, 1.9, 2.02)

	fast, _ := run(0, 2, 1)
	within(t, "bandwidth x 2 where the network is the bottleneck", free/fast, 1.9, 2.1)
	fastLong, _ := run(2048, 2, 1)
	within(t, "bandwidth x 2 where processes are", longer/fastLong, 1, 1.03)

	// The knee is where a message takes as long to process as to send: there the time has grown by about half. With twice the
	// bandwidth it is at half the query time, and with ten times the latency where it was, each level taking a bit longer.
	knee, _ := run(phits, 1, 1)
	fastKnee, _ := run(phits/2, 2, 1)
	within(t, "time at the knee", knee/free, 1.3, 1.5)
	within(t, "time at the knee with bandwidth x 2", fastKnee/fast, 1.3, 1.5)
	far, farUse := run(0, 1, 10)
	farKnee, _ := run(phits, 1, 10)
	within(t, "what the knee takes with latency x 10", (farKnee-far)/(knee-free), 0.85, 1.05)
	within(t, "latency x 10 where the network is the bottleneck", far/free, 1, 1.2)
	within(t, "use of the network with latency x 10", farUse, 0.4, 0.55)
}
