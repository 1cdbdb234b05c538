// Jobs: graphs of ops whose data are the flows that follow a node matrix, TrafPy's job-centric mode.

package matrix

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/internal/par"
)

// JobParams describe job graphs.
type JobParams struct {
	Params // Flows and MaxFlows are not used; Interarrivals are those of jobs, and Threshold is that of Ops

	Jobs         int     // smallest number; 1..MaxJobs
	Ops          Values  // per job, without source and sink; 1..MaxJobOps
	Connectivity float64 // an edge between two of n ops has the probability Connectivity * ln(n)/n; 0..1000
	DataShare    float64 // part of edges that are data, the others are control; 0..1
	RunDeviation float64 // standard deviation of the factor of run times, whose mean is 1; 0..10
	Control      jobgraph.Control
}

// Limits of jobs.
const (
	MaxJobs   = 1 << 20
	MaxJobOps = 1 << 13

	maxEdges = 1 << 26 // of all jobs
)

// JobReport holds the properties of generated jobs.
type JobReport struct {
	Nodes              int      `json:"nodes"`
	Jobs               int      `json:"jobs"`
	Ops                int64    `json:"ops"`   // without sources and sinks
	Edges              int64    `json:"edges"` // of all jobs
	DataEdges          int64    `json:"data_edges"`
	SumSizes           int64    `json:"sum_sizes"`           // bytes of the data edges
	InterarrivalFactor float64  `json:"interarrival_factor"` // of times between jobs, for the load
	Duration           float64  `json:"duration"`            // from the first to the last arrival, in us
	Load               float64  `json:"load"`                // relative to all nodes' capacity for sending
	OpsDistance        *float64 `json:"ops_distance"`        // of ops per job from their distribution
	SizeDistance       *float64 `json:"size_distance"`
	IntervalDistance   *float64 `json:"interarrival_distance"`
	PackingDistance    float64  `json:"packing_distance"`
	InterRackShare     *float64 `json:"inter_rack_share"`
	MatrixCorrected    bool     `json:"matrix_corrected"`
}

// Check returns a ParamError for parameters out of range.
func (p *JobParams) Check() error {
	if err := p.Params.Check(); err != nil {
		return err
	}
	for _, err := range []error{
		openloop.InRange("jobs", p.Jobs, 1, MaxJobs),
		inRange("connectivity", p.Connectivity, p.Connectivity >= 0 && p.Connectivity <= 1000, "0..1000"),
		inRange("data-share", p.DataShare, p.DataShare >= 0 && p.DataShare <= 1, "0..1"),
		inRange("run-time-sd", p.RunDeviation, p.RunDeviation >= 0 && p.RunDeviation <= 10, "0..10"),
		p.Ops.check(JobOps),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// NewJobs generates job graphs. The same parameters and seed give the same jobs. Errors are those of NewSource.
func NewJobs(p JobParams, seed int64) ([]jobgraph.Job, *JobReport, error) {
	if err := p.Check(); err != nil {
		return nil, nil, err
	}
	g := &jobGenerator{workload: workload{Params: p.Params, seed: seed, report: Report{Nodes: p.Nodes}}, params: p}
	for _, step := range []func() error{
		g.makeMatrix, g.drawGraphs, g.drawFlows, g.adjustLoad, g.checkMatrix, g.packEdges, g.arrive, g.finish,
	} {
		if err := step(); err != nil {
			return nil, nil, err
		}
		if err := par.Interrupted(p.Context); err != nil {
			return nil, nil, err
		}
	}
	return g.jobs, g.summary(), nil
}

// jobGenerator is the state of generating jobs. The workload's flows are the data edges of all jobs in their order, its
// times the arrivals of jobs.
type jobGenerator struct {
	workload
	params      JobParams
	jobs        []jobgraph.Job
	edges, data int64
	opsDistance *float64
}

// drawGraphs draws the number of ops of each job, and its edges.
func (g *jobGenerator) drawGraphs() error {
	ops, err := g.values(&g.params.Ops, JobOps)
	if err != nil {
		return err
	}
	ops.draw(g.Threshold, g.params.Jobs, MaxJobs)
	g.opsDistance = ops.known()
	draws := random(g.seed, "graphs")
	g.jobs = make([]jobgraph.Job, len(ops.values))
	watch := par.Watch{Context: g.Context}
	for i, n := range ops.values {
		if err := watch.Err(); err != nil {
			return err
		}
		job := &g.jobs[i]
		job.Name, job.Ops = fmt.Sprintf("job_%d", i), int32(n)+2
		job.Edges = g.drawEdges(int(n), draws)
		for e := range job.Edges {
			if !job.Edges[e].Control {
				g.data++
			}
		}
		if g.edges += int64(len(job.Edges)); g.edges > maxEdges {
			return &openloop.ParamError{Param: "jobs", Found: fmt.Sprintf("%d with more than %d edges", len(g.jobs),
				maxEdges), Expected: "fewer edges"}
		}
	}
	if g.data == 0 {
		return &openloop.ParamError{Param: "data-share", Found: fmt.Sprint(g.params.DataShare),
			Expected: "a share with which an edge has data (none has)"}
	}
	return nil
}

// drawEdges draws the edges between the ops 1..n of a job, then those of the source 0 and of the sink n+1.
func (g *jobGenerator) drawEdges(n int, draws *rand.Rand) (edges []jobgraph.Edge) {
	likely := min(1, g.params.Connectivity*math.Log(float64(n))/float64(n))
	place := draws.Perm(n) // of each op in the order of visits
	hasIn, hasOut := make([]bool, n), make([]bool, n)
	add := func(tail, head int) {
		edges = append(edges, jobgraph.Edge{Tail: int32(tail), Head: int32(head),
			Control: draws.Float64() >= g.params.DataShare})
	}
	for u := range n {
		for v := u + 1; v < n; v++ {
			if draws.Float64() >= likely {
				continue
			}
			tail, head := u, v
			if place[v] < place[u] {
				tail, head = v, u
			}
			hasOut[tail], hasIn[head] = true, true
			add(tail+1, head+1)
		}
	}
	for op := range n {
		if !hasIn[op] {
			add(0, op+1)
		}
	}
	for op := range n {
		if !hasOut[op] {
			add(op+1, n+1)
		}
	}
	return edges
}

// drawFlows draws a size per data edge and a time between arrivals per job, whatever their distances.
func (g *jobGenerator) drawFlows() error {
	sizes, err := g.values(&g.Sizes, Size)
	if err != nil {
		return err
	}
	gaps, err := g.values(&g.Interarrivals, Interarrival)
	if err != nil {
		return err
	}
	sizes.redraw(int(g.data))
	gaps.redraw(len(g.jobs))
	g.report.SizeDistance, g.report.IntervalDistance = sizes.known(), gaps.known()
	g.gaps = gaps.values
	return g.setSizes(sizes.values)
}

// packEdges places the edges. The flows are in random order after packing.
func (g *jobGenerator) packEdges() error {
	if err := g.pack(); err != nil {
		return err
	}
	ends := random(g.seed, "control")
	flow := 0
	for i := range g.jobs {
		for e := range g.jobs[i].Edges {
			edge := &g.jobs[i].Edges[e]
			if edge.Control {
				edge.Source, edge.Destination = ends.Int32N(int32(g.Nodes)), ends.Int32N(int32(g.Nodes))
				continue
			}
			route := g.routes[flow]
			edge.Source, edge.Destination, edge.Bytes = int32(route>>16), int32(route&0xffff), g.sizes[flow]
			flow++
		}
	}
	return nil
}

// megabyte is the unit of data in run times: an op runs for 1 us per whole megabyte of each of its edges.
const megabyte = 1_000_000

// finish sets arrivals and run times.
func (g *jobGenerator) finish() error {
	noise := random(g.seed, "run time")
	var megabytes []int64 // of each op's edges
	var runs []dag.Time
	for i := range g.jobs {
		job := &g.jobs[i]
		job.Arrival = g.times[i]
		megabytes = append(megabytes[:0], make([]int64, job.Ops)...)
		for e := range job.Edges {
			edge := &job.Edges[e]
			megabytes[edge.Tail] += edge.Bytes / megabyte
			megabytes[edge.Head] += edge.Bytes / megabyte
		}
		runs = append(runs[:0], 0) // that of the source
		for _, n := range megabytes[1:] {
			factor := max(0, 1+float64(g.params.RunDeviation*noise.NormFloat64()))
			us := factor * float64(n)
			if us > float64(dag.MaxTime/4)/float64(dag.Microsecond) {
				return &openloop.ParamError{Param: "size-dist", Found: fmt.Sprintf("an op of %d MB", n),
					Expected: fmt.Sprintf("ops of at most %v", dag.MaxTime/4)}
			}
			runs = append(runs, dag.Time(math.Round(us*float64(dag.Microsecond))))
		}
		for e := range job.Edges {
			job.Edges[e].Run = runs[job.Edges[e].Tail]
		}
	}
	return nil
}

// summary returns the report.
func (g *jobGenerator) summary() *JobReport {
	r := &g.report
	ops := int64(0)
	for i := range g.jobs {
		ops += int64(g.jobs[i].Ops) - 2
	}
	return &JobReport{
		Nodes: g.Nodes, Jobs: len(g.jobs), Ops: ops, Edges: g.edges, DataEdges: g.data, SumSizes: r.SumSizes,
		InterarrivalFactor: r.InterarrivalFactor, Duration: r.Duration, Load: r.Load, OpsDistance: g.opsDistance,
		SizeDistance: r.SizeDistance, IntervalDistance: r.IntervalDistance, PackingDistance: r.PackingDistance,
		InterRackShare: r.InterRackShare, MatrixCorrected: r.MatrixCorrected,
	}
}
