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
	c := &Curve{format: format}
	n := len(ascending)
	if n == 0 {
		return c
	}
	// ends are the positions behind the last of each different number.
	var ends []int
	for i := range ascending {
		if i+1 == n || ascending[i+1] != ascending[i] {
			ends = append(ends, i+1)
		}
	}
	skipped := n / (points - 1) // between two points
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
		c.points = append(c.points, curvePoint{ascending[ends[i]-1], share / float64(n)})
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
