package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim"
)

// loaded is what is known of a trace that was compiled.
type loaded struct {
	name  string
	title string
	ranks int
	ops   int64      // as compiled, collectives lowered
	trace *dag.Trace // nil where it is not in memory
	jobs  []cli.Job  // of a trace made of several, or of one that starts later

	source sim.Source // the trace, to be read again for --ops; else nil
	close  func()     // closes it; nil where there is nothing to close
}

// load reads the traces and has the runner compile them. A single one that can be read batch by batch is compiled on
// the way, and never in memory as a whole, unless there is a timeline, which shows what no replay needs, or something
// to be lowered.
func load(p *cli.Program, o *options, run runner, jobs *cli.Jobs, choice lower.Choice, ph *phases) (*loaded, error) {
	name, single := jobs.Single()
	if !single {
		return loadJobs(p, o, run, jobs, choice, ph)
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
	if in.Source != nil && o.timeline == "" {
		kinds, err := in.Source.Kinds()
		if err != nil {
			return nil, cli.InFile(in.Name, err)
		}
		if !run.lowers() || !slices.Contains(kinds, dag.Coll) {
			l, err := loadBatches(in, run, ph)
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
	return compileWhole(p, o, run, in.Name, trace, choice, ph)
}

// loadJobs is load for traces that are placed, or become the jobs of one.
func loadJobs(p *cli.Program, o *options, run runner, jobs *cli.Jobs, choice lower.Choice, ph *phases) (
	*loaded, error) {
	trace, name, parts, err := jobs.Read(p, o.read)
	if err != nil {
		return nil, err
	}
	if trace.Nodes != nil {
		p.Explain("%s: placed on nodes, which makes no difference to the %s backend", name, o.backend)
	}
	ph.done("decode")
	l, err := compileWhole(p, o, run, name, trace, choice, ph)
	if err == nil && (len(parts) > 1 || parts[0].Start > 0) {
		l.jobs = parts
	}
	return l, err
}

// compileWhole lowers and compiles a trace that is in memory.
func compileWhole(p *cli.Program, o *options, run runner, name string, trace *dag.Trace, choice lower.Choice,
	ph *phases) (*loaded, error) {
	before := trace.Ops()
	if run.lowers() {
		var err error
		if trace, err = lower.Collectives(trace, choice); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if trace.Ops() != before {
		p.Explain("%s: lowered %d ops to %d", name, before, trace.Ops())
	}
	ph.done("lower")
	if err := run.compile(sim.InMemory(trace)); err != nil {
		if trace.Ops() != before {
			err = fmt.Errorf("with its collectives lowered, %w", err)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ph.done("compile")
	l := &loaded{name: name, title: trace.Title, ranks: len(trace.Ranks), ops: trace.Ops()}
	if o.timeline != "" {
		l.trace = trace
	}
	if o.ops {
		l.source = sim.InMemory(trace)
	}
	return l, nil
}

func loadBatches(in *cli.OpenTrace, run runner, ph *phases) (*loaded, error) {
	source, began := &timedSource{Source: in.Source}, time.Now()
	if err := run.compile(source); err != nil {
		return nil, cli.InFile(in.Name, err)
	}
	in.DoneReading()
	took := time.Since(began)
	in.WasRead(in.Source.NumOps(), in.Source.NumRanks(), took)
	// Each thread reads, then compiles, over and over.
	threads := min(runtime.GOMAXPROCS(0), max(len(source.Batches()), 1))
	reading := min(took, time.Duration(source.reading.Load())/time.Duration(threads))
	ph.add("decode", reading)
	ph.add("lower", 0)
	ph.add("compile", took-reading)
	ph.last = time.Now()
	return &loaded{name: in.Name, title: in.Source.Meta().Title, ranks: in.Source.NumRanks(), ops: in.Source.NumOps()}, nil
}

// timedSource measures how long reading takes.
type timedSource struct {
	sim.Source
	reading atomic.Int64 // nanoseconds of all readers
}

func (s *timedSource) Reader() func(dag.Batch) ([]dag.Rank, error) {
	read := s.Source.Reader()
	return func(b dag.Batch) ([]dag.Rank, error) {
		start := time.Now()
		ranks, err := read(b)
		s.reading.Add(int64(time.Since(start)))
		return ranks, err
	}
}
