package compose

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// Job is a trace that runs together with others.
type Job struct {
	Name  string // for messages
	Trace *dag.Trace
	Start dag.Time // start of the trace in the merged trace; 0 or more
}

// Merge merges the jobs into one trace. The references of each trace must be in range ([dag.Rank.CheckReferences]).
// It changes no trace; the result shares unchanged data with them. A single job that starts at 0 is returned as it
// is; if it starts later, only its times change.
//
// Ranks: the ranks of a job follow those of the previous jobs.
//
// Communicators: communicator 0 is all ranks of all jobs. The communicators of each job follow; the first of each job
// is all ranks of that job. Messages of communicator 0 stay on it: ranks send only to ranks of the same job, so even
// a receive from any source gets no message of another job.
//
// Times: release times increase by the start of the job, and ops without dependencies are released at the start of
// the job or later. Measured times increase by the same amount, so they remain comparable with simulated times.
//
// Nodes: each job has its own nodes, numbered after those of the previous jobs, in the arrangement of its trace.
// [Machine.Place] computes other placements.
//
// Names: Meta.Jobs has the names of the jobs, made unique ([UniqueNames]). A trace that was merged before contributes
// its own jobs: job a of a trace with the name night becomes night/a. If any trace has a title, the merged title
// joins with " + " the title of each trace, or the name of a trace without a title. The provenance is that of all
// traces, one after the other, each once. The attributes of the traces become Attrs {"jobs":[...]}, with one element
// per job of Meta.Jobs in the same order; null for a job without attributes. A trace that was merged before
// contributes the elements of its own jobs or, without such a list, its attributes for each of them. Attributes of
// ops do not change; ranks and communicators in them keep the numbers of the job.
//
// Merge returns an error if the partner, communicator or job of an op does not exist in its own trace, because the
// number could exist in the merged one; for malformed communicators; and for more ranks or later times than a trace
// can have.
//
// Merge ends early, with an error that wraps the context's cause, when ctx ends; nil never ends.
func Merge(ctx context.Context, jobs []Job) (*dag.Trace, error) {
	ranks, err := checkJobs(jobs)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 1 {
		return delayed(ctx, &jobs[0])
	}
	merged, err := merge(ctx, jobs, ranks, nil)
	if err != nil {
		return nil, err
	}
	if merged.Nodes, err = ownNodes(jobs); err != nil {
		return nil, err
	}
	return merged, nil
}

// OnNodes merges the jobs as [Merge] does, but node i becomes rank i. nodes, as [Machine.Place] returns it, is the
// node of each rank, job after job, with at most one rank per node. The trace has one rank more than the highest
// node; ranks of unused nodes are empty. A single job is treated like several. OnNodes ends early, with an error that
// wraps the context's cause, when ctx ends; nil never ends.
func OnNodes(ctx context.Context, jobs []Job, nodes []int32) (*dag.Trace, error) {
	ranks, err := checkJobs(jobs)
	if err != nil {
		return nil, err
	}
	if len(nodes) != ranks {
		return nil, fmt.Errorf("nodes of %d ranks, expected %d", len(nodes), ranks)
	}
	highest, most := int32(-1), int32(min(64*int64(ranks)+1<<16, math.MaxInt32))
	for _, node := range nodes {
		if node < 0 || node >= most {
			return nil, fmt.Errorf("%d ranks, one of them on node %d, expected nodes of 0..%d where each becomes a "+
				"rank", ranks,
				node, most-1)
		}
		highest = max(highest, node)
	}
	taken := make([]bool, highest+1)
	for _, node := range nodes {
		if taken[node] {
			return nil, fmt.Errorf("several ranks are on node %d, expected one", node)
		}
		taken[node] = true
	}
	return merge(ctx, jobs, int(highest)+1, nodes)
}

// merge returns a trace of the given number of ranks. to is the new number of each rank of the jobs, one after the
// other; nil: unchanged.
func merge(ctx context.Context, jobs []Job, ranks int, to []int32) (*dag.Trace, error) {
	if err := memory.CheckRanks(ctx, int64(ranks)); err != nil {
		return nil, err
	}
	merged := &dag.Trace{Comms: []dag.Comm{dag.World(ranks)}, Ranks: dag.NewRanks(ranks)}
	first, seen := 0, make(map[*dag.Provenance]bool)
	for i := range jobs {
		n := numbering{ranks: int32(first)}
		last := first + len(jobs[i].Trace.Ranks)
		if to != nil {
			n.to = to[first:last]
		}
		if err := n.add(ctx, merged, &jobs[i]); err != nil {
			return nil, fmt.Errorf("job %s: %w", jobs[i].Name, err)
		}
		if p := jobs[i].Trace.Provenance; len(p) > 0 && !seen[&p[0]] { // copies of a trace share its provenance
			merged.Provenance = append(merged.Provenance, p...)
			seen[&p[0]] = true
		}
		first = last
	}
	merged.Title, merged.Jobs = mergeTitles(jobs), UniqueNames(merged.Jobs)
	var err error
	if merged.Attrs, err = mergeAttrs(jobs); err != nil {
		return nil, err
	}
	return merged, nil
}

// checkJobs returns the number of ranks of the jobs.
func checkJobs(jobs []Job) (int, error) {
	if len(jobs) == 0 {
		return 0, errors.New("no jobs, expected at least one")
	}
	ranks := int64(0)
	for i := range jobs {
		if jobs[i].Start < 0 {
			return 0, fmt.Errorf("job %s: starts at %v, expected 0s or later", jobs[i].Name, jobs[i].Start)
		}
		ranks += int64(len(jobs[i].Trace.Ranks))
	}
	if ranks > math.MaxInt32 {
		return 0, fmt.Errorf("the jobs have %d ranks, expected at most %d", ranks, math.MaxInt32)
	}
	return int(ranks), nil
}

// delayed returns a trace with its times increased by the start of the job.
func delayed(ctx context.Context, job *Job) (*dag.Trace, error) {
	if job.Start == 0 {
		return job.Trace, nil
	}
	out := *job.Trace
	out.Ranks = dag.CopyRanks(out.Ranks)
	for i, r := range out.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		if r.Len() == 0 {
			continue
		}
		if err := delay(r, job.Start); err != nil {
			return nil, fmt.Errorf("job %s: rank %d: %w", job.Name, i, err)
		}
	}
	return &out, nil
}

// add adds a job to the merged trace: its ranks, its communicators and the lists of its metadata.
func (n *numbering) add(ctx context.Context, merged *dag.Trace, job *Job) error {
	t := job.Trace
	n.comms, n.jobs = int32(len(merged.Comms)), int32(len(merged.Jobs))
	n.ownRanks, n.ownComms, n.ownJobs = int32(len(t.Ranks)), int32(len(t.Comms)), int32(max(1, len(t.Jobs)))
	for i := range t.Comms {
		if err := t.Comms[i].Check(len(t.Ranks)); err != nil {
			return fmt.Errorf("communicator %d: %w", i, err)
		}
		merged.Comms = append(merged.Comms, n.comm(&t.Comms[i]))
	}
	for i := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		if t.Ranks[i].Len() == 0 {
			continue
		}
		r := t.Ranks[i].Keep()
		err := n.renumber(r)
		if err == nil {
			err = delay(r, job.Start)
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
		merged.Ranks[n.rank(int32(i))] = r
	}
	merged.Steps = max(merged.Steps, t.Steps)
	if len(t.Jobs) == 0 {
		merged.Jobs = append(merged.Jobs, job.Name)
	}
	for _, name := range t.Jobs {
		merged.Jobs = append(merged.Jobs, job.Name+"/"+name)
	}
	return nil
}

// ownNodes returns the node of each rank if every job has its own nodes. It returns nil if rank i is on node i.
func ownNodes(jobs []Job) ([]int32, error) {
	placed := slices.ContainsFunc(jobs, func(j Job) bool { return j.Trace.Nodes != nil })
	if !placed {
		return nil, nil
	}
	var nodes []int32
	first := int64(0) // first node of the current job
	for i := range jobs {
		t := jobs[i].Trace
		next := first
		for rank := range t.Ranks {
			node := int64(rank)
			if t.Nodes != nil {
				if len(t.Nodes) != len(t.Ranks) {
					return nil, fmt.Errorf("job %s: nodes of %d ranks, expected %d", jobs[i].Name, len(t.Nodes),
						len(t.Ranks))
				}
				node = int64(t.Nodes[rank])
			}
			if node < 0 || first+node > math.MaxInt32 {
				return nil, fmt.Errorf("job %s: rank %d is on node %d, expected 0..%d", jobs[i].Name, rank, node,
					math.MaxInt32-first)
			}
			nodes = append(nodes, int32(first+node))
			next = max(next, first+node+1)
		}
		first = next
	}
	return nodes, nil
}

// mergeTitles returns the title of a merged trace.
func mergeTitles(jobs []Job) string {
	titles, titled := make([]string, len(jobs)), false
	for i := range jobs {
		titled = titled || jobs[i].Trace.Title != ""
		titles[i] = cmp.Or(jobs[i].Trace.Title, jobs[i].Name)
	}
	if !titled {
		return ""
	}
	return strings.Join(titles, " + ")
}

// mergeAttrs returns the attributes of a merged trace.
func mergeAttrs(jobs []Job) (string, error) {
	var merged attr.Jobs
	known := false
	for i := range jobs {
		attrs, err := attrsOf(jobs[i].Trace)
		if err != nil {
			return "", fmt.Errorf("job %s: %w", jobs[i].Name, err)
		}
		merged = append(merged, attrs...)
		known = known || jobs[i].Trace.Attrs != ""
	}
	if !known {
		return "", nil
	}
	text, err := merged.Append([]byte{'{'})
	return string(text) + "}", err
}

// attrsOf returns the attributes of each job of a trace.
func attrsOf(t *dag.Trace) ([]json.RawMessage, error) {
	jobs := max(1, len(t.Jobs))
	if t.Attrs == "" {
		return make([]json.RawMessage, jobs), nil
	}
	if !json.Valid([]byte(t.Attrs)) {
		return nil, errors.New("the attributes of the trace are not JSON")
	}
	if merged, ok := attr.ParseJobs(t.Attrs); ok && len(t.Jobs) > 0 && len(merged) == jobs {
		return merged, nil
	}
	return slices.Repeat([]json.RawMessage{json.RawMessage(t.Attrs)}, jobs), nil
}

// UniqueNames returns the names with #2, #3, ... appended to repeated ones: the first number that gives an unused
// name.
func UniqueNames(names []string) []string {
	taken := make(map[string]bool, len(names))
	next := make(map[string]int) // by given name: the next number to try
	unique := make([]string, 0, len(names))
	for _, name := range names {
		free := name
		for k := max(2, next[name]); taken[free]; k++ {
			free = name + "#" + strconv.Itoa(k)
			next[name] = k + 1
		}
		taken[free] = true
		unique = append(unique, free)
	}
	return unique
}
