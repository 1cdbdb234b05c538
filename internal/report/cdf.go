package report

import (
	"fmt"
	"strconv"
)

// CurvePoints is the largest number of points of a distribution in a result.
const CurvePoints = 512

// Curve is a distribution function: points of a number and the share of all numbers up to it. Its JSON is a list of
// pairs.
type Curve struct {
	points []curvePoint
	format func(float64) string
}

type curvePoint struct{ number, share float64 }

// NewCurve returns the distribution function of ascending numbers with at most the given number of points, from 3.
// It has the smallest and the largest number. Between two points, it differs from the exact function by at most half
// of 1/(points-1), and not at all if there are at most that many different numbers. format returns the JSON of a
// number.
func NewCurve(ascending []float64, points int, format func(float64) string) *Curve {
	var numbers []float64
	var counts []int64
	for i, v := range ascending {
		if i == 0 || v != ascending[i-1] {
			numbers, counts = append(numbers, v), append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	return NewCountedCurve(numbers, counts, points, format)
}

// NewCountedCurve returns the same of different ascending numbers and how often each appears.
func NewCountedCurve(numbers []float64, counts []int64, points int, format func(float64) string) *Curve {
	c := &Curve{format: format}
	ends := make([]int64, len(counts)) // positions behind the last of each number
	n := int64(0)
	for i, count := range counts {
		n += count
		ends[i] = n
	}
	skipped := n / int64(points-1) // between two points
	if len(ends) <= points {
		skipped = 0
	}
	for i := 0; i < len(ends); {
		next := i + 1
		for next+1 < len(ends) && ends[next]-ends[i] <= skipped {
			next++
		}
		share := float64(ends[i])
		if next < len(ends) {
			share = (share + float64(ends[next-1])) / 2
		}
		c.points = append(c.points, curvePoint{numbers[i], share / float64(n)})
		i = next
	}
	return c
}

// MarshalJSON returns the list of points. Shares have six digits.
func (c *Curve) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, p := range c.points {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%s,%s]", c.format(p.number), strconv.FormatFloat(p.share, 'g', 6, 64))
	}
	return append(b, ']'), nil
}
