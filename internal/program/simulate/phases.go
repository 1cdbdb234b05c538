package simulate

import (
	"time"

	"github.com/tracedag/tracedag/internal/cli"
)

// phases measures the wall-clock time of the phases of a run.
type phases struct {
	last  time.Time
	names []string
	took  []time.Duration
}

func newPhases() *phases {
	return &phases{last: time.Now()}
}

// done ends a phase and begins the next.
func (ph *phases) done(name string) {
	now := time.Now()
	ph.add(name, now.Sub(ph.last))
	ph.last = now
}

func (ph *phases) add(name string, took time.Duration) {
	ph.names, ph.took = append(ph.names, name), append(ph.took, took)
}

// explain prints a table of the phases with -v.
func (ph *phases) explain(p *cli.Program, ops int64) {
	total := time.Duration(0)
	for i, name := range ph.names {
		p.Explain("%-8s %10v  %8.1f ns/op", name, ph.took[i].Round(time.Microsecond), perOp(ph.took[i], ops))
		total += ph.took[i]
	}
	p.Explain("%-8s %10v  %8.1f ns/op", "total", total.Round(time.Microsecond), perOp(total, ops))
}

func perOp(d time.Duration, ops int64) float64 {
	return float64(d) / float64(max(ops, 1))
}
