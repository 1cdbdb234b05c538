// This file runs the points of sweeps and studies for package study.

package simulate

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
	"github.com/tracedag/tracedag/internal/profile"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/study"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// engine runs points of a study. It reads a trace once for all configurations that read it alike.
type engine struct {
	p      *cli.Program
	common *options // of the command line
	kinds  []sim.Kind
	args   []string // traces of the command line
	probe  []string // flags of all points
	memory int64    // limit of each point; 0: that of the program

	generator func(*cli.Program) *cobra.Command // nil: none
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

func newEngine(p *cli.Program, o *options, reg *registries, args []string) *engine {
	return &engine{p: p, common: o, kinds: reg.kinds, generator: reg.generator, args: args,
		shared: make(map[*study.Input]map[string]*shared)}
}

// runStudy runs the study of --study.
func runStudy(p *cli.Program, o *options, reg *registries, args []string) error {
	r := &run{p: p, o: o, kind: &sim.Kind{}} // the points have their backends
	if err := r.checkSweep(); err != nil {
		return err
	}
	return o.study.Run(p, newEngine(p, o, reg, nil), args, o.threads, study.Outputs{
		Tables: o.tableFiles(), Page: o.outputs.AddPoint, Commit: o.outputs.WritePoints,
	})
}

func (e *engine) Table(backend string) param.Set {
	kind, _ := kindOf(e.kinds, backend)
	if kind == nil {
		return nil
	}
	b := kind.New()
	cmd, o := buildCommand(e.p.Part(e.p.Args[:1], 0), e.kinds)
	// Some parameters depend on the network. Points report errors in the flags.
	if cmd.ParseFlags(e.probe) == nil && o.own.Apply(b.Params()) == nil &&
		b.Check(&sim.Env{Context: e.p.Context(), Sweep: true, Read: e.readTrace, Given: o.own.Given}) == nil {
		return b.Params()
	}
	return kind.New().Params()
}

// Numbers returns the parameters of options of all backends.
func (e *engine) Numbers() study.Numbers { return e.numbers("") }

// Probe sets the flags of all points, and the limit of memory of each in bytes; 0: that of the program.
func (e *engine) Probe(args []string, memory int64) { e.probe, e.memory = args, memory }

// Ops returns the number of ops of a trace, if its format has it in the header.
func (e *engine) Ops(in *study.Input) (ops int64, known bool) {
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

func (e *engine) readTrace(name, format string) (*dag.Trace, string, error) {
	return (&run{p: e.p}).readTrace(name, format)
}

// configuration is a checked run of a point's command line.
type configuration struct {
	*run
	e     *engine
	input *study.Input
	args  []string
	trace *loaded // nil before Open, and for synthetic traffic
}

func (e *engine) Configure(args []string, input *study.Input) (study.Config, error) {
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
	cmd, o := buildCommand(p, e.kinds)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, cli.Usagef("%v", err)
	}
	if cmd.Flags().NArg() > 0 {
		return nil, cli.Usagef("expected flags, found %q", cmd.Flags().Arg(0))
	}
	kind, err := kindOf(e.kinds, o.backend)
	if err == nil {
		err = o.checkOwners(kind)
	}
	if err != nil {
		return nil, err
	}
	o.threads, o.json, o.timing, o.grid = e.common.threads, e.common.json, e.common.timing, true
	if c.run, err = newRun(e.p.Context(), p, o, kind); err != nil {
		return nil, err
	}
	warn := func(message string) {
		c.warnings.Add(message)
		if e.warn.Add(message) {
			e.p.Warn("%s", message)
		}
	}
	for _, message := range c.warnings.List() {
		warn(message)
	}
	p.Warned = warn
	c.args = args
	if c.standsAlone() {
		if len(names) > 0 {
			return nil, cli.Usagef("--synthetic needs no trace, found %q", names[0])
		}
		return c, nil
	}
	o.read.CheckedComms = !o.read.Lenient // checkGroups checks them
	if replicator, ok := c.backend.(sim.Replicator); ok {
		o.read.Ranks = replicator.Replicas()
	}
	if input == nil {
		return nil, cli.Usagef("a trace is missing: name one in the study, or set synthetic traffic")
	}
	c.jobs, err = o.jobs.Jobs(p, names)
	return c, err
}

func (c *configuration) Describe(trace *provenance.Trace) (*provenance.Run, error) {
	r, err := c.command.Describe(trace, nil)
	return c.ofProgram(r), err
}

// ofProgram sets the command line of runs of a sweep, which is that of the program.
func (c *configuration) ofProgram(r *provenance.Run) *provenance.Run {
	if r != nil && c.input != nil && c.input.Main {
		r.Command = c.e.p.Provenance(nil).Command
	}
	return r
}

func (c *configuration) Points(base *provenance.Run, points []provenance.Point) ([]*provenance.Run, error) {
	return c.command.Points(base, points, c.env)
}

func (c *configuration) Open(threads int) (study.Session, error) {
	c.o.threads = threads
	c.phases = profile.NewPhases()
	if c.standsAlone() {
		return c, nil
	}
	c.run.shared = c.e.sharedBy(c)
	l, err := c.load()
	if err != nil {
		return nil, err
	}
	c.trace = l
	return c, nil
}

// sharedBy returns the trace that the configuration shares with others, or nil.
func (e *engine) sharedBy(c *configuration) *shared {
	if _, single := c.jobs.Single(); !single || !c.input.Shared() {
		return nil
	}
	reads := fmt.Sprint(c.o.read.Ranks)
	for _, arg := range c.args { // flags of backends do not change what is read
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if len(c.o.own.Owners(name)) == 0 && name != "backend" && name != "collective" {
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
func (s *shared) read(r *run, name string) (*dag.Trace, error) {
	s.once.Do(func() {
		in, err := r.p.OpenTrace(name, r.o.read, cli.ReadOptions{Digest: true})
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
func (r *run) loadShared(name string, pass cli.Pass) (*loaded, error) {
	trace, err := r.shared.read(r, name)
	if err != nil {
		return nil, err
	}
	s := r.shared
	l := &loaded{name: s.name, format: s.format, close: func() {},
		inputs: func() ([]dag.Input, error) { return slices.Clone(s.inputs), nil }}
	return l, r.compileLowered(l, trace, pass)
}

func (e *engine) Release(in *study.Input) {
	e.lock.Lock()
	defer e.lock.Unlock()
	delete(e.shared, in)
}

// Generate runs tracegen in this process.
func (e *engine) Generate(in *study.Input) error {
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

func (e *engine) Seeded(generator string) bool {
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

func (e *engine) Digest(file string) (string, error) {
	in, err := e.p.OpenTrace(file, cli.ReadFlags{}, cli.ReadOptions{Digest: true})
	if err != nil {
		return "", err
	}
	defer in.Close()
	inputs, err := in.Inputs()
	return provenance.DigestOf(inputs), err
}

func (c *configuration) Base() (*provenance.Run, error) {
	if c.standsAlone() {
		return c.Describe(nil)
	}
	base, err := c.described(c.trace)
	if c.ofProgram(base); err == nil {
		base.Warnings = c.warnings.List() // those of the points come in any order
	}
	return base, err
}

func (c *configuration) Run(about *provenance.Run, overrides []param.Setting, o study.RunOptions, w io.Writer) (
	s study.Status, failed, err error) {
	if c.standsAlone() {
		return c.runAlone(about, overrides, o, w)
	}
	ctx := o.Context
	if o.Limits.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Limits.Time, errTimeLimit)
		defer cancel()
	}
	result, failed := measure.Run(c.trace.replay.Clone(), sim.RunOptions{Context: ctx, Settings: overrides,
		Threads: o.Threads}, c.observers(c.trace, nil)...)
	about.AddTo(result, c.o.timing)
	switch {
	case errors.Is(failed, errTimeLimit):
		s, failed = study.Limited, fmt.Errorf("the run takes more than %v, the limit of the study", o.Limits.Time)
	case failed != nil:
		s = study.StatusOf(failed)
	case !result.Complete:
		s = study.Incomplete
	}
	if s == study.Limited {
		f := measure.FailureOf(c.kind.Name, result, failed)
		f.Status = study.LimitStatus
		return s, failed, about.WriteLine(w, f)
	}
	return s, failed, c.writeLine(w, about, result, failed)
}

var errTimeLimit = errors.New("time limit")

// runAlone runs synthetic traffic, one point.
func (c *configuration) runAlone(about *provenance.Run, overrides []param.Setting, o study.RunOptions, w io.Writer) (
	s study.Status, failed, err error) {
	curve, err := c.backend.(sim.Standalone).RunAlone(c.env, sim.RunOptions{Context: o.Context, Settings: overrides,
		Threads: o.Threads})
	if err != nil {
		return study.Failed, err, about.WriteLine(w, measure.FailureOf(c.kind.Name, nil, err))
	}
	points := curve.Points()
	if len(points) != 1 {
		return study.Failed, nil, cli.Usagef("expected one load and one routing per point, found %d: make them axes",
			len(points))
	}
	described := c.command.Curve(about, points)[0]
	described.Index, described.Factors, described.Settings = about.Index, about.Factors, about.Settings
	described.ID, described.Point = about.ID, about.Point
	if points[0].Failed != "" {
		s, failed = study.Failed, errors.New(points[0].Failed)
	}
	return s, failed, described.WriteLine(w, points[0].Value)
}

func (c *configuration) Close() {
	if c.trace != nil {
		c.trace.close()
	}
}
