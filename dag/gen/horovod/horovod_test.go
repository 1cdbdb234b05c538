package horovod

import (
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
)

func mustGenerate(t testing.TB, p Params, seed int64) *dag.Trace {
	t.Helper()
	tr, err := Generate(p, seed)
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
		r := &tr.Ranks[rank]
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
			if got, want := r.Op(i), layer[i%len(layer)]; got != want {
				t.Errorf("rank %d op %d is %+v, expected %+v", rank, i, got, want)
			}
			if deps := r.Deps.Of(i); i == 0 && len(deps) != 0 || i > 0 && (len(deps) != 1 || deps[0] != 1) {
				t.Errorf("rank %d op %d waits for %v", rank, i, deps)
			}
		}
	}
}

// run is what the trace of a run says of its negotiations.
type run struct {
	iterations []int       // of each layer of each batch
	sizes      [][][]int64 // of the gathervs, by worker and layer
}

func read(t *testing.T, tr *dag.Trace) run {
	t.Helper()
	var x run
	x.sizes = make([][][]int64, len(tr.Ranks))
	for rank := range tr.Ranks {
		r := &tr.Ranks[rank]
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
	master := &tr.Ranks[0]
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

// TestTraffic checks the bytes of an iteration against the model's formula.
func TestTraffic(t *testing.T) {
	p := certain()
	p.Batches, p.Layers = 1, 1
	tr := mustGenerate(t, p, 1)
	choice, err := lower.ParseChoice("gather=linear")
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := lower.Collectives(tr, choice)
	if err != nil {
		t.Fatal(err)
	}
	if problems := dag.Validate(lowered); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	sum := int64(0)
	for rank := range lowered.Ranks {
		r := &lowered.Ranks[rank]
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

// TestIterations compares the mean number of iterations with the maximum of independent negative binomial variables,
// which a Monte Carlo run of the model put at 1340, with standard deviation 273, for 4 workers and at 2009 and 213 for
// 128, with 10 announcements of probability 0.01.
func TestIterations(t *testing.T) {
	for _, test := range []struct {
		workers, layers int
		mean, deviation float64
	}{{4, 400, 1340, 273}, {128, 100, 2009, 213}} {
		p := Default()
		p.Workers, p.Batches, p.Layers, p.Jitter = test.workers, 1, test.layers, 0
		p.Layer.GathervProbability = 0.01
		sum := 0.0
		iterations := negotiate(&p, 1)
		for _, n := range iterations {
			sum += float64(n)
		}
		mean := sum / float64(test.layers)
		// Four standard errors of both means.
		spread := 4 * test.deviation * math.Sqrt(1/float64(test.layers)+1.0/1500)
		if math.Abs(mean-test.mean) > spread {
			t.Errorf("%d workers: %.0f iterations, expected %.0f +- %.0f", test.workers, mean, test.mean, spread)
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
		r := &tr.Ranks[rank]
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

// TestVariants: what a parameter does not concern stays as it is.
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
		{func(p *Params) { p.Layer.Compute = 999 },
			"compute time is 999ps, expected 1ns..1000s"},
		{func(p *Params) { p.Layer.NegotiationLoop = 0 },
			"negotiation loop time is 0s, expected 1ns..1000s"},
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
			"layer 2: compute time is 0s, expected 1ns"},
		{func(p *Params) { p.Layer.GathervProbability = 1e-9 },
			"about 3e+11 ops a rank, expected at most 1073741824: fewer batches or l"},
	} {
		p := Default()
		test.change(&p)
		if _, err := Generate(p, 1); err == nil || !strings.Contains(err.Error(), test.want) {
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
