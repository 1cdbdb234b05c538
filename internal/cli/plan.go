// This file makes one trace of several by a plan, which is a file or the flags. docs/compose.md describes it for users.

package cli

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/conf"
)

// PlanFlags are the flags of a program that composes traces.
type PlanFlags struct {
	file  string
	jobs  []string
	flags *pflag.FlagSet
}

// The flags that are keys of a plan, and of what is done to a trace by itself.
var (
	planFlagNames = []string{"mode", "placement", "nodes", "one-rank-per-node", "share-nic", "share-streams",
		"start-calc"}
	nodeFlagNames = []string{"intra-bw", "unique-nic"} // which --lower has, too, so that they alone ask for no plan
	editFlagNames = []string{"window", "only-ranks", "repeat", "scale-compute"}
)

// Register adds the flags to the command, which must have a flag called seed.
func (f *PlanFlags) Register(cmd *cobra.Command) {
	f.flags = cmd.Flags()
	f.flags.StringVar(&f.file, "plan", "", "make one trace of the jobs that the plan in `FILE` (YAML or JSON) names")
	f.flags.StringArrayVar(&f.jobs, "job", nil,
		"`FILE[@START][,KEY=VALUE...]` of a trace, a job of its own that starts at START, with the keys name, start, count, "+
			"from, nodes, window, only-ranks, repeat and scale-compute; may be repeated")
	f.flags.String("placement", "packed",
		"`law` that places the nodes of the jobs: packed, random, random:SEED, round-robin, strided:K, or file:PATH with "+
			"the nodes of all jobs in order, one on a line")
	f.flags.String("nodes", "", "`number` of nodes to place jobs on (default: as many as are needed)")
	f.flags.String("mode", "multi-job", "multi-job: each job has nodes of its own; multi-tenant: jobs share nodes")
	f.flags.Bool("one-rank-per-node", false,
		"make what runs on a node one rank (default: where no trace has several ranks on a node, or collectives)")
	f.flags.Bool("share-nic", false, "with multi-tenant: jobs share the network interfaces of a node")
	f.flags.Bool("share-streams", false, "with --one-rank-per-node: streams of equal numbers on a node are one")
	f.flags.Bool("start-calc", false,
		"make the start of each job a calc that comes first, for formats and backends without release times")
	f.flags.String("window", "", "keep the ops that start in `FROM..TO`, such as 1ms..2ms, and call FROM 0")
	f.flags.String("only-ranks", "", "keep these `ranks`, such as 0-7,12, and number them from 0")
	f.flags.String("repeat", "", "do the whole trace `N` times, one after the other")
	f.flags.String("scale-compute", "", "multiply the durations of calcs by a `factor` such as 0.5 or 1/3")
}

// changed returns the flags of the given names that were given, as keys of a plan.
func (f *PlanFlags) changed(names []string) (members []conf.Member) {
	for _, name := range names {
		if flag := f.flags.Lookup(name); flag.Changed {
			members = append(members, conf.Member{Key: name, Value: word(flag.Value.String())})
		}
	}
	return members
}

// word returns a value of the command line.
func word(text string) conf.Node {
	return conf.Node{Kind: conf.Word, Text: text}
}

// Edit returns a function that does with a trace what the flags ask for, nil where they ask for nothing.
func (f *PlanFlags) Edit(p *Program) (func(t *dag.Trace, name string) (*dag.Trace, error), error) {
	members := f.changed(editFlagNames)
	if len(members) == 0 {
		return nil, nil
	}
	var e edits
	d := &planDecoder{}
	if err := d.mapping(&conf.Node{Members: members}, d.editKeys(&e)); err != nil {
		return nil, err
	}
	return func(t *dag.Trace, name string) (*dag.Trace, error) { return e.apply(p, t, name) }, nil
}

// Plan is several traces to be made one.
type Plan struct {
	plan
	inputs []dag.Input // the plan's file, if it is one
}

// Plan returns the plan that the flags ask for, nil where they ask for none.
func (f *PlanFlags) Plan(p *Program, args []string) (*Plan, error) {
	global, edit := f.changed(planFlagNames), f.changed(editFlagNames)
	if f.file != "" {
		if len(args)+len(f.jobs)+len(global)+len(edit) > 0 {
			return nil, Usagef("--plan says all: give no inputs, jobs or other flags of theirs beside it")
		}
		return f.readPlan(p)
	}
	if len(f.jobs)+len(global) == 0 {
		return nil, nil
	}
	global = append(global, f.changed(nodeFlagNames)...)
	jobs, err := f.jobNodes(p, args)
	if err != nil {
		return nil, err
	}
	for _, m := range edit {
		switch {
		case m.Key == "scale-compute":
			global = append(global, m)
		case len(jobs) == 1:
			jobs[0].Members = append(jobs[0].Members, m)
		default:
			return nil, Usagef("--%s: say which job's, as in --job FILE,%s=%s", m.Key, m.Key, m.Value.Text)
		}
	}
	global = append(global, conf.Member{Key: "jobs", Value: conf.Node{Kind: conf.List, List: jobs}})
	decoded, err := decodePlan(&conf.Node{Kind: conf.Map, Members: global}, &planDecoder{})
	if err != nil {
		return nil, err
	}
	return f.finish(&Plan{plan: *decoded})
}

// jobNodes returns the jobs that the arguments and flags name.
func (f *PlanFlags) jobNodes(p *Program, args []string) (jobs []conf.Node, err error) {
	if len(args) > 1 {
		return nil, Usagef("%d inputs beside jobs: name them with --job", len(args))
	}
	var names []string
	add := func(file string, members []conf.Member) {
		names = append(names, file)
		members = append(members, conf.Member{Key: "file", Value: word(file)})
		jobs = append(jobs, conf.Node{Kind: conf.Map, Members: members})
	}
	for _, name := range args {
		add(name, nil)
	}
	for _, text := range f.jobs {
		file, members := splitJob(text)
		in, err := parseJobInput("--job", file)
		if err != nil {
			return nil, err
		}
		if in.start != 0 {
			members = append(members, conf.Member{Key: "start", Value: word(in.start.String())})
		}
		add(in.name, members)
	}
	if names, err = p.InputNames(names); err == nil && len(jobs) == 0 {
		add(names[0], nil)
	}
	return jobs, err
}

// splitJob splits FILE[@START][,KEY=VALUE...]. A value may have commas itself.
func splitJob(text string) (file string, members []conf.Member) {
	if _, err := os.Stat(text); err == nil {
		return text, nil
	}
	parts := strings.Split(text, ",")
	file = parts[0]
	for _, part := range parts[1:] {
		key, value, isKey := strings.Cut(part, "=")
		switch {
		case isKey:
			members = append(members, conf.Member{Key: key, Value: word(value)})
		case len(members) > 0:
			members[len(members)-1].Value.Text += "," + part
		default:
			file += "," + part
		}
	}
	return file, members
}

func (f *PlanFlags) readPlan(p *Program) (*Plan, error) {
	in, err := p.Open(f.file, true)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in.Reader, maxPlanSize+1))
	if err != nil {
		return nil, format.FileErrorf(in.Name, "reading: %w", format.Cause(err))
	}
	if len(text) > maxPlanSize {
		return nil, fmt.Errorf("%s: a plan of more than %d bytes", in.Name, maxPlanSize)
	}
	tree, err := parsePlan(text, in.Name)
	if err != nil {
		return nil, err
	}
	decoded, err := decodePlan(&tree, &planDecoder{file: in.Name})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range decoded.jobs {
		names = append(names, decoded.jobs[i].file)
	}
	if f.file == "-" {
		names = append(names, "-")
	}
	if _, err := p.InputNames(names); err != nil {
		return nil, err
	}
	digest, err := in.Digest()
	if err != nil {
		return nil, err
	}
	return f.finish(&Plan{plan: *decoded, inputs: []dag.Input{digest}})
}

// finish gives a plan without a seed that of the flag.
func (f *PlanFlags) finish(p *Plan) (*Plan, error) {
	if p.seed == nil {
		seed, err := f.flags.GetInt64("seed")
		if err != nil {
			return nil, err
		}
		p.seed = &seed
	}
	p.layout.Seed = *p.seed
	return p, nil
}

// Composed is a trace that was made by a plan.
type Composed struct {
	Trace  *dag.Trace
	Name   string // of the inputs, for messages
	Inputs []dag.Input
	Seed   *int64 // nil: nothing random was done

	join  func(*dag.Trace) (*dag.Trace, error) // makes what runs on a node one rank; nil: that is not to be done
	apart bool                                 // jobs share nodes, but ranks are not joined, nor said not to be
}

// Compose makes the trace.
func (pl *Plan) Compose(p *Program, f ReadFlags) (*Composed, error) {
	c := &Composed{Inputs: slices.Clone(pl.inputs)}
	jobs, err := pl.read(p, f, c)
	if err != nil {
		return nil, err
	}
	if pl.placed && pl.layout.Pattern == compose.Shuffled {
		c.Seed = pl.seed
	}
	if c.Trace, err = pl.merge(jobs, c); err != nil {
		return nil, format.InFile(c.Name, err)
	}
	if pl.title != "" {
		c.Trace.Title = pl.title
	}
	return c, nil
}

// read reads the traces and does with each what is to be done with it by itself.
func (pl *Plan) read(p *Program, f ReadFlags, c *Composed) ([]compose.Job, error) {
	type source struct{ file, from string }
	known := make(map[source]*dag.Trace)
	var jobs []compose.Job
	var names, inputs []string
	ranks := 0
	for i := range pl.jobs {
		j := &pl.jobs[i]
		from := source{j.file, j.from}
		t := known[from]
		if t == nil {
			flags := f
			if j.from != "" {
				flags.From = j.from
			}
			read, err := p.readJob(j.file, flags, c)
			if err != nil {
				return nil, err
			}
			t, known[from] = read, read
			inputs = append(inputs, j.file)
		}
		e := j.edits
		if err := e.scaleBy(pl.scale); err != nil {
			return nil, fmt.Errorf("%s: scale-compute: %w", j.file, err)
		}
		t, err := e.apply(p, t, j.file)
		if err != nil {
			return nil, err
		}
		if ranks += j.count * max(1, len(t.Ranks)); ranks > maxPlanRanks {
			return nil, fmt.Errorf("the jobs have more than %d ranks, up to %s", maxPlanRanks, j.file)
		}
		start := j.start
		if pl.startCalc && start > 0 {
			if t, err = compose.Postpone(t, start); err != nil {
				return nil, format.InFile(j.file, fmt.Errorf("start: %w", err))
			}
			start = 0
		}
		for range j.count {
			jobs = append(jobs, compose.Job{Trace: t, Start: start})
			names = append(names, j.jobName())
		}
	}
	for i, unique := range compose.UniqueNames(names) {
		jobs[i].Name = unique
	}
	c.Name = strings.Join(inputs, " + ")
	return jobs, nil
}

// readJob reads a trace, and notes its files.
func (p *Program) readJob(name string, f ReadFlags, c *Composed) (*dag.Trace, error) {
	in, err := p.OpenTrace(name, f, ReadOptions{Digest: true})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t, err := in.Read()
	if err != nil {
		return nil, err
	}
	digests, err := in.Inputs()
	if err != nil {
		return nil, err
	}
	c.Inputs = append(c.Inputs, digests...)
	if c.Seed == nil {
		c.Seed = in.Seed()
	}
	return t, nil
}

// jobName returns the name of a job: the one it is given, or that of its file without the folder.
func (j *planJob) jobName() string {
	switch {
	case j.name != "":
		return j.name
	case j.file == "-":
		return "stdin"
	}
	return filepath.Base(j.file)
}

// scaleBy scales compute by another factor, too.
func (e *edits) scaleBy(factor *big.Rat) error {
	switch {
	case factor == nil:
		return nil
	case e.scale == nil:
		e.scale = factor
		return nil
	}
	e.scale = new(big.Rat).Mul(e.scale, factor)
	return checkFactor(e.scale)
}

// apply does with a trace what is to be done with it by itself.
func (e *edits) apply(p *Program, t *dag.Trace, name string) (*dag.Trace, error) {
	var removed compose.Removed
	var err error
	if e.window != nil {
		if t, removed, err = compose.Window(t, e.window.from, e.window.to); err != nil {
			return nil, format.InFile(name, fmt.Errorf("window: %w", err))
		}
		p.tellRemoved(name, "outside the window", removed)
	}
	if e.only != nil {
		ranks, err := e.onlyOf(len(t.Ranks))
		if err == nil {
			t, removed, err = compose.KeepRanks(t, ranks)
		}
		if err != nil {
			return nil, format.InFile(name, fmt.Errorf("only-ranks: %w", err))
		}
		p.tellRemoved(name, "of other ranks", removed)
	}
	if e.repeat > 1 {
		if t, err = compose.Repeat(t, e.repeat); err != nil {
			return nil, format.InFile(name, fmt.Errorf("repeat: %w", err))
		}
	}
	if e.scale != nil {
		var without int64
		if t, without, err = compose.Scale(t, e.scale.Num().Int64(), e.scale.Denom().Int64()); err != nil {
			return nil, format.InFile(name, fmt.Errorf("scale-compute: %w", err))
		}
		if without > 0 {
			p.Warn("%s: scale-compute: %d calcs have operations but no duration and stay as they are; --lower roofline, by "+
				"itself before, gives them one", name, without)
		}
	}
	return t, nil
}

// onlyOf returns the ranks to keep of n, ascending.
func (e *edits) onlyOf(n int) ([]int32, error) {
	for _, r := range e.only {
		if r.Last >= int64(n) {
			return nil, fmt.Errorf("there is no rank %d, the trace has %d", r.Last, n)
		}
	}
	if e.only.Len() > int64(n) {
		return nil, fmt.Errorf("there are %d ranks to keep, the trace has %d", e.only.Len(), n)
	}
	kept := make([]bool, n)
	for _, r := range e.only {
		for rank := r.First; rank <= r.Last; rank++ {
			kept[rank] = true
		}
	}
	ranks := []int32{}
	for rank, keep := range kept {
		if keep {
			ranks = append(ranks, int32(rank))
		}
	}
	return ranks, nil
}

// tellRemoved tells the user what a filter took out of a trace, ops being those of a kind of their own.
func (p *Program) tellRemoved(name, ops string, r compose.Removed) {
	var parts []string
	for _, part := range []struct {
		n         int64
		one, many string
	}{
		{int64(r.Ranks), "rank", "ranks"}, {r.Ops, "op " + ops, "ops " + ops},
		{r.Messages, "send or receive whose other side went", "sends and receives whose other side went"},
		{r.Collectives, "part in a collective of which others went", "parts in collectives of which others went"},
	} {
		switch part.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+part.one)
		default:
			parts = append(parts, strconv.FormatInt(part.n, 10)+" "+part.many)
		}
	}
	if len(parts) > 0 {
		p.Info("%s: left out: %s", name, strings.Join(parts, ", "))
	}
	if r.Smaller > 0 {
		p.Info("%s: collectives of fewer ranks than before: %d ops", name, r.Smaller)
	}
}

// merge makes one trace of the jobs, on the nodes that the plan says.
func (pl *Plan) merge(jobs []compose.Job, c *Composed) (*dag.Trace, error) {
	if !pl.placed {
		return owned(compose.Merge(jobs))
	}
	layout := pl.layout
	var err error
	if layout.Given, err = pl.given(jobs); err != nil {
		return nil, err
	}
	where, err := layout.Place(jobs)
	if err != nil {
		return nil, err
	}
	perNode := !slices.ContainsFunc(jobs, sharesOrCollects)
	if pl.perNode != nil {
		perNode = *pl.perNode
	}
	if perNode && !repeats(where) {
		return compose.OnNodes(jobs, where)
	}
	t, err := owned(compose.Merge(jobs))
	if err != nil {
		return nil, err
	}
	t.Nodes = where
	if pl.layout.Shared && !pl.shareNIC {
		if t, err = compose.SeparateNICs(t, jobs); err != nil {
			return nil, err
		}
	}
	c.apart = !perNode && pl.perNode == nil && pl.layout.Shared
	if perNode {
		c.join = pl.join
	}
	return t, nil
}

// owned returns a trace of which the metadata can be changed.
func owned(t *dag.Trace, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	out := *t
	return &out, nil
}

// given returns the nodes that are listed for each job, nil where none are.
func (pl *Plan) given(jobs []compose.Job) ([][]int32, error) {
	if pl.nodesPath != "" {
		return pl.readGiven(jobs)
	}
	if pl.lists != nil {
		return pl.lists, nil
	}
	given := make([][]int32, 0, len(jobs))
	for i := range pl.jobs {
		j := &pl.jobs[i]
		var nodes []int32
		if j.nodes != nil {
			if ranks := len(jobs[len(given)].Trace.Ranks); j.nodes.Len() > int64(ranks) {
				return nil, fmt.Errorf("job %s: a list of %d nodes for %d ranks", jobs[len(given)].Name, j.nodes.Len(), ranks)
			}
			nodes = j.nodes.All()
		}
		for range j.count {
			given = append(given, nodes)
		}
	}
	return given, nil
}

// readGiven returns the nodes of each job that the file of all has.
func (pl *Plan) readGiven(jobs []compose.Job) ([][]int32, error) {
	nodes, err := readNodes(pl.nodesPath, pl.layout.Nodes)
	if err != nil {
		return nil, err
	}
	given, all := make([][]int32, len(jobs)), 0
	for i := range jobs {
		first := min(all, len(nodes))
		all += compose.NodesOf(jobs[i].Trace)
		given[i] = nodes[first:min(all, len(nodes))]
	}
	if all != len(nodes) {
		return nil, &format.SyntaxError{File: pl.nodesPath, Line: int64(min(all, len(nodes))) + 1,
			Expected: fmt.Sprintf("%d lines, one for each node of the jobs", all), Found: strconv.Itoa(len(nodes))}
	}
	return given, nil
}

// sharesOrCollects reports whether several ranks of a job share a node, or there are collectives.
func sharesOrCollects(j compose.Job) bool {
	collects := func(r dag.Rank) bool { return slices.Contains(r.Kind, dag.Coll) }
	return repeats(j.Trace.Nodes) || slices.ContainsFunc(j.Trace.Ranks, collects)
}

// repeats reports whether a node is there twice.
func repeats(nodes []int32) bool {
	sorted := slices.Sorted(slices.Values(nodes))
	return len(slices.Compact(sorted)) < len(nodes)
}

// Join makes what runs on a node of the trace, lowered or not, one rank where that is to be done and was not yet.
func (c *Composed) Join(p *Program, s dag.Source) (dag.Source, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	if c.apart && h.Nodes != nil {
		p.Info("%s: the jobs have ranks of their own on the nodes that they share, for there are collectives, or jobs with "+
			"several ranks on a node: one-rank-per-node joins them", c.Name)
	}
	if c.join == nil || h.Nodes == nil {
		return s, nil
	}
	t, err := dag.ReadAll(s)
	if err != nil {
		return nil, err
	}
	if t, err = c.join(t); err != nil {
		return nil, err
	}
	return dag.FromTrace(t), nil
}

// join makes what runs on a node one rank.
func (pl *Plan) join(t *dag.Trace) (*dag.Trace, error) {
	collects := func(r dag.Rank) bool { return slices.Contains(r.Kind, dag.Coll) }
	if slices.ContainsFunc(t.Ranks, collects) {
		return nil, errors.New("there are collectives: lower them, as with --lower collectives, for one rank for each node")
	}
	return nodes.Join(t, nodes.Options{Bandwidth: int64(pl.bandwidth), OwnNICs: pl.uniqueNIC,
		SharedStreams: pl.streams})
}
