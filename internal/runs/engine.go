// This file runs the points of sweeps and studies for package study.

package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/internal/profile"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/results"
	"github.com/tracedag/tracedag/internal/study"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// Engine runs points of a study. It reads a trace once for all configurations that read it alike.
type Engine struct {
	p      *cli.Program
	common *Options // of the command line
	kinds  []sim.Kind
	args   []string // traces of the command line
	probe  []string // flags of all points
	memory int64    // limit of each point; 0: that of the program

	generator func(*cli.Program) *cobra.Command // nil: none
	parse     func(p *cli.Program, args []string) (*Options, error)
	warn      provenance.Warnings

	lock   sync.Mutex
	shared map[*study.Input]map[string]*shared // traces by the options that read them
}

// shared is a trace that several configurations use.
type shared struct {
	once   sync.Once
	trace  *dag.Trace
	name   string
	format string
	inputs []dag.Input
	err    error
}

// NewEngine returns the engine of points. common are the options of the command line and args its traces; parse returns
// the options of the command line of a point. generator is tracegen; nil: traces cannot be generated.
func NewEngine(p *cli.Program, common *Options, kinds []sim.Kind, generator func(*cli.Program) *cobra.Command,
	args []string, parse func(p *cli.Program, args []string) (*Options, error)) *Engine {
	return &Engine{p: p, common: common, kinds: kinds, generator: generator, args: args, parse: parse,
		shared: make(map[*study.Input]map[string]*shared)}
}

// Table returns the parameters of a backend, nil for an unknown name.
func (e *Engine) Table(backend string) param.Set {
	kind, _ := KindOf(e.kinds, backend)
	if kind == nil {
		return nil
	}
	b := kind.New()
	o, err := e.parse(e.p.Part(e.p.Args[:1], 0), e.probe)
	// Some parameters depend on the network. Points report errors in the flags.
	if err == nil && o.Own.Apply(b.Params()) == nil &&
		b.Check(&sim.Env{Context: e.p.Context(), Sweep: true, Read: reader(e.p), Given: o.Own.Given}) == nil {
		return b.Params()
	}
	return kind.New().Params()
}

// Numbers returns the parameters of options of all backends.
func (e *Engine) Numbers() grid.Numbers { return e.NumbersOf("") }

// Probe sets the flags of all points, and the limit of memory of each in bytes; 0: that of the program.
func (e *Engine) Probe(args []string, memory int64) { e.probe, e.memory = args, memory }

// Ops returns the number of ops of a trace, if its format has it in the header.
func (e *Engine) Ops(in *study.Input) (ops int64, known bool) {
	t, err := e.p.Part(e.p.Args[:1], 0).OpenTrace(in.File, cli.ReadFlags{}, cli.ReadOptions{})
	if err != nil {
		return 0, false
	}
	defer t.Close()
	if t.Source == nil {
		return 0, false
	}
	h, err := t.Source.Header()
	if err != nil {
		return 0, false
	}
	return h.Ops, true
}

// configuration is a checked run of a point's command line.
type configuration struct {
	*Setup
	e     *Engine
	input *study.Input
	args  []string
	trace *Loaded // nil before Open, and for synthetic traffic
}

// Configure returns the checked configuration of a command line.
func (e *Engine) Configure(args []string, input *study.Input) (study.Config, error) {
	c := &configuration{e: e, input: input}
	var names []string
	switch {
	case input == nil:
	case input.Main:
		names = e.args
	default:
		names = []string{input.File}
	}
	line := slices.Concat(e.p.Args[:1], args)
	if input != nil && !input.Main {
		line = append(line, input.Name)
	}
	p := e.p.Part(line, e.memory)
	o, err := e.parse(p, args)
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	if o.Flags.NArg() > 0 {
		return nil, cli.Usagef("expected flags, found %q", o.Flags.Arg(0))
	}
	kind, err := KindOf(e.kinds, o.Backend)
	if err == nil {
		err = o.CheckOwners(kind)
	}
	if err != nil {
		return nil, err
	}
	o.Threads, o.JSON, o.Timing, o.Grid = e.common.Threads, e.common.JSON, e.common.Timing, true
	if c.Setup, err = New(e.p.Context(), p, o, kind); err != nil {
		return nil, err
	}
	warn := func(message string) {
		c.Warnings.Add(message)
		if e.warn.Add(message) {
			e.p.Warn("%s", message)
		}
	}
	for _, message := range c.Warnings.List() {
		warn(message)
	}
	p.Warned = warn
	c.args = args
	if c.StandsAlone() {
		if len(names) > 0 {
			return nil, cli.Usagef("--synthetic needs no trace, found %q", names[0])
		}
		return c, nil
	}
	o.Read.CheckedComms = !o.Read.Lenient // checkGroups checks them
	if replicator, ok := c.Backend.(sim.Replicator); ok {
		o.Read.Ranks = replicator.Replicas()
	}
	if input == nil {
		return nil, cli.Usagef("a trace is missing: name one in the study, or set synthetic traffic")
	}
	c.Jobs, err = o.Jobs.Jobs(p, names)
	return c, err
}

func (c *configuration) Describe(trace *provenance.Trace) (*provenance.Run, error) {
	r, err := c.Command.Describe(trace, nil)
	return c.ofProgram(r), err
}

// ofProgram sets the command line of runs of a sweep, which is that of the program.
func (c *configuration) ofProgram(r *provenance.Run) *provenance.Run {
	if r != nil && c.input != nil && c.input.Main {
		r.Command = c.e.p.CommandLine()
	}
	return r
}

func (c *configuration) Points(base *provenance.Run, points []provenance.Point) ([]*provenance.Run, error) {
	return c.Command.Points(base, points, c.Env)
}

func (c *configuration) Open(threads int) (study.Session, error) {
	c.Options.Threads = threads
	c.Phases = profile.NewPhases()
	if c.StandsAlone() {
		return c, nil
	}
	c.shared = c.e.sharedBy(c)
	l, err := c.Load()
	if err != nil {
		return nil, err
	}
	c.trace = l
	return c, nil
}

// sharedBy returns the trace that the configuration shares with others, or nil.
func (e *Engine) sharedBy(c *configuration) *shared {
	if _, single := c.Jobs.Single(); !single || !c.input.Shared() {
		return nil
	}
	reads := fmt.Sprint(c.Options.Read.Ranks)
	for _, arg := range c.args { // flags of backends do not change what is read
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if len(c.Options.Own.Owners(name)) == 0 && name != "backend" && name != "collective" {
			reads += "\x00" + arg
		}
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.shared[c.input] == nil {
		e.shared[c.input] = make(map[string]*shared)
	}
	if e.shared[c.input][reads] == nil {
		e.shared[c.input][reads] = &shared{}
	}
	return e.shared[c.input][reads]
}

// read reads the trace, the first time.
func (s *shared) read(r *Setup, name string) (*dag.Trace, error) {
	s.once.Do(func() {
		in, err := r.Program.OpenTrace(name, r.Options.Read, cli.ReadOptions{Digest: true})
		if err != nil {
			s.err = err
			return
		}
		defer in.Close()
		s.name, s.format = in.Name, in.Format.Name
		if s.trace, s.err = in.Read(); s.err == nil {
			s.inputs, s.err = in.Inputs()
		}
	})
	return s.trace, s.err
}

// loadShared is load for a trace that others use, too.
func (r *Setup) loadShared(name string, pass cli.Pass) (*Loaded, error) {
	trace, err := r.shared.read(r, name)
	if err != nil {
		return nil, err
	}
	s := r.shared
	l := &Loaded{Name: s.name, Format: s.format, Close: func() {},
		Inputs: func() ([]dag.Input, error) { return slices.Clone(s.inputs), nil }}
	return l, r.compileLowered(l, trace, pass)
}

// Release frees what configurations share of an input.
func (e *Engine) Release(in *study.Input) {
	e.lock.Lock()
	defer e.lock.Unlock()
	delete(e.shared, in)
}

// Generate runs tracegen in this process.
func (e *Engine) Generate(in *study.Input) error {
	if _, err := os.Stat(in.File); err == nil {
		return nil
	}
	if e.generator == nil {
		return errors.New("this program has no generators: name files as traces")
	}
	if err := os.MkdirAll(filepath.Dir(in.File), 0o777); err != nil {
		return err
	}
	out, err := e.p.Create(in.File, false)
	if err != nil {
		return err
	}
	defer out.Close()
	var messages bytes.Buffer
	p := e.p.Part(append([]string{"tracegen"}, in.Command...), 0)
	p.Stdout, p.Stderr = out, &messages
	if p.Run(e.generator) != 0 {
		return fmt.Errorf("trace %s: %s", in.Name, strings.TrimSpace(messages.String()))
	}
	return out.Commit()
}

// Seeded reports whether a generator has a seed.
func (e *Engine) Seeded(generator string) bool {
	if e.generator == nil {
		return false
	}
	for _, cmd := range e.generator(e.p.Part([]string{"tracegen"}, 0)).Commands() {
		if cmd.Name() == generator || cmd.HasAlias(generator) {
			return cmd.Flags().Lookup("seed") != nil
		}
	}
	return false
}

// Digest returns the SHA-256 of a trace in hexadecimal.
func (e *Engine) Digest(file string) (string, error) {
	in, err := e.p.OpenTrace(file, cli.ReadFlags{}, cli.ReadOptions{Digest: true})
	if err != nil {
		return "", err
	}
	defer in.Close()
	inputs, err := in.Inputs()
	return origin.Digest(inputs), err
}

func (c *configuration) Base() (*provenance.Run, error) {
	if c.StandsAlone() {
		return c.Describe(nil)
	}
	base, err := c.Described(c.trace)
	if c.ofProgram(base); err == nil {
		base.Warnings = c.Warnings.List() // those of the points come in any order
	}
	return base, err
}

func (c *configuration) Run(about *provenance.Run, overrides []param.Setting, o study.RunOptions, w io.Writer) (
	s results.Status, failed, err error) {
	if c.StandsAlone() {
		return c.runAlone(about, overrides, o, w)
	}
	var result *sim.Result
	var used sim.Replay
	failed = sim.RunClone(c.trace.Replay, func(replay sim.Replay) (err error) {
		ctx := o.Context
		if o.Limits.Time > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, o.Limits.Time, errTimeLimit)
			defer cancel()
		}
		used = replay
		result, err = measure.Run(replay, sim.RunOptions{Context: ctx, Settings: overrides, Threads: o.Threads},
			c.Observers(c.trace, nil)...)
		return err
	})
	if again, is := used.(sim.Recycler); is {
		defer again.Recycle() // the result is text by then
	}
	about.AddTo(result, c.Options.Timing)
	switch {
	case errors.Is(failed, errTimeLimit):
		s, failed = results.Limited, fmt.Errorf("the run takes more than %v, the limit of the study", o.Limits.Time)
	case failed != nil:
		s = study.StatusOf(failed)
	case !result.Complete:
		s = results.Incomplete
	}
	if s == results.Limited {
		f := measure.FailureOf(c.Kind.Name, result, failed)
		f.Status = results.LimitStatus
		return s, failed, about.WriteLine(w, f)
	}
	return s, failed, c.writeLine(w, about, result, failed)
}

var errTimeLimit = errors.New("time limit")

// runAlone runs synthetic traffic, one point.
func (c *configuration) runAlone(about *provenance.Run, overrides []param.Setting, o study.RunOptions, w io.Writer) (
	s results.Status, failed, err error) {
	curve, err := c.Backend.(sim.Standalone).RunAlone(c.Env, sim.RunOptions{Context: o.Context, Settings: overrides,
		Threads: o.Threads})
	if err != nil {
		return results.Failed, err, about.WriteLine(w, measure.FailureOf(c.Kind.Name, nil, err))
	}
	points := curve.Points()
	if len(points) != 1 {
		return results.Failed, nil, cli.Usagef("expected one load and one routing per point, found %d: make them axes",
			len(points))
	}
	described := c.Command.Curve(about, points)[0]
	described.Index, described.Factors, described.Settings = about.Index, about.Factors, about.Settings
	described.ID, described.Point = about.ID, about.Point
	if points[0].Failed != "" {
		s, failed = results.Failed, errors.New(points[0].Failed)
	}
	return s, failed, described.WriteLine(w, points[0].Value)
}

func (c *configuration) Close() {
	if c.trace != nil {
		c.trace.Close()
	}
}
