package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/internal/conf"
)

// Env is the part of [Build] that its caller provides.
type Env struct {
	// Open reads the trace in a file of a plan; the format may be "", for any.
	Open func(file, format string) (*Opened, error)
	// Lower lowers the merged trace; nil: it stays as it is.
	Lower func(dag.Source) (dag.Source, error)
	// Context ends Build early, except for Open and Lower. nil: never.
	Context context.Context
	Notes
}

// Opened is a trace that was read.
type Opened struct {
	Trace  *dag.Trace
	Name   string      // of the input, for messages
	Inputs []dag.Input // its files, for the provenance
	Seed   *int64      // if the trace was generated; else nil
}

// Built is a trace that was made by a plan.
type Built struct {
	Merged *dag.Trace  // before it was lowered
	Source dag.Source  // lowered, and with the ranks of a node joined
	Parts  []Part      // the jobs of the plan; nil if the ranks of a node may have become one
	Names  []string    // of the inputs for messages, one for each job without its copies
	Inputs []dag.Input // for the provenance
	Seed   *int64      // for the provenance; nil if nothing was random
}

// Part is a job of a merged trace whose ranks follow those of the jobs before.
type Part struct {
	Name             string
	FirstRank, Ranks int
	Start            dag.Time
}

// Build makes the trace of a plan: it reads the traces, edits, places and merges them, lowers the result, and makes the
// ranks of a node one if the plan asks for it. Errors of Env are returned as they are; others begin with the name of a
// file or that of the plan ([Plan.Name]).
func Build(p *Plan, env Env) (*Built, error) {
	b := &builder{Plan: p, env: env, built: &Built{}}
	if err := b.read(); err != nil {
		return nil, err
	}
	if p.Placed {
		b.setSeeds()
	}
	merged, err := b.merge()
	if err != nil {
		return nil, inFile(p.Name(), err)
	}
	if p.Title != "" {
		merged.Title = p.Title
	}
	b.built.Merged = merged
	source := dag.FromTrace(merged)
	if env.Context != nil {
		source = dag.WithContext(env.Context, source)
	}
	if env.Lower != nil {
		if source, err = env.Lower(source); err != nil {
			return nil, err
		}
	}
	if b.built.Source, err = b.join(source); err != nil {
		return nil, inFile(p.Name(), err)
	}
	return b.built, nil
}

// builder makes the trace of a plan.
type builder struct {
	*Plan
	env   Env
	built *Built
	jobs  []Job // copies included
	by    []Placement
	joins bool // the ranks of a node become one after lowering
	apart bool // jobs share nodes, but their ranks stay apart without the plan asking for it
}

// read reads and edits the traces. A file is read once.
func (b *builder) read() error {
	type input struct{ file, from string }
	known := make(map[input]*Opened)
	var names []string
	ranks := 0
	copies := slices.ContainsFunc(b.Jobs, func(j PlanJob) bool { return j.Count > 1 })
	for i := range b.Jobs {
		j := &b.Jobs[i]
		opened := known[input{j.File, j.From}]
		if opened == nil {
			var err error
			if opened, err = b.env.Open(j.File, j.From); err != nil {
				return err
			}
			known[input{j.File, j.From}] = opened
			b.built.Inputs = append(b.built.Inputs, opened.Inputs...)
			if b.built.Seed == nil {
				b.built.Seed = opened.Seed
			}
		}
		b.built.Names = append(b.built.Names, opened.Name)
		t, err := b.edit(j, opened.Trace)
		if err != nil {
			return err
		}
		if ranks += j.Count * max(1, len(t.Ranks)); copies && ranks > maxPlanRanks {
			return fmt.Errorf("the jobs have more than %d ranks, up to %s", maxPlanRanks, j.File)
		}
		start := j.Start
		if b.StartCalc && start > 0 {
			if t, err = Postpone(b.env.Context, t, start); err != nil {
				return inFile(j.File, fmt.Errorf("start: %w", err))
			}
			start = 0
		}
		for range j.Count {
			b.jobs = append(b.jobs, Job{Trace: t, Start: start})
			names = append(names, j.jobName())
		}
	}
	for i, unique := range UniqueNames(names) {
		b.jobs[i].Name = unique
	}
	return nil
}

// edit makes the changes to a trace by itself.
func (b *builder) edit(j *PlanJob, t *dag.Trace) (*dag.Trace, error) {
	e := j.Edits
	if err := e.scaleBy(b.Scale); err != nil {
		return nil, inFile(j.File, fmt.Errorf("scale-compute: %w", err))
	}
	return e.Apply(b.env.Context, t, j.File, b.env.Notes)
}

// setSeeds gives random placements without a seed that of the plan, and notes the seed for the provenance.
func (b *builder) setSeeds() {
	seed := int64(1)
	if b.Seed != nil {
		seed = *b.Seed
	}
	set := func(p *Placement) *Placement {
		if p == nil || p.Policy != Random {
			return p
		}
		seeded := *p
		if !p.Seeded {
			seeded.Seed = seed
		}
		b.built.Seed = &seeded.Seed
		return &seeded
	}
	common := set(&b.Placement)
	for i := range b.Jobs {
		j := &b.Jobs[i]
		own := set(j.Placement)
		switch {
		case j.Nodes != nil:
			own = &Placement{Policy: Given}
		case own == nil:
			own = common
		}
		b.by = append(b.by, slices.Repeat([]Placement{*own}, j.Count)...)
	}
}

// merge makes one trace of the jobs, on the nodes of the plan.
func (b *builder) merge() (*dag.Trace, error) {
	if !b.Placed {
		return b.sideBySide()
	}
	if err := b.lists(); err != nil {
		return nil, err
	}
	where, err := b.Machine.Place(b.jobs, b.by)
	if err != nil {
		return nil, err
	}
	perNode := !slices.ContainsFunc(b.jobs, sharesOrCollects)
	if b.PerNode != nil {
		perNode = *b.PerNode
	}
	if perNode && !repeats(where) {
		return OnNodes(b.env.Context, b.jobs, where)
	}
	t, err := b.sideBySide()
	if err != nil {
		return nil, err
	}
	t.Nodes = where
	if b.Machine.Shared && !b.ShareNIC {
		if t, err = SeparateNICs(b.env.Context, t, b.jobs); err != nil {
			return nil, err
		}
	}
	b.apart = !perNode && b.PerNode == nil && b.Machine.Shared
	if b.joins = perNode; b.joins {
		b.built.Parts = nil
	}
	return t, nil
}

// sideBySide merges the jobs and returns a trace whose metadata may be changed.
func (b *builder) sideBySide() (*dag.Trace, error) {
	t, err := Merge(b.env.Context, b.jobs)
	if err != nil {
		return nil, err
	}
	first := 0
	for i := range b.jobs {
		n := len(b.jobs[i].Trace.Ranks)
		b.built.Parts = append(b.built.Parts, Part{b.jobs[i].Name, first, n, b.jobs[i].Start})
		first += n
	}
	out := *t
	return &out, nil
}

// lists gives jobs the nodes that the plan lists.
func (b *builder) lists() error {
	switch {
	case b.Lists != nil:
		if len(b.Lists) != len(b.jobs) {
			return fmt.Errorf("lists of nodes for %d jobs, expected %d", len(b.Lists), len(b.jobs))
		}
		for i := range b.by {
			b.by[i] = Placement{Policy: Given, Nodes: b.Lists[i]}
		}
		return nil
	case b.Placement.Policy == Given:
		return b.listAll()
	}
	i := 0
	for k := range b.Jobs {
		j, by := &b.Jobs[k], b.by[i]
		if j.Nodes != nil {
			if ranks := len(b.jobs[i].Trace.Ranks); j.Nodes.Len() > int64(ranks) {
				return fmt.Errorf("job %s: a list of %d nodes for %d ranks", b.jobs[i].Name, j.Nodes.Len(), ranks)
			}
			by.Nodes = j.Nodes.All()
		} else if err := by.Load(b.Machine.Nodes); err != nil {
			return err
		}
		for range j.Count {
			b.by[i] = by
			i++
		}
	}
	return nil
}

// listAll gives the jobs the nodes of the plan's placement, in order.
func (b *builder) listAll() error {
	p := b.Placement
	if err := p.Load(b.Machine.Nodes); err != nil {
		return err
	}
	all := 0
	for i := range b.jobs {
		first := min(all, len(p.Nodes))
		if b.Machine.Slots > 0 {
			all += len(b.jobs[i].Trace.Ranks)
		} else {
			all += NodesOf(b.jobs[i].Trace)
		}
		b.by[i] = Placement{Policy: Given, Nodes: p.Nodes[first:min(all, len(p.Nodes))]}
	}
	if all == len(p.Nodes) {
		return nil
	}
	if p.File == "" {
		return fmt.Errorf("a list of %d nodes for all jobs, expected %d", len(p.Nodes), all)
	}
	return &conf.Error{File: p.File, Line: int64(min(all, len(p.Nodes))) + 1,
		Expected: fmt.Sprintf("%d lines, one for each node of the jobs", all), Found: strconv.Itoa(len(p.Nodes))}
}

// sharesOrCollects reports whether several ranks of a job share a node, or there are collectives.
func sharesOrCollects(j Job) bool {
	return repeats(j.Trace.Nodes) || slices.ContainsFunc(j.Trace.Ranks, collects)
}

func collects(r dag.Rank) bool {
	return slices.Contains(r.Kind, dag.Coll)
}

// repeats reports whether the list has a node twice.
func repeats(nodes []int32) bool {
	sorted := slices.Sorted(slices.Values(nodes))
	return len(slices.Compact(sorted)) < len(nodes)
}

// join makes the ranks of a node one, if that is left to do.
func (b *builder) join(s dag.Source) (dag.Source, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	if b.apart && h.Nodes != nil {
		b.env.info("%s: the jobs have ranks of their own on the nodes that they share, for there are collectives, "+
			"or jobs with several ranks on a node: one-rank-per-node joins them", b.Name())
	}
	if !b.joins || h.Nodes == nil {
		return s, nil
	}
	t, err := dag.ReadAll(s)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(t.Ranks, collects) {
		return nil, errors.New("there are collectives: lower them, as with --lower collectives, " +
			"for one rank for each node")
	}
	t, err = nodes.Join(b.env.Context, t,
		nodes.Options{Bandwidth: b.Bandwidth, OwnNICs: b.UniqueNIC, SharedStreams: b.SharedStreams})
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(t), nil
}
