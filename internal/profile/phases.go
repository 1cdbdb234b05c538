package profile

import "time"

// Phases measures the wall-clock time of the phases of a run.
type Phases struct {
	Last  time.Time // end of the last phase
	names []string
	took  []time.Duration
}

// NewPhases begins the first phase.
func NewPhases() *Phases {
	return &Phases{Last: time.Now()}
}

// Done ends a phase and begins the next.
func (ph *Phases) Done(name string) {
	now := time.Now()
	ph.Add(name, now.Sub(ph.Last))
	ph.Last = now
}

// Add adds a phase that took the given time.
func (ph *Phases) Add(name string, took time.Duration) {
	ph.names, ph.took = append(ph.names, name), append(ph.took, took)
}

// Explain prints a table of the phases, for a run of the given number of ops.
func (ph *Phases) Explain(print func(message string, args ...any), ops int64) {
	total := time.Duration(0)
	for i, name := range ph.names {
		print("%-8s %10v  %8.1f ns/op", name, ph.took[i].Round(time.Microsecond), perOp(ph.took[i], ops))
		total += ph.took[i]
	}
	print("%-8s %10v  %8.1f ns/op", "total", total.Round(time.Microsecond), perOp(total, ops))
}

func perOp(d time.Duration, ops int64) float64 {
	return float64(d) / float64(max(ops, 1))
}
