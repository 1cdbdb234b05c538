// Package jobgraph stores job graphs in traces and reads them.
//
// A job is a directed acyclic graph of ops, which arrives at a time. Op 0 is its source, before all others, and the
// last
// op its sink, behind all others. An edge is a dependency between two ops with a machine at either end, one per rank:
// data, a flow from one machine to the other, or control, which only orders the ops. When all edges into an op have
// ended, the op runs, once for each of its outgoing edges, on the machine where the edge begins. The edge begins when
// the
// run ends; edges of the source begin when the job arrives. Data edges end when the flow has, control edges as soon as
// they begin. A job has ended when all its edges have. The model is the job-centric mode of TrafPy: C. W. F. Parsonson
// et al., "Traffic generation for benchmarking data centre networks", Optical Switching and Networking, 2022.
//
// In a trace, job j has number j in the column job, and its name in the metadata. Edge n of a job is
//
//   - a calc on the machine where the edge begins, the run of the op; edges of the source with no run have none;
//   - a send on that machine, which depends on the calc, with the member "edge" of its attributes ([attr.JobEdge]: the
//     number n, and the ops that the edge leaves and enters); that of a control edge has 0 bytes and the class
//
// "control";
//   - a receive on the machine where the edge ends.
//
// The first op of each edge of the source is released when the job arrives. Calcs have a stream of their own, so that
// none delays another. A calc depends on the receives of the edges into its op that end on its machine. Those that end
// on other machines need messages: for [Messages], each of these machines sends 0 bytes of class "control", without the
// member "edge", when all the edges that end there have; the calc depends on their receives. For [Attributes] there are
// none: the order of ops on different machines is in the member "edge" alone, which only backends heed that read job
// graphs, and the calc is released when its job arrives. Messages have unique tags: the edges count from 0, job by job,
// the other messages follow.
package jobgraph

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/par"
)

// Job is a job graph.
type Job struct {
	Name    string
	Arrival dag.Time
	Ops     int32  // number of ops, 2 or more, with the source (0) and the sink (Ops-1)
	Edges   []Edge // in the job's own order; at least one into each op but the source, and out of each but the sink
}

// Edge is an edge of a job graph.
type Edge struct {
	Tail, Head          int32 // ops that it leaves and enters
	Source, Destination int32 // machines at its ends, numbers of ranks; they may be equal
	Bytes               int64 // of the flow; 0 for control edges
	Control             bool
	Run                 dag.Time // run time of op Tail before the edge, on machine Source
}

// Check returns an error unless the graph is well-formed and its machines are below ranks.
func (j *Job) Check(ranks int) error {
	_, err := j.order(ranks)
	return err
}

// order checks the graph and returns its ops in an order in which edges point forward.
func (j *Job) order(ranks int) ([]int32, error) {
	if j.Arrival < 0 || j.Ops < 2 || int64(j.Ops) > int64(len(j.Edges))+1 {
		return nil, fmt.Errorf("%d ops, %d edges and an arrival at %v, expected 2 or more ops, each with an edge, and "+
			"an arrival at 0 or later", j.Ops, len(j.Edges), j.Arrival)
	}
	into := make([]int32, j.Ops) // edges from ops that are not yet in the order
	for n := range j.Edges {
		e := &j.Edges[n]
		switch {
		case uint32(e.Tail) >= uint32(j.Ops) || uint32(e.Head) >= uint32(j.Ops):
			return nil, fmt.Errorf("edge %d from op %d to op %d, expected ops 0..%d", n, e.Tail, e.Head, j.Ops-1)
		case uint64(e.Source) >= uint64(ranks) || uint64(e.Destination) >= uint64(ranks):
			return nil, fmt.Errorf("edge %d from machine %d to machine %d, expected machines 0..%d", n, e.Source,
				e.Destination, ranks-1)
		case e.Bytes < 0 || e.Run < 0 || e.Control && e.Bytes > 0:
			return nil, fmt.Errorf("edge %d of %d bytes after a run of %v, expected 0 or more, and 0 bytes of a "+
				"control edge", n, e.Bytes, e.Run)
		}
		into[e.Head]++
	}
	out := j.out()
	order := []int32{}
	for op := range j.Ops {
		switch {
		case (into[op] == 0) != (op == 0):
			return nil, fmt.Errorf("%d edges into op %d, expected edges into every op but the source, op 0", into[op],
				op)
		case (len(out.of(op)) == 0) != (op == j.Ops-1):
			return nil, fmt.Errorf("%d edges out of op %d, expected edges out of every op but the sink, op %d",
				len(out.of(op)), op, j.Ops-1)
		case op == 0:
			order = append(order, op)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, n := range out.of(order[k]) {
			head := j.Edges[n].Head
			if into[head]--; into[head] == 0 {
				order = append(order, head)
			}
		}
	}
	if len(order) < int(j.Ops) {
		op := slices.IndexFunc(into, func(n int32) bool { return n > 0 })
		return nil, fmt.Errorf("a cycle of ops, which contains or precedes op %d", op)
	}
	return order, nil
}

// lists are the edges of each op: those of op are edges[first[op]:first[op+1]].
type lists struct{ first, edges []int32 }

func (l *lists) of(op int32) []int32 { return l.edges[l.first[op]:l.first[op+1]] }

// In returns for each op the numbers of the edges that enter it. The job must be well-formed.
func (j *Job) In() func(op int32) []int32 {
	l := j.lists(func(e *Edge) int32 { return e.Head })
	return l.of
}

// Out returns for each op the numbers of the edges that leave it. The job must be well-formed.
func (j *Job) Out() func(op int32) []int32 {
	l := j.out()
	return l.of
}

func (j *Job) out() *lists {
	return j.lists(func(e *Edge) int32 { return e.Tail })
}

func (j *Job) lists(op func(e *Edge) int32) *lists {
	l := &lists{first: make([]int32, j.Ops+1), edges: make([]int32, len(j.Edges))}
	for n := range j.Edges {
		l.first[op(&j.Edges[n])+1]++
	}
	for i := range j.Ops {
		l.first[i+1] += l.first[i]
	}
	next := slices.Clone(l.first)
	for n := range j.Edges {
		at := &next[op(&j.Edges[n])]
		l.edges[*at] = int32(n)
		*at++
	}
	return l
}

// Control selects how a trace has the order of ops on different machines.
type Control uint8

// The choices, see the package.
const (
	Messages   Control = iota // in messages of 0 bytes
	Attributes                // in attributes only
)

// maxStreams is the number of streams of the calcs of a rank. Later calcs use the same ones again.
const maxStreams = 1 << 15

// Trace returns the trace of jobs on machines, one per rank. It returns the error of the first malformed job.
func Trace(ctx context.Context, ranks int, jobs []Job, control Control) (*dag.Trace, error) {
	w := &writer{b: dag.NewBuilder(ranks), control: control, streams: make([]int32, ranks)}
	for i := range jobs {
		w.b.Meta().Jobs = append(w.b.Meta().Jobs, jobs[i].Name)
		w.extra += int64(len(jobs[i].Edges))
	}
	watch := par.Watch{Context: ctx}
	for i := range jobs {
		if err := watch.Err(); err != nil {
			return nil, err
		}
		order, err := jobs[i].order(ranks)
		if err != nil {
			return nil, fmt.Errorf("job %d (%s): %w", i, jobs[i].Name, err)
		}
		w.add(&jobs[i], int32(i), order)
	}
	if err := w.b.Err(); err != nil {
		return nil, err
	}
	return w.b.Trace(), nil
}

// writer adds jobs to a trace.
type writer struct {
	b       *dag.Builder
	control Control
	streams []int32 // calcs of each rank so far
	first   int64   // tag of the first edge of the job
	extra   int64   // tag of the next control message that is no edge

	recvs []int   // of each edge of the job
	deps  []int   // of the calcs of an op on a machine
	ends  []int32 // edges into the op, by the machine where they end
	text  []byte
}

// add adds a job whose ops are in an order in which edges point forward.
func (w *writer) add(j *Job, number int32, order []int32) {
	w.recvs = slices.Grow(w.recvs[:0], len(j.Edges))[:len(j.Edges)]
	into, out := j.In(), j.Out()
	for _, op := range order {
		w.ends = append(w.ends[:0], into(op)...)
		slices.SortStableFunc(w.ends, func(a, b int32) int {
			return cmp.Compare(j.Edges[a].Destination, j.Edges[b].Destination)
		})
		leaving := slices.Clone(out(op))
		slices.SortStableFunc(leaving, func(a, b int32) int {
			return cmp.Compare(j.Edges[a].Source, j.Edges[b].Source)
		})
		for i, n := range leaving {
			if i == 0 || j.Edges[n].Source != j.Edges[leaving[i-1]].Source {
				w.wait(j, number, j.Edges[n].Source)
			}
			w.edge(j, number, n)
		}
	}
	w.first += int64(len(j.Edges))
}

// wait sets the receives on which the calcs of an op on a machine depend, for the edges in ends.
func (w *writer) wait(j *Job, number, machine int32) {
	w.deps = w.deps[:0]
	for i := 0; i < len(w.ends); {
		from := j.Edges[w.ends[i]].Destination
		end := i
		for end < len(w.ends) && j.Edges[w.ends[end]].Destination == from {
			end++
		}
		switch {
		case from == machine:
			for _, n := range w.ends[i:end] {
				w.deps = append(w.deps, w.recvs[n])
			}
		case w.control == Messages:
			sender := w.b.Rank(int(from))
			send := sender.Add(dag.Op{Kind: dag.Send, Peer: machine, Tag: w.extra, Job: number,
				Attrs: attr.ControlMessage})
			for _, n := range w.ends[i:end] {
				sender.Requires(send, w.recvs[n])
			}
			recv := w.b.Rank(int(machine)).Add(dag.Op{Kind: dag.Recv, Peer: from, Tag: w.extra, Job: number})
			w.deps = append(w.deps, recv)
			w.extra++
		}
		i = end
	}
}

// edge adds an edge, which waits for deps.
func (w *writer) edge(j *Job, number, n int32) {
	e := &j.Edges[n]
	rank := w.b.Rank(int(e.Source))
	release := dag.Time(0)
	if e.Tail == 0 || w.control == Attributes {
		release = j.Arrival
	}
	w.text = attr.JobEdge{Index: n, Tail: e.Tail, Head: e.Head}.Append(append(w.text[:0], '{'), e.Control)
	send := dag.Op{Kind: dag.Send, Peer: e.Destination, Bytes: e.Bytes, Tag: w.first + int64(n), Job: number,
		Attrs: string(append(w.text, '}'))}
	if e.Tail == 0 && e.Run == 0 {
		send.Release = release
		rank.Add(send)
	} else {
		stream := &w.streams[e.Source]
		calc := rank.Add(dag.Op{Kind: dag.Calc, Duration: e.Run, Release: release, Stream: 1 + *stream%maxStreams,
			Job: number}, w.deps...)
		*stream++
		rank.Add(send, calc)
	}
	w.recvs[n] = w.b.Rank(int(e.Destination)).Add(dag.Op{Kind: dag.Recv, Peer: e.Source, Bytes: e.Bytes,
		Tag: w.first + int64(n), Job: number})
}
