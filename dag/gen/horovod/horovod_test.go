package horovod

import (
	"context"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

func mustGenerate(t testing.TB, p Params, seed int64) *dag.Trace {
	t.Helper()
	tr, err := readAll(NewSource(p, seed))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// certain returns parameters that leave nothing to chance: every worker announces all in the first iteration.
func certain() Params {
	p := Default()
	p.Workers, p.Batches, p.Layers, p.Jitter = 4, 3, 2, 0
	p.Layer.GathervProbability, p.Layer.GathervTotalBytes = 1, 30
	p.Layer.BcastBytes, p.Layer.AllreduceBytes = 100, 64<<10
	p.Layer.Compute = 100 * dag.Microsecond
	return p
}

// TestCertain: with probability 1 and a threshold of half an announcement there is one iteration a layer.
func TestCertain(t *testing.T) {
	tr := mustGenerate(t, certain(), 1)
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		coll := func(kind dag.Subkind, bytes, masterReceives, workerReceives int64) dag.Op {
			op := dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes, RecvBytes: workerReceives}
			if rank == 0 {
				op.RecvBytes = masterReceives
			}
			return op
		}
		bcast := func(bytes int64) dag.Op {
			if rank == 0 {
				return coll(dag.Bcast, bytes, 0, 0)
			}
			return coll(dag.Bcast, 0, 0, bytes)
		}
		layer := []dag.Op{
			{Kind: dag.Calc, Duration: 100 * dag.Microsecond},
			coll(dag.Gather, 4, 16, 0),
			coll(dag.Gatherv, 60, 240, 0),
			bcast(4),
			bcast(100),
			coll(dag.Allreduce, 64<<10, 0, 0),
		}
		if r.Len() != 6*len(layer) {
			t.Fatalf("rank %d has %d ops, expected %d", rank, r.Len(), 6*len(layer))
		}
		for i := range r.Len() {
			want := layer[i%len(layer)]
			want.Step = int32(i/(2*len(layer))) + 1 // a batch has two layers
			if got := r.Op(i); got != want {
				t.Errorf("rank %d op %d is %+v, expected %+v", rank, i, got, want)
			}
			if deps := r.Deps.Of(i); i == 0 && len(deps) != 0 || i > 0 && (len(deps) != 1 || deps[0] != 1) {
				t.Errorf("rank %d op %d waits for %v", rank, i, deps)
			}
		}
	}
}

// run is the negotiations in the trace of a run.
type run struct {
	iterations []int       // of each layer of each batch
	sizes      [][][]int64 // of the gathervs, by worker and layer
}

func read(t *testing.T, tr *dag.Trace) run {
	t.Helper()
	var x run
	x.sizes = make([][][]int64, len(tr.Ranks))
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		var layer []int64
		for i := range r.Len() {
			switch r.Subkind.At(i) {
			case dag.Gatherv:
				layer = append(layer, r.Bytes.At(i))
			case dag.Allreduce:
				x.sizes[rank] = append(x.sizes[rank], layer)
				if rank == 0 {
					x.iterations = append(x.iterations, len(layer))
				}
				layer = nil
			}
		}
		if len(x.sizes[rank]) != len(x.iterations) {
			t.Fatalf("rank %d has %d allreduces, expected %d", rank, len(x.sizes[rank]), len(x.iterations))
		}
	}
	return x
}

// TestNegotiation follows the state machine: the loop ends in the iteration in which the last worker has announced
// enough, waits come between the iterations, and the master receives what the workers announce.
func TestNegotiation(t *testing.T) {
	p := Default()
	p.Overrides = map[int]Layer{1: p.Layer}
	slow := p.Overrides[1]
	slow.BcastBytes, slow.GathervTotalBytes = 2000, 120
	p.Overrides[1] = slow
	tr := mustGenerate(t, p, 7)
	if problems := dag.Validate(tr); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	x := read(t, tr)
	if len(x.iterations) != p.Batches*p.Layers {
		t.Fatalf("%d layers, expected %d", len(x.iterations), p.Batches*p.Layers)
	}
	for k, n := range x.iterations {
		needed := p.layer(k % p.Layers).GathervTotalBytes
		last := false // whether a worker became ready in the last iteration
		for w := range x.sizes {
			sum := int64(0)
			for i, size := range x.sizes[w][k] {
				if i == n-1 && sum < needed {
					last = true
				}
				if sum >= needed && size != 25 {
					t.Errorf("worker %d announces %d bytes when it is ready", w, size)
				}
				if size != 25 { // no announcement of 60 bytes on average is as small with this seed
					sum += size
				}
			}
			if len(x.sizes[w][k]) != n || sum < needed {
				t.Errorf("layer %d: worker %d has announced %d bytes in %d iterations, expected %d in %d", k, w, sum,
					len(x.sizes[w][k]), needed, n)
			}
		}
		if !last {
			t.Errorf("layer %d goes on after all workers were ready", k)
		}
	}
	master := tr.Ranks[0]
	gathervs := 0
	for i := range master.Len() {
		op := master.Op(i)
		if op.Subkind != dag.Gatherv {
			continue
		}
		sum := int64(0)
		for w := range tr.Ranks { // all ranks have the same collectives at the same places
			sum += tr.Ranks[w].Bytes.At(i)
		}
		if op.RecvBytes != sum {
			t.Errorf("the master receives %d bytes, expected %d", op.RecvBytes, sum)
		}
		gathervs++
		answer, next := master.Op(i+2), master.Op(i+3)
		switch {
		case next.Subkind == dag.Allreduce && (answer.Bytes == 1000 || answer.Bytes == 2000):
		case next.Kind == dag.Calc && answer.Bytes == 25 && next.Duration > 0 && next.Duration%dag.Nanosecond == 0:
		default:
			t.Errorf("op %d: answer %+v before %+v", i, answer, next)
		}
	}
	if gathervs < 60 || gathervs > 600 {
		t.Errorf("%d iterations, expected some tens a layer", gathervs)
	}
}

// TestIterationTraffic checks the bytes of every iteration against the model's formula: what the collectives of the
// workers but the master contribute or receive.
func TestIterationTraffic(t *testing.T) {
	p := Default()
	tr := mustGenerate(t, p, 4)
	master := tr.Ranks[0]
	iterations := 0
	for i := range master.Len() {
		if master.Subkind.At(i) != dag.Gather {
			continue
		}
		iterations++
		sum, announced := int64(0), int64(0)
		for w := 1; w < p.Workers; w++ {
			r := tr.Ranks[w]
			announced += r.Bytes.At(i + 1)
			for k := i; k < i+4; k++ {
				sum += r.Bytes.At(k) + r.RecvBytes.At(k)
			}
		}
		answer := int64(25)
		if master.Subkind.At(i+4) == dag.Allreduce {
			answer = p.Layer.BcastBytes
		}
		others := int64(p.Workers - 1)
		if want := 4*others + announced + (4+answer)*others; sum != want {
			t.Errorf("iteration %d: %d bytes, expected %d", iterations, sum, want)
		}
		if received := announced + master.Bytes.At(i+1); master.RecvBytes.At(i+1) != received {
			t.Errorf("iteration %d: the master receives %d bytes, expected %d", iterations, master.RecvBytes.At(i+1), received)
		}
	}
	if iterations == 0 {
		t.Error("no iteration")
	}
}

// TestTraffic checks the bytes of an iteration against the model's formula.
func TestTraffic(t *testing.T) {
	p := certain()
	p.Batches, p.Layers = 1, 1
	tr := mustGenerate(t, p, 1)
	choice, err := collective.ParseChoice("gather=linear")
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := collective.Lower(context.Background(), tr, choice)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(lowered); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	sum := int64(0)
	for rank := range lowered.Ranks {
		r := lowered.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send {
				sum += r.Bytes.At(i)
			}
		}
	}
	others := int64(p.Workers - 1)
	// Recursive doubling among four workers takes two rounds in which each sends all.
	want := 4*others + 60*others + (4+100)*others + 2*int64(p.Workers)*p.Layer.AllreduceBytes
	if sum != want {
		t.Errorf("%d bytes, expected %d", sum, want)
	}
}

// TestIterations compares the number of iterations with the maximum of independent negative binomial variables, which a
// Monte Carlo run of 1500 samples put at 1340 for 4 workers, 1963 for 98 and 2009 for 128, with standard deviations
// 273, 215 and 213, with 10 announcements of probability 0.01 and sizes that do not vary.
func TestIterations(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, test := range []struct {
		workers, layers int
		mean, deviation float64
	}{{4, 4000, 1340, 273}, {98, 400, 1963, 215}, {128, 400, 2009, 213}} {
		p := Default()
		p.Workers, p.Batches, p.Layers, p.Jitter = test.workers, 1, test.layers, 0
		p.Layer.GathervProbability = 0.01
		n, sum, squares := float64(test.layers), 0.0, 0.0
		iterations, err := negotiate(&p, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range iterations {
			sum += float64(k)
			squares += float64(k) * float64(k)
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		// Four standard errors of both, and the rounding of the figures.
		spread := 4 * test.deviation * math.Sqrt(1/n+1.0/1500)
		if math.Abs(mean-test.mean) > spread+0.5 || math.Abs(deviation-test.deviation) > spread+0.5 {
			t.Errorf("%d workers: %.0f iterations, deviation %.0f, expected %.0f and %.0f, each +- %.0f", test.workers, mean,
				deviation, test.mean, test.deviation, spread)
		}
	}
}

// TestDraws checks mean and deviation of times and sizes.
func TestDraws(t *testing.T) {
	p := Default()
	p.Batches, p.Layers = 40, 25
	tr := mustGenerate(t, p, 3)
	var computes, waits, sizes []float64
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			op := r.Op(i)
			switch {
			case op.Kind == dag.Calc && r.Subkind.At(i-1+b2i(i == 0)) == dag.Bcast:
				waits = append(waits, float64(op.Duration))
			case op.Kind == dag.Calc:
				computes = append(computes, float64(op.Duration))
			case op.Subkind == dag.Gatherv && op.Bytes != 25:
				sizes = append(sizes, float64(op.Bytes))
			}
		}
	}
	for name, test := range map[string]struct {
		values []float64
		mean   float64
	}{
		"computation": {computes, float64(p.Layer.Compute)},
		"wait":        {waits, float64(p.Layer.NegotiationLoop)},
		"size":        {sizes, float64(p.Layer.GathervBytes)},
	} {
		n, sum, squares := float64(len(test.values)), 0.0, 0.0
		for _, v := range test.values {
			sum += v / test.mean
			squares += (v / test.mean) * (v / test.mean)
		}
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-1) > 4*0.1/math.Sqrt(n) || math.Abs(deviation-0.1) > 4*0.1/math.Sqrt(2*n)+0.001 {
			t.Errorf("%s: mean %v of its nominal value, deviation %v, expected 1 and 0.1", name, mean, deviation)
		}
	}
}

// TestTimes checks the distributions of times: mean and deviation within 0.1 % in spite of the rounding, and the step.
func TestTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, test := range []struct {
		mean, clock, step dag.Time
		jitter            float64
		want              dag.Time // the step
	}{
		{mean: 1500 * dag.Microsecond, jitter: 0.1, want: 20 * dag.Microsecond},
		{mean: 20 * dag.Millisecond, jitter: 0.1, want: 200 * dag.Microsecond},
		{mean: 10 * dag.Microsecond, jitter: 0.1, want: 200 * dag.Nanosecond}, // a fifth exactly
		{mean: 2499 * dag.Microsecond, jitter: 0.1, want: 20 * dag.Microsecond},
		{mean: 2500 * dag.Microsecond, jitter: 0.1, want: 50 * dag.Microsecond}, // a fifth exactly
		{mean: 1500 * dag.Microsecond, jitter: 0.1, step: 7 * dag.Nanosecond, want: 7 * dag.Nanosecond},
		{mean: 1500 * dag.Microsecond, jitter: 0.1, step: 150 * dag.Microsecond, want: 150 * dag.Microsecond},
		{mean: 1500 * dag.Microsecond, jitter: 0.1, clock: 700 * dag.Nanosecond, want: 20 * 700 * dag.Nanosecond},
		{mean: 20 * dag.Nanosecond, jitter: 0.1, want: dag.Nanosecond}, // the deviation has two ticks
		{mean: 1500 * dag.Microsecond, jitter: 0.001, want: 200 * dag.Nanosecond},
	} {
		p := Params{Jitter: test.jitter, Clock: test.clock, TimeStep: test.step}
		times := p.timeDistribution(test.mean)
		stream := newDraws(1, 0, test.jitter).loop
		const n = 4_000_000
		sum, squares := 0.0, 0.0
		for range n {
			d := times.draw(stream)
			if d <= 0 || d%test.want != 0 {
				t.Fatalf("%+v: %v is not a multiple of the step", test, d)
			}
			x := float64(d-test.mean) / float64(test.mean)
			sum += x
			squares += x * x
		}
		mean, deviation := sum/n, math.Sqrt(squares/n-(sum/n)*(sum/n))/test.jitter
		if dag.Time(times.step) != test.want {
			t.Errorf("%+v: step %v", test, dag.Time(times.step))
		}
		if math.Abs(mean) > 0.001 || math.Abs(deviation-1) > 0.001+4/math.Sqrt(2*n) {
			t.Errorf("%+v: mean off by %v of it, deviation %v of the one asked for", test, mean, deviation)
		}
	}
}

// TestSmallTimes: a time that rounds to nothing has the resolution of the clock, and takes a tick at least.
func TestSmallTimes(t *testing.T) {
	p := Params{Jitter: 1, TimeStep: 100 * dag.Nanosecond}
	times := p.timeDistribution(150 * dag.Nanosecond)
	stream := newDraws(1, 0, p.Jitter).loop
	small := 0
	for range 10_000 {
		d := times.draw(stream)
		if d <= 0 || d%dag.Nanosecond != 0 || d > 50*dag.Nanosecond && d%p.TimeStep != 0 {
			t.Fatal(d)
		}
		if d < 50*dag.Nanosecond {
			small++
		}
	}
	if small < 500 {
		t.Errorf("%d times below half a step, expected about a tenth", small)
	}
	p = Params{Jitter: 0.1, Clock: dag.Microsecond}
	times = p.timeDistribution(3 * dag.Nanosecond)
	if d := times.draw(stream); d != dag.Microsecond {
		t.Errorf("%v, expected a tick", d)
	}
}

// TestExactTimes: without jitter only the clock rounds.
func TestExactTimes(t *testing.T) {
	p := certain()
	p.Layer.GathervTotalBytes = 120
	p.Layer.Compute, p.Layer.NegotiationLoop = 100_000_499, 1_499_500
	for clock, want := range map[dag.Time][2]dag.Time{
		0:                     {100_000_000, 1_500_000},
		dag.Picosecond:        {100_000_499, 1_499_500},
		500:                   {100_000_500, 1_499_500},
		10 * dag.Microsecond:  {100_000_000, 10_000_000},
		100 * dag.Microsecond: {100_000_000, 100_000_000},
	} {
		p.Clock, p.TimeStep = clock, 0
		tr := mustGenerate(t, p, 1)
		for rank := range tr.Ranks {
			r := tr.Ranks[rank]
			for i := range 11 { // the first layer: computation, an iteration, wait, an iteration, allreduce
				wanted := [11]dag.Time{0: want[0], 5: want[1]}
				if got := r.Duration.At(i); got != wanted[i] {
					t.Errorf("clock %v: op %d takes %v, expected %v", clock, i, got, wanted[i])
				}
			}
		}
	}
}

// TestSource: batches equal the whole trace, with the sizes in the header.
func TestSource(t *testing.T) {
	p := Default()
	p.Workers = 200
	s, err := NewSource(p, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := mustGenerate(t, p, 3)
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	if h.Ops != want.Ops() || h.Ranks != len(want.Ranks) || !reflect.DeepEqual(h.Meta, want.Meta) ||
		!reflect.DeepEqual(h.Comms, want.Comms) {
		t.Errorf("%d ops, %d ranks, %+v, %v", h.Ops, h.Ranks, h.Meta, h.Comms)
	}
	if !reflect.DeepEqual(h.Kinds, []dag.Kind{dag.Calc, dag.Coll}) {
		t.Errorf("kinds %v", h.Kinds)
	}
	batches, next := h.Batches, 0
	if len(batches) < 2 || len(batches) == p.Workers {
		t.Fatalf("%d batches", len(batches))
	}
	for _, b := range batches {
		if b.First != next || b.Last <= b.First {
			t.Fatalf("batch %+v, expected one from rank %d on", b, next)
		}
		next = b.Last
	}
	if next != p.Workers {
		t.Errorf("batches of %d ranks", next)
	}
	read := s.NewReader(dag.All)
	for _, i := range []int{len(batches) - 1, 0, 1, 1, 0} {
		b := batches[i]
		ranks, err := read(b)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ranks, want.Ranks[b.First:b.Last]) {
			t.Errorf("batch %+v differs", b)
		}
		ops, deps := int64(0), int64(0)
		for k := range ranks {
			ops += int64(ranks[k].Len())
			deps += int64(len(ranks[k].Deps.Off))
		}
		if ops != b.Ops || deps != b.Deps || b.StartDeps != 0 {
			t.Errorf("batch %+v has %d ops and %d dependencies", b, ops, deps)
		}
	}
	if _, err := read(dag.Batch{First: 199, Last: 201}); err == nil {
		t.Error("a batch that is not there was read")
	}
}

// TestListing: the published example has 50 allreduces, of 150 MiB in layer 3 and 50 MiB in the others.
func TestListing(t *testing.T) {
	p := Listing()
	if p.Workers != 128 {
		t.Errorf("%d workers", p.Workers)
	}
	p.Workers, p.Layer.GathervProbability = 3, 0.5 // less to make
	large := p.Overrides[3]
	large.GathervProbability = 0.5
	p.Overrides[3] = large
	tr := mustGenerate(t, p, 1)
	allreduces, bytes := 0, int64(0)
	for i, kind := range tr.Ranks[1].Subkind {
		if kind == dag.Allreduce {
			allreduces++
			bytes += tr.Ranks[1].Bytes[i]
		}
	}
	if allreduces != 50 || bytes != 3_670_016_000 {
		t.Errorf("%d allreduces of %d bytes together, expected 50 of 3670016000", allreduces, bytes)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestDeterministic(t *testing.T) {
	want := mustGenerate(t, Default(), 5)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !reflect.DeepEqual(mustGenerate(t, Default(), 5), want) {
		t.Error("the same seed gives another trace")
	}
	if reflect.DeepEqual(mustGenerate(t, Default(), 6), want) {
		t.Error("another seed gives the same trace")
	}
}

// TestVariants: a parameter changes only the properties that depend on it.
func TestVariants(t *testing.T) {
	base := read(t, mustGenerate(t, Default(), 1))
	p := Default()
	p.Layer.Compute *= 3
	p.Layer.BcastBytes = 9
	if x := read(t, mustGenerate(t, p, 1)); !reflect.DeepEqual(x, base) {
		t.Error("other times change the negotiation")
	}
	p = Default()
	p.Workers++
	x := read(t, mustGenerate(t, p, 1))
	for w := range base.sizes {
		for k := range base.iterations {
			n := min(base.iterations[k], x.iterations[k])
			if !reflect.DeepEqual(base.sizes[w][k][:n], x.sizes[w][k][:n]) {
				t.Errorf("another worker changes what worker %d announces", w)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		change func(p *Params)
		want   string
	}{
		{func(p *Params) { p.Workers = 1 },
			"workers is 1, expected 2..16777216"},
		{func(p *Params) { p.Batches = 0 },
			"batches is 0, expected 1.."},
		{func(p *Params) { p.Layers = -1 },
			"layers is -1, expected 1.."},
		{func(p *Params) { p.Jitter = 1.5 },
			"jitter is 1.5, expected 0..1"},
		{func(p *Params) { p.Jitter = math.NaN() },
			"jitter is NaN, expected 0..1"},
		{func(p *Params) { p.Clock = -1 },
			"clock is -1ps, expected 0s..1000s"},
		{func(p *Params) { p.TimeStep = -1000 },
			"time step is -1ns, expected 0s..1000s"},
		{func(p *Params) { p.TimeStep = 1500 },
			"time step is 1.5ns, expected a multiple of the clock's 1ns"},
		{func(p *Params) { p.Layer.Compute = -1 },
			"compute time is -1ps, expected 1ps..1000s"},
		{func(p *Params) { p.Layer.NegotiationLoop = 0 },
			"negotiation loop time is 0s, expected 1ps..1000s"},
		{func(p *Params) { p.Layer.GathervBytes = 0 },
			"gatherv bytes is 0, expected 1..4294967296"},
		{func(p *Params) { p.Layer.GathervTotalBytes = -5 },
			"gatherv total bytes is -5, expected 1..1099511627776"},
		{func(p *Params) { p.Layer.BcastBytes = 0 },
			"bcast bytes is 0, expected 1..1099511627776"},
		{func(p *Params) { p.Layer.AllreduceBytes = 0 },
			"allreduce bytes is 0, expected 1..1099511627776"},
		{func(p *Params) { p.Layer.GathervProbability = 0 },
			"gatherv probability is 0, expected above 0 and at most 1"},
		{func(p *Params) { p.Layer.GathervProbability = math.NaN() },
			"gatherv probability is NaN, expected above 0"},
		{func(p *Params) { p.Overrides = map[int]Layer{3: p.Layer} },
			"layer is 3, expected 0..2"},
		{func(p *Params) { p.Overrides = map[int]Layer{2: {}} },
			"layer 2: compute time is 0s, expected 1ps"},
		{func(p *Params) { p.Layer.GathervProbability = 1e-9 },
			"about 3e+11 ops per rank, expected at most 67108864: fewer batches or l"},
	} {
		p := Default()
		test.change(&p)
		if _, err := readAll(NewSource(p, 1)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, expected %s", err, test.want)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	p := Default()
	p.Workers, p.Layer.GathervProbability = 128, 0.01
	ops := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		ops += mustGenerate(b, p, 1).Ops()
	}
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
