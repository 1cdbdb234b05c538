// This file runs job graphs: which edges begin when, and the fates of jobs.

package slots

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/sim"
)

// jobGraphs are the job graphs of a trace. Edges and ops of all jobs are numbered job by job.
type jobGraphs struct {
	jobs  []jobgraph.Job
	edge  []uint32     // by message: 1 + its edge; 0: none
	of    []uint32     // by edge: its job
	tail  []uint32     // by edge: the op that it leaves
	head  []uint32     // by edge: the op that it enters
	run   []uint64     // by edge: run time of the op before it, in picoseconds
	into  []uint32     // by op: edges that enter it
	place []dag.Narrow // by rank and op of the trace: its job
	first []uint32     // by job: its source, an op
}

// jobSource is a source that collects the job graphs as the trace is compiled.
type jobSource struct {
	dag.Source
	edges *jobgraph.Collector
	place []dag.Narrow // by rank and op: its job
}

func newJobSource(s dag.Source, ranks int) *jobSource {
	return &jobSource{s, jobgraph.NewCollector(ranks), make([]dag.Narrow, ranks)}
}

func (s *jobSource) NewReader(dag.Columns) dag.Reader {
	read := s.Source.NewReader(dag.All)
	return func(b dag.Batch) ([]*dag.Rank, error) {
		ranks, err := read(b)
		if err != nil {
			return nil, err
		}
		for i := range min(len(ranks), b.Last-b.First) {
			s.edges.Add(b.First+i, ranks[i])
			jobs := make([]int32, ranks[i].Len())
			ranks[i].Job.Copy(jobs, 0)
			place := dag.Narrow{}
			place.SetRange(0, jobs)
			s.place[b.First+i] = place
		}
		return ranks, nil
	}
}

// graphs returns the job graphs of the compiled trace, nil if it has none.
func (s *jobSource) graphs(p *sim.Program, names []string) (*jobGraphs, error) {
	read, err := s.edges.Graphs(names)
	if read == nil {
		return nil, err
	}
	g := &jobGraphs{jobs: read.Jobs, edge: make([]uint32, p.NumOps()), place: s.place}
	for j := range read.Jobs {
		job := &read.Jobs[j]
		source := uint32(len(g.into))
		g.first = append(g.first, source)
		g.into = append(g.into, make([]uint32, job.Ops)...)
		for n := range job.Edges {
			e := &job.Edges[n]
			head := source + uint32(e.Head)
			g.of, g.run = append(g.of, uint32(j)), append(g.run, uint64(e.Run))
			g.tail, g.head = append(g.tail, source+uint32(e.Tail)), append(g.head, head)
			g.into[head]++
			g.edge[p.Start[e.Source]+uint32(read.Sends[j][n])] = uint32(len(g.of))
		}
	}
	return g, nil
}

// jobRun is the state of the jobs in a run.
type jobRun struct {
	*jobGraphs
	waits   []uint32 // by op: edges into it that have not ended
	ready   []uint64 // by op: the latest end of an edge into it; of a source, the arrival of its job
	held    []uint32 // by op: 1 + the first of its edges that the engine sent too early
	next    []uint32 // by edge: 1 + the next one of those
	message []uint32 // by edge that was sent
	left    []uint32 // by job: edges that have not ended
	ended   []uint64 // by job: the latest end of an edge
	dropped []bool   // by job: a flow was
}

func newJobRun(g *jobGraphs) *jobRun {
	if g == nil {
		return nil
	}
	r := &jobRun{jobGraphs: g, waits: append([]uint32(nil), g.into...), ready: make([]uint64, len(g.into)),
		held: make([]uint32, len(g.into)), next: make([]uint32, len(g.of)), message: make([]uint32, len(g.of)),
		left: make([]uint32, len(g.jobs)), ended: make([]uint64, len(g.jobs)), dropped: make([]bool, len(g.jobs))}
	for j := range g.jobs {
		r.left[j] = uint32(len(g.jobs[j].Edges))
		r.ready[g.first[j]] = uint64(g.jobs[j].Arrival)
	}
	return r
}

// edgeOf returns the edge of a message.
func (r *jobRun) edgeOf(m uint32) (edge uint32, ok bool) {
	if r == nil || r.edge[m] == 0 {
		return 0, false
	}
	return r.edge[m] - 1, true
}

// jobOf returns the job of a message, if it is an edge.
func (r *jobRun) jobOf(m uint32) (job uint32, ok bool) {
	if edge, ok := r.edgeOf(m); ok {
		return r.of[edge], true
	}
	return 0, false
}

// isDropped reports whether a message is an edge of a job that was dropped.
func (r *jobRun) isDropped(m uint32) bool {
	job, ok := r.jobOf(m)
	return ok && r.dropped[job]
}

// begin is called when the engine hands over an edge. It returns the time at which the edge begins, if it is known yet:
// the op before it has run.
func (r *jobRun) begin(m, edge uint32) (at uint64, known bool) {
	op := r.tail[edge]
	r.message[edge] = m
	if r.waits[op] > 0 {
		r.next[edge], r.held[op] = r.held[op], edge+1
		return 0, false
	}
	return r.ready[op] + r.run[edge], true
}

// end ends an edge at time t. It calls begin for each edge that was held for it, with the time at which that begins.
func (r *jobRun) end(edge uint32, t uint64, begin func(m uint32, at uint64)) {
	job, op := r.of[edge], r.head[edge]
	r.left[job]--
	r.ended[job] = max(r.ended[job], t)
	r.waits[op]--
	r.ready[op] = max(r.ready[op], t)
	if r.waits[op] > 0 {
		return
	}
	for held := r.held[op]; held != 0; held = r.next[held-1] {
		begin(r.message[held-1], r.ready[op]+r.run[held-1])
	}
	r.held[op] = 0
}

// excused reports whether an op does not count as incomplete: its job was dropped, or did not end before the run.
func (r *jobRun) excused(p *sim.Program, i uint32, stopped bool) bool {
	job := r.place[p.Ops[i].Rank].At(p.Index(i))
	return uint32(job) < uint32(len(r.jobs)) && (r.dropped[job] || stopped && r.left[job] > 0)
}

// complete reports whether all ops ran and ended, except those of jobs that were dropped or did not end before the run.
func (r *jobRun) complete(p *sim.Program, out *sim.Outcome, stopped bool) bool {
	for _, lists := range [][][]uint32{out.Posted, out.Unexpected, {out.Unended}} {
		for _, list := range lists {
			for _, i := range list {
				if !r.excused(p, i, stopped) {
					return false
				}
			}
		}
	}
	for i := range uint32(p.NumOps()) {
		if !out.Ran.Has(i) && !r.excused(p, i, stopped) {
			return false
		}
	}
	return true
}

// lastArrival returns the arrival of the last job.
func (r *jobRun) lastArrival() (last dag.Time) {
	for j := range r.jobs {
		last = max(last, r.jobs[j].Arrival)
	}
	return last
}
