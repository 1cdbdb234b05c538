// Discrete probability mass functions: samples and distances.

package matrix

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/tracedag/tracedag/internal/par"
)

// PMF is a discrete probability mass function.
type PMF struct {
	Values        []float64 // ascending
	Probabilities []float64 // of each value, 0 or more; their sum is 1 +- 1e-6
}

// count returns the relative frequencies of values, which it sorts.
func count(values []float64) *PMF {
	slices.Sort(values)
	p := &PMF{}
	for first := 0; first < len(values); {
		end := first + 1
		for end < len(values) && values[end] == values[first] {
			end++
		}
		p.Values = append(p.Values, values[first])
		p.Probabilities = append(p.Probabilities, float64(end-first)/float64(len(values)))
		first = end
	}
	return p
}

// divergence computes the Jensen-Shannon distance of two mass functions term by term. The functions need not sum to 1:
// their mean is taken first, and then all three are scaled to 1, as in the reference.
type divergence struct{ sumP, sumQ, toP, toQ float64 }

// add is called for all values of the two functions, after sumP and sumQ are set.
func (d *divergence) add(p, q float64) {
	middle := (p + q) / (d.sumP + d.sumQ)
	if p > 0 {
		p /= d.sumP
		d.toP += float64(p * math.Log(p/middle))
	}
	if q > 0 {
		q /= d.sumQ
		d.toQ += float64(q * math.Log(q/middle))
	}
}

// distance returns the distance, from 0 to sqrt(ln 2), about 0.8326.
func (d *divergence) distance() float64 {
	return math.Sqrt(max(0, (d.toP+d.toQ)/2))
}

// Distance returns the Jensen-Shannon distance, with natural logarithms, between the function and the relative
// frequencies of a sample's values: 0 to sqrt(ln 2).
func (p *PMF) Distance(sample []float64) float64 {
	counts := make([]float64, len(p.Values))
	var others []float64 // values outside the function's support
	for _, v := range sample {
		if i, ok := slices.BinarySearch(p.Values, v); ok {
			counts[i]++
		} else {
			others = append(others, v)
		}
	}
	d := divergence{sumP: sum(p.Probabilities), sumQ: 1}
	for i, n := range counts {
		d.add(p.Probabilities[i], n/float64(len(sample)))
	}
	for _, frequency := range count(others).Probabilities {
		d.add(0, frequency*float64(len(others))/float64(len(sample)))
	}
	return d.distance()
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// sampler draws from a mass function.
type sampler struct {
	watch par.Watch // ends sampling early
	*PMF
	cumulative []float64 // up to and including each value
	guide      []int32   // the first candidate for u in each of len(Values) equal parts of [0, 1)
}

func newSampler(p *PMF) *sampler {
	s := &sampler{PMF: p, cumulative: make([]float64, len(p.Values)), guide: make([]int32, len(p.Values))}
	total, all := 0.0, sum(p.Probabilities)
	for i, probability := range p.Probabilities {
		total += probability
		s.cumulative[i] = total / all
	}
	for part := range s.guide {
		least := float64(part) / float64(len(s.guide))
		s.guide[part] = int32(sort.Search(len(s.cumulative)-1, func(i int) bool { return s.cumulative[i] > least }))
	}
	return s
}

// draw returns the index of a value.
func (s *sampler) draw(random *rand.Rand) int32 {
	u := random.Float64()
	at := s.guide[int(u*float64(len(s.guide)))]
	for s.cumulative[at] <= u && int(at) < len(s.cumulative)-1 {
		at++
	}
	return at
}

// sample draws values and returns them with their distance.
func (s *sampler) sample(values []float64, random *rand.Rand) float64 {
	counts := make([]float64, len(s.Values))
	for i := range values {
		if s.watch.Err() != nil {
			return 0
		}
		at := s.draw(random)
		counts[at]++
		values[i] = s.Values[at]
	}
	d := divergence{sumP: sum(s.Probabilities), sumQ: 1}
	for i, n := range counts {
		d.add(s.Probabilities[i], n/float64(len(values)))
	}
	return d.distance()
}

// sampleUntil draws n values, or more, up to most, for a distance of at most the threshold. It repeats all draws with a
// tenth more values each time.
func (s *sampler) sampleUntil(threshold float64, n, most int, random *rand.Rand) ([]float64, float64) {
	var values []float64
	for {
		values = slices.Grow(values[:0], min(n, most))[:min(n, most)]
		distance := s.sample(values, random)
		if distance <= threshold || n >= most {
			return values, distance
		}
		if n < 10 {
			n = 10
		} else {
			n += n / 10
		}
	}
}

// sortByValue sorts a function by its values. It returns a repeated value, if any.
func (p *PMF) sortByValue() (twice float64, ok bool) {
	order := make([]int, len(p.Values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.Values[a], p.Values[b]) })
	sorted := PMF{}
	for _, i := range order {
		if k := len(sorted.Values); k > 0 && sorted.Values[k-1] == p.Values[i] {
			return p.Values[i], true
		}
		sorted.Values = append(sorted.Values, p.Values[i])
		sorted.Probabilities = append(sorted.Probabilities, p.Probabilities[i])
	}
	*p = sorted
	return 0, false
}
