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
	c := NewCollector(len(t.Ranks))
	for rank, r := range t.Ranks {
		c.Add(rank, r)
	}
	if !c.any() {
		return nil, nil
	}
	for rank := range c.ranks {
		if op := c.ranks[rank].other; op >= 0 {
			return nil, fmt.Errorf("rank %d, op %d: a send that is no edge of a job, expected only edges and control "+
				"messages in a trace of job graphs", rank, op)
		}
	}
	graphs, err := c.Graphs(t.Jobs)
	if err != nil {
		return nil, err
	}
	return graphs.Jobs, nil
}

// Graphs are the job graphs of a trace by their numbers.
type Graphs struct {
	Jobs  []Job
	Sends [][]int32 // by job and edge: the op of the edge's send on rank Edge.Source
}

// Collector collects the job graphs of a trace from its ranks.
type Collector struct {
	ranks []found
}

// found are the edges on a rank.
type found struct {
	edges []numbered
	other int // first send that is neither an edge nor a control message; -1: none
}

// NewCollector returns a collector for a trace with the given number of ranks.
func NewCollector(ranks int) *Collector {
	return &Collector{make([]found, ranks)}
}

// Add collects the edges on a rank. Calls for different ranks may be concurrent; of several for one rank, the last
// counts.
func (c *Collector) Add(rank int, r *dag.Rank) {
	f := found{other: -1}
	for i, kind := range r.Kind {
		if kind != dag.Send {
			continue
		}
		attrs := r.Attrs.At(i)
		if known, ok := attr.ParseJobEdge(attrs); ok {
			f.edges = append(f.edges, readEdge(r, i, int32(rank), known))
		} else if f.other < 0 && !attr.IsControl(attrs) {
			f.other = i
		}
	}
	c.ranks[rank] = f
}

// any reports whether there is an edge.
func (c *Collector) any() bool {
	return slices.ContainsFunc(c.ranks, func(f found) bool { return len(f.edges) > 0 })
}

// Graphs returns the job graphs, nil if there are none. Sends that are no edges do not count. names are those of the
// jobs of the trace. It returns an error for a malformed graph.
func (c *Collector) Graphs(names []string) (*Graphs, error) {
	if !c.any() {
		return nil, nil
	}
	g := &Graphs{Jobs: make([]Job, max(1, len(names)))}
	edges := make([][]numbered, len(g.Jobs))
	for rank := range c.ranks {
		for _, e := range c.ranks[rank].edges {
			if uint32(e.job) >= uint32(len(edges)) {
				return nil, fmt.Errorf("rank %d, op %d: job %d, expected 0..%d", rank, e.send, e.job, len(edges)-1)
			}
			edges[e.job] = append(edges[e.job], e)
		}
	}
	for number := range g.Jobs {
		j := &g.Jobs[number]
		if number < len(names) {
			j.Name = names[number]
		}
		if err := j.set(edges[number], len(c.ranks)); err != nil {
			return nil, fmt.Errorf("job %d (%s): %w", number, j.Name, err)
		}
		sends := make([]int32, len(edges[number])) // set sorted the edges
		for n := range sends {
			sends[n] = edges[number][n].send
		}
		g.Sends = append(g.Sends, sends)
	}
	return g, nil
}

// numbered is an edge with its job, its number in it, its send, and the time at which its first op is released.
type numbered struct {
	Edge
	job     int32
	index   int32
	send    int32
	release dag.Time
}

// readEdge returns the edge that op i of a rank transfers.
func readEdge(r *dag.Rank, i int, rank int32, known attr.JobEdge) numbered {
	n := numbered{
		Edge: Edge{Tail: known.Tail, Head: known.Head, Source: rank, Destination: r.Peer.At(i), Bytes: r.Bytes.At(i),
			Control: attr.IsControl(r.Attrs.At(i))},
		job: r.Job.At(i), index: known.Index, send: int32(i), release: r.Release.At(i),
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
