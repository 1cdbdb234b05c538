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

// newResampler prepares draws. The errors are enlarged, because a fit lies closer to its points than the truth: by the
// degrees of freedom, and by Student's distribution if these are few.
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
	scale := math.Sqrt(float64(len(points))/float64(max(free, 1))) * student(max(free, 1))
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

// student returns the ratio of the 97.5 % quantiles of Student's and the normal distribution, by an expansion in the
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
		at := At(r.segments, p.Path, p.Bytes)
		p.Seconds = max(at*(1+r.errors[random.IntN(len(r.errors))]), at/1000)
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
