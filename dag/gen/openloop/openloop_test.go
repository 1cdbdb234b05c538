package openloop

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// example is a workload of some classes, with ties.
func example() Workload {
	return Workload{
		Title: "example", Tasks: 13, Messages: 20000, Clock: 1000, MeanGap: 700, Seed: 5,
		Classes: []Class{
			{Share: 1, Sizes: Uniform{10, 20}},
			{Share: 3, Sizes: NewSteps([]int64{1, 5, 9}, []float64{0, 0.25, 1}), Destination: DestinationPolicy{Poisson, 0}},
			{Share: 2, Sizes: Uniform{7, 7}, Destination: DestinationPolicy{Gauss, 0.25}},
		},
	}
}

func mustSource(t testing.TB, w Workload, maxBatch int64) *Source {
	t.Helper()
	s, err := newSource(w, maxBatch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustTrace(t testing.TB, w Workload) *dag.Trace {
	t.Helper()
	tr, err := dag.ReadAll(mustSource(t, w, maxBatch))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// messages returns the messages of a trace in the order of their tags, after checks of how they are represented.
func messages(t testing.TB, tr *dag.Trace) []Message {
	t.Helper()
	all := make([]Message, tr.Ops()/2)
	received := make([]Message, len(all))
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		last := int64(-1)
		for i := range r.Len() {
			op := r.Op(i)
			if op.Tag <= last {
				t.Fatalf("rank %d op %d has tag %d after %d", rank, i, op.Tag, last)
			}
			last = op.Tag
			m := Message{Time: op.Release, Bytes: op.Bytes, Source: int32(rank), Destination: op.Peer}
			to := &all[op.Tag]
			switch op.Kind {
			case dag.Recv:
				m.Source, m.Destination = op.Peer, int32(rank)
				to = &received[op.Tag]
				op.Release, m.Time = 0, 1
				if m.Source == m.Destination {
					t.Fatalf("message %d goes from task %d to itself", op.Tag, rank)
				}
			case dag.Send:
				op.Release, m.Time = 0, m.Time+1 // not 0, so that a message that is there twice shows
			}
			if want := (dag.Op{Kind: op.Kind, Bytes: op.Bytes, Peer: op.Peer, Tag: op.Tag}); op != want {
				t.Fatalf("rank %d op %d is %+v", rank, i, op)
			}
			if to.Time != 0 {
				t.Fatalf("message %d is there twice", op.Tag)
			}
			*to = m
		}
		if len(r.Deps.Off)+len(r.StartDeps.Off) > 0 {
			t.Fatalf("rank %d has dependencies", rank)
		}
	}
	for k := range all {
		all[k].Time--
		received[k].Time = all[k].Time
		if all[k] != received[k] {
			t.Fatalf("message %d is sent as %+v and received as %+v", k, all[k], received[k])
		}
	}
	return all
}

func TestMessages(t *testing.T) {
	w := example()
	tr := mustTrace(t, w)
	if problems := dag.Validate(tr); len(problems) > 0 {
		t.Fatal(problems[0])
	}
	all := messages(t, tr)
	if int64(len(all)) != w.Messages {
		t.Fatalf("%d messages, want %d", len(all), w.Messages)
	}
	ties := 0
	for k, m := range all {
		if m.Time%w.Clock != 0 {
			t.Fatalf("message %d comes at %v, no multiple of %v", k, m.Time, w.Clock)
		}
		if k == 0 {
			continue
		}
		before := all[k-1]
		if m.Time == before.Time {
			ties++
		}
		if m.Time < before.Time || m.Time == before.Time && m.Source < before.Source {
			t.Fatalf("message %d comes at %v from task %d, the one before at %v from task %d", k, m.Time, m.Source,
				before.Time, before.Source)
		}
	}
	if ties < 5000 {
		t.Errorf("%d ties, expected about half of all messages", ties)
	}
}

// TestBatches: the division into batches changes nothing, and readers can be used at the same time.
func TestBatches(t *testing.T) {
	w := example()
	want := mustTrace(t, w)
	for _, maxBatch := range []int64{1, 3000, 7000, 1 << 40} {
		s := mustSource(t, w, maxBatch)
		batches := s.header.Batches
		got := dag.NewRanks(s.header.Ranks)
		var readers sync.WaitGroup
		for _, part := range [][]dag.Batch{batches[:len(batches)/2], batches[len(batches)/2:]} {
			readers.Go(func() {
				read := s.NewReader(dag.All)
				for _, b := range part {
					ranks, err := read(b)
					if err != nil {
						t.Error(err)
					}
					ops := int64(0)
					for i := range ranks {
						ops += int64(ranks[i].Len())
						r := ranks[i]
						r.Kind, r.Bytes, r.Peer = slices.Clone(r.Kind), slices.Clone(r.Bytes), slices.Clone(r.Peer)
						r.Tag, r.Release = slices.Clone(r.Tag), slices.Clone(r.Release)
						got[b.First+i] = r
					}
					if ops != b.Ops || ops > maxBatch && b.Last-b.First > 1 {
						t.Errorf("batch %+v has %d ops", b, ops)
					}
				}
			})
		}
		readers.Wait()
		if !reflect.DeepEqual(got, want.Ranks) {
			t.Errorf("batches of %d ops give other ranks", maxBatch)
		}
		if wantBatches := maxBatch == 1<<40; (len(batches) == 1) != wantBatches {
			t.Errorf("%d batches of %d ops", len(batches), maxBatch)
		}
	}
	s := mustSource(t, w, maxBatch)
	if s.header.Ops != want.Ops() || s.header.Ranks != w.Tasks || s.header.Meta.Title != w.Title {
		t.Errorf("%d ops, %d ranks, %+v", s.header.Ops, s.header.Ranks, s.header.Meta)
	}
}

// TestShared: common properties of two workloads do not depend on the others.
func TestShared(t *testing.T) {
	w := example()
	w.Classes = w.Classes[:2]
	base := messages(t, mustTrace(t, w))
	same := func(what string, vary func(*Workload), equal func(a, b Message) bool) {
		v := example()
		v.Classes = v.Classes[:2]
		vary(&v)
		differ := false
		for k, m := range messages(t, mustTrace(t, v)) {
			if !equal(m, base[k]) {
				t.Fatalf("%s: message %d is %+v, expected what %+v has", what, k, m, base[k])
			}
			differ = differ || m != base[k]
		}
		if !differ {
			t.Errorf("%s: nothing differs", what)
		}
	}
	same("sizes", func(w *Workload) { w.Classes[0].Sizes = Uniform{100, 200} }, func(a, b Message) bool {
		return a.Time == b.Time && a.Source == b.Source && a.Destination == b.Destination
	})
	same("destinations", func(w *Workload) { w.Classes[0].Destination = DestinationPolicy{Gauss, 0.125} }, func(a, b Message) bool {
		return a.Time == b.Time && a.Source == b.Source && a.Bytes == b.Bytes
	})
	same("shares", func(w *Workload) { w.Classes[0].Share = 2 }, func(a, b Message) bool {
		return a.Time == b.Time && a.Source == b.Source
	})
	same("fewer tasks", func(w *Workload) { w.Tasks = 7 }, func(a, b Message) bool { return a.Time == b.Time })

	w = example()
	w.Seed++
	if reflect.DeepEqual(messages(t, mustTrace(t, w)), messages(t, mustTrace(t, example()))) {
		t.Error("another seed gives the same messages")
	}
}

func TestClock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tick := range []dag.Time{1, 2, 3, 500, 1000, 7777} {
		for _, mean := range []float64{1e-6, 0.3, 5000, 1e12} {
			c := NewClock(tick, 0)
			exact := new(big.Float).SetPrec(300)
			for range 2000 {
				gap := random.ExpFloat64() * mean
				got := c.Advance(gap)
				exact.Add(exact, big.NewFloat(gap))
				ticks := new(big.Float).SetPrec(300).Quo(exact, big.NewFloat(float64(tick)))
				ticks.Add(ticks, big.NewFloat(0.5))
				nearest, _ := ticks.Int64()
				if want := dag.Time(nearest) * tick; got != want {
					t.Fatalf("tick %v, mean %v: %d, want %d", tick, mean, got, want)
				}
			}
		}
	}
	c := NewClock(1000, 5000)
	for i, want := range []dag.Time{2000, 5000, 5000, 5000} {
		if got := c.Advance([]float64{1500, 3400, 1e30, 0}[i]); got != want {
			t.Errorf("step %d: %v, want %v", i, got, want)
		}
	}
}

func TestEnd(t *testing.T) {
	w := example()
	w.Messages, w.End = 1000, 500_000 // of 700 000 that 1000 gaps take
	all := messages(t, mustTrace(t, w))
	atEnd := 0
	for _, m := range all {
		if m.Time > w.End {
			t.Fatalf("a message comes at %v", m.Time)
		}
		if m.Time == w.End {
			atEnd++
		}
	}
	if atEnd < 150 || atEnd > 450 {
		t.Errorf("%d messages come at the end, expected about 300", atEnd)
	}
}

func TestElementary(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	if got := Exponential(math.MaxUint64); got != 0 {
		t.Errorf("Exponential(1) is %v, want 0", got)
	}
	if got, want := Exponential(0), 53*math.Ln2; math.Abs(got-want) > 1e-14 {
		t.Errorf("Exponential(2^-53) is %v, want %v", got, want)
	}
	for range 100000 {
		u := random.Uint64() >> random.IntN(54)
		got, want := Exponential(u), -math.Log(float64(u>>11+1)/(1<<53))
		if math.Abs(got-want) > 1e-15*(1+want) && math.Abs(got-want) > 1e-14*want {
			t.Fatalf("Exponential(%x) is %v, want %v", u, got, want)
		}
		x := random.Float64() * 100
		if got, want := ExpMinus(x), math.Exp(-x); math.Abs(got/want-1) > 1e-14 {
			t.Fatalf("exp(-%v) is %v, want %v", x, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 3, 64, 65, 1000} {
		weights := make([]float64, n)
		for i := range weights {
			if random.IntN(3) > 0 {
				weights[i] = math.Exp(-40 * random.Float64())
			}
		}
		weights[random.IntN(n)] = 1
		x := newTable(accumulate(weights))
		check := func(number uint64) {
			want := 0
			for x.ends[want] <= number {
				want++
			}
			if got := x.find(number); got != want {
				t.Fatalf("%d indices: number %x is of index %d, want %d", n, number, got, want)
			}
		}
		for i, end := range x.ends {
			if first, count := x.numbers(i); first+count != end {
				t.Fatalf("numbers %x, %x end at %x", first, count, end)
			}
			check(max(end, 1) - 1)
			check(min(end, tableUnit-1))
		}
		for range 1000 {
			check(random.Uint64N(tableUnit))
		}
	}
}

// probabilities returns the policy over n tasks as the definition has it, before what is drawn again.
func probabilities(policy DestinationPolicy, n int) []float64 {
	p := make([]float64, n)
	for d := range p {
		switch mean, k := float64(n)/2, float64(d); policy.Distribution {
		case UniformTask:
			p[d] = 1
		case Poisson:
			logFactorial, _ := math.Lgamma(k + 1)
			p[d] = math.Exp(k*math.Log(mean) - mean - logFactorial)
		case Gauss:
			below := func(x float64) float64 { return math.Erfc((mean-x)/(policy.Sigma*float64(n)*math.Sqrt2)) / 2 }
			p[d] = below(k+1) - below(k)
		}
	}
	return p
}

// TestDestinations compares what is drawn for each source, uniform bits going evenly through their range, with the policy.
func TestDestinations(t *testing.T) {
	for _, policy := range []DestinationPolicy{{UniformTask, 0}, {Poisson, 0}, {Gauss, DefaultSigma}, {Gauss, 1.0 / 8}, {Gauss, 3}} {
		for _, n := range []int{2, 3, 4, 7, 16, 128} {
			d, err := newDestinations(policy, n)
			if err != nil {
				t.Fatal(err)
			}
			p := probabilities(policy, n)
			const draws = 200_000
			for _, source := range []int{0, n / 3, n / 2, n - 1} {
				others := 0.0
				for k := range p {
					if k != source {
						others += p[k]
					}
				}
				counts := make([]float64, n)
				for i := range draws {
					counts[d.draw(uint64(i)*(math.MaxUint64/draws)+1<<40, int32(source))]++
				}
				for k, count := range counts {
					want := p[k] / others
					if k == source {
						want = 0
					}
					if math.Abs(count/draws-want) > 2.0/draws {
						t.Fatalf("%v, %d tasks, source %d: task %d is drawn %.6f of the time, want %.6f", policy, n, source, k,
							count/draws, want)
					}
				}
			}
		}
	}
}

// TestManyTasks checks the moments of the distributions for the largest number of tasks.
func TestManyTasks(t *testing.T) {
	const n = MaxTasks
	for _, c := range []struct {
		policy    DestinationPolicy
		deviation float64
	}{{DestinationPolicy{Poisson, 0}, math.Sqrt(n / 2)}, {DestinationPolicy{Gauss, DefaultSigma}, n / 16}, {DestinationPolicy{Gauss, 1 / 65536.0}, 16}} {
		d, err := newDestinations(c.policy, n)
		if err != nil {
			t.Fatal(err)
		}
		mean, square := 0.0, 0.0
		for k := range n {
			_, count := d.table.numbers(k)
			p, x := float64(count)/tableUnit, float64(k)-n/2
			mean += p * x
			square += p * x * x
		}
		if c.policy.Distribution == Gauss {
			mean += 0.5 // rounded down
		}
		if deviation := math.Sqrt(square - mean*mean); math.Abs(mean) > 0.01 || math.Abs(deviation/c.deviation-1) > 0.001 {
			t.Errorf("%v: mean %v beside the middle, deviation %v, want 0 and %v", c.policy, mean, deviation, c.deviation)
		}
	}
}

func TestDistributionNames(t *testing.T) {
	for name, want := range map[string]Distribution{
		"UNIFORM": UniformTask, "unif": UniformTask, "Poisson": Poisson, "GAUSS": Gauss, "gaussian": Gauss, "normal": Gauss,
	} {
		if got, ok := ParseDistribution(name); !ok || got != want {
			t.Errorf("%s is %v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "UNIFORMLY", "G"} {
		if got, ok := ParseDistribution(name); ok {
			t.Errorf("%s is %v", name, got)
		}
	}
}

func TestSizes(t *testing.T) {
	s := NewSteps([]int64{3, 10, 20}, []float64{0, 0.25, 1})
	for _, c := range []struct {
		uniform uint64
		want    int64
	}{{0, 10}, {1<<62 - 1, 10}, {1 << 62, 20}, {math.MaxUint64, 20}} {
		if got := s.Draw(c.uniform); got != c.want {
			t.Errorf("%x is size %d, want %d", c.uniform, got, c.want)
		}
	}
	if s.Mean() != 17.5 || (Uniform{3, 6}).Mean() != 4.5 {
		t.Errorf("means %v and %v", s.Mean(), (Uniform{3, 6}).Mean())
	}
	u := Uniform{3, 6}
	if least, most := u.Draw(0), u.Draw(math.MaxUint64); least != 3 || most != 6 {
		t.Errorf("%d..%d, want 3..6", least, most)
	}
}

func TestRefused(t *testing.T) {
	for want, vary := range map[string]func(*Workload){
		"tasks is 1, expected 2..1048576":             func(w *Workload) { w.Tasks = 1 },
		"tasks is 1048577, expected 2..1048576":       func(w *Workload) { w.Tasks = MaxTasks + 1 },
		"messages is -1, expected 0..":                func(w *Workload) { w.Messages = -1 },
		"messages is 1099511627777, expected 0..":     func(w *Workload) { w.Messages = MaxMessages + 1 },
		"clock is 0s, expected 1ps..":                 func(w *Workload) { w.Clock = 0 },
		"expected 0 or more":                          func(w *Workload) { w.MeanGap = math.NaN() },
		"messages is 20000, expected so few":          func(w *Workload) { w.MeanGap = 1e15 },
		"messages is 1, expected so few":              func(w *Workload) { w.MeanGap, w.Messages = 1e18, 1 },
		"messages is 100000000, expected so few":      func(w *Workload) { w.MeanGap = math.MaxFloat64; w.Messages = 1e8 },
		"clock is 1ns, expected shorter":              func(w *Workload) { w.MeanGap, w.Messages = 1e-300, 5_000_000 },
		"sizes is 0..1125899906842625 bytes":          func(w *Workload) { w.Classes[0].Sizes = Uniform{0, MaxBytes + 1} },
		"gauss-sigma-frac is 0, expected above 0":     func(w *Workload) { w.Classes[2].Destination.Sigma = 0 },
		"gauss-sigma-frac is NaN, expected above 0":   func(w *Workload) { w.Classes[2].Destination.Sigma = math.NaN() },
		"gauss-sigma-frac is 0.001, expected so much": func(w *Workload) { w.Classes[2].Destination.Sigma = 0.001 },
		"fewer, with at most 67108864 ops on each of 2 ranks": func(w *Workload) {
			w.Tasks, w.Messages = 2, 1<<31
		},
	} {
		w := example()
		vary(&w)
		_, err := NewSource(w)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		var param *ParamError
		if named := strings.Contains(want, " is "); named && !errors.As(err, &param) {
			t.Errorf("error %v is no ParamError", err)
		}
	}
}

func TestNoMessages(t *testing.T) {
	w := example()
	w.Messages = 0
	tr := mustTrace(t, w)
	if len(tr.Ranks) != w.Tasks || tr.Ops() != 0 {
		t.Errorf("%d ranks, %d ops", len(tr.Ranks), tr.Ops())
	}
}
