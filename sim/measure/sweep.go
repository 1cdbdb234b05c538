package measure

import (
	"slices"

	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Sweep runs a compiled trace at every point of a grid, with several points in parallel.
type Sweep struct {
	Replay    sim.Replay
	Points    [][]param.Setting
	Options   sim.RunOptions    // options of every run; Threads is the number of parallel runs
	Observers func() []Observer // observers of a run; nil: none
	Done      func()            // called when a run ends, in any order; nil: none
}

// Run calls each with the result of every point, in grid order, as soon as it and all previous points are done. A
// failed point does not stop the others; an error of each and the end of the context do.
func (s *Sweep) Run(each func(point int, r *sim.Result, err error) error) error {
	type outcome struct {
		result *sim.Result
		err    error
	}
	ctx := s.Options.Context
	work := func(point []param.Setting) (o outcome) {
		if o.err = sim.Interrupted(ctx); o.err != nil {
			return o
		}
		o.result, o.err = s.run(point)
		if s.Done != nil {
			s.Done()
		}
		return o
	}
	threads, i := max(1, s.Options.Threads), 0
	// Limits the number of finished results, which may be large, that wait for previous ones.
	for o := range par.Ordered(slices.Values(s.Points), min(threads, len(s.Points)), 4*threads,
		func() func([]param.Setting) outcome { return work }) {
		if err := sim.Interrupted(ctx); err != nil {
			return err
		}
		if err := each(i, o.result, o.err); err != nil {
			return err
		}
		i++
	}
	return nil
}

func (s *Sweep) run(point []param.Setting) (*sim.Result, error) {
	o := s.Options
	o.Settings, o.Threads = point, 1
	var result *sim.Result
	err := sim.RunClone(s.Replay, func(clone sim.Replay) (err error) {
		var observers []Observer
		if s.Observers != nil {
			observers = s.Observers()
		}
		result, err = Run(clone, o, observers...)
		return err
	})
	return result, err
}

// Failure is the JSON object of a failed point.
type Failure struct {
	Backend string     `json:"backend"`
	Model   string     `json:"model,omitempty"`
	Params  sim.Values `json:"params"`
	Status  string     `json:"status,omitempty"` // "limit" of a run that exceeded a limit
	Error   string     `json:"error"`
}

// FailureOf returns the JSON object of a failed run. r has the known fields of the run and may be nil.
func FailureOf(backend string, r *sim.Result, err error) Failure {
	f := Failure{Backend: backend, Error: err.Error()}
	if r != nil {
		f.Model, f.Params = r.Model, r.Params
	}
	return f
}
