// This file measures the shape of a trace for its page: dependencies, findings and recorded times.

package tracecat

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
)

const (
	shapePoints    = 512 // levels, or groups of levels
	listedProblems = 100
	activityRows   = 64
	activityBins   = 256
)

// shape is what the page shows about the structure of a trace.
type shape struct {
	Degrees  []degreeBin `json:"degrees,omitempty"`
	Levels   *levels     `json:"levels,omitempty"`
	Problems *problems   `json:"problems,omitempty"`
	Measured *activity   `json:"measured,omitempty"`
}

// degreeBin counts the ops by their number of dependencies, of both kinds.
type degreeBin struct {
	UpTo int   `json:"up_to_dependencies"`
	Ops  int64 `json:"ops"`
}

// levels are the numbers of ops by level: the number of ops in the longest chain of dependencies that ends there.
type levels struct {
	Depth   int     `json:"depth"`
	Each    int     `json:"levels_each"` // levels of a number of the list
	Widest  int64   `json:"widest"`      // largest number of ops of a level
	AtLevel int     `json:"widest_level"`
	Ops     []int64 `json:"ops"` // the largest number of ops of a level in each group
}

// problems are the findings of --check.
type problems struct {
	All   int           `json:"all"`
	First []dag.Problem `json:"first"`
}

// activity is the share of recorded times in which ops of a rank are active.
type activity struct {
	Ops   int64       `json:"ops"` // with a recorded start and end
	From  dag.Time    `json:"from_ps"`
	Until dag.Time    `json:"until_ps"`
	Each  int         `json:"ranks_per_row"`
	Width dag.Time    `json:"bin_ps"`
	Share float64     `json:"active_share"` // mean of all ranks with recorded times
	Busy  [][]float64 `json:"busy"`         // by row and bin, from 0 to 1
}

func shapeOf(t *dag.Trace) *shape {
	s := &shape{Degrees: degreesOf(t), Levels: levelsOf(t), Measured: activityOf(t)}
	if first, all := dag.ValidateLimit(t, listedProblems); all > 0 {
		s.Problems = &problems{int(all), first}
	}
	return s
}

func degreesOf(t *dag.Trace) (bins []degreeBin) {
	bounds := []int{0, 1, 2, 3, 4, 8, 16, 64, 256, 1024, int(^uint32(0) >> 1)}
	counts := make([]int64, len(bounds))
	most := 0
	for _, r := range t.Ranks {
		for i := range r.Len() {
			n := len(r.Deps.Of(i)) + len(r.StartDeps.Of(i))
			most = max(most, n)
			at, _ := slices.BinarySearch(bounds, n)
			counts[at]++
		}
	}
	for i, n := range counts {
		if n > 0 {
			bins = append(bins, degreeBin{min(bounds[i], most), n})
		}
	}
	return bins
}

func levelsOf(t *dag.Trace) *levels {
	widths := dag.Widths(t)
	if len(widths) == 0 {
		return nil
	}
	l := &levels{Depth: len(widths), Each: (len(widths) + shapePoints - 1) / shapePoints}
	for i, n := range widths {
		if n > l.Widest {
			l.Widest, l.AtLevel = n, i+1
		}
		if i%l.Each == 0 {
			l.Ops = append(l.Ops, n)
		} else {
			l.Ops[i/l.Each] = max(l.Ops[i/l.Each], n)
		}
	}
	return l
}

// span is a recorded interval.
type span struct{ from, until dag.Time }

// recorded returns the recorded intervals of the ops of a rank, by start.
func recorded(r *dag.Rank) (all []span) {
	for i := range min(r.Len(), max(len(r.MeasuredStart), len(r.MeasuredEnd))) {
		if from, until := r.Measured(i); from != dag.Unmeasured && until != dag.Unmeasured && until >= from {
			all = append(all, span{from, until})
		}
	}
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from),
			cmp.Compare(a.until, b.until))
	})
	return all
}

func activityOf(t *dag.Trace) *activity {
	a := &activity{Each: (len(t.Ranks) + activityRows - 1) / activityRows}
	for _, r := range t.Ranks {
		for _, s := range recorded(r) {
			if a.Ops == 0 {
				a.From, a.Until = s.from, s.until
			}
			a.From, a.Until = min(a.From, s.from), max(a.Until, s.until)
			a.Ops++
		}
	}
	if length := uint64(a.Until) - uint64(a.From); a.Ops == 0 || length == 0 || length > uint64(dag.MaxTime)/2 {
		return nil
	}
	a.Width = max(1, (a.Until-a.From+activityBins-1)/activityBins)
	bins := int((a.Until - a.From + a.Width - 1) / a.Width)
	measured := 0
	for first := 0; first < len(t.Ranks); first += a.Each {
		row, ranks := make([]float64, bins), 0
		for _, r := range t.Ranks[first:min(len(t.Ranks), first+a.Each)] {
			all := recorded(r)
			if len(all) > 0 {
				ranks++
			}
			a.addTo(row, all)
		}
		for i := range row {
			row[i] /= float64(max(1, ranks))
			a.Share += row[i] * float64(ranks) / float64(bins)
			row[i] = float64(int64(row[i]*10_000+0.5)) / 10_000
		}
		measured += ranks
		a.Busy = append(a.Busy, row)
	}
	a.Share /= float64(max(1, measured))
	return a
}

// addTo adds the shares of bins in which at least one of the intervals is active.
func (a *activity) addTo(row []float64, all []span) {
	done := dag.Time(0) // since a.From
	for _, s := range all {
		until := s.until - a.From
		for from := max(s.from-a.From, done); from < until; {
			bin := int(from / a.Width)
			end := min(until, dag.Time(bin+1)*a.Width)
			row[bin] += float64(end-from) / float64(a.Width)
			from = end
		}
		done = max(done, until)
	}
}

// addMatrix adds the messages between ranks.
func addMatrix(m *report.Matrix, t *dag.Trace) {
	for _, pair := range dag.Matrix(t) {
		m.AddSum(int(pair.Src), int(pair.Dst), pair.Messages, report.SumOf(pair.Bytes.Big()))
	}
}
