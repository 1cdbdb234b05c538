package openloop

import "fmt"

// Sizes is a distribution of message sizes.
type Sizes interface {
	Mean() float64             // in bytes
	Draw(uniform uint64) int64 // size in bytes that uniform bits select
	check() error
}

// Steps is a distribution over a list of sizes: the smallest size whose cumulative probability is at least u, for u
// uniform in (0, 1].
type Steps struct {
	sizes []int64
	mean  float64
	table *table
}

// NewSteps returns the distribution of the given sizes, ascending, with their cumulative probabilities, ascending from
// at least 0 to 1.
func NewSteps(sizes []int64, cumulative []float64) *Steps {
	s := &Steps{sizes: sizes, table: newTable(cumulative)}
	before := 0.0
	for i, p := range cumulative {
		s.mean += float64(float64(sizes[i]) * (p - before))
		before = p
	}
	return s
}

// Mean returns the mean size in bytes.
func (s *Steps) Mean() float64 {
	return s.mean
}

// Draw returns the size that uniform bits select.
func (s *Steps) Draw(uniform uint64) int64 {
	return s.sizes[s.table.find(uniform>>2)] // u = (uniform>>2 + 1) / tableUnit
}

func (s *Steps) check() error {
	least, most := s.sizes[0], s.sizes[len(s.sizes)-1]
	if least < 0 || most > MaxBytes {
		return &ParamError{"sizes", fmt.Sprintf("%d..%d bytes", least, most), fmt.Sprintf("0..%d", int64(MaxBytes))}
	}
	return nil
}

// Uniform is the distribution in which all sizes from Min to Max bytes are equally likely.
type Uniform struct {
	Min, Max int64
}

// Mean returns the mean size in bytes.
func (u Uniform) Mean() float64 {
	return (float64(u.Min) + float64(u.Max)) / 2
}

// Draw returns the size that uniform bits select.
func (u Uniform) Draw(uniform uint64) int64 {
	return u.Min + int64(Scale(uniform, uint64(u.Max-u.Min)+1))
}

func (u Uniform) check() error {
	if u.Min < 0 || u.Max > MaxBytes || u.Min > u.Max {
		return &ParamError{"sizes", fmt.Sprintf("%d..%d bytes", u.Min, u.Max), fmt.Sprintf("0..%d", int64(MaxBytes))}
	}
	return nil
}
