package matrix

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func descending(values []float64) []int64 {
	var sizes []int64
	for _, v := range values {
		sizes = append(sizes, int64(v))
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	return sizes
}

// plain is the rule itself: it looks at all pairs for every flow.
type plain struct {
	n    int
	keys []int64 // by pair, in units of the packer's
	room []int64
}

// newPlain returns the plain packer in the state in which a packer is before its first flow.
func newPlain(p *packer) *plain {
	s := &plain{p.n, slices.Repeat([]int64{math.MinInt64}, p.n*p.n), slices.Clone(p.room)}
	for i, pair := range p.heap.items {
		s.keys[pair] = p.heap.keys[i]
	}
	return s
}

// best returns the pairs that the rule allows for a flow.
func (s *plain) best(bytes int64) []int32 {
	var best []int32
	for pair, key := range s.keys {
		source, destination := pair/s.n, s.n+pair%s.n
		if source+s.n == destination || s.room[source] < bytes || s.room[destination] < bytes {
			continue
		}
		if len(best) > 0 && key > s.keys[best[0]] {
			best = best[:0]
		}
		if len(best) == 0 || key == s.keys[best[0]] {
			best = append(best, int32(pair))
		}
	}
	return best
}

func (s *plain) place(pair int32, bytes, unit int64) {
	s.keys[pair] -= bytes * unit
	s.room[int(pair)/s.n] -= bytes
	s.room[s.n+int(pair)%s.n] -= bytes
}

// instance is a small packing problem.
type instance struct {
	n       int
	targets []float64
	sizes   []int64
	total   int64
	room    int64
}

// draw makes an instance. Targets and sizes are few or many different ones, so that ties are many or few, and rooms are
// so small that many flows do not fit, just enough, or ample.
func draw(random *rand.Rand) *instance {
	in := &instance{n: 2 + random.IntN(7)}
	different := 1 + random.IntN(6)
	for range in.n * in.n {
		c := float64(random.IntN(different))
		if different == 6 {
			c = random.Float64()
		}
		in.targets = append(in.targets, c)
	}
	all := sum(in.targets) + 1e-9
	spread := []int64{1, 3, 10, 100, 100_000}[random.IntN(5)]
	for range 1 + random.IntN(120) {
		z := 1 + random.Int64N(spread)
		if random.IntN(4) == 0 {
			z = 1 << random.IntN(20)
		}
		in.sizes = append(in.sizes, z)
		in.total += z
	}
	slices.Sort(in.sizes)
	slices.Reverse(in.sizes)
	for i := range in.targets {
		in.targets[i] *= float64(in.total) / all
	}
	in.room = max(in.sizes[0], int64(float64(in.total)/float64(in.n)*(0.9+3*random.Float64()*random.Float64())))
	return in
}

func (in *instance) packer(seed int64) *packer {
	return newPacker(in.n, func(pair int) float64 { return in.targets[pair] }, in.total, in.room, random(seed, "ties"))
}

// TestRule compares the packer with the plain one, flow by flow. Where pairs tie the plain one takes what the packer
// took, if it is one of those; how often each is taken is for TestTies to see.
func TestRule(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	random := random(1, "instances")
	flows, tied, bound, unpackable, returned := 0, 0, 0, 0, 0
	for round := range 20_000 {
		in := draw(random)
		p := in.packer(int64(round))
		s := newPlain(p)
		for k, z := range in.sizes {
			returns := p.closed.len()
			pair := p.place(z)
			if returns > p.closed.len() {
				returned++
			}
			best := s.best(z)
			if pair < 0 && len(best) == 0 {
				unpackable++
				break
			}
			if !slices.Contains(best, pair) {
				t.Fatalf("instance %d: flow %d of %d bytes goes to pair %d, expected one of %v", round, k, z, pair, best)
			}
			flows++
			if len(best) > 1 {
				tied++
			}
			if key := s.keys[best[0]]; slices.Max(s.keys) > key {
				bound++
			}
			s.place(pair, z, 1<<p.shift)
		}
		if !slices.Equal(p.room, s.room) {
			t.Fatalf("instance %d: rooms %v, want %v", round, p.room, s.room)
		}
	}
	t.Logf("%d flows, %d with ties, %d where ports bind, %d ports that close and open, %d unpackable instances", flows, tied,
		bound, returned, unpackable)
	for what, n := range map[string]int{"ties": tied, "full ports": bound, "returns": returned, "failures": unpackable} {
		if n < 500 {
			t.Errorf("only %d %s", n, what)
		}
	}
}

// TestTies: over many seeds each of the pairs that tie is taken as often as another, in particular where some of them
// come from ports that had no room before.
func TestTies(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	// Nodes 0 to 3, room 20. The flow of 12 goes from 0 to 1, so that 9 bytes have no room at these ports, and go to one
	// of the pairs without them that tie, 2 to 3 and 3 to 2; then 8 fits at all ports but those, and so on.
	sizes := []int64{12, 9, 8, 8, 8, 3, 3, 2, 2, 2, 1, 1}
	total := int64(0)
	for _, z := range sizes {
		total += z
	}
	targets := func(pair int) float64 {
		if pair == 1 {
			return 30
		}
		return 10
	}
	const rounds = 20_000
	chi, freedom := 0.0, 0.0
	counts := map[string][]int{} // by what the rule allows: how often each place in it was taken
	for seed := range int64(rounds) {
		p := newPacker(4, targets, total, 20, random(seed, "ties"))
		s := newPlain(p)
		for k, z := range sizes {
			best := s.best(z)
			pair := p.place(z)
			key := fmt.Sprint(k, len(best), " of ", s.room, best)
			if counts[key] == nil {
				counts[key] = make([]int, len(best))
			}
			counts[key][slices.Index(best, pair)]++
			s.place(pair, z, 1<<p.shift)
		}
	}
	states := 0
	for _, c := range counts {
		all := 0
		for _, n := range c {
			all += n
		}
		if len(c) < 2 || all < 10*len(c) {
			continue
		}
		states++
		want := float64(all) / float64(len(c))
		for _, n := range c {
			chi += (float64(n) - want) * (float64(n) - want) / want
		}
		freedom += float64(len(c) - 1)
	}
	z := (chi - freedom) / math.Sqrt(2*freedom)
	t.Logf("%d states, chi square %.0f with %.0f degrees of freedom: %.2f standard deviations", states, chi, freedom, z)
	if states < 50 || math.Abs(z) > 4 {
		t.Errorf("%d states, chi square %.0f with %.0f degrees of freedom", states, chi, freedom)
	}
}

func TestUnpackable(t *testing.T) {
	p := newPacker(3, func(int) float64 { return 1 }, 100, 10, random(1, "ties"))
	var e error = p.unpackable(0, 11, 10)
	if want := "no port can take flow 0 of 11 bytes: each has room for 10"; !strings.HasPrefix(e.Error(), want) {
		t.Errorf("error %v", e)
	}
	for range 3 { // fills all ports but for 3 bytes
		if p.place(7) < 0 {
			t.Fatal("no pair")
		}
	}
	if p.place(5) >= 0 {
		t.Fatal("a flow of 5 bytes fits")
	}
	e = p.unpackable(3, 5, 10)
	const want = "no pair of ports can take flow 3 of 5 bytes: source ports have at most 3 bytes left (that of node 0), " +
		"destination ports at most 3 (that of node 0), each of 10"
	if !strings.HasPrefix(e.Error(), want) {
		t.Errorf("error %v", e)
	}
	if p.place(3) < 0 {
		t.Error("a flow of 3 bytes does not fit")
	}
	in := Default()
	in.Nodes, in.Flows, in.Threshold = 4, 4, 1
	in.Sizes, in.Interarrivals = Values{Given: []float64{100, 1, 1, 1}}, Values{Given: []float64{1, 1, 1, 1}}
	_, _, err := NewSource(in, 1)
	var unpackable *UnpackableError
	if !errors.As(err, &unpackable) || *unpackable != (UnpackableError{0, 100, 51, 0, 51, 0, 51}) {
		t.Errorf("error %#v", err)
	}
}

func BenchmarkPack(b *testing.B) {
	for _, n := range []int{64, 256, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := speedRun(b, n)
			room := portRoom(w.report.PortRoom)
			for b.Loop() {
				p := newPacker(n, func(pair int) float64 { return w.matrix.Cells[pair] * float64(w.report.SumSizes) },
					w.report.SumSizes, room, random(1, "ties"))
				for _, z := range w.sizes {
					if p.place(z) < 0 {
						b.Fatal("no pair")
					}
				}
			}
			b.ReportMetric(float64(b.N*len(w.sizes))/b.Elapsed().Seconds(), "flows/s")
		})
	}
}

// speedRun is a workload of the published measurements of speed, ready to be packed: the preset university with 4
// racks, other sizes, 5 flows for each pair of nodes.
func speedRun(t testing.TB, n int) *workload {
	p := Default()
	p.Use("university")
	p.Sizes = Values{Distribution: mustParse(ParseDistribution("weibull:alpha=4.7,lambda=4100,round=1"))}
	p.Nodes, p.Racks, p.Flows, p.Threshold, p.AutoCorrect = n, 4, 5*n*n, 0.5, true
	w := &workload{Params: p, seed: 1}
	for _, step := range []func() error{w.makeMatrix, w.drawValues, w.adjustLoad, w.checkMatrix} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(w.sizes)
	slices.Reverse(w.sizes)
	return w
}
