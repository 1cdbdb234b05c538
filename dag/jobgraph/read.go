package jobgraph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// Read returns the job graphs of a trace by their numbers, as [Trace] stores them; nil if it has none. It returns an
// error for a malformed graph, and for a trace that also has other messages.
func Read(t *dag.Trace) ([]Job, error) {
	jobs := make([]Job, max(1, len(t.Jobs)))
	edges := make([][]numbered, len(jobs))
	var other string // the first send that is no part of a job graph
	graphs := false
	for rank, r := range t.Ranks {
		for i, kind := range r.Kind {
			if kind != dag.Send {
				continue
			}
			attrs := r.Attrs.At(i)
			known, ok := attr.ParseJobEdge(attrs)
			job := r.Job.At(i)
			switch {
			case !ok && (attr.IsControl(attrs) || other != ""):
			case !ok:
				other = fmt.Sprintf("rank %d, op %d: a send that is no edge of a job, expected only edges and control "+
					"messages in a trace of job graphs", rank, i)
			case uint32(job) >= uint32(len(jobs)):
				return nil, fmt.Errorf("rank %d, op %d: job %d, expected 0..%d", rank, i, job, len(jobs)-1)
			default:
				graphs = true
				edges[job] = append(edges[job], readEdge(r, i, int32(rank), known))
			}
		}
	}
	switch {
	case !graphs:
		return nil, nil
	case other != "":
		return nil, fmt.Errorf("%s", other)
	}
	for number := range jobs {
		j := &jobs[number]
		if number < len(t.Jobs) {
			j.Name = t.Jobs[number]
		}
		if err := j.set(edges[number], len(t.Ranks)); err != nil {
			return nil, fmt.Errorf("job %d (%s): %w", number, j.Name, err)
		}
	}
	return jobs, nil
}

// numbered is an edge with its number, and the time at which its first op is released.
type numbered struct {
	Edge
	index   int32
	release dag.Time
}

// readEdge returns the edge that op i of a rank transfers.
func readEdge(r *dag.Rank, i int, rank int32, known attr.JobEdge) numbered {
	n := numbered{
		Edge: Edge{Tail: known.Tail, Head: known.Head, Source: rank, Destination: r.Peer.At(i), Bytes: r.Bytes.At(i),
			Control: attr.IsControl(r.Attrs.At(i))},
		index: known.Index, release: r.Release.At(i),
	}
	for _, off := range r.Deps.Of(i) {
		if calc := i - int(off); uint(calc) < uint(r.Len()) && r.Kind[calc] == dag.Calc {
			n.Run = r.CalcTime(calc)
			n.release = max(n.release, r.Release.At(calc))
		}
	}
	return n
}

// set sets the graph to the edges, in any order.
func (j *Job) set(edges []numbered, ranks int) error {
	slices.SortFunc(edges, func(a, b numbered) int { return cmp.Compare(a.index, b.index) })
	j.Arrival = dag.MaxTime
	for n := range edges {
		e := &edges[n]
		if e.index != int32(n) {
			return fmt.Errorf("edge number %d, expected edges 0..%d, each once", e.index, len(edges)-1)
		}
		if e.Tail == 0 {
			j.Arrival = min(j.Arrival, e.release)
		}
		if highest := max(e.Tail, e.Head); highest < 0 || int(highest) > len(edges) {
			return fmt.Errorf("edge %d from op %d to op %d, expected at most op %d with %d edges", n, e.Tail, e.Head,
				len(edges), len(edges))
		} else if j.Ops <= highest {
			j.Ops = highest + 1
		}
		j.Edges = append(j.Edges, e.Edge)
	}
	return j.Check(ranks)
}
