package runs

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// Loaded is a compiled trace and its description.
type Loaded struct {
	Name     string
	Title    string
	Format   string                      // "" for jobs
	Command  []string                    // that made the trace; nil if unknown
	Inputs   func() ([]dag.Input, error) // digests of the files; call it at most once, after reading
	Ranks    int
	Ops      int64 // as compiled, after lowering of collectives
	Replay   sim.Replay
	Trace    *dag.Trace        // as compiled; nil if it is not in memory
	Parts    []measure.Part    // merged traces, with --trace
	Jobs     *measure.Jobs     // nil for a single job
	Steps    *measure.Steps    // with --breakdown or --compare; nil: the trace has none
	Measured *measure.Measured // recorded times, with --compare
	Ideal    sim.Clock         // makespan without network; 0: unknown
	Close    func()            // closes the input and the replay

	Collectives *collective.Names // of the trace before their lowering, with --timeline
}

// Load reads the traces and compiles them. A single trace of a format that supports batches is compiled batch by batch
// and never in memory as a whole, unless a timeline, jobs, measured times or lowering require the whole trace.
func (r *Setup) Load() (*Loaded, error) {
	r.Options.Lower.Lacks, r.Options.Lower.Choice = r.lacks, &r.choice
	pass, err := r.Options.Lower.Pass()
	if err != nil {
		return nil, err
	}
	name, single := r.Jobs.Single()
	if !single {
		return r.loadJobs(pass)
	}
	if r.shared != nil {
		return r.loadShared(name, pass)
	}
	in, err := r.Program.OpenTrace(name, r.Options.Read, cli.ReadOptions{Digest: true})
	if err != nil {
		return nil, err
	}
	l := &Loaded{Name: in.Name, Format: in.Format.Name, Inputs: in.Inputs, Close: in.Close}
	r.Phases.Done("open")
	if err := r.loadSingle(l, in, pass); err != nil {
		in.Close()
		return nil, err
	}
	return l, nil
}

func (r *Setup) loadSingle(l *Loaded, in *cli.OpenTrace, pass cli.Pass) error {
	if in.Source != nil && !r.Options.wantsWhole() {
		h, err := in.Source.Header()
		if err != nil {
			return format.InFile(in.Name, err)
		}
		lowers := r.Backend.Lowers(nil) != nil && slices.Contains(h.Kinds, dag.Coll)
		if !r.measuresIO(h.Meta) && len(h.Jobs) == 0 && !lowers {
			return r.compileBatches(l, in, h)
		}
	}
	trace, err := in.Read()
	if err != nil {
		return err
	}
	in.DoneReading()
	return r.compileLowered(l, trace, pass)
}

// compileLowered compiles a trace in memory after the passes that the flags select.
func (r *Setup) compileLowered(l *Loaded, trace *dag.Trace, pass cli.Pass) (err error) {
	r.Phases.Done("decode")
	before := trace
	var starts []dag.Time
	if r.Options.Start == StartMeasured {
		if trace, starts, err = compose.StartMeasured(trace); err != nil {
			return format.InFile(l.Name, fmt.Errorf("--start: %w", err))
		}
		r.explainStarts(l.Name, before, starts)
	}
	if r.Options.Lower.Asked() {
		s, err := pass(dag.FromTrace(trace), l.Name)
		if err == nil {
			trace, err = memory.ReadTrace(r.Program.Context(), s)
		}
		if err != nil {
			return format.InFile(l.Name, err)
		}
	}
	if l.Measured, err = r.measured(before, trace, starts); err != nil {
		return format.InFile(l.Name, err)
	}
	return r.compileWhole(l, trace)
}

// wantsWhole reports whether the flags require the whole trace in memory.
func (o *Options) wantsWhole() bool {
	return o.Timeline.File != "" || o.CriticalPath || o.Lower.Asked() || o.Compare || o.Start == StartMeasured
}

// explainStarts prints the starts of the ranks, and how far their clocks may be apart.
func (r *Setup) explainStarts(name string, t *dag.Trace, starts []dag.Time) {
	found, ok := dag.ClockErrorOf(t)
	switch {
	case !ok:
		r.Program.Warn("%s: ranks start up to %v after the first one; the trace has no collectives that bound "+
			"the error of their clocks", name, slices.Max(starts))
	case found.AtLeast > 0:
		r.Program.Warn("%s: ranks start up to %v after the first one by clocks that differ by %v or more", name,
			slices.Max(starts), found.AtLeast)
	case found.AtMost == dag.Unmeasured:
		r.Program.Explain("%s: ranks start up to %v after the first one", name, slices.Max(starts))
	default:
		r.Program.Explain("%s: ranks start up to %v after the first one; clocks differ by at most %v from that of "+
			"rank 0", name, slices.Max(starts), found.AtMost)
	}
}

// measuresIO reports whether the run measures the latencies of storage accesses.
func (r *Setup) measuresIO(meta dag.Meta) bool {
	return !r.Options.Grid && measure.IsStorage(meta)
}

// measured returns the recorded times of a trace by ranks of the lowered trace, or nil without --compare.
func (r *Setup) measured(before, lowered *dag.Trace, starts []dag.Time) (*measure.Measured, error) {
	if !r.Options.Compare {
		return nil, nil
	}
	m, err := measure.MeasuredOf(before, measure.MeasuredOptions{ExcludeOutliers: r.Options.ExcludeOutliers,
		Starts: starts})
	if err != nil || before == lowered {
		return m, err
	}
	return m.Lowered(before, lowered)
}

// loadJobs loads traces that are placed on nodes or merged as jobs.
func (r *Setup) loadJobs(pass cli.Pass) (*Loaded, error) {
	if r.Options.Start == StartMeasured {
		return nil, cli.Usagef("--start measured: expected one trace, found jobs or a placement; place its ranks by " +
			"traceconv first")
	}
	built, name, err := r.Jobs.Build(r.Program, r.Options.Read, pass)
	if err != nil {
		return nil, err
	}
	trace, err := memory.ReadTrace(r.Program.Context(), built.Source)
	if err != nil {
		return nil, format.InFile(name, err)
	}
	lowers := r.Backend.Lowers(dag.FromTrace(trace)) != nil && r.choice.UsesNodes()
	r.Phases.Done("decode")
	l := &Loaded{Name: name, Parts: built.Parts, Close: func() {}}
	l.Inputs = func() ([]dag.Input, error) { return built.Inputs, nil }
	if l.Measured, err = r.measured(built.Merged, trace, nil); err != nil {
		return nil, format.InFile(name, err)
	}
	err = r.compileWhole(l, trace)
	if trace.Nodes != nil && !lowers && !r.Backend.Traits().Nodes && r.Env.Sharing != sim.ShareAlways {
		r.Program.Explain("%s: placed on nodes, which the %s backend ignores", name, r.Options.Backend)
	}
	return l, err
}

// compileWhole compiles a trace in memory. Its lowered form is in memory only during compilation, unless a timeline,
// --alone or storage latencies require it.
func (r *Setup) compileWhole(l *Loaded, trace *dag.Trace) error {
	fail := func(err error) error { return fmt.Errorf("%s: %w", l.Name, err) }
	if err := r.checkGroups(trace.Comms); err != nil {
		return fail(err)
	}
	l.Jobs = measure.NewJobs(trace.Meta, len(trace.Ranks), l.Parts)
	// Jobs that run alone later share NICs as in the shared run.
	shared, err := r.Env.SharesNICs(dag.FromTrace(trace))
	if err != nil {
		return fail(err)
	}
	if r.Env.Sharing = sim.ShareNever; shared {
		r.Env.Sharing = sim.ShareAlways
	}
	source, err := r.lower(l, trace)
	if err != nil {
		return fail(err)
	}
	h, err := source.Header()
	if err != nil {
		return fail(err)
	}
	before := trace.Ops()
	l.Title, l.Ranks, l.Ops, l.Command = trace.Title, len(trace.Ranks), h.Ops, provenance.MadeBy(trace.Meta)
	if l.Ops != before {
		r.Program.Explain("%s: lowered %d ops to %d", l.Name, before, l.Ops)
	}
	lowering, compiling, err := r.compile(l, &timedSource{Source: source}, h)
	if err != nil {
		if l.Ops != before {
			err = fmt.Errorf("with its collectives lowered, %w", err)
		}
		return fail(err)
	}
	r.Phases.Add("lower", lowering)
	r.Phases.Add("compile", compiling)
	if r.Options.Timeline.File != "" || r.Options.CriticalPath || r.Options.Alone || r.measuresIO(trace.Meta) {
		if l.Trace, err = memory.ReadTrace(r.Program.Context(), source); err != nil {
			return fail(err)
		}
	}
	return nil
}

// findNodes sets the nodes of a selection: those of the trace, or else the hosts of the ranks.
func (r *Setup) findNodes(source dag.Source, needed *collective.Selection) error {
	h, err := source.Header()
	table := r.choice.SingleRank()
	if err != nil || table == "" && !r.choice.UsesNodes() {
		return err
	}
	nodes, err := sim.HostNodes(r.Backend, h)
	if nodes == nil {
		nodes = h.Nodes
	}
	if shared := sim.SharedNodes(nodes); table != "" && shared > 0 {
		r.Program.Warn("%s has the algorithms of one rank per node, but several ranks share %d nodes; collectives of "+
			"SMPI take another time there", table, shared)
	}
	needed.Nodes = nodes
	return err
}

// lower returns the trace with the collectives lowered that the backend does not run itself.
func (r *Setup) lower(l *Loaded, trace *dag.Trace) (dag.Source, error) {
	source := dag.FromTrace(trace)
	needed := collective.Selection{Kinds: r.Backend.Lowers(source)}
	if r.Options.Lowering != nil && needed.Kinds != nil {
		r.Options.Lowering(trace, r.choice, needed.Kinds)
	}
	if needed.Kinds != nil {
		if err := r.findNodes(source, &needed); err != nil {
			return nil, err
		}
	}
	lowered, counts, err := collective.LowerNeeded(r.Env.Context, source, r.choice, needed)
	if err == nil && (r.Options.Timeline.File != "" || r.Options.CriticalPath) {
		l.Collectives, err = collective.NamesOf(lowered)
	}
	if err != nil || counts.Total() == 0 ||
		counts.Kept == 0 && r.Options.Timeline.File == "" && !r.Options.CriticalPath && !r.Options.Alone {
		return lowered, err
	}
	whole, err := memory.ReadTrace(r.Program.Context(), lowered)
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(whole), nil
}

// lacks returns the ops of a trace that the backend does not run, for --lower needed.
func (r *Setup) lacks(s dag.Source) (lower.Lacks, error) {
	traits := r.Backend.Traits()
	return lower.Lacks{
		Collectives: collective.Selection{Kinds: r.Backend.Lowers(s)}, Memory: !traits.Memory, Storage: !traits.Storage,
	}, nil
}

func (r *Setup) compileBatches(l *Loaded, in *cli.OpenTrace, h *dag.Header) error {
	if err := r.checkGroups(h.Comms); err != nil {
		return format.InFile(in.Name, err)
	}
	reading, compiling, err := r.compile(l, &timedSource{Source: in.Source}, h)
	if err != nil {
		return format.InFile(in.Name, err)
	}
	in.DoneReading()
	in.WasRead(h.Ops, h.Ranks, reading+compiling)
	r.Phases.Add("decode", reading)
	r.Phases.Add("lower", 0)
	r.Phases.Add("compile", compiling)
	l.Title, l.Ranks, l.Ops, l.Command = h.Title, h.Ranks, h.Ops, provenance.MadeBy(h.Meta)
	return nil
}

// compile compiles the trace while it is read. It returns the wall-clock times of reading, which includes the time
// since the last phase, and of compiling.
func (r *Setup) compile(l *Loaded, source *timedSource, h *dag.Header) (reading, compiling time.Duration, err error) {
	if o := r.Options; o.Outputs.Page != "" && o.Ideal != nil && o.Ideal != r.Kind {
		if l.Ideal, err = measure.Ideal(r.Env.Context, o.Ideal, source.Source); err != nil {
			r.Program.Explain("no lower bound: %v", err)
		}
	}
	if r.BreaksDown() || l.Measured != nil {
		l.Steps = measure.NewSteps(h.Meta, h.Ranks)
	}
	source.jobs, source.steps = l.Jobs, l.Steps
	began := time.Now()
	if l.Replay, err = r.Backend.Compile(source, r.Env); err != nil {
		return 0, 0, err
	}
	if replay, is := l.Replay.(io.Closer); is {
		closeInput := l.Close
		l.Close = func() {
			replay.Close() // of a temporary file: an error has no consequence
			closeInput()
		}
	}
	now := time.Now()
	took := now.Sub(began)
	readers := sim.BatchReaders(h) // each alternates between reading and compiling
	reading = min(took, time.Duration(source.reading.Load())/time.Duration(readers))
	compiling = took - reading
	reading += began.Sub(r.Phases.Last)
	r.Phases.Last = now
	return reading, compiling, nil
}

// timedSource is a source that measures the time of reading.
type timedSource struct {
	dag.Source
	jobs    *measure.Jobs  // receive all ranks read, as steps do; may be nil
	steps   *measure.Steps // may be nil
	reading atomic.Int64   // total of all readers in nanoseconds
}

// ReadAll reads the whole trace without observing it.
func (s *timedSource) ReadAll() (*dag.Trace, error) {
	return dag.ReadAll(s.Source)
}

func (s *timedSource) NewReader(columns dag.Columns) dag.Reader {
	if s.jobs != nil {
		columns = dag.All
	} else if s.steps != nil {
		columns = max(columns, dag.Stepped)
	}
	read := s.Source.NewReader(columns)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		start := time.Now()
		ranks, err := read(b)
		s.reading.Add(int64(time.Since(start)))
		if err == nil && s.steps != nil {
			s.steps.Observe(b.First, ranks)
		}
		if err == nil && s.jobs != nil {
			err = s.jobs.Observe(b.First, ranks)
		}
		return ranks, err
	}
}

// checkGroups returns an error if the trace has an undefined communicator, unless --lenient is set.
func (r *Setup) checkGroups(comms []dag.Comm) error {
	if r.Options.Read.Lenient {
		return nil
	}
	for i := range comms {
		if comms[i].Undefined {
			return fmt.Errorf("communicator %q is undefined: give the file that defines it with --comm-groups, "+
				"or --lenient to define it as the ranks that use it", comms[i].Name)
		}
	}
	return nil
}
