package graph500

// The model's equations for many degrees of the root, as curves.

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Curve has the results of eq. 4 to 16 for a degree of the root, by level.
type Curve struct {
	Degree    int64     `json:"degree"`
	Mean      []float64 `json:"mean"`           // edges explored by all processes: eq. 4; level 0 has the degree
	Sigma     []float64 `json:"sigma"`          // standard deviation of that: eq. 16
	Truncated []float64 `json:"mean_truncated"` // the mean, at most the edges that earlier levels left
}

// Curves returns the results of the equations for degrees of the root within a span: all up to 64, then 16 to each
// power of two, and both ends of the span. Degrees above twice the edges are left out.
func Curves(p Params, degrees Span) ([]Curve, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	first, last := int64(degrees.First), min(int64(degrees.Last), p.totalEdges())
	if first < 1 || last < first {
		return nil, fmt.Errorf("graph500: expected degrees from 1 to %d, found %v", p.totalEdges(), degrees)
	}
	var curves []Curve
	for degree := first; ; degree = min(nextDegree(degree), last) {
		curves = append(curves, p.curve(degree))
		if degree == last {
			return curves, nil
		}
	}
}

// nextDegree returns the degree after one in a series of all degrees up to 64, then 16 to each power of two.
func nextDegree(degree int64) int64 {
	if degree < 64 {
		return degree + 1
	}
	for step := math.Floor(16 * math.Log2(float64(degree))); ; step++ {
		if next := int64(math.Round(math.Exp2(step / 16))); next > degree {
			return next
		}
	}
}

// curve returns the results of the equations for a degree of the root.
func (p *Params) curve(degree int64) Curve {
	c := Curve{Degree: degree}
	w := p.equations(degree)
	left := float64(p.totalEdges())
	for level := range p.MaxLevels {
		mean, sigma := float64(degree), 0.0
		if level > 0 {
			mean, sigma = w.mean(level), w.sigma(level)
		}
		truncated := min(mean, left)
		left -= truncated
		c.Mean, c.Sigma, c.Truncated = append(c.Mean, mean), append(c.Sigma, sigma), append(c.Truncated, truncated)
	}
	return c
}

// rowsOf returns curves as a table with its names of columns: a row per degree and level.
func rowsOf(curves []Curve) [][]string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	rows := [][]string{{"degree", "level", "mean", "sigma", "truncated"}}
	for _, c := range curves {
		for level := range c.Mean {
			rows = append(rows, []string{strconv.FormatInt(c.Degree, 10), strconv.Itoa(level), number(c.Mean[level]),
				number(c.Sigma[level]), number(c.Truncated[level])})
		}
	}
	return rows
}

// writeCurves writes curves as CSV, JSON or a table for people.
func writeCurves(w io.Writer, curves []Curve, asCSV, asJSON bool) error {
	switch {
	case asCSV:
		return csv.NewWriter(w).WriteAll(rowsOf(curves))
	case asJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Curves []Curve `json:"curves"`
		}{curves})
	}
	return writeRows(w, rowsOf(curves))
}
