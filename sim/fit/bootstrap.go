package fit

import (
	"math"
	"math/rand/v2"
	"slices"
)

// resampler draws points about fitted segments, with errors drawn from those of the fit.
type resampler struct {
	points   []Point // by segment
	segments []Segment
	first    []int     // of points, by segment
	errors   []float64 // relative, of all segments
	drawn    []Point
	line     scratch
}

// newResampler prepares draws.
func newResampler(points []Point, segments []Segment) *resampler {
	r := &resampler{segments: segments}
	if len(points) == 0 {
		return r
	}
	free := len(points)
	for i, s := range segments {
		r.first = append(r.first, len(r.points))
		for _, p := range points {
			if p.Bytes >= s.From && p.Bytes < s.To {
				r.points = append(r.points, p)
				r.errors = append(r.errors, p.Seconds/At(segments, p.Path, p.Bytes)-1)
			}
		}
		free -= 1 + paths(r.points[r.first[i]:])
	}
	r.first = append(r.first, len(r.points))
	scale := enlargement(len(points), free)
	for i := range r.errors {
		r.errors[i] *= scale
	}
	r.drawn = make([]Point, len(r.points))
	return r
}

// paths returns the number of different paths of points.
func paths(points []Point) int {
	var seen []int
	for _, p := range points {
		if !slices.Contains(seen, p.Path) {
			seen = append(seen, p.Path)
		}
	}
	return len(seen)
}

// enlargement returns the factor of the errors of a fit, because it lies closer to its points than the truth: by the
// degrees of freedom, and by Student's distribution if these are few.
func enlargement(points, free int) float64 {
	free = max(free, 1)
	return math.Sqrt(float64(points)/float64(free)) * student(free)
}

// redraw returns a time with one of some relative errors.
func redraw(seconds float64, errors []float64, random *rand.Rand) float64 {
	return max(seconds*(1+errors[random.IntN(len(errors))]), seconds/1000)
}

// interval sorts drawn values and returns their 2.5th and 97.5th percentiles.
func interval(drawn []float64) (low, high float64) {
	slices.Sort(drawn)
	n := len(drawn)
	return drawn[int(0.025*float64(n))], drawn[min(int(0.975*float64(n)), n-1)]
}

// exactly returns a parameter whose interval is its value.
func exactly(value float64, unit string) Parameter {
	return Parameter{Value: value, Low: value, High: value, Unit: unit}
}

// hull returns the parameter with an interval that contains another one, too.
func (p Parameter) hull(low, high float64) Parameter {
	p.Low, p.High = min(p.Low, low), max(p.High, high)
	return p
}

// student returns the ratio of the 97.5th percentiles of Student's and the normal distribution, by an expansion in the
// degrees of freedom (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5).
func student(free int) float64 {
	const z = 1.959964
	n := float64(max(free, 2))
	t := z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
	return t / z
}

// draw returns the segments fitted to a draw, or the segments themselves if they have no points.
func (r *resampler) draw(random *rand.Rand) []Segment {
	if len(r.points) == 0 {
		return r.segments
	}
	for i, p := range r.points {
		p.Seconds = redraw(At(r.segments, p.Path, p.Bytes), r.errors, random)
		r.drawn[i] = p
	}
	drawn := slices.Clone(r.segments)
	for i := range drawn {
		part := r.drawn[r.first[i]:r.first[i+1]]
		if len(part) == 0 {
			continue
		}
		slope := drawn[i].PerByte
		r.line.fit(part, len(drawn[i].Start))
		drawn[i].Start, drawn[i].PerByte = slices.Clone(r.line.start), r.line.perByte
		if part[0].Bytes == part[len(part)-1].Bytes {
			drawn[i].slope(slope) // one size has no slope
		}
	}
	return drawn
}
