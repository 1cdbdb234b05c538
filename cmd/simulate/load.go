package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/cli"
)

// loaded is what is known of a trace that was compiled.
type loaded struct {
	name  string
	title string
	ranks int
	ops   int64      // as compiled, collectives lowered
	trace *dag.Trace // nil where it is not in memory
	parts []cli.Job  // the traces that it is made of, with --trace
	jobs  *jobTable  // nil: it is one job

	measured []measured // with --compare: what the tracer saw of each rank

	source dag.Source // the trace, to be read again for --ops; else nil
	close  func()     // closes it; nil where there is nothing to close
}

// load reads the traces and has the runner compile them. A single one that can be read batch by batch is compiled on
// the way, and never in memory as a whole, unless something is wanted that no replay needs, which readers leave out: a
// timeline, jobs, or measured times; or something is to be lowered.
func load(p *cli.Program, o *options, run runner, jobs *cli.Jobs, choice collective.Choice, ph *phases) (*loaded, error) {
	name, single := jobs.Single()
	if !single {
		if o.lower.Asked() {
			return nil, cli.Usagef("--lower is for a single trace: lower each with traceconv")
		}
		return loadJobs(p, o, run, jobs, choice, ph)
	}
	pass, err := o.lower.Pass()
	if err != nil {
		return nil, err
	}
	in, err := p.OpenTrace(name, o.read, cli.ReadOptions{})
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			in.Close()
		}
	}()
	ph.done("open")
	if in.Source != nil && !o.wantsWhole() {
		h, err := in.Source.Header()
		if err != nil {
			return nil, cli.InFile(in.Name, err)
		}
		if !o.needsWhole(h.Meta) && (run.lowers(nil) == nil || !slices.Contains(h.Kinds, dag.Coll)) {
			l, err := loadBatches(p, in, h, o, run, ph)
			if err == nil && o.ops {
				l.source, l.close, keep = in.Source, in.Close, true
			}
			return l, err
		}
	}
	trace, err := in.Read()
	if err != nil {
		return nil, err
	}
	in.DoneReading()
	ph.done("decode")
	l := &loaded{name: in.Name}
	if o.compare {
		if l.measured, err = measuredRanks(trace); err != nil {
			return nil, cli.InFile(in.Name, err)
		}
	}
	if o.lower.Asked() {
		s, err := pass(dag.FromTrace(trace))
		if err != nil {
			return nil, cli.InFile(in.Name, err)
		}
		before := trace
		if trace, err = dag.ReadAll(s); err != nil {
			return nil, cli.InFile(in.Name, err)
		}
		if o.compare {
			if l.measured, err = onLowered(l.measured, before, trace); err != nil {
				return nil, cli.InFile(in.Name, err)
			}
		}
	}
	return l, l.compileWhole(p, o, run, trace, choice, ph)
}

// wantsWhole reports whether any trace must be in memory as a whole.
func (o *options) wantsWhole() bool {
	return o.timeline != "" || o.lower.Asked() || o.compare
}

// needsWhole reports whether a trace must be in memory as a whole.
func (o *options) needsWhole(meta dag.Meta) bool {
	return o.wantsWhole() || o.measuresIO(meta) || len(meta.Jobs) > 0
}

// measuresIO reports whether the latencies of storage accesses are to be measured in a trace.
func (o *options) measuresIO(meta dag.Meta) bool {
	return o.sweep == "" && isStorage(meta)
}

// loadJobs is load for traces that are placed, or become the jobs of one.
func loadJobs(p *cli.Program, o *options, run runner, jobs *cli.Jobs, choice collective.Choice, ph *phases) (
	*loaded, error) {
	trace, name, parts, err := jobs.Read(p, o.read)
	if err != nil {
		return nil, err
	}
	if trace.Nodes != nil && !(run.lowers(trace) != nil && choice.UsesNodes()) && o.backend != "packet" && o.backend != "flit" {
		p.Explain("%s: placed on nodes, which makes no difference to the %s backend", name, o.backend)
	}
	ph.done("decode")
	l := &loaded{name: name, parts: parts}
	if o.compare {
		if l.measured, err = measuredRanks(trace); err != nil {
			return nil, cli.InFile(name, err)
		}
	}
	return l, l.compileWhole(p, o, run, trace, choice, ph)
}

// compileWhole compiles a trace that is in memory. What is lowered of it is in memory only while it is compiled, unless
// there is a timeline, or its jobs are to be run alone.
func (l *loaded) compileWhole(p *cli.Program, o *options, run runner, trace *dag.Trace, choice collective.Choice,
	ph *phases) error {
	if err := o.checkGroups(trace.Comms); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.jobs = newJobTable(trace.Meta, len(trace.Ranks), l.parts)
	source, err := lowered(o, run, trace, choice)
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	h, err := source.Header()
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	before := trace.Ops()
	l.title, l.ranks, l.ops = trace.Title, len(trace.Ranks), h.Ops
	if l.ops != before {
		p.Explain("%s: lowered %d ops to %d", l.name, before, l.ops)
	}
	observed := &timedSource{Source: source}
	if l.jobs != nil {
		observed.observe = l.jobs.observe
	}
	lowering, compiling, err := compileBatches(run, observed, h, p.Warn, ph)
	if err != nil {
		if l.ops != before {
			err = fmt.Errorf("with its collectives lowered, %w", err)
		}
		return fmt.Errorf("%s: %w", l.name, err)
	}
	ph.add("lower", lowering)
	ph.add("compile", compiling)
	if o.timeline != "" || o.alone || o.measuresIO(trace.Meta) {
		if l.trace, err = dag.ReadAll(source); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	if o.ops {
		l.source = source
	}
	return nil
}

// checkGroups returns an error if the trace has an undefined communicator, unless --lenient is set.
func (o *options) checkGroups(comms []dag.Comm) error {
	if o.read.Lenient {
		return nil
	}
	for i := range comms {
		if comms[i].Undefined {
			return fmt.Errorf("nothing defines the communicator %q: give a file that does with --comm-groups, or --lenient to take "+
				"the ranks that use it for its members", comms[i].Name)
		}
	}
	return nil
}

// lowered returns the trace with whatever lowered that the backend does not run.
func lowered(o *options, run runner, trace *dag.Trace, choice collective.Choice) (dag.Source, error) {
	source := dag.FromTrace(trace)
	which := run.lowers(trace)
	if which == nil {
		return source, nil
	}
	some, all := collective.Covers(trace, which)
	switch {
	case !some:
		return source, nil
	case all && o.timeline == "" && !o.alone:
		return collective.LowerSource(source, choice)
	}
	whole, err := collective.LowerSelected(trace, choice, which)
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(whole), nil
}

func loadBatches(p *cli.Program, in *cli.OpenTrace, h *dag.Header, o *options, run runner, ph *phases) (
	*loaded, error) {
	if err := o.checkGroups(h.Comms); err != nil {
		return nil, cli.InFile(in.Name, err)
	}
	reading, compiling, err := compileBatches(run, &timedSource{Source: in.Source}, h, p.Warn, ph)
	if err != nil {
		return nil, cli.InFile(in.Name, err)
	}
	in.DoneReading()
	in.WasRead(h.Ops, h.Ranks, reading+compiling)
	ph.add("decode", reading)
	ph.add("lower", 0)
	ph.add("compile", compiling)
	return &loaded{name: in.Name, title: h.Title, ranks: h.Ranks, ops: h.Ops}, nil
}

// compileBatches compiles the trace while it is read, and returns how long either took; to reading it adds what was done
// since the last phase.
func compileBatches(run runner, source *timedSource, h *dag.Header, warn func(string, ...any), ph *phases) (reading,
	compiling time.Duration, err error) {
	began := time.Now()
	if err := run.compile(source, warn); err != nil {
		return 0, 0, err
	}
	now := time.Now()
	took := now.Sub(began)
	// Each thread reads, then compiles, over and over.
	threads := min(runtime.GOMAXPROCS(0), max(len(h.Batches), 1))
	reading = min(took, time.Duration(source.reading.Load())/time.Duration(threads))
	compiling = took - reading
	reading += began.Sub(ph.last)
	ph.last = now
	return reading, compiling, nil
}

// timedSource measures how long reading takes.
type timedSource struct {
	dag.Source
	observe func(first int, ranks []dag.Rank) error // nil, or called with all that is read
	reading atomic.Int64                            // nanoseconds of all readers
}

// ReadAll reads the whole trace, unobserved.
func (s *timedSource) ReadAll() (*dag.Trace, error) {
	return dag.ReadAll(s.Source)
}

func (s *timedSource) NewReader(columns dag.Columns) dag.Reader {
	if s.observe != nil {
		columns = dag.All
	}
	read := s.Source.NewReader(columns)
	return func(b dag.Batch) ([]dag.Rank, error) {
		start := time.Now()
		ranks, err := read(b)
		s.reading.Add(int64(time.Since(start)))
		if err == nil && s.observe != nil {
			err = s.observe(b.First, ranks)
		}
		return ranks, err
	}
}
