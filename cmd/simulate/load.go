package main

import (
	"errors"
	"fmt"
	"runtime"
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
}

// load reads the trace and has the runner compile it. A trace that can be read batch by batch is compiled on the way, and
// never in memory as a whole, unless there is a timeline, which shows what no replay needs, or something to be lowered.
func load(p *cli.Program, o *options, run runner, name string, choice lower.Choice, ph *phases) (*loaded, error) {
	in, err := p.OpenTrace(name, o.read, cli.ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	ph.done("open")
	if in.Source != nil && o.timeline == "" {
		l, err := loadBatches(in, run, ph)
		if !needsLowering(err) {
			return l, err
		}
	}
	trace, err := in.Read()
	if err != nil {
		return nil, err
	}
	in.DoneReading()
	ph.done("decode")
	before := trace.Ops()
	if trace, err = lower.Collectives(trace, choice); err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	if trace.Ops() != before {
		p.Explain("%s: lowered %d ops to %d", in.Name, before, trace.Ops())
	}
	ph.done("lower")
	if err := run.compile(sim.InMemory(trace)); err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	ph.done("compile")
	l := &loaded{name: in.Name, title: trace.Title, ranks: len(trace.Ranks), ops: trace.Ops()}
	if o.timeline != "" {
		l.trace = trace
	}
	return l, nil
}

// needsLowering reports whether compiling failed on an op that lowering turns into others.
func needsLowering(err error) bool {
	var op *sim.NotCompiledError
	return errors.As(err, &op) && op.Kind == dag.Coll
}

func loadBatches(in *cli.OpenTrace, run runner, ph *phases) (*loaded, error) {
	source := &timedSource{Source: in.Source}
	if err := run.compile(source); err != nil {
		return nil, cli.InFile(in.Name, err)
	}
	in.DoneReading()
	// Each thread reads, then compiles, over and over.
	threads := min(runtime.GOMAXPROCS(0), max(len(source.Batches()), 1))
	ph.doneAfter("decode", time.Duration(source.reading.Load())/time.Duration(threads), "compile")
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
