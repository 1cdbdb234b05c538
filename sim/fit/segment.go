package fit

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Point is the time of a message of some size on a path.
type Point struct {
	Path    int // 0, 1, ...: points of a path share an intercept
	Bytes   int64
	Seconds float64
	Step    float64 // seconds of the last digit that a tool printed; 0: unknown
}

// Segment is a range of sizes in which times are linear: Start[path] + PerByte times bytes.
type Segment struct {
	From, To int64     // first size, and first size behind it; the last segment has no end: math.MaxInt64
	CutAfter int64     // the largest measured size below From: the segment begins above it, at most at Least
	Least    int64     // the smallest measured size of the segment
	Start    []float64 // seconds by path, NaN for a path without points in the segment
	PerByte  float64   // seconds, at least 0
}

// At returns the time of a message on a path in seconds.
func (s Segment) At(path int, bytes int64) float64 {
	return s.Start[path] + s.PerByte*float64(bytes)
}

// slope turns the lines about the smallest measured size to the given slope, as far as they start at 0 or above.
func (s *Segment) slope(perByte float64) {
	for _, start := range s.Start {
		if s.Least > 0 && !math.IsNaN(start) {
			perByte = min(perByte, s.PerByte+start/float64(s.Least))
		}
	}
	for path := range s.Start {
		s.Start[path] += (s.PerByte - perByte) * float64(s.Least)
	}
	s.PerByte = perByte
}

// Limits of the division into segments.
const (
	maxSegments = 12
	huber       = 0.01  // relative error from which a point counts less
	noiseless   = 0.002 // relative errors below it everywhere are those of a machine without noise,
	quiet       = 5e-4  // if their root mean square, by degrees of freedom, is below this
	exact       = 0.005 // largest relative error of a point on a machine without noise
	resolution  = 1e-4  // relative error that counts as none
	rounds      = 8     // of reweighting

	leastRefined = 3 // sizes of each part of a segment of a finer division
	refinements  = 2 // number of finer divisions
	leastGain    = 6 // of twice the log-likelihood by a cut there: Akaike's criterion for three parameters

	maxWork = 1 << 32 // square of the number of sizes, times that of points and paths: a few minutes
)

// Split divides points into at most 12 segments of size. Sizes of a segment lie on parallel lines, one per path.
// It minimizes the relative errors, with Huber's weights from 1 % on, by dynamic programming over all cuts, and selects
// the number of segments by the Bayesian information criterion. If the machine has no noise, that is errors below
// 0.2 % with many segments, it divides on until each point is within 0.5 %. A segment has at least two sizes; on a
// machine without noise it may have one, and then the slope of the next segment. Lines start at 0 or above.
func Split(points []Point) ([]Segment, error) {
	s, err := newSplitter(points)
	if err != nil {
		return nil, err
	}
	segments, _ := s.split()
	return segments, nil
}

// divisions is [Split] with finer divisions, whose cuts noise may hide: each segment of many sizes has one cut more
// than before. A machine without noise has none.
func divisions(points []Point) (segments []Segment, finer [][]Segment, err error) {
	s, err := newSplitter(points)
	if err != nil {
		return nil, nil, err
	}
	segments, noisy := s.split()
	for level := segments; noisy && len(finer) < refinements; {
		var next []Segment
		for _, seg := range level {
			next = append(next, s.refine(seg)...)
		}
		finer, level = append(finer, next), next
	}
	return segments, finer, nil
}

// splitter divides points. Size k has the points first[k] to first[k+1]-1.
type splitter struct {
	points []Point
	paths  int
	first  []int
	floor  float64 // relative error that counts as none: that of rounding, at least resolution
	line   scratch
}

func newSplitter(points []Point) (*splitter, error) {
	paths, rounding := 0, 0.0
	for _, p := range points {
		if !(p.Seconds > 0) || p.Bytes < 0 || p.Path < 0 {
			return nil, fmt.Errorf("expected sizes of at least 0 and times above 0, found %d bytes in %g s", p.Bytes,
				p.Seconds)
		}
		paths = max(paths, p.Path+1)
		rounding += p.Step * p.Step / (12 * p.Seconds * p.Seconds) // variance of a uniform error of a step
	}
	s := &splitter{points: slices.Clone(points), paths: paths}
	s.floor = max(resolution, math.Sqrt(rounding/float64(len(points))))
	slices.SortStableFunc(s.points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Path, b.Path))
	})
	for i, p := range s.points {
		if i == 0 || p.Bytes != s.points[i-1].Bytes {
			s.first = append(s.first, i)
		}
	}
	if len(s.first) < 2 {
		return nil, fmt.Errorf("expected at least two sizes, found %d: one size does not separate latency from "+
			"bandwidth", len(s.first))
	}
	if n := float64(len(s.first)); n*n*float64(len(points)+paths) > maxWork {
		return nil, fmt.Errorf("expected at most 1600 sizes, fewer if they have several times each, found %d "+
			"sizes and %d times; drop some", len(s.first), len(points))
	}
	s.first = append(s.first, len(s.points))
	return s, nil
}

// split returns the segments, and whether the machine is noisy.
func (s *splitter) split() (segments []Segment, noisy bool) {
	d := s.divide(2)
	if len(s.first)-1 > 2*d.most { // else there are too few sizes to distinguish noise from segments
		single := s.divide(1)
		if s.noiseless(s.segments(single, single.most)) {
			for k := s.number(single); ; k++ {
				if segments := s.segments(single, k); k == single.most || s.worst(segments) <= exact {
					return s.join(segments), false
				}
			}
		}
	}
	return s.segments(d, s.number(d)), true
}

// fit fits s.line to the sizes begin to end-1 and returns its cost.
func (s *splitter) fit(begin, end int) float64 {
	return s.line.fit(s.points[s.first[begin]:s.first[end]], s.paths)
}

// segment returns the segment of the sizes begin to end-1, without its end.
func (s *splitter) segment(begin, end int) Segment {
	s.fit(begin, end)
	seg := Segment{Least: s.points[s.first[begin]].Bytes, Start: slices.Clone(s.line.start), PerByte: s.line.perByte}
	if begin > 0 {
		seg.CutAfter = s.points[s.first[begin]-1].Bytes
		seg.From = Cut(seg.CutAfter, seg.Least)
	}
	return seg
}

// refine returns the two parts of a segment with the smallest errors, or the segment if it has few sizes or these
// errors are not much smaller. A start per path more explains some noise by itself.
func (s *splitter) refine(seg Segment) []Segment {
	sizes := s.first[:len(s.first)-1]
	index := func(bytes int64) int {
		k, _ := slices.BinarySearchFunc(sizes, bytes, func(i int, bytes int64) int {
			return cmp.Compare(s.points[i].Bytes, bytes)
		})
		return k
	}
	begin, end := index(seg.Least), index(seg.To)
	if end-begin < 2*leastRefined {
		return []Segment{seg}
	}
	one, two, cut := s.fit(begin, end), math.Inf(1), 0
	for k := begin + leastRefined; k <= end-leastRefined; k++ {
		if c := s.fit(begin, k) + s.fit(k, end); c < two {
			two, cut = c, k
		}
	}
	n := float64(s.first[end] - s.first[begin])
	gain := n * math.Log((one/n+s.floor*s.floor)/(two/n+s.floor*s.floor))
	if gain < leastGain+float64(s.paths-1) {
		return []Segment{seg}
	}
	low, high := s.segment(begin, cut), s.segment(cut, end)
	low.To, high.To = high.From, seg.To
	return []Segment{low, high}
}

// join joins neighbors that one line fits as well: a machine of few segments shows the traces of other messages.
func (s *splitter) join(segments []Segment) []Segment {
	for i := 1; i < len(segments); {
		both := segments[i-1]
		both.To = segments[i].To
		var part []Point
		for _, p := range s.points {
			if p.Bytes >= both.Least && p.Bytes < both.To {
				part = append(part, p)
			}
		}
		s.line.fit(part, s.paths)
		both.Start, both.PerByte = slices.Clone(s.line.start), s.line.perByte
		worst := 0.0
		for _, p := range part {
			worst = max(worst, math.Abs(both.At(p.Path, p.Bytes)/p.Seconds-1))
		}
		if worst > noiseless {
			i++
			continue
		}
		segments = slices.Delete(segments, i, i+1)
		segments[i-1] = both
	}
	return segments
}

// number selects the number of segments with the least criterion.
func (s *splitter) number(d *division) int {
	number, least := 1, math.Inf(1)
	for k := 1; k <= d.most; k++ {
		if c := s.criterion(d, k); c < least-1e-9 {
			number, least = k, c
		}
	}
	return number
}

// criterion is the Bayesian information criterion of a number of segments, with the variance of the errors by degrees
// of freedom: with few sizes per segment, errors vanish because of the number of parameters. A segment has a slope, a
// start per path and a cut. It is infinite if there are as many parameters as points.
func (s *splitter) criterion(d *division, k int) float64 {
	n, parameters := len(s.points), k*(s.paths+2)-1
	if parameters >= n {
		return math.Inf(1)
	}
	variance := d.cost(k)/float64(n-parameters) + s.floor*s.floor
	return float64(n)*math.Log(variance) + float64(parameters)*math.Log(float64(n))
}

// division has the best divisions of the first sizes into segments.
type division struct {
	most int         // number of segments
	best [][]float64 // best[k][j]: least cost of the sizes before j in k segments
	from [][]int     // from[k][j]: where the last of these begins
}

func (d *division) cost(k int) float64 { return d.best[k][len(d.best[k])-1] }

// divide finds the best divisions into segments of at least the given number of sizes. A segment of one size costs a
// little, so that two sizes on a line stay together.
func (s *splitter) divide(least int) *division {
	sizes := len(s.first) - 1
	cost := make([][]float64, sizes) // of a segment of the sizes i to j-1
	for i := range cost {
		cost[i] = make([]float64, sizes+1)
		for j := i + least; j <= sizes; j++ {
			cost[i][j] = s.fit(i, j)
			if j == i+1 {
				cost[i][j] += resolution * resolution
			}
		}
	}
	d := &division{most: min(maxSegments, sizes/least)}
	for range d.most + 1 {
		d.best, d.from = append(d.best, make([]float64, sizes+1)), append(d.from, make([]int, sizes+1))
		last := d.best[len(d.best)-1]
		for j := range last {
			last[j] = math.Inf(1)
		}
	}
	d.best[0][0] = 0
	for k := 1; k <= d.most; k++ {
		for j := least * k; j <= sizes; j++ {
			for i := least * (k - 1); i <= j-least; i++ {
				if c := d.best[k-1][i] + cost[i][j]; c < d.best[k][j] {
					d.best[k][j], d.from[k][j] = c, i
				}
			}
		}
	}
	return d
}

// segments returns the best division into k segments.
func (s *splitter) segments(d *division, k int) []Segment {
	segments := make([]Segment, k)
	end := len(s.first) - 1
	next := int64(math.MaxInt64)
	for ; k > 0; k-- {
		begin := d.from[k][end]
		seg := s.segment(begin, end)
		seg.To = next
		if begin == end-1 && k < len(segments) {
			seg.slope(segments[k].PerByte) // one size has no slope: assume that of the next segment
		}
		segments[k-1], next, end = seg, seg.From, begin
	}
	return segments
}

// Cut returns the first size of a range that begins above low, at least 0, and at most at high, above low: the largest
// power of two there, or else the middle.
func Cut(low, high int64) int64 {
	if power := int64(1) << (bits.Len64(uint64(high)) - 1); power > low {
		return power
	}
	return low + (high-low+1)/2
}

// noiseless reports whether many segments leave no errors but those of a machine without noise.
func (s *splitter) noiseless(segments []Segment) bool {
	sum := 0.0
	for _, p := range s.points {
		e := At(segments, p.Path, p.Bytes)/p.Seconds - 1
		sum += e * e
	}
	free := len(s.points) - len(segments)*(s.paths+2)
	return free > 0 && max(s.floor, math.Sqrt(sum/float64(free))) <= quiet && s.worst(segments) <= noiseless
}

// worst returns the largest relative error of a point.
func (s *splitter) worst(segments []Segment) (worst float64) {
	for _, p := range s.points {
		worst = max(worst, math.Abs(At(segments, p.Path, p.Bytes)/p.Seconds-1))
	}
	return worst
}

// At returns the time of a message by segments in seconds.
func At(segments []Segment, path int, bytes int64) float64 {
	return segmentAt(segments, bytes).At(path, bytes)
}

// scratch fits parallel lines to points: a start per path and a common slope.
type scratch struct {
	start   []float64
	perByte float64

	weight          []float64 // of each point
	sum, sumX, sumY []float64 // by path, of weights and of weighted sizes and times
}

// fit minimizes the relative errors of the points by iteratively reweighted least squares and returns the sum of
// Huber's function of the errors, which is the square of errors below 1 %. A slope below 0 becomes 0.
func (l *scratch) fit(points []Point, paths int) (cost float64) {
	l.weight = slices.Grow(l.weight[:0], len(points))[:len(points)]
	for _, p := range []*[]float64{&l.start, &l.sum, &l.sumX, &l.sumY} {
		*p = slices.Grow((*p)[:0], paths)[:paths]
	}
	for i := range l.weight {
		l.weight[i] = 1
	}
	last := math.Inf(1)
	for range rounds {
		l.solve(points)
		cost = 0
		for i, p := range points {
			e := math.Abs((l.start[p.Path]+l.perByte*float64(p.Bytes))/p.Seconds - 1)
			if e <= huber {
				l.weight[i] = 1
				cost += e * e
			} else {
				l.weight[i] = huber / e
				cost += 2*huber*e - huber*huber
			}
		}
		if cost >= last*(1-1e-6) {
			break
		}
		last = cost
	}
	return cost
}

// solve computes the weighted least squares of relative errors.
func (l *scratch) solve(points []Point) {
	clear(l.sum)
	clear(l.sumX)
	clear(l.sumY)
	for i, p := range points {
		w := l.weight[i] / (p.Seconds * p.Seconds)
		l.sum[p.Path] += w
		l.sumX[p.Path] += w * float64(p.Bytes)
		l.sumY[p.Path] += w * p.Seconds
	}
	// The mean point of a path lies on its line. A line that would start below 0 starts at 0 instead; its points then
	// pull at the slope from there.
	for again := true; again; {
		var xx, xy float64
		for i, p := range points {
			w := l.weight[i] / (p.Seconds * p.Seconds)
			x, y := float64(p.Bytes), p.Seconds
			if l.sum[p.Path] > 0 {
				x -= l.sumX[p.Path] / l.sum[p.Path]
				y -= l.sumY[p.Path] / l.sum[p.Path]
			}
			xx += w * x * float64(p.Bytes)
			xy += w * y * float64(p.Bytes)
		}
		l.perByte = 0
		if xx > 0 {
			l.perByte = max(0, xy/xx)
		}
		again = false
		for path := range l.start {
			if l.sum[path] > 0 && l.sumY[path] < l.perByte*l.sumX[path] {
				l.sum[path], again = 0, true
			}
		}
	}
	for i := range l.start {
		l.start[i] = math.NaN()
	}
	for _, p := range points {
		l.start[p.Path] = 0
		if l.sum[p.Path] > 0 {
			l.start[p.Path] = (l.sumY[p.Path] - l.perByte*l.sumX[p.Path]) / l.sum[p.Path]
		}
	}
}
