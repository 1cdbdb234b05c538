package tracecat

import (
	"math"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestShape checks dependencies, levels and recorded times of a small trace.
func TestShape(t *testing.T) {
	b := dag.NewBuilder(2)
	for _, deps := range [][]int{nil, {0}, {0}, {1, 2}} {
		b.Rank(0).Calc(5, deps...)
	}
	trace := b.Trace()
	r := trace.Ranks[0]
	r.MeasuredStart = []dag.Time{0, 50, 60, 100}
	r.MeasuredEnd = []dag.Time{40, 70, 80, 100}
	s := shapeOf(trace)
	if len(s.Degrees) != 3 || s.Degrees[1] != (degreeBin{1, 2}) || s.Degrees[2] != (degreeBin{2, 1}) {
		t.Errorf("degrees %v", s.Degrees)
	}
	if l := s.Levels; l.Depth != 3 || l.Widest != 2 || l.AtLevel != 2 || len(l.Ops) != 3 {
		t.Errorf("levels %+v", l)
	}
	m := s.Measured
	if m.Ops != 4 || m.From != 0 || m.Until != 100 || len(m.Busy) != 2 || math.Abs(m.Share-0.7) > 1e-9 {
		t.Fatalf("measured %+v", m)
	}
	sum := 0.0
	for _, share := range m.Busy[0] {
		sum += share * float64(m.Width)
	}
	if math.Abs(sum-70) > 1e-6 {
		t.Errorf("active for %v, want 70", sum)
	}
	r.MeasuredStart[0], r.MeasuredEnd[3] = math.MinInt64+1, math.MaxInt64
	if s := shapeOf(trace); s.Measured != nil {
		t.Errorf("recorded times beyond the range: %+v", s.Measured)
	}
}
