package simulate

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// loaded is a compiled trace and its description.
type loaded struct {
	name     string
	title    string
	format   string                      // "" for jobs
	command  []string                    // that made the trace; nil if unknown
	inputs   func() ([]dag.Input, error) // digests of the files; call it at most once, after reading
	ranks    int
	ops      int64 // as compiled, after lowering of collectives
	replay   sim.Replay
	trace    *dag.Trace       // as compiled; nil if it is not in memory
	parts    []measure.Part   // merged traces, with --trace
	jobs     *measure.Jobs    // nil for a single job
	steps    *measure.Steps   // with --breakdown; nil: the trace has none
	measured measure.Measured // recorded times, with --compare
	ideal    sim.Clock        // makespan without network; 0: unknown
	close    func()           // closes the input

	collectives *collective.Names // of the trace before their lowering, with --timeline
}

// load reads the traces and compiles them. A single trace of a format that supports batches is compiled batch by batch
// and never in memory as a whole, unless a timeline, jobs, measured times or lowering require the whole trace.
func (r *run) load() (*loaded, error) {
	r.o.lower.Lacks, r.o.lower.Choice = r.lacks, &r.choice
	pass, err := r.o.lower.Pass()
	if err != nil {
		return nil, err
	}
	name, single := r.jobs.Single()
	if !single {
		return r.loadJobs(pass)
	}
	if r.shared != nil {
		return r.loadShared(name, pass)
	}
	in, err := r.p.OpenTrace(name, r.o.read, cli.ReadOptions{Digest: true})
	if err != nil {
		return nil, err
	}
	l := &loaded{name: in.Name, format: in.Format.Name, inputs: in.Inputs, close: in.Close}
	r.phases.Done("open")
	if err := r.loadSingle(l, in, pass); err != nil {
		in.Close()
		return nil, err
	}
	return l, nil
}

func (r *run) loadSingle(l *loaded, in *cli.OpenTrace, pass cli.Pass) error {
	if in.Source != nil && !r.o.wantsWhole() {
		h, err := in.Source.Header()
		if err != nil {
			return format.InFile(in.Name, err)
		}
		lowers := r.backend.Lowers(nil) != nil && slices.Contains(h.Kinds, dag.Coll)
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
func (r *run) compileLowered(l *loaded, trace *dag.Trace, pass cli.Pass) (err error) {
	r.phases.Done("decode")
	before := trace
	if r.o.lower.Asked() {
		s, err := pass(dag.FromTrace(trace), l.name)
		if err == nil {
			trace, err = memory.ReadTrace(r.p.Context(), s)
		}
		if err != nil {
			return format.InFile(l.name, err)
		}
	}
	if l.measured, err = r.measured(before, trace); err != nil {
		return format.InFile(l.name, err)
	}
	return r.compileWhole(l, trace)
}

// wantsWhole reports whether the flags require the whole trace in memory.
func (o *options) wantsWhole() bool {
	return o.timeline.file != "" || o.criticalPath || o.lower.Asked() || o.compare
}

// measuresIO reports whether the run measures the latencies of storage accesses.
func (r *run) measuresIO(meta dag.Meta) bool {
	return !r.o.grid && measure.IsStorage(meta)
}

// measured returns the recorded times of a trace by ranks of the lowered trace, or nil without --compare.
func (r *run) measured(before, lowered *dag.Trace) (measure.Measured, error) {
	if !r.o.compare {
		return nil, nil
	}
	m, err := measure.MeasuredOf(before)
	if err != nil || before == lowered {
		return m, err
	}
	return m.Lowered(before, lowered)
}

// loadJobs loads traces that are placed on nodes or merged as jobs.
func (r *run) loadJobs(pass cli.Pass) (*loaded, error) {
	built, name, err := r.jobs.Build(r.p, r.o.read, pass)
	if err != nil {
		return nil, err
	}
	trace, err := memory.ReadTrace(r.p.Context(), built.Source)
	if err != nil {
		return nil, format.InFile(name, err)
	}
	lowers := r.backend.Lowers(dag.FromTrace(trace)) != nil && r.choice.UsesNodes()
	r.phases.Done("decode")
	l := &loaded{name: name, parts: built.Parts, close: func() {}}
	l.inputs = func() ([]dag.Input, error) { return built.Inputs, nil }
	if l.measured, err = r.measured(built.Merged, trace); err != nil {
		return nil, format.InFile(name, err)
	}
	err = r.compileWhole(l, trace)
	if trace.Nodes != nil && !lowers && !r.backend.Traits().Nodes && r.env.Sharing != sim.ShareAlways {
		r.p.Explain("%s: placed on nodes, which the %s backend ignores", name, r.o.backend)
	}
	return l, err
}

// compileWhole compiles a trace in memory. Its lowered form is in memory only during compilation, unless a timeline,
// --alone or storage latencies require it.
func (r *run) compileWhole(l *loaded, trace *dag.Trace) error {
	fail := func(err error) error { return fmt.Errorf("%s: %w", l.name, err) }
	if err := r.checkGroups(trace.Comms); err != nil {
		return fail(err)
	}
	l.jobs = measure.NewJobs(trace.Meta, len(trace.Ranks), l.parts)
	// Jobs that run alone later share NICs as in the shared run.
	shared, err := r.env.SharesNICs(dag.FromTrace(trace))
	if err != nil {
		return fail(err)
	}
	if r.env.Sharing = sim.ShareNever; shared {
		r.env.Sharing = sim.ShareAlways
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
	l.title, l.ranks, l.ops, l.command = trace.Title, len(trace.Ranks), h.Ops, provenance.MadeBy(trace.Meta)
	if l.ops != before {
		r.p.Explain("%s: lowered %d ops to %d", l.name, before, l.ops)
	}
	lowering, compiling, err := r.compile(l, &timedSource{Source: source}, h)
	if err != nil {
		if l.ops != before {
			err = fmt.Errorf("with its collectives lowered, %w", err)
		}
		return fail(err)
	}
	r.phases.Add("lower", lowering)
	r.phases.Add("compile", compiling)
	if r.o.timeline.file != "" || r.o.criticalPath || r.o.alone || r.measuresIO(trace.Meta) {
		if l.trace, err = memory.ReadTrace(r.p.Context(), source); err != nil {
			return fail(err)
		}
	}
	return nil
}

// lower returns the trace with the collectives lowered that the backend does not run itself.
func (r *run) lower(l *loaded, trace *dag.Trace) (dag.Source, error) {
	source := dag.FromTrace(trace)
	needed := collective.Selection{Kinds: r.backend.Lowers(source)}
	lowered, counts, err := collective.LowerNeeded(r.env.Context, source, r.choice, needed)
	if err == nil && (r.o.timeline.file != "" || r.o.criticalPath) {
		l.collectives, err = collective.NamesOf(lowered)
	}
	if err != nil || counts.Total() == 0 || counts.Kept == 0 && r.o.timeline.file == "" && !r.o.criticalPath &&
		!r.o.alone {
		return lowered, err
	}
	whole, err := memory.ReadTrace(r.p.Context(), lowered)
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(whole), nil
}

// lacks returns the ops of a trace that the backend does not run, for --lower needed.
func (r *run) lacks(s dag.Source) (lower.Lacks, error) {
	traits := r.backend.Traits()
	return lower.Lacks{
		Collectives: collective.Selection{Kinds: r.backend.Lowers(s)}, Memory: !traits.Memory, Storage: !traits.Storage,
	}, nil
}

func (r *run) compileBatches(l *loaded, in *cli.OpenTrace, h *dag.Header) error {
	if err := r.checkGroups(h.Comms); err != nil {
		return format.InFile(in.Name, err)
	}
	reading, compiling, err := r.compile(l, &timedSource{Source: in.Source}, h)
	if err != nil {
		return format.InFile(in.Name, err)
	}
	in.DoneReading()
	in.WasRead(h.Ops, h.Ranks, reading+compiling)
	r.phases.Add("decode", reading)
	r.phases.Add("lower", 0)
	r.phases.Add("compile", compiling)
	l.title, l.ranks, l.ops, l.command = h.Title, h.Ranks, h.Ops, provenance.MadeBy(h.Meta)
	return nil
}

// compile compiles the trace while it is read. It returns the wall-clock times of reading, which includes the time
// since the last phase, and of compiling.
func (r *run) compile(l *loaded, source *timedSource, h *dag.Header) (reading, compiling time.Duration, err error) {
	if o := r.o; o.outputs.Page != "" && o.sweep == "" && o.ideal != nil && o.ideal != r.kind {
		if l.ideal, err = measure.Ideal(r.env.Context, o.ideal, source.Source); err != nil {
			r.p.Explain("no lower bound: %v", err)
		}
	}
	if r.breaksDown() {
		l.steps = measure.NewSteps(h.Meta, h.Ranks)
	}
	source.jobs, source.steps = l.jobs, l.steps
	began := time.Now()
	if l.replay, err = r.backend.Compile(source, r.env); err != nil {
		return 0, 0, err
	}
	now := time.Now()
	took := now.Sub(began)
	readers := sim.BatchReaders(h) // each alternates between reading and compiling
	reading = min(took, time.Duration(source.reading.Load())/time.Duration(readers))
	compiling = took - reading
	reading += began.Sub(r.phases.Last)
	r.phases.Last = now
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
func (r *run) checkGroups(comms []dag.Comm) error {
	if r.o.read.Lenient {
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
