package graph500

// Measurements of searches of a generated graph, next to the model's equations.

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/par"
)

// Measurement selects the searches of a graph.
type Measurement struct {
	Roots    Roots
	Dedup    bool          // one of several edges between two vertices is kept
	Level    int           // of Measured.Bins
	Degrees  Span          // of the roots in Measured.Bins
	Progress func(n int64) // counts searches; nil: nothing does
}

// DefaultMeasurement returns up to 200 searches per range of degrees.
func DefaultMeasurement() Measurement {
	return Measurement{Roots: Roots{200, true}, Level: 2, Degrees: Span{1, math.MaxInt32}}
}

// Roots selects the vertices from which searches start, among those with neighbors.
type Roots struct {
	Number    int  // 0: all
	PerDegree bool // Number is for each range of degrees
}

// MarshalText returns the roots as in the flag.
func (r *Roots) MarshalText() ([]byte, error) {
	switch {
	case r.PerDegree:
		return fmt.Appendf(nil, "per-degree:%d", r.Number), nil
	case r.Number == 0:
		return []byte("all"), nil
	}
	return strconv.AppendInt(nil, int64(r.Number), 10), nil
}

// UnmarshalText parses all, a number, or per-degree and a number.
func (r *Roots) UnmarshalText(text []byte) error {
	if string(text) == "all" {
		*r = Roots{}
		return nil
	}
	number, perDegree := strings.CutPrefix(string(text), "per-degree:")
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n == 0 {
		return fmt.Errorf("%.40q, expected all, a number of roots, or per-degree:NUMBER", text)
	}
	*r = Roots{int(n), perDegree}
	return nil
}

const measuredBins = 64

// Measured is the result of searches of a graph. An end of an edge is explored when the vertex at the other end is
// reached; a self-loop is no edge, and edges that occur several times count as often unless removed.
type Measured struct {
	Scale      int   `json:"scale"`
	EdgeFactor int   `json:"edge_factor"`
	Seed       int64 `json:"seed"`
	Dedup      bool  `json:"dedup"`
	Vertices   int64 `json:"vertices"`
	Isolated   int64 `json:"isolated"`   // vertices of degree 0
	SelfLoops  int64 `json:"self_loops"` // dropped
	Ends       int64 `json:"ends"`       // of edges
	MaxDegree  int64 `json:"max_degree"`
	Roots      int64 `json:"roots"`

	DegreeHistogram [][2]int64       `json:"degree_histogram"` // degree, vertices
	Levels          []MeasuredDegree `json:"levels"`
	Errors          []LevelErrors    `json:"model_errors"`
	Bins            LevelHistogram   `json:"level_histogram"`
}

// MeasuredDegree is the searches from roots of a degree, or of a range of degrees.
type MeasuredDegree struct {
	From       int64     `json:"from"`
	To         int64     `json:"to"`
	Roots      int64     `json:"roots"`
	MeanDegree float64   `json:"mean_degree"` // of the roots
	Mean       []float64 `json:"mean"`        // explored ends, by level
	Deviation  []float64 `json:"sd"`

	ModelMean      []float64 `json:"model_mean"` // eq. 4 for the mean degree, truncated; level 0 has the degree
	ModelDeviation []float64 `json:"model_sd"`   // eq. 16
}

// LevelErrors compares the model with the measured means of all degrees, or of ranges of them: |model-mean|/mean of a
// level. For all levels it is the sum of the differences by the ends that the searches explore.
type LevelErrors struct {
	Level   string  `json:"level"`   // 1, 2, 3 or all
	Degrees int     `json:"degrees"` // that were compared
	Mean    float64 `json:"mean"`
	Median  float64 `json:"median"`
	Below18 float64 `json:"share_below_18_percent"`
}

// LevelHistogram counts searches by the ends that they explore in a level, in equal bins from 0 to the ends of all
// edges.
type LevelHistogram struct {
	Level  int                 `json:"level"`
	From   int64               `json:"from"` // degrees of roots
	To     int64               `json:"to"`
	Width  float64             `json:"width"` // ends per bin
	Counts [measuredBins]int64 `json:"counts"`
}

// check returns an error about a parameter of the measurement, or about memory.
func (m *Measurement) check(p *Params) error {
	switch {
	case m.Level < 0 || m.Level >= maxLevels:
		return fmt.Errorf("level is %d, expected 0..%d", m.Level, maxLevels-1)
	case m.Degrees.First > m.Degrees.Last:
		return fmt.Errorf("degrees are %v, expected the lower number first", m.Degrees)
	}
	return p.checkGraph()
}

// Measure generates the graph of a seed and searches it. The result depends on neither the number of goroutines nor
// their order.
func Measure(p Params, m Measurement, seed int64) (*Measured, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	if err := m.check(&p); err != nil {
		return nil, fmt.Errorf("graph500: %w", err)
	}
	g, err := p.newGraph(seed)
	if err != nil {
		return nil, err
	}
	if m.Dedup {
		g.removeDuplicates()
	}
	result := p.describeGraph(g, seed, m.Dedup)
	groups := m.Roots.choose(g, seed)
	all := slices.Concat(groups...)
	if len(all) == 0 {
		return nil, errors.New("graph500: the graph has only self-loops, expected a larger --scale")
	}
	result.Roots = int64(len(all))
	explored, err := p.search(g, all, m.Progress)
	if err != nil {
		return nil, err
	}
	result.summarize(&p, g, m, groups, explored)
	return result, nil
}

// describeGraph counts the degrees of a graph.
func (p *Params) describeGraph(g *graph, seed int64, dedup bool) *Measured {
	r := &Measured{
		Scale: p.Scale, EdgeFactor: p.EdgeFactor, Seed: seed, Dedup: dedup, Vertices: int64(g.vertices()),
		SelfLoops: g.loops, Ends: int64(len(g.ends)),
	}
	counts := map[int64]int64{}
	for v := range g.vertices() {
		counts[g.degree(v)]++
		r.MaxDegree = max(r.MaxDegree, g.degree(v))
	}
	r.Isolated = counts[0]
	for degree, n := range counts {
		r.DegreeHistogram = append(r.DegreeHistogram, [2]int64{degree, n})
	}
	slices.SortFunc(r.DegreeHistogram, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	return r
}

// rangeOf returns the range of degrees that has a degree: each degree below 9, then up to the next power of two.
func rangeOf(degree int64) (index int, from, to int64) {
	if degree < 9 {
		return int(degree), degree, degree
	}
	n := bits.Len64(uint64(degree)) // 4 from 9 on
	return 5 + n, max(9, int64(1)<<(n-1)), int64(1)<<n - 1
}

// choose returns the roots by degree, or by range of degrees, ascending.
func (r Roots) choose(g *graph, seed int64) (groups [][]uint32) {
	if r.PerDegree {
		for v := range g.vertices() {
			if degree := g.degree(v); degree > 0 {
				index, _, _ := rangeOf(degree)
				for len(groups) <= index {
					groups = append(groups, nil)
				}
				groups[index] = append(groups[index], uint32(v))
			}
		}
		for i := range groups {
			groups[i] = sample(groups[i], r.Number, seed, i)
		}
		return slices.DeleteFunc(groups, func(group []uint32) bool { return len(group) == 0 })
	}
	var all []uint32
	for v := range g.vertices() {
		if g.degree(v) > 0 {
			all = append(all, uint32(v))
		}
	}
	if r.Number > 0 {
		all = sample(all, r.Number, seed, 0)
	}
	slices.SortStableFunc(all, func(a, b uint32) int { return cmp.Compare(g.degree(int(a)), g.degree(int(b))) })
	for i, first := 1, 0; i <= len(all); i++ {
		if i == len(all) || g.degree(int(all[i])) != g.degree(int(all[first])) {
			groups = append(groups, all[first:i:i])
			first = i
		}
	}
	return groups
}

// sample draws n of the vertices without replacement, and sorts them.
func sample(vertices []uint32, n int, seed int64, group int) []uint32 {
	if len(vertices) > n {
		r := draws(seed, 0, group, "roots")
		for i := range n {
			k := i + r.IntN(len(vertices)-i)
			vertices[i], vertices[k] = vertices[k], vertices[i]
		}
		vertices = vertices[:n]
	}
	slices.Sort(vertices)
	return vertices
}

// search returns the ends that the search from each root explores, by level.
func (p *Params) search(g *graph, roots []uint32, progress func(n int64)) ([][]int64, error) {
	explored := make([][]int64, len(roots))
	batches := (len(roots) + width - 1) / width
	_, err := par.EachWith(batches, func() *bfs { return newBFS(g) }, func(b *bfs, batch int) error {
		first := batch * width
		last := min(first+width, len(roots))
		copy(explored[first:], b.run(roots[first:last]))
		if progress != nil {
			progress(int64(last - first))
		}
		return par.Interrupted(p.Context)
	})
	return explored, err
}

// summarize computes means and deviations by degree, and those of the model.
func (r *Measured) summarize(p *Params, g *graph, m Measurement, groups [][]uint32, explored [][]int64) {
	r.Bins = LevelHistogram{Level: m.Level, From: int64(m.Degrees.First), To: int64(m.Degrees.Last),
		Width: float64(p.totalEdges()) / measuredBins}
	for _, roots := range groups {
		d := MeasuredDegree{Roots: int64(len(roots))}
		d.From, d.To = g.degree(int(roots[0])), g.degree(int(roots[0]))
		if m.Roots.PerDegree {
			_, d.From, d.To = rangeOf(d.From)
		}
		searches := explored[:len(roots)]
		explored = explored[len(roots):]
		d.measure(searches)
		d.model(p)
		r.Levels = append(r.Levels, d)
		r.Bins.add(searches)
	}
	r.compare()
}

// add counts searches.
func (h *LevelHistogram) add(searches [][]int64) {
	for _, levels := range searches {
		if levels[0] < h.From || levels[0] > h.To {
			continue
		}
		ends := 0.0
		if h.Level < len(levels) {
			ends = float64(levels[h.Level])
		}
		h.Counts[min(int(ends/h.Width), measuredBins-1)]++
	}
}

// measure computes means and deviations of searches; a search that has ended explores nothing.
func (d *MeasuredDegree) measure(searches [][]int64) {
	longest := 0
	for _, levels := range searches {
		longest = max(longest, len(levels))
	}
	n := float64(len(searches))
	for level := range longest {
		sum, squares := 0.0, 0.0
		at := func(levels []int64) float64 {
			if level < len(levels) {
				return float64(levels[level])
			}
			return 0
		}
		for _, levels := range searches {
			sum += at(levels)
		}
		mean := sum / n
		for _, levels := range searches {
			squares += (at(levels) - mean) * (at(levels) - mean)
		}
		d.Mean, d.Deviation = append(d.Mean, mean), append(d.Deviation, math.Sqrt(squares/n))
	}
	d.MeanDegree = d.Mean[0]
}

// model computes eq. 4 to 16 for the levels that were measured.
func (d *MeasuredDegree) model(p *Params) {
	w := p.equations(1)
	w.rootDegree = d.MeanDegree
	left := float64(p.totalEdges())
	for level := range d.Mean {
		mean, deviation := d.MeanDegree, 0.0
		if level > 0 {
			mean, deviation = min(w.mean(level), left), w.sigma(level)
		}
		left -= mean
		d.ModelMean, d.ModelDeviation = append(d.ModelMean, mean), append(d.ModelDeviation, deviation)
	}
}

// compare computes the errors of the model, of levels 1 to 3 and of searches.
func (r *Measured) compare() {
	for level := range 4 {
		var errors []float64
		for _, d := range r.Levels {
			switch {
			case level == 0:
				errors = append(errors, d.difference())
			case level < len(d.Mean):
				errors = append(errors, math.Abs(d.ModelMean[level]-d.Mean[level])/d.Mean[level])
			}
		}
		if len(errors) == 0 {
			continue
		}
		slices.Sort(errors)
		e := LevelErrors{Level: strconv.Itoa(level), Degrees: len(errors)}
		e.Median = (errors[(len(errors)-1)/2] + errors[len(errors)/2]) / 2
		if level == 0 {
			e.Level = "all"
		}
		for _, x := range errors {
			e.Mean += x / float64(len(errors))
			if x < 0.18 {
				e.Below18 += 1 / float64(len(errors))
			}
		}
		r.Errors = append(r.Errors, e)
	}
}

// difference returns the differences of all levels by the ends that the searches explore.
func (d *MeasuredDegree) difference() float64 {
	sum, differences := 0.0, 0.0
	for level, mean := range d.Mean {
		sum += mean
		differences += math.Abs(d.ModelMean[level] - mean)
	}
	return differences / sum
}
