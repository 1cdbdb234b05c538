package flow

import (
	"math"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/sim"
)

// TestLevels compares the levels that follow changes with those computed anew after each event, for random flows whose
// links, bounds and weights differ.
func TestLevels(t *testing.T) {
	known, joined := 0, 0
	for seed := range int64(6) {
		random := sim.NewRandom(seed, 0, 0)
		unit := func() float64 { return float64(random.Next()>>11) / (1 << 53) }
		links := make([]link, 12+random.Below(20))
		for i := range links {
			links[i].capacity = 1e9 * (0.2 + unit())
		}
		follows, anew := newFluid(slices.Clone(links)), newFluid(slices.Clone(links))
		left := 300
		start := func() {
			r := &route{bound: math.Inf(1)}
			for i := range links {
				if random.Below(6) == 0 {
					r.links, r.weights = append(r.links, uint32(i)), append(r.weights, 0.05+unit())
					r.bound = min(r.bound, links[i].capacity)
				}
			}
			if len(r.links) == 0 {
				r.links, r.weights, r.bound = []uint32{0}, []float64{1}, links[0].capacity
			}
			r.bound *= 0.01 + unit()
			d := demand{route: r, penalty: 1 + float64(seed%2)*unit(), factor: 1, latency: 1e9 * unit()}
			bytes := 1e6 * math.Exp(5*unit())
			if f, g := follows.add(follows.now, bytes, &d), anew.add(anew.now, bytes, &d); f != g {
				t.Fatalf("seed %d: expected one number of a flow, found %d and %d", seed, f, g)
			}
			left--
		}
		for range 150 {
			start()
		}
		for !follows.earliest().empty() {
			anew.work = math.MaxInt
			for i := range links {
				if g := &follows.groups[i]; g.known {
					known++
					joined += len(g.parts) - g.links
				}
				if random.Below(20) == 0 { // the use of some links is summed anew
					follows.loads[i].stale = restale - 1 - random.Below(4)
				}
			}
			at, expected := follows.next(), anew.next()
			if math.Abs(at-expected) > 1e-12*expected {
				t.Fatalf("seed %d: expected the next event at %v, found %v", seed, expected, at)
			}
			for f := range follows.limits {
				level, expected := follows.limits[f].level, anew.limits[f].level
				if follows.flows[f].active && math.Abs(level-expected) > 1e-11*expected {
					t.Fatalf("seed %d at %v: expected the level %v of flow %d, found %v", seed, at, expected, f, level)
				}
			}
			for i := range links {
				used, sum := follows.loads[i].used, 0.0
				for _, u := range follows.links[i].users {
					sum += u.ratio * follows.limits[u.flow].level
				}
				if math.IsInf(follows.levels[i], 1) && math.Abs(used-sum) > 1e-9*links[i].capacity {
					t.Fatalf("seed %d at %v: expected the use %v of link %d, found %v", seed, at, sum, i, used)
				}
			}
			ended := follows.step(nil)
			if found := anew.step(nil); !slices.Equal(ended, found) {
				t.Fatalf("seed %d at %v: expected the ends of flows %v, found %v", seed, at, found, ended)
			}
			for _, f := range ended {
				follows.release(f)
				anew.release(f)
				if left > 0 {
					start()
				}
			}
		}
	}
	if known == 0 || joined == 0 {
		t.Errorf("expected links whose groups of flows are known and change, found %d and %d", known, joined)
	}
}
