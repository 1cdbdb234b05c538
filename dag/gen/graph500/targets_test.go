package graph500

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBinomial holds draws against the distribution, by chi-square.
func TestBinomial(t *testing.T) {
	r := rand.NewPCG(1, 2)
	for _, c := range []struct {
		n           int64
		part, whole uint64
	}{
		{1, 1, 3}, {5, 1, 2}, {32, 2, 5}, {33, 1, 3}, {33, 1, 2}, {100, 3, 7}, {1000, 1, 2}, {20000, 5, 11},
		{3_000_000, 1, 3},
	} {
		const draws = 200_000
		p := float64(c.part) / float64(c.whole)
		mean, deviation := float64(c.n)*p, math.Sqrt(float64(c.n)*p*(1-p))
		// Bins of a quarter of the deviation, or of one value.
		width := max(1, int64(deviation/4))
		first := max(0, int64(mean-3*deviation))
		bins := int(min(c.n, int64(mean+3*deviation))-first)/int(width) + 1
		got, want := make([]float64, bins+2), make([]float64, bins+2)
		bin := func(k int64) int {
			if k < first {
				return bins
			}
			return min(int((k-first)/width), bins+1)
		}
		for range draws {
			k := binomial(r, c.n, c.part, c.whole)
			if k < 0 || k > c.n {
				t.Fatalf("%d of %d", k, c.n)
			}
			if i := bin(k); i <= bins {
				got[i]++
			} else {
				got[bins+1]++
			}
		}
		for k := max(0, int64(mean-9*deviation)); k <= min(c.n, int64(mean+9*deviation)); k++ {
			a, _ := math.Lgamma(float64(c.n) + 1)
			b, _ := math.Lgamma(float64(k) + 1)
			d, _ := math.Lgamma(float64(c.n-k) + 1)
			want[bin(k)] += draws * math.Exp(a-b-d+float64(k)*math.Log(p)+float64(c.n-k)*math.Log1p(-p))
		}
		chi, freedom := 0.0, -1.0
		for i := range want {
			if want[i] > 5 {
				chi += (got[i] - want[i]) * (got[i] - want[i]) / want[i]
				freedom++
			}
		}
		if chi > freedom+4.5*math.Sqrt(2*freedom) {
			t.Errorf("n %d, p %.3f: chi-square is %.1f with %v degrees of freedom", c.n, p, chi, freedom)
		}
	}
}

// TestTargets: receiver and sender compute the same numbers, and all other processes are equally likely.
func TestTargets(t *testing.T) {
	for _, n := range []int{2, 3, 7, 72} {
		targets := newTargets(n, 5)
		const levels, messages = 40, 1000
		counts := make([][]int64, n)
		for source := range n {
			counts[source] = make([]int64, n)
			for level := range levels {
				from := sent{source, level, level % 3}
				got := make([]int64, n)
				targets.each(from, messages, func(process int, messages int64) { got[process] += messages })
				for process := range n {
					counts[source][process] += got[process]
					if process != source && targets.to(from, process, messages) != got[process] {
						t.Fatalf("%d processes, %+v: %d is told another number", n, from, process)
					}
				}
				for _, process := range targets.order(from, messages, nil) {
					got[process]--
				}
				if slices.ContainsFunc(got, func(n int64) bool { return n != 0 }) {
					t.Fatalf("%d processes, %+v: the order has other messages", n, from)
				}
			}
		}
		chi, want := 0.0, float64(levels*messages)/float64(n-1)
		for source, row := range counts {
			for process, got := range row {
				switch {
				case process != source:
					chi += (float64(got) - want) * (float64(got) - want) / want
				case got != 0:
					t.Fatalf("%d messages of %d to itself", got, source)
				}
			}
		}
		freedom := float64(n * (n - 2))
		if math.Abs(chi-freedom) > 4.5*math.Sqrt(2*freedom) {
			t.Errorf("%d processes: chi-square is %.1f with %v degrees of freedom", n, chi, freedom)
		}
	}
}

// TestOrder: whom a message goes to does not depend on those before it.
func TestOrder(t *testing.T) {
	const n, messages = 9, 400_000
	targets := newTargets(n, 5)
	list := targets.order(sent{4, 1, 0}, messages, nil)
	var pairs [n][n]float64
	for i := 1; i < len(list); i++ {
		pairs[list[i-1]][list[i]]++
	}
	chi, want := 0.0, float64(messages-1)/((n-1)*(n-1))
	for _, row := range pairs {
		for _, got := range row {
			if got > 0 {
				chi += (got - want) * (got - want) / want
			}
		}
	}
	if freedom := float64((n-1)*(n-1) - 1); math.Abs(chi-freedom) > 4.5*math.Sqrt(2*freedom) {
		t.Errorf("chi-square is %.1f with %v degrees of freedom", chi, freedom)
	}
}
