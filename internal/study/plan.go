// Package study plans and runs studies: it divides the points of a grid among configurations, which share traces and
// their compiled forms, runs them into a folder of results, and merges that into tables. Its runs have stable
// identities, so a folder can be completed, extended and merged by any number of processes.
// docs/reference/studies.md describes folders and tables.
package study

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/results"
	"github.com/tracedag/tracedag/param"
)

// Engine runs simulations for a study.
type Engine interface {
	// Table returns the parameters of a backend; "" is the default backend. It returns nil for an unknown name.
	Table(backend string) param.Set
	// Configure returns the configuration of a command line without the name of the program. An invalid one is an
	// error. trace is the trace of the command line; nil: none.
	Configure(args []string, trace *Input) (Config, error)
	// Digest returns the SHA-256 of a trace in hexadecimal.
	Digest(file string) (string, error)
	// Generate writes the trace of an input's command line to its file, which appears complete or not at all. If the
	// file is there, it does nothing.
	Generate(in *Input) error
	// Release tells the engine that no further configuration needs an input.
	Release(in *Input)
	// Seeded reports whether a generator has a seed.
	Seeded(generator string) bool
}

// Config is a checked configuration.
type Config interface {
	// Describe describes its runs before the trace is open.
	Describe(trace *provenance.Trace) (*provenance.Run, error)
	// Points describes points that override parameters.
	Points(base *provenance.Run, points []provenance.Point) ([]*provenance.Run, error)
	// Open reads the trace and compiles it for runs with the given number of threads each.
	Open(threads int) (Session, error)
}

// Session is a compiled configuration. Run may be called concurrently.
type Session interface {
	// Base describes its runs, with the trace as read.
	Base() (*provenance.Run, error)
	// Run writes the result as a line of JSON. The error of a run that fails is failed.
	Run(about *provenance.Run, overrides []param.Setting, o RunOptions,
		w io.Writer) (s results.Status, failed, err error)
	Close()
}

// Input is a trace of a study as a file.
type Input struct {
	Name      string   // in results
	File      string   // path
	Main      bool     // it is what the program's own command line names
	SHA256    string   // identity, in hexadecimal
	Command   []string // words of the generator that makes it; nil for a file
	generated bool
	once      sync.Once // generates it
	err       error     // of the generation
	users     atomic.Int32
}

// Shared reports whether several configurations need the input, now or later.
func (in *Input) Shared() bool { return in.users.Load() > 1 }

// Plan is a study with its runs.
type Plan struct {
	Study  *grid.Study
	Runs   []Run // in the order of the grid
	groups []group
	inputs map[string]*Input
}

// Run is a run of a plan.
type Run struct {
	About     *provenance.Run // nil before the runs are described
	Overrides []param.Setting
	varied    []string // factors of Overrides
	factors   map[string]string
	seed      string // "": that of the command line
	named     *int64 // the seed of a run that makes no random choice
	group     int
}

// group is the runs of one configuration.
type group struct {
	args  []string
	input *Input // nil: none
	runs  []int
}

// NewPlan returns the runs of a study. folder is that of generated traces. base are arguments of all runs, and main is
// the trace of runs without a trace of the study; nil: none.
func NewPlan(s *grid.Study, e Engine, base []string, main *Input, folder string) (*Plan, error) {
	points, err := s.Points()
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("the study has no runs: only and exclude omit all points")
	}
	p := &Plan{Study: s, inputs: make(map[string]*Input)}
	planner := planner{plan: p, engine: e, base: base, main: main, folder: folder, groups: make(map[string]int),
		tables: make(map[string]param.Set), omitted: make(map[string]bool), words: make(map[string]string)}
	for i := range points {
		if err := planner.add(&points[i]); err != nil {
			return nil, fmt.Errorf("point %d (%s): %w", i+1, grid.Describe(points[i].Factors), err)
		}
	}
	return p, nil
}

// Abouts returns the descriptions of all runs.
func (p *Plan) Abouts() []*provenance.Run {
	all := make([]*provenance.Run, len(p.Runs))
	for i := range all {
		all[i] = p.Runs[i].About
	}
	return all
}

// planner divides points into groups.
type planner struct {
	plan   *Plan
	engine Engine
	base   []string
	main   *Input
	folder string
	groups map[string]int // by arguments and trace
	tables map[string]param.Set

	omitted map[string]bool   // runs of points with values that do not apply
	words   map[string]string // words of generators, with the digests of files that they name
}

func (p *planner) table(backend string) param.Set {
	if _, known := p.tables[backend]; !known {
		p.tables[backend] = p.engine.Table(backend)
	}
	return p.tables[backend]
}

// add adds a point as a run.
func (p *planner) add(pt *grid.Point) error {
	study := p.plan.Study
	run := Run{factors: make(map[string]string, len(pt.Factors))}
	omitted := false
	for _, f := range pt.Factors {
		switch {
		case f.Name == grid.SeedName:
		case p.foreign(f.Name, pt):
			omitted = true
		default:
			run.factors[f.Name] = f.Text
		}
	}
	if s := grid.Last(pt.Sets, grid.SeedName); s != nil {
		run.seed = s.Text
	}
	table := p.table(backendOf(pt.Sets, p.base))
	args := slices.Clone(p.base)
	var edits []grid.Setting
	done := make(map[string]bool)
	for i, s := range pt.Sets {
		varied := i >= len(study.Set)
		switch {
		case s.Name == grid.TraceName || s.Name == grid.HeldGenerator || p.inGenerator(s.Name):
			continue
		case varied && grid.Last(pt.Sets, s.Name) != &pt.Sets[i] ||
			!varied && grid.Last(pt.Sets[len(study.Set):], s.Name) != nil:
			continue // a later value replaces it
		case s.Name == grid.SeedName && grid.Last(pt.Sets, grid.HeldSimulator) != nil:
			continue
		case s.Name == grid.HeldSimulator:
			s.Name = grid.SeedName
		}
		if s.Absent {
			continue
		}
		if varied {
			if done[s.Name] {
				continue
			}
			done[s.Name] = true
			override, is, err := overrideOf(table, s)
			if err != nil {
				return err
			}
			if is {
				run.Overrides, run.varied = append(run.Overrides, override), append(run.varied, s.Factor)
				continue
			}
		}
		switch flag, key, found := strings.Cut(s.Name, "."); {
		case found && flag == "set":
			args = append(args, "--set="+key+"="+s.Text)
		case found:
			edits = append(edits, s)
		default:
			args = append(args, "--"+s.Name+"="+s.Text)
		}
	}
	for _, s := range edits {
		if err := edit(args, s); err != nil {
			return err
		}
	}
	if p.folder != "" && listsFlows(table) && valueOf(args, "max-flows") == "" {
		args = append(args, fmt.Sprintf("%s%d", flowsFlag, flowsListed(study)))
	}
	run.named, args = withoutSeed(table, args)
	input, err := p.input(pt, run.seed)
	if err != nil {
		return err
	}
	p.place(run, args, input, omitted)
	return nil
}

// withoutSeed removes the seed from the flags of runs that make no random choice: backends without random choices run
// the trace as it is. Their runs differ by name only, so they share a configuration.
func withoutSeed(table param.Set, args []string) (seed *int64, rest []string) {
	if table.Find(grid.SeedName) != nil {
		return nil, args
	}
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		switch {
		case name == grid.SeedName:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, args
			}
			seed = &n
		case name != "backend" && table.Find(name) == nil:
			return nil, args // passes and jobs make random choices, too
		default:
			rest = append(rest, arg)
		}
	}
	return seed, rest
}

// foreign reports whether a name stands in command lines of generators, but not in that of the point's trace.
func (p *planner) foreign(name string, pt *grid.Point) bool {
	if !p.inGenerator(name) {
		return false
	}
	chosen := grid.Last(pt.Sets, grid.TraceName)
	t := p.plan.Study.Trace(chosen.Text)
	return t != nil && !t.Uses(name)
}

// place adds a run to the group of its configuration. A run whose point has a value that does not apply to its trace
// may be there already, from a point with another such value.
func (p *planner) place(run Run, args []string, input *Input, omitted bool) {
	key := strings.Join(args, "\x00")
	if input != nil {
		key += "\x00\x00" + input.File
	}
	at, known := p.groups[key]
	if !known {
		at = len(p.plan.groups)
		p.groups[key] = at
		p.plan.groups = append(p.plan.groups, group{args: args, input: input})
	}
	run.group = at
	if omitted {
		id := fmt.Sprint(at, run.seed, run.factors)
		if p.omitted[id] {
			return
		}
		p.omitted[id] = true
	}
	p.plan.groups[at].runs = append(p.plan.groups[at].runs, len(p.plan.Runs))
	p.plan.Runs = append(p.plan.Runs, run)
}

// backendOf returns the backend of a point, "" for the default one.
func backendOf(sets []grid.Setting, base []string) string {
	if s := grid.Last(sets, "backend"); s != nil && !s.Absent {
		return s.Text
	}
	return valueOf(base, "backend")
}

// valueOf returns the last value of a flag of the form --NAME=VALUE, "" without one.
func valueOf(args []string, name string) string {
	for i := len(args) - 1; i >= 0; i-- {
		if value, is := strings.CutPrefix(args[i], "--"+name+"="); is {
			return value
		}
	}
	return ""
}

// overrideOf returns the parameter of a compiled trace that a setting changes.
func overrideOf(table param.Set, s grid.Setting) (override param.Setting, is bool, err error) {
	name, key := s.Name, false
	if cut, found := strings.CutPrefix(name, "set."); found {
		name, key = cut, true
	}
	p := table.Find(name)
	if p == nil || !p.Sweeps || key && !p.Key {
		return override, false, nil
	}
	value := s.Number
	if value == nil {
		if value, err = p.Value.(param.Number).Parse(s.Text); err != nil {
			return override, false, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return param.Setting{Name: p.Name, Number: new(big.Rat).Set(value)}, true, nil
}

// edit replaces or adds a key of the description in a flag, such as topology=fattree:k=4.
func edit(args []string, s grid.Setting) error {
	flag, key, _ := strings.Cut(s.Name, ".")
	for i := len(args) - 1; i >= 0; i-- {
		given, is := strings.CutPrefix(args[i], "--"+flag+"=")
		if !is {
			continue
		}
		kind, list, _ := strings.Cut(given, ":")
		var parts []string
		for part := range strings.SplitSeq(list, ",") {
			if name, _, _ := strings.Cut(part, "="); part != "" && name != key {
				parts = append(parts, part)
			}
		}
		args[i] = "--" + flag + "=" + kind + ":" + strings.Join(append(parts, key+"="+s.Text), ",")
		return nil
	}
	return fmt.Errorf("%s: expected --%s with a description to change, found none", s.Name, flag)
}

// inGenerator reports whether a name in braces is part of the command line of a generator.
func (p *planner) inGenerator(name string) bool {
	uses := func(t grid.Trace) bool { return t.Uses(name) }
	return slices.ContainsFunc(p.plan.Study.Traces, uses) && name != grid.SeedName
}

// input returns the trace of a point, nil if it has none.
func (p *planner) input(pt *grid.Point, seed string) (*Input, error) {
	chosen := grid.Last(pt.Sets, grid.TraceName)
	if chosen == nil {
		return p.main, nil
	}
	t := p.plan.Study.Trace(chosen.Text)
	if t == nil { // --sweep names files
		t = &grid.Trace{Name: chosen.Text, File: chosen.Text}
	}
	if t.File != "" {
		in := p.plan.inputs[t.File]
		if in == nil {
			in = &Input{Name: t.Name, File: t.File}
			p.plan.inputs[t.File] = in
		}
		return in, nil
	}
	line := slices.Clone(t.Generate)
	for i, word := range line {
		for _, s := range pt.Sets {
			word = strings.ReplaceAll(word, "{"+s.Name+"}", s.Text)
		}
		line[i] = word
	}
	identity := p.hash(line)
	if held := grid.Last(pt.Sets, grid.HeldGenerator); held != nil {
		line = append(line, "--seed", held.Text)
		identity = p.hash(line)
	} else if seed != "" && p.engine.Seeded(line[0]) && !slices.Contains(line, "--seed") {
		line = append(line, "--seed", seed)
	}
	file := p.folder + "/" + p.hash(line)[:16] + ".parquet"
	in := p.plan.inputs[file]
	if in == nil {
		in = &Input{Name: t.Name, File: file, SHA256: identity, Command: line, generated: true}
		p.plan.inputs[file] = in
	}
	return in, nil
}

// hash returns the digest of the command line of a generator. A word that names a file, or has one as the value of a
// flag, counts with the digest of the file.
func (p *planner) hash(line []string) string {
	text := "tracegen"
	for _, word := range line {
		if _, known := p.words[word]; !known {
			value := strings.IndexByte(word, '=') + 1
			p.words[word] = word[:value] + origin.WithDigest(word[value:])
		}
		text += " " + p.words[word]
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Identify computes the digests of the traces, checks all configurations and describes their runs, before any of them
// runs.
func (p *Plan) Identify(e Engine) error {
	for i := range p.groups {
		g := &p.groups[i]
		if err := g.digest(e); err != nil {
			return err
		}
		config, err := e.Configure(g.args, g.input)
		if err != nil {
			return p.failed(g, err)
		}
		trace := &provenance.Trace{}
		if g.input == nil || g.input.Main {
			trace = nil
		} else {
			trace.Name, trace.SHA256 = g.input.Name, g.input.SHA256
		}
		base, err := config.Describe(trace)
		if err == nil {
			err = p.describe(g, config, base)
		}
		if err != nil {
			return p.failed(g, err)
		}
	}
	return p.number()
}

// digest sets the digest of a group's trace.
func (g *group) digest(e Engine) (err error) {
	if g.input != nil && g.input.SHA256 == "" && !g.input.Main {
		g.input.SHA256, err = e.Digest(g.input.File)
	}
	return err
}

// failed adds the first point of a group to an error.
func (p *Plan) failed(g *group, err error) error {
	first := g.runs[0]
	var factors []grid.Setting
	for name, text := range p.Runs[first].factors {
		factors = append(factors, grid.Setting{Name: name, Text: text})
	}
	slices.SortFunc(factors, func(a, b grid.Setting) int { return strings.Compare(a.Name, b.Name) })
	if cli.IsUsage(err) {
		return cli.Usagef("point %d (%s): %v", first+1, grid.Describe(factors), err)
	}
	return fmt.Errorf("point %d (%s): %w", first+1, grid.Describe(factors), err)
}

// describe describes the runs of a group.
func (p *Plan) describe(g *group, config Config, base *provenance.Run) error {
	points := make([]provenance.Point, len(g.runs))
	for i, run := range g.runs {
		r := &p.Runs[run]
		points[i] = provenance.Point{Overrides: r.Overrides, Varied: r.varied, Factors: r.factors, Index: run,
			Seed: r.named}
	}
	described, err := config.Points(base, points)
	if err != nil {
		return err
	}
	for i, run := range g.runs {
		a := described[i]
		p.Runs[run].About = a
		if g.input == nil || !g.input.Main {
			a.Command = g.command(a, &p.Runs[run])
		}
	}
	return nil
}

// command returns a command line that repeats a run.
func (g *group) command(a *provenance.Run, r *Run) []string {
	line := []string{"simulate"}
	for _, arg := range g.args {
		if !strings.HasPrefix(arg, flowsFlag) {
			line = append(line, arg)
		}
	}
	for i, override := range r.Overrides {
		name, text := override.Name, a.Factors[r.varied[i]]
		if override.Name == grid.SeedName {
			text = r.seed
		}
		if _, isKey := a.Settings["set."+name]; isKey {
			line = append(line, "--set="+name+"="+text)
		} else {
			line = append(line, "--"+name+"="+text)
		}
	}
	if r.named != nil {
		line = append(line, "--seed="+strconv.FormatInt(*r.named, 10))
	}
	if g.input != nil {
		line = append(line, g.input.Name)
	}
	return line
}

// number sets the replicas of all runs. Two runs with one identity are an error.
func (p *Plan) number() error {
	replicas, seen := make(map[string]int), make(map[string]int)
	for i := range p.Runs {
		a := p.Runs[i].About
		if other, twice := seen[a.ID]; twice && p.Study.Name != "" {
			return fmt.Errorf("points %d and %d are the same run, %s: expected different options", other+1, i+1, a.ID)
		}
		seen[a.ID] = i
		a.Study, a.Replica = p.Study.Name, replicas[a.Point]
		replicas[a.Point]++
	}
	return nil
}
