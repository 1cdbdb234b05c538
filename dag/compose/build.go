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
	"github.com/tracedag/tracedag/memory"
)

// Env is the access of [Build] to its caller.
type Env struct {
	// Open reads the trace in a file of a plan. An empty format means any format.
	Open func(file, format string) (*Opened, error)
	// Lower lowers the merged trace; nil: no lowering.
	Lower func(dag.Source) (dag.Source, error)
	// Context ends Build early, except during Open and Lower; nil: never.
	Context context.Context
	Notes
}

// Opened is a trace that Open has read.
type Opened struct {
	Trace  *dag.Trace
	Name   string      // name of the input, for messages
	Inputs []dag.Input // files of the trace, for the provenance
	Seed   *int64      // seed of a generated trace; otherwise nil
}

// Built is the trace of a plan.
type Built struct {
	Merged *dag.Trace  // before lowering
	Source dag.Source  // lowered, with the ranks of each node joined
	Parts  []Part      // jobs of the plan; nil if the ranks of a node may have been joined
	Names  []string    // names of the inputs for messages, one per job without its copies
	Inputs []dag.Input // for the provenance
	Seed   *int64      // for the provenance; nil if nothing was random
}

// Part is a job of a merged trace. Its ranks follow those of the previous jobs.
type Part struct {
	Name             string
	FirstRank, Ranks int
	Start            dag.Time
}

// Build makes the trace of a plan: it reads, edits, places and merges the traces of the jobs, lowers the result, and
// joins the ranks of each node if the plan requires it. Errors of Env are returned unchanged; others begin with the
// name of a file or of the plan ([Plan.Name]).
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
	if p.StartCalc {
		if merged, err = withClocks(env.Context, merged); err != nil {
			return nil, inFile(p.Name(), err)
		}
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
	jobs  []Job // including copies
	by    []Placement
	joins bool // join the ranks of each node after lowering
	apart bool // jobs share nodes and their ranks stay separate, without a request of the plan
}

// read reads and edits the traces. It reads each file once.
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
			return fmt.Errorf("the jobs up to %s have more than %d ranks", j.File, maxPlanRanks)
		}
		for range j.Count {
			b.jobs = append(b.jobs, Job{Trace: t, Start: j.Start})
			names = append(names, j.jobName())
		}
	}
	for i, unique := range UniqueNames(names) {
		b.jobs[i].Name = unique
	}
	return nil
}

// edit applies the edits of a job to its trace.
func (b *builder) edit(j *PlanJob, t *dag.Trace) (*dag.Trace, error) {
	e := j.Edits
	if err := e.scaleBy(b.Scale); err != nil {
		return nil, inFile(j.File, fmt.Errorf("scale-compute: %w", err))
	}
	return e.Apply(b.env.Context, t, j.File, b.env.Notes)
}

// setSeeds sets the seed of random placements without one to that of the plan, and stores the seed for the
// provenance.
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

// merge merges the jobs, on the nodes of the plan.
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
	switch {
	case b.PerNode != nil:
		perNode = *b.PerNode
	case !perNode && b.NoNodes && b.Machine.Shared:
		perNode = true
		b.env.info("%s: the ranks of each node are joined, because the output format has no nodes, on which jobs "+
			"could share NICs", b.Name())
	}
	if perNode && !repeats(where) {
		return OnNodes(b.env.Context, b.jobs, where)
	}
	t, err := b.sideBySide()
	if err != nil {
		return nil, err
	}
	t.Nodes = where
	if b.Machine.Shared && b.OwnNICs {
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

// sideBySide merges the jobs. The caller may change the metadata of the result.
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

// lists places jobs on the nodes that the plan lists.
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

// listAll places the jobs, in order, on the nodes of the plan's placement.
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

// sharesOrCollects reports whether several ranks of a job share a node, or the job has collectives.
func sharesOrCollects(j Job) bool {
	return repeats(j.Trace.Nodes) || slices.ContainsFunc(j.Trace.Ranks, collects)
}

func collects(r *dag.Rank) bool {
	return slices.Contains(r.Kind, dag.Coll)
}

// repeats reports whether the list contains a node twice.
func repeats(nodes []int32) bool {
	sorted := slices.Sorted(slices.Values(nodes))
	return len(slices.Compact(sorted)) < len(nodes)
}

// join joins the ranks of each node, unless an earlier step did.
func (b *builder) join(s dag.Source) (dag.Source, error) {
	h, err := s.Header()
	if err != nil {
		return nil, err
	}
	if b.apart && h.Nodes != nil {
		b.env.info("%s: jobs keep separate ranks on shared nodes, because the trace has collectives or jobs with "+
			"several ranks per node: set one-rank-per-node to join them", b.Name())
	}
	if !b.joins || h.Nodes == nil {
		return s, nil
	}
	t, err := memory.ReadTrace(b.env.Context, s)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(t.Ranks, collects) {
		return nil, errors.New("the trace has collectives, which cannot be joined to one rank per node: " +
			"add --lower collectives")
	}
	t, err = nodes.Join(b.env.Context, t,
		nodes.Options{Bandwidth: b.Bandwidth, OwnNICs: b.UniqueNIC, SharedStreams: b.SharedStreams})
	if err != nil {
		return nil, err
	}
	return dag.FromTrace(t), nil
}
