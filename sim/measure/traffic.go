package measure

import (
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim"
)

// Traffic returns an observer that adds the matrix of messages and bytes from rank to rank, the section "matrix".
func Traffic() Observer { return new(traffic) }

type traffic struct{ matrix *report.Matrix }

func (t *traffic) Begin(l *sim.Layout) { t.matrix = report.NewMatrix(l.Ranks()) }

func (t *traffic) Span(sim.Span) {}

func (t *traffic) Transfer(m sim.Transfer) { t.matrix.Add(int(m.Source), int(m.Target), 1, m.Bytes) }

func (t *traffic) End() error { return nil }

func (t *traffic) Finish(r *sim.Result) {
	if t.matrix != nil && !t.matrix.Empty() {
		r.Add(sim.Section{Key: "matrix", Value: t.matrix, At: sim.Detail})
	}
}
