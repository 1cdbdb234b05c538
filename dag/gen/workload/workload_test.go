package workload

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/gen/sizes"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// A million sizes have the distribution of their table, and its mean as far as a million can.
func TestDraw(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	const draws = 1_000_000
	tolerances := map[string]float64{"w4_facebook_hadoop": 0.03, "w2_google_search": 0.1, "w5_dctcp_websearch": 0.01}
	for _, name := range sizes.Names() {
		c, _ := sizes.Named(name)
		if c.Name != name { // an alias
			continue
		}
		tally := newTally(&Params{Jobs: []Job{{Sizes: c}}})
		random := rand.NewChaCha8([32]byte{1})
		flows := make([]openloop.Message, draws)
		for i := range flows {
			flows[i].Bytes = c.Draw(random.Uint64())
		}
		tally.add(flows)
		j := &tally.jobs[0]
		if d := j.distance(); !(d < 0.002) {
			t.Errorf("%s: Kolmogorov distance %v", name, d)
		}
		if most := tolerances[name]; most > 0 && math.Abs(j.sum/draws/c.Mean()-1) > most {
			t.Errorf("%s: mean %v, want %v", name, j.sum/draws, c.Mean())
		}
		// The same for some without the marks, at the rows of the table.
		if !slices.Contains([]string{"w3_google_all", "hkust_facebook_memcached", "pfabric_datamining_pkts"}, name) {
			continue
		}
		slices.SortFunc(flows, func(a, b openloop.Message) int { return int(a.Bytes - b.Bytes) })
		distinct, cdf := c.Distinct()
		for i, size := range distinct {
			if size == 0 {
				continue
			}
			n, _ := slices.BinarySearchFunc(flows, size*c.Unit+1, func(f openloop.Message, s int64) int { return int(f.Bytes - s) })
			if d := math.Abs(float64(n)/draws - cdf[i]); !(d < 0.002) {
				t.Errorf("%s: %d of sizes up to %d, want a part of %v", name, n, size, cdf[i])
			}
		}
	}
}

// draw returns the flows of a workload.
func draw(t testing.TB, p Params, seed int64) []openloop.Message {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	var flows []openloop.Message
	s := newStream(&p, seed)
	for next := s.Next(); len(next) > 0; next = s.Next() {
		flows = append(flows, next...)
	}
	for i, f := range flows {
		if i > 0 && f.Time < flows[i-1].Time || f.Time%p.Clock != 0 || f.Source == f.Destination || f.Bytes < 1 ||
			min(f.Source, f.Destination) < 0 || int(max(f.Source, f.Destination)) >= p.Ranks {
			t.Fatalf("flow %d is %+v", i, f)
		}
	}
	return flows
}

// The mean gap of a million flows is within half a percent of the gap for the load, for every distribution of the gaps.
func TestGaps(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	const flows = 1_000_000
	for _, process := range Processes {
		p := Default()
		p.Jobs[0].Arrivals = Arrivals{Process: process, Sigma: 1, On: 3 * dag.Millisecond, Off: dag.Millisecond}
		p.Jobs[0].Sizes, _ = sizes.Named("w3")
		p.Jobs[0].Rate = 128 * 0.5e9 // so that a host sends every 46.838 us
		p.Jobs[0].Flows = flows
		drawn := draw(t, p, 1)
		if len(drawn) != flows {
			t.Fatalf("%v: %d flows", process, len(drawn))
		}
		const want = 8000 * 2927.354389031333 / 0.5 / 128 // ps, for 0.5 Gbit/s of each of 128 hosts
		if got := float64(drawn[flows-1].Time) / flows; math.Abs(got/want-1) > 0.005 {
			t.Errorf("%v: mean gap %v ps, want %v", process, got, want)
		}
	}
}

// gaps returns the times between the flows of each source, and their mean.
func gaps(flows []openloop.Message) (all []float64, mean float64) {
	last := map[int32]dag.Time{}
	for _, f := range flows {
		if before, ok := last[f.Source]; ok {
			all = append(all, float64(f.Time-before))
			mean += float64(f.Time - before)
		}
		last[f.Source] = f.Time
	}
	return all, mean / float64(len(all))
}

// Mean, deviation and median of the gaps match their distribution.
func TestLawsOfGaps(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, test := range []struct {
		arrivals          Arrivals
		deviation, median float64 // as parts of the mean
		within            float64
	}{
		{Arrivals{Process: Poisson}, 1, math.Ln2, 0.02},
		{Arrivals{Process: Periodic}, 0, 1, 1e-3},
		{Arrivals{Process: Lognormal, Sigma: 0.5}, math.Sqrt(math.Exp(0.25) - 1), math.Exp(-0.125), 0.02},
		{Arrivals{Process: Lognormal, Sigma: 1}, math.Sqrt(math.E - 1), math.Exp(-0.5), 0.05},
		{Arrivals{Process: OnOff, On: dag.Millisecond, Off: 0}, 1, math.Ln2, 0.02},
	} {
		p := Default()
		p.Ranks, p.Clock = 10, 1
		p.Jobs[0].Arrivals, p.Jobs[0].Flows = test.arrivals, 200_000
		all, mean := gaps(draw(t, p, 2))
		square := 0.0
		for _, g := range all {
			square += (g - mean) * (g - mean)
		}
		slices.Sort(all)
		deviation, median := math.Sqrt(square/float64(len(all)))/mean, all[len(all)/2]/mean
		if math.Abs(deviation-test.deviation) > test.within || math.Abs(median-test.median) > test.within {
			t.Errorf("%+v: deviation %v, median %v, want %v, %v", test.arrivals, deviation, median, test.deviation, test.median)
		}
	}
}

// With phases, the squared variation of gaps is that of an interrupted Poisson process.
func TestOnOff(t *testing.T) {
	p := Default()
	p.Ranks, p.Clock = 10, 1
	j := &p.Jobs[0]
	j.Sizes, j.Rate = sizes.Constant(12_500), 10*10e9 // a flow of each host every 10 us
	j.Arrivals, j.Flows = Arrivals{Process: OnOff, On: 100 * dag.Microsecond, Off: 300 * dag.Microsecond}, 1_000_000
	all, mean := gaps(draw(t, p, 3))
	square := 0.0
	for _, g := range all {
		square += (g - mean) * (g - mean)
	}
	// Flows at rate l in phases that end at rate a and begin again at rate b: 1 + 2 l a / (a + b)^2.
	const l, a, b = 1 / 2.5, 1 / 100.0, 1 / 300.0 // 1/us
	want := 1 + 2*l*a/((a+b)*(a+b))
	if got := square / float64(len(all)) / (mean * mean); math.Abs(got/want-1) > 0.03 || math.Abs(mean/10e6-1) > 0.03 {
		t.Errorf("mean gap %v ps, squared variation %v, want 10 us, %v", mean, got, want)
	}
}

// From the beginning flows come at the mean rate, for every distribution of the gaps.
func TestStart(t *testing.T) {
	for _, arrivals := range []Arrivals{
		{Process: Poisson}, {Process: Periodic}, {Process: Lognormal, Sigma: 1.5},
		{Process: OnOff, On: 30 * dag.Microsecond, Off: 90 * dag.Microsecond},
	} {
		p := Default()
		p.Ranks = 50_000
		j := &p.Jobs[0]
		j.Sizes, j.Rate = sizes.Constant(12_500), 50_000*10e9 // a flow of each host every 10 us
		j.Arrivals, j.Flows, j.Duration = arrivals, 0, 20*dag.Microsecond
		flows := draw(t, p, 1)
		early := 0
		for _, f := range flows {
			if f.Time < 5*dag.Microsecond {
				early++
			}
		}
		if math.Abs(float64(len(flows))/100_000-1) > 0.05 || math.Abs(float64(early)/25_000-1) > 0.05 {
			t.Errorf("%+v: %d flows, %d in the first quarter, want 100000 and 25000", arrivals, len(flows), early)
		}
	}
}

// The rate of the sources, and thus the load, matches the parameters in all patterns.
func TestLoad(t *testing.T) {
	for _, kind := range Kinds {
		p := Default()
		p.Ranks = 32
		j := &p.Jobs[0]
		j.Sizes, j.Rate, j.Pattern.Kind, j.Flows, j.Duration = sizes.Constant(10_000), 32*4e9, kind, 0, 50*dag.Millisecond
		s, err := NewSource(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		r := s.Report().Jobs[0]
		if math.Abs(r.Rate/j.Rate-1) > 0.03 || math.Abs(r.WantedRate/j.Rate-1) > 1e-9 || r.SizeDistance != 0 || r.MeanSize != 10_000 {
			t.Errorf("%v: %+v", kind, r)
		}
		h, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		if r.Last >= j.Duration || r.Flows != h.Ops/2 || r.Bytes != 10_000*r.Flows {
			t.Errorf("%v: %+v, %d ops", kind, r, h.Ops)
		}
	}
}

func TestPatterns(t *testing.T) {
	with := func(pattern Pattern, flows int64) []openloop.Message {
		p := Default()
		p.Ranks = 10
		p.Jobs[0].Pattern, p.Jobs[0].Flows = pattern, flows
		p.Jobs[0].Sizes = sizes.Constant(1000)
		return draw(t, p, 5)
	}
	to := map[int32]int32{}
	for _, f := range with(Pattern{Kind: Permutation}, 5000) {
		if d, ok := to[f.Source]; ok && d != f.Destination {
			t.Fatalf("permutation: %d sends to %d and %d", f.Source, d, f.Destination)
		}
		to[f.Source] = f.Destination
	}
	host := int32(0)
	for range 9 {
		if host = to[host]; host == 0 {
			t.Fatal("permutation: not one cycle")
		}
	}
	for _, f := range with(Pattern{Kind: Shift, Shift: 3}, 1000) {
		if f.Destination != (f.Source+3)%10 {
			t.Fatalf("shift: %d sends to %d", f.Source, f.Destination)
		}
	}
	sent := map[int32]int32{}
	for _, f := range with(Pattern{Kind: AllToAll}, 1000) {
		if want := (f.Source + 1 + sent[f.Source]%9) % 10; f.Destination != want {
			t.Fatalf("alltoall: %d sends to %d, want %d", f.Source, f.Destination, want)
		}
		sent[f.Source]++
	}
	hot := 0
	const flows = 100_000
	for _, f := range with(Pattern{Kind: Hotspot, Fraction: 0.3, Node: 4}, flows) {
		if f.Destination == 4 {
			hot++
		}
	}
	// Nine of ten flows are of other hosts: 0.3 of them go there, and a ninth of the rest.
	if want := flows * 0.9 * (0.3 + 0.7/9); math.Abs(float64(hot)/want-1) > 0.02 {
		t.Errorf("hotspot: %d flows, want about %v", hot, want)
	}
	pairs := map[[2]int32]int{}
	for _, f := range with(Pattern{Kind: Uniform}, flows) {
		pairs[[2]int32{f.Source, f.Destination}]++
	}
	for pair, n := range pairs {
		if math.Abs(float64(n)/flows*90-1) > 0.15 {
			t.Errorf("uniform: %d flows of pair %v, want about %d", n, pair, flows/90)
		}
	}
	if len(pairs) != 90 {
		t.Errorf("uniform: %d pairs", len(pairs))
	}
}

func TestIncast(t *testing.T) {
	for _, node := range []int{-1, 7} {
		p := Default()
		p.Ranks = 10
		p.Jobs[0].Pattern = Pattern{Kind: Incast, Degree: 4, Period: 10 * dag.Microsecond, Node: node}
		p.Jobs[0].Arrivals.Process = Periodic
		p.Jobs[0].Flows = 4000
		flows := draw(t, p, 1)
		senders, receivers := map[int32]int{}, map[int32]int{}
		for i := 0; i < len(flows); i += 4 {
			group := flows[i : i+4]
			receivers[group[0].Destination]++
			for k, f := range group {
				if f.Time != group[0].Time || f.Destination != group[0].Destination || k > 0 && f.Source <= group[k-1].Source {
					t.Fatalf("incast of %+v", group)
				}
				senders[f.Source]++
			}
			if i > 0 && group[0].Time-flows[i-4].Time != 10*dag.Microsecond {
				t.Fatalf("an incast %v after the one before", group[0].Time-flows[i-4].Time)
			}
		}
		if node >= 0 && (receivers[7] != 1000 || len(senders) != 9) || node < 0 && (len(receivers) != 10 || len(senders) != 10) {
			t.Errorf("receivers %v, senders %v", receivers, senders)
		}
		for host, n := range senders {
			if math.Abs(float64(n)*float64(len(senders))/4000-1) > 0.2 {
				t.Errorf("host %d sends %d of 4000 flows", host, n)
			}
		}
	}
}

// mix is two kinds of traffic.
func mix() Params {
	p := Default()
	p.Ranks = 20
	back := p.Jobs[0]
	back.Name, back.Flows = "background", 3000
	front := back
	front.Name, front.Sizes, front.Pattern, front.Rate = "incasts", sizes.Constant(20_000),
		Pattern{Kind: Incast, Degree: 8, Node: -1}, 20*5e9
	front.Flows, front.Duration = 0, dag.Millisecond
	p.Jobs = []Job{back, front}
	return p
}

// A job of a mix equals the job alone, at its position in the list.
func TestMix(t *testing.T) {
	p := mix()
	s, err := NewSource(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(tr); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	if !slices.Equal(tr.Jobs, []string{"background", "incasts"}) {
		t.Errorf("jobs %q", tr.Jobs)
	}
	var ops [2]int64
	for i := range tr.Ranks {
		for op := range tr.Ranks[i].Len() {
			ops[tr.Ranks[i].Job.At(op)]++
		}
	}
	r := s.Report()
	if ops[0] != 2*r.Jobs[0].Flows || ops[1] != 2*r.Jobs[1].Flows || r.Flows*2 != tr.Ops() || ops[0] != 6000 || ops[1] == 0 {
		t.Errorf("%v ops, report %+v", ops, r)
	}
	alone := p
	alone.Jobs = p.Jobs[:1]
	var back []openloop.Message
	for _, f := range draw(t, p, 1) {
		if f.Job == 0 {
			back = append(back, f)
		}
	}
	if !slices.Equal(back, draw(t, alone, 1)) {
		t.Error("a job changes what another is")
	}
}

// A trace read batch by batch is the trace, whatever the number of processors, and other seeds make others.
func TestDeterminism(t *testing.T) {
	p := mix()
	made := func(seed int64) *dag.Trace {
		s, err := NewSource(p, seed)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := dag.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		read := s.NewReader(dag.All)
		for rank := range p.Ranks {
			batch, err := read(dag.Batch{First: rank, Last: rank + 1, Ops: int64(tr.Ranks[rank].Len())})
			if err != nil || !reflect.DeepEqual(batch[0], tr.Ranks[rank]) {
				t.Fatalf("rank %d is another by itself: %v", rank, err)
			}
		}
		return tr
	}
	first := made(1)
	if reflect.DeepEqual(first, made(2)) {
		t.Error("seeds do not matter")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !reflect.DeepEqual(first, made(1)) {
		t.Error("one processor makes another trace")
	}
}

// Workloads that differ in one thing have the others in common, flow by flow.
func TestCommonNumbers(t *testing.T) {
	base := Default()
	base.Jobs[0].Flows = 5000
	flows := draw(t, base, 1)
	same := func(what string, change func(j *Job), equal func(a, b openloop.Message) bool) {
		p := base
		p.Jobs = slices.Clone(base.Jobs)
		change(&p.Jobs[0])
		if !slices.EqualFunc(flows, draw(t, p, 1), equal) {
			t.Errorf("%s change more than that", what)
		}
	}
	same("destinations", func(j *Job) { j.Pattern.Kind = Hotspot }, func(a, b openloop.Message) bool {
		return a.Time == b.Time && a.Bytes == b.Bytes && a.Source == b.Source
	})
	same("sizes of the same mean", func(j *Job) { j.Sizes = sizes.Constant(1000); j.Rate = j.Rate * 1000 / base.Jobs[0].Sizes.Mean() },
		func(a, b openloop.Message) bool { return max(a.Time-b.Time, b.Time-a.Time) <= dag.Nanosecond })
	same("times", func(j *Job) { j.Arrivals.Process = Periodic }, func(a, b openloop.Message) bool { return a.Bytes == b.Bytes })
}

func TestParameters(t *testing.T) {
	for want, change := range map[string]func(p *Params, j *Job){
		"ranks is 1, expected 2..1048576":                      func(p *Params, _ *Job) { p.Ranks = 1 },
		"clock is 0s, expected 1ps..1s":                        func(p *Params, _ *Job) { p.Clock = 0 },
		"mix is 0 jobs, expected 1..256":                       func(p *Params, _ *Job) { p.Jobs = nil },
		"rate is NaN, expected above 0 (as are load and link)": func(_ *Params, j *Job) { j.Rate = math.NaN() },
		"rate is 0, expected above 0 (as are load and link)":   func(_ *Params, j *Job) { j.Rate = 0 },
		"flows is -1, expected 0..1099511627776":               func(_ *Params, j *Job) { j.Flows = -1 },
		"flows is 0, expected 1 or more, or a duration":        func(_ *Params, j *Job) { j.Flows = 0 },
		"duration is -1ps, expected 0s..2305843.009213693951s": func(_ *Params, j *Job) { j.Duration = -1 },
		"sigma is 0, expected above 0 and at most 4":           func(_ *Params, j *Job) { j.Arrivals = Arrivals{Process: Lognormal} },
		"sigma is 5, expected above 0 and at most 4":           func(_ *Params, j *Job) { j.Arrivals = Arrivals{Process: Lognormal, Sigma: 5} },
		"on is 0s, expected 1ps..2305843.009213693951s":        func(_ *Params, j *Job) { j.Arrivals = Arrivals{Process: OnOff} },
		"off is -1ps, expected 0s..2305843.009213693951s":      func(_ *Params, j *Job) { j.Arrivals = Arrivals{Process: OnOff, On: 1, Off: -1} },
		"on is 1ps, expected 0.274 us or more, a thousandth of the mean time between flows of a source in such phases": func(_ *Params, j *Job) {
			j.Arrivals = Arrivals{Process: OnOff, On: 1}
		},
		"degree is 128, expected 1..127":                     func(_ *Params, j *Job) { j.Pattern = Pattern{Kind: Incast, Degree: 128} },
		"period is -1ps, expected 0s..2305843.009213693951s": func(_ *Params, j *Job) { j.Pattern = Pattern{Kind: Incast, Degree: 1, Period: -1} },
		"node is 128, expected -1..127":                      func(_ *Params, j *Job) { j.Pattern = Pattern{Kind: Hotspot, Node: 128} },
		"fraction is 1.5, expected 0..1":                     func(_ *Params, j *Job) { j.Pattern = Pattern{Kind: Hotspot, Fraction: 1.5} },
		"shift is 0, expected 1..127":                        func(_ *Params, j *Job) { j.Pattern = Pattern{Kind: Shift} },
		"flows is 1000000000000, expected so few that they take at most 2305843.009213693951s (these take about 4.28e+06 s)": func(_ *Params, j *Job) {
			j.Flows, j.Rate = 1e12, 3.2e12
		},
		"duration is 2000000s, expected a duration with at most 1099511627776 flows (found about 1.17e+12)": func(_ *Params, j *Job) {
			j.Flows, j.Duration, j.Rate = 0, 2e6*dag.Second, 8e12
		},
	} {
		p := Default()
		p.Jobs[0].Flows = 1000
		change(&p, &p.Jobs[0])
		err := p.Check()
		var param *openloop.ParamError
		if err == nil || err.Error() != want || !errors.As(err, &param) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	p := Default()
	p.Ranks = 1024
	p.Jobs[0].Flows = 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		s := newStream(&p, 1)
		for next := s.Next(); len(next) > 0; next = s.Next() {
		}
	}
	b.ReportMetric(1e6*float64(b.N)/b.Elapsed().Seconds(), "flows/s")
}
