package measure

import (
	"fmt"
	"io"
	"math/big"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/sim"
)

// Part is a trace merged into another one as a job, with its first rank, number of ranks and start.
type Part = compose.Part

// Jobs are the jobs of a trace and the ops of each job. Jobs may share ranks. docs/reference/simulate.md defines the
// figures of a job.
type Jobs struct {
	jobs  []job
	ranks []jobRank // ranks of the compiled trace; see Observe
}

type job struct {
	name string
	part *Part // nil: the trace has the only information about the job
}

// jobRank maps the ops of a rank to jobs.
type jobRank struct {
	jobs   []int32    // jobs with ops on the rank, ascending
	place  dag.Narrow // by op: index of its job in jobs
	joins  []bool     // by op: a calc of length 0, which may join several jobs, so it belongs to none
	shared bool       // several jobs use the rank
}

// NewJobs returns the jobs of a trace with the given number of ranks, or nil if it has none.
func NewJobs(meta dag.Meta, ranks int, parts []Part) *Jobs {
	t := &Jobs{ranks: make([]jobRank, ranks)}
	for _, name := range meta.Jobs {
		t.jobs = append(t.jobs, job{name: name})
	}
	switch {
	case len(parts) > 1: // jobs that were not merged here keep their names
		for i := range t.jobs {
			same := func(part Part) bool { return part.Name == t.jobs[i].name }
			if k := slices.IndexFunc(parts, same); k >= 0 {
				t.jobs[i].part = &parts[k]
			}
		}
	case len(t.jobs) > 0:
	case len(parts) == 1 && parts[0].Start > 0:
		t.jobs = []job{{parts[0].Name, &parts[0]}}
	default:
		return nil
	}
	return t
}

// Observe records the jobs of ranks of the compiled trace; first is the number of the first one. Calls for different
// ranks may be concurrent.
func (t *Jobs) Observe(first int, ranks []*dag.Rank) error {
	for i := range ranks {
		if err := t.ranks[first+i].observe(ranks[i], len(t.jobs)); err != nil {
			return fmt.Errorf("rank %d %w", first+i, err)
		}
	}
	return nil
}

func (j *jobRank) observe(r *dag.Rank, jobs int) error {
	of := make([]int32, r.Len())
	r.Job.Copy(of, 0)
	var changes []int32 // jobs at which the job differs from that of the previous op
	for i, job := range of {
		if job < 0 || int(job) >= jobs {
			return fmt.Errorf("op %d belongs to job %d, expected 0..%d", i, job, jobs-1)
		}
		if i == 0 || job != of[i-1] {
			changes = append(changes, job)
		}
	}
	slices.Sort(changes)
	j.jobs = slices.Clip(slices.Compact(changes))
	j.shared = len(j.jobs) > 1
	j.joins = make([]bool, r.Len())
	for i, kind := range r.Kind {
		j.joins[i] = kind == dag.Calc && (r.Subkind.At(i) == dag.Marker ||
			int64(r.Duration.At(i))|r.Flops.At(i)|r.Bytes.At(i) == 0)
	}
	if j.place = (dag.Narrow{}); j.shared {
		for i, job := range of {
			at, _ := slices.BinarySearch(j.jobs, job)
			of[i] = int32(at)
		}
		j.place.SetRange(0, of)
	}
	return nil
}

// Recorder returns an observer of one run that adds the section "jobs" to its result.
func (t *Jobs) Recorder() Observer {
	return newJobTimes(t)
}

// jobTimes records the times of a trace's jobs, in the backend's unit.
type jobTimes struct {
	jobs   *Jobs
	layout *sim.Layout
	ranks  [][]jobActivity // by rank, then as in jobRank.jobs
}

// jobActivity is the activity of a job on a rank.
type jobActivity struct {
	active        bool // the job has an op other than a calc of length 0
	started       bool
	start         uint64 // earliest start of an op other than a receive
	end           uint64 // latest end
	compute, comm intervals
}

func newJobTimes(t *Jobs) *jobTimes {
	times := &jobTimes{jobs: t, ranks: make([][]jobActivity, len(t.ranks))}
	for rank := range times.ranks {
		times.ranks[rank] = make([]jobActivity, len(t.ranks[rank].jobs))
	}
	return times
}

// of returns the activity of an op's job on the op's rank.
func (t *jobTimes) of(rank, op int) *jobActivity {
	return &t.ranks[rank][t.jobs.ranks[rank].place.At(op)]
}

func (t *jobTimes) Begin(l *sim.Layout) {
	t.layout = l
}

func (t *jobTimes) Span(s sim.Span) {
	op := t.layout.Index(s.Rank, s.Op)
	a := t.of(int(s.Rank), op)
	switch s.Kind {
	case sim.NoiseSpan:
		a.end = max(a.end, s.End)
	case sim.CalcSpan:
		if !t.jobs.ranks[s.Rank].joins[op] {
			a.ran(s.Start, s.End, true)
			a.compute.add(s.Start, s.End)
		}
	case sim.MemSpan, sim.IOSpan:
		a.ran(s.Start, s.End, true)
	case sim.WaitSpan:
	default:
		a.ran(s.Start, s.End, s.Kind != sim.RecvSpan)
		a.comm.add(s.Start, s.End)
	}
}

func (t *jobTimes) Transfer(m sim.Transfer) {
	if m.Recv == sim.NoOp {
		return
	}
	end := min(m.Arrived, m.End)
	t.of(int(m.Source), t.layout.Index(m.Source, m.Send)).comm.add(m.Start, end)
	t.of(int(m.Target), t.layout.Index(m.Target, m.Recv)).comm.add(m.Start, end)
}

func (t *jobTimes) End() error { return nil }

func (t *jobTimes) Finish(r *sim.Result) {
	outcomes := t.outcomes(r)
	r.Sections = slices.Insert(r.Sections, 0, sim.Section{Key: "jobs", Value: outcomes, At: sim.Early})
	r.Add(sim.Section{Tables: func(w io.Writer) { printJobs(w, outcomes) }})
}

// ran records the times of an op other than a calc of length 0. Receives do not set the start: they may have waited for
// other ranks of the job.
func (a *jobActivity) ran(start, end uint64, starts bool) {
	a.active = true
	a.end = max(a.end, end)
	if starts && (!a.started || start < a.start) {
		a.started, a.start = true, start
	}
}

// JobOutcome is the result of one job in a run. Compute and ExposedCompute are in picoseconds.
type JobOutcome struct {
	Name           string    `json:"name"`
	FirstRank      *int      `json:"first_rank,omitempty"`
	Ranks          int       `json:"ranks"`
	Start          sim.Clock `json:"start_ps"`
	Finish         sim.Clock `json:"finish_ps"`
	Makespan       sim.Clock `json:"makespan_ps"`
	Compute        *big.Int  `json:"compute_ps"`
	ExposedCompute *big.Int  `json:"exposed_compute_ps"`
	ExposedShare   float64   `json:"exposed_compute_share"` // 0 without compute

	// Set with --alone if the isolated run of the job is complete.
	AloneFinish   *sim.Clock `json:"alone_finish_ps,omitempty"`
	AloneMakespan *sim.Clock `json:"alone_makespan_ps,omitempty"`
	Slowdown      *float64   `json:"slowdown,omitempty"` // Makespan / AloneMakespan; nil if AloneMakespan is 0

	lastRank int
	started  bool
}

// outcomes returns the results of the jobs in a run.
func (t *jobTimes) outcomes(done *sim.Result) []JobOutcome {
	unit := done.Makespan.Unit
	outcomes := make([]JobOutcome, len(t.jobs.jobs))
	for i := range outcomes {
		outcomes[i] = JobOutcome{Name: t.jobs.jobs[i].name, Start: sim.Clock{Unit: unit}, Finish: sim.Clock{Unit: unit},
			Compute: new(big.Int), ExposedCompute: new(big.Int)}
	}
	for rank := range t.ranks {
		r := &t.jobs.ranks[rank]
		for place, job := range r.jobs {
			o, a := &outcomes[job], &t.ranks[rank][place]
			finish := a.end
			if !r.shared {
				finish = done.Finish[rank].Ticks
			} else if !a.active {
				continue
			}
			if o.Ranks++; o.FirstRank == nil {
				o.FirstRank = &rank
			}
			o.lastRank = rank
			o.Finish.Ticks = max(o.Finish.Ticks, finish)
			if a.started && (!o.started || a.start < o.Start.Ticks) {
				o.started, o.Start.Ticks = true, a.start
			}
			o.addCompute(a)
		}
	}
	for i := range outcomes {
		outcomes[i].conclude(&t.jobs.jobs[i], unit)
	}
	return outcomes
}

// addCompute adds the compute time of the job on a rank, in the backend's unit.
func (o *JobOutcome) addCompute(a *jobActivity) {
	all, exposed := a.compute.beside(&a.comm)
	o.Compute.Add(o.Compute, new(big.Int).SetUint64(all))
	o.ExposedCompute.Add(o.ExposedCompute, new(big.Int).SetUint64(exposed))
}

// conclude sets the fields that depend on all ranks.
func (o *JobOutcome) conclude(job *job, unit dag.Time) {
	if o.Compute.Sign() > 0 {
		o.ExposedShare, _ = new(big.Rat).SetFrac(o.ExposedCompute, o.Compute).Float64()
	}
	ps := big.NewInt(int64(unit))
	o.Compute.Mul(o.Compute, ps)
	o.ExposedCompute.Mul(o.ExposedCompute, ps)
	if job.part != nil {
		o.FirstRank, o.Ranks = &job.part.FirstRank, job.part.Ranks
		o.Start = sim.Clock{Ticks: uint64(job.part.Start), Unit: dag.Picosecond}
	} else if o.Ranks > 0 && o.lastRank-*o.FirstRank+1 != o.Ranks {
		o.FirstRank = nil
	}
	o.Makespan = since(o.Start, o.Finish)
}

// since returns the time from start to end, or 0 if end is earlier.
func since(start, end sim.Clock) sim.Clock {
	if start.Ticks == 0 {
		return end
	}
	if start.Unit != end.Unit { // the start of a part, on a backend with clocks that do not wrap around
		end = sim.Clock{Ticks: end.Ticks * uint64(end.Unit), Unit: dag.Picosecond}
	}
	end.Ticks -= min(start.Ticks, end.Ticks)
	return end
}

// printJobs prints a table of the jobs.
func printJobs(w io.Writer, outcomes []JobOutcome) {
	if len(outcomes) == 0 {
		return
	}
	alone := slices.ContainsFunc(outcomes, func(o JobOutcome) bool { return o.AloneFinish != nil })
	fmt.Fprint(w, "\njob\tranks\tstart\tfinish\tmakespan\texposed compute")
	if alone {
		fmt.Fprint(w, "\talone\tslowdown")
	}
	fmt.Fprintln(w)
	for i := range outcomes {
		o := &outcomes[i]
		fmt.Fprintf(w, "%s\t%s\t%v\t%v\t%v\t%s", o.Name, o.rankList(), o.Start, o.Finish, o.Makespan, o.exposed())
		if alone {
			fmt.Fprintf(w, "\t%s", o.aloneCells())
		}
		fmt.Fprintln(w)
	}
}

// rankList formats the ranks of a job, or their number if they are not consecutive.
func (o *JobOutcome) rankList() string {
	switch {
	case o.Ranks == 0:
		return "none"
	case o.FirstRank == nil:
		return fmt.Sprintf("%d, scattered", o.Ranks)
	}
	return fmt.Sprintf("%d..%d", *o.FirstRank, *o.FirstRank+o.Ranks-1)
}

func (o *JobOutcome) exposed() string {
	if o.Compute.Sign() == 0 {
		return "no compute"
	}
	return fmt.Sprintf("%.4g%%", 100*o.ExposedShare)
}
