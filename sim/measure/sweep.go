package measure

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

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
	var observers []Observer
	if s.Observers != nil {
		observers = s.Observers()
	}
	return Run(s.Replay.Clone(), o, observers...)
}

// Failure is the JSON object of a failed point.
type Failure struct {
	Backend string     `json:"backend"`
	Model   string     `json:"model,omitempty"`
	Params  sim.Values `json:"params"`
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

// CSV writes results as comma-separated values below a header line. Each parameter has its own column. Finish times of
// ranks are omitted.
type CSV struct {
	table   *csv.Writer
	backend string
	extra   []string // columns beyond the common ones
	timing  bool     // columns of wall-clock figures
	head    bool
}

// NewCSV returns a writer of the results of a backend. timing adds the wall-clock figures, which differ from run to
// run.
func NewCSV(w io.Writer, backend string, traits sim.Traits, timing bool) *CSV {
	return &CSV{table: csv.NewWriter(w), backend: backend, extra: traits.Columns, timing: timing}
}

// Write writes the row of a result, or of a failed run.
func (c *CSV) Write(r *sim.Result, failed error) error {
	model, params := "", sim.Values(nil)
	if r != nil {
		model, params = r.Model, r.Params
	}
	names, values, err := params.Columns()
	if err != nil {
		return err
	}
	if !c.head {
		c.head = true
		names = append(append([]string{"backend", "model"}, names...), "complete", "makespan_ps", "ops", "never_run",
			"events", "messages", "bytes")
		if c.timing {
			names = append(names, "wall_s", "ops_per_s")
		}
		names = append(append(names, c.extra...), "error")
		if err := c.table.Write(names); err != nil {
			return err
		}
	}
	record := append([]string{c.backend, model}, values...)
	if failed == nil {
		makespan, _ := r.Makespan.AppendText(nil)
		record = append(record, strconv.FormatBool(r.Complete), string(makespan), fmt.Sprint(r.Ops),
			fmt.Sprint(r.NeverRun), fmt.Sprint(r.Events), fmt.Sprint(r.Messages), r.TotalBytes().String())
		if c.timing {
			wall, err := r.Wall.MarshalJSON()
			if err != nil {
				return err
			}
			record = append(record, string(wall), strconv.FormatFloat(r.OpsPerS, 'g', 6, 64))
		}
		overflow := ""
		if s := r.Section("overflow"); s != nil {
			overflow = s.Rows[0].Text
		}
		record = append(append(record, r.Cells...), overflow)
	} else {
		record = append(record, "false")
		empty := 6 + len(c.extra)
		if c.timing {
			empty += 2
		}
		record = append(append(record, make([]string, empty)...), failed.Error())
	}
	if err := c.table.Write(record); err != nil {
		return err
	}
	c.table.Flush()
	return c.table.Error()
}
