package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestCurve compares curves with the exact distribution functions of numbers, right before and at each number.
func TestCurve(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		of   func(i int) float64
	}{
		{"different", func(i int) float64 { return float64(i) * 1.5 }},
		{"equal", func(int) float64 { return 7 }},
		{"steps", func(i int) float64 { return float64(i / 100) }},
		{"skewed", func(int) float64 { return math.Floor(math.Exp(12 * random.Float64())) }},
		{"few large", func(i int) float64 { return float64(i % 1000 / 999 * i) }},
	} {
		for _, n := range []int{1, 2, 3, 511, 512, 513, 1023, 1535, 5000, 100_003} {
			numbers := make([]float64, n)
			for i := range numbers {
				numbers[i] = c.of(i)
			}
			slices.Sort(numbers)
			curve := NewCurve(numbers, CurvePoints, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) })
			points := curve.points
			if len(points) > CurvePoints || points[0].number != numbers[0] ||
				points[len(points)-1] != (curvePoint{numbers[n-1], 1}) {
				t.Fatalf("%s, %d numbers: %d points from %v to %v", c.name, n, len(points), points[0],
					points[len(points)-1])
			}
			at, worst := 0, 0.0
			for i := range numbers {
				if i > 0 && numbers[i] == numbers[i-1] {
					continue
				}
				end, _ := slices.BinarySearch(numbers[i:], math.Nextafter(numbers[i], math.Inf(1)))
				for at+1 < len(points) && points[at+1].number <= numbers[i] {
					at++
				}
				worst = max(worst, math.Abs(points[at].share-float64(i+end)/float64(n)))
			}
			if limit := 1 / float64(2*(CurvePoints-1)); worst > limit+1e-12 {
				t.Errorf("%s, %d numbers: shares differ by %v, more than %v", c.name, n, worst, limit)
			}
		}
	}
}
