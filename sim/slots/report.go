// This file computes the key performance indicators of a run and its sections.

package slots

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// flowsReport is the outcome of the flows of a run.
type flowsReport struct {
	c           *coupling
	length      dag.Time // of a slot
	end         dag.Time // of the run
	from, until dag.Time // of the measurement

	ideal []dag.Time // by flow: completion time alone in the network, with the wait for a slot

	arrived, completed, dropped, queued figures // flows of the measurement; the last two are neither of the others
	fct, slowdown                       measure.Distribution[float64]
	fcts, slowdowns                     []float64 // ascending
	deviation                           float64   // of the completion times
	sizes                               spread    // of arrived flows
	jain                                float64   // fairness index of the throughputs of completed flows
	lastCompletion                      dag.Time
	queuedAtEnd, droppedAll             int // of all flows
	jobs                                jobsReport
}

// jobsReport is the outcome of the job graphs of a run, zero without any.
type jobsReport struct {
	arrived, completed, dropped, running int64 // jobs of the measurement; the last did not end
	jct                                  measure.Distribution[float64]
	deviation                            float64 // of the completion times
}

// figures counts flows.
type figures struct {
	flows int64
	bytes uint64
}

func (f *figures) add(bytes uint64) {
	f.flows++
	f.bytes += bytes
}

// spread is a mean and a standard deviation, of a population.
type spread struct{ mean, deviation float64 }

func spreadOf(values []float64) (s spread) {
	if len(values) == 0 {
		return s
	}
	for _, v := range values {
		s.mean += v
	}
	s.mean /= float64(len(values))
	for _, v := range values {
		s.deviation += (v - s.mean) * (v - s.mean)
	}
	s.deviation = math.Sqrt(s.deviation / float64(len(values)))
	return s
}

func newReport(c *coupling, b *backend) *flowsReport {
	r := &flowsReport{c: c, length: b.length, end: dag.Time(c.last), from: b.from, until: b.until}
	if c.stopped {
		r.end = b.end
	}
	f := &c.flows
	switch last := len(f.arrived) - 1; {
	case r.from >= 0:
	case c.jobs != nil:
		r.from = tenth(c.jobs.lastArrival())
	case last >= 0:
		r.from = tenth(dag.Time(f.arrived[last]))
	}
	r.from = max(r.from, 0)
	if r.until < 0 {
		r.until = min(r.end, dag.MaxTime-b.length) + b.length
	}
	r.ideal = make([]dag.Time, len(f.op))
	var sizes []float64
	var sum, squares float64
	for i := range f.op {
		bytes := c.program.Ops[f.op[i]].Size
		arrived, ended := dag.Time(f.arrived[i]), dag.Time(f.ended[i])
		r.ideal[i] = c.idealTime(i)
		switch {
		case f.dropped[i]:
			r.droppedAll++
		case ended == 0:
			r.queuedAtEnd++
		}
		r.lastCompletion = max(r.lastCompletion, ended)
		if arrived < r.from || arrived > r.until {
			continue
		}
		r.arrived.add(bytes)
		sizes = append(sizes, float64(bytes))
		switch {
		case f.dropped[i]:
			r.dropped.add(bytes)
		case ended == 0 || ended > r.until:
			r.queued.add(bytes)
		default:
			r.completed.add(bytes)
			took := float64(ended - arrived)
			r.fcts = append(r.fcts, took)
			r.slowdowns = append(r.slowdowns, took/float64(r.ideal[i]))
			sum += float64(bytes) / took
			squares += float64(bytes) / took * (float64(bytes) / took)
		}
	}
	r.sizes = spreadOf(sizes)
	r.deviation = spreadOf(r.fcts).deviation
	r.fct, r.slowdown = measure.Interpolate(r.fcts), measure.Interpolate(r.slowdowns)
	if squares > 0 {
		r.jain = sum * sum / (float64(r.completed.flows) * squares)
	}
	r.addJobs()
	return r
}

// tenth returns a tenth of a time, rounded up.
func tenth(t dag.Time) dag.Time { return t/10 + min(1, t%10) }

// addJobs counts the jobs of the measurement.
func (r *flowsReport) addJobs() {
	if r.c.jobs == nil {
		return
	}
	var times []float64
	for j := range r.c.jobs.jobs {
		fate, took := r.jobFate(j)
		arrival := r.c.jobs.jobs[j].Arrival
		if fate == "" || arrival < r.from || arrival > r.until {
			continue
		}
		r.jobs.arrived++
		switch {
		case fate == "dropped":
			r.jobs.dropped++
		case fate == "running" || took > r.until-arrival:
			r.jobs.running++
		default:
			r.jobs.completed++
			times = append(times, float64(took))
		}
	}
	r.jobs.deviation = spreadOf(times).deviation
	r.jobs.jct = measure.Interpolate(times)
}

// jobFate returns the fate of a job and, if it completed, its completion time. The fate is empty if the job did not
// arrive before the end of the run.
func (r *flowsReport) jobFate(j int) (fate string, took dag.Time) {
	jobs := r.c.jobs
	switch arrival := jobs.jobs[j].Arrival; {
	case r.c.stopped && arrival > r.end:
		return "", 0
	case jobs.dropped[j]:
		return "dropped", 0
	case jobs.left[j] > 0:
		return "running", 0
	default:
		return "completed", dag.Time(jobs.ended[j]) - arrival
	}
}

// idealTime returns the completion time of a flow alone in the network: it waits for the end of the slot of its
// arrival.
func (c *coupling) idealTime(flow int) dag.Time {
	op := &c.program.Ops[c.flows.op[flow]]
	from, to := topology.Endpoints(c.hosts, c.nics, op)
	packets, each := (op.Size-1)/c.packet+1, uint64(c.net.most(from, to, c.net.routes.between(from, to)))
	wait := c.length - c.flows.arrived[flow]%c.length
	return dag.Time(wait + ((packets-1)/each+1)*c.length)
}

// complete makes a run complete in which all ops ran: flows that were dropped, or queued at the end, are results. So
// are jobs that did not complete.
func (r *flowsReport) complete(result *sim.Result, out *sim.Outcome) {
	complete := result.Unmatched == nil && result.NeverRun == 0
	if jobs := r.c.jobs; jobs != nil && !complete {
		complete = jobs.complete(r.c.program, out, r.c.stopped)
	}
	if complete {
		result.Complete, result.Unended, result.Unmatched, result.Stuck = true, 0, nil, nil
	}
}

// share returns part / all, or nil for nothing.
func share(part, all float64) any {
	if all == 0 {
		return nil
	}
	return part / all
}

// timeOf returns a time of a distribution, or nil if that is empty.
func timeOf(d *measure.Distribution[float64], v float64) any {
	if d.Count == 0 {
		return nil
	}
	return dag.Time(math.Round(v))
}

// kpis returns the key performance indicators.
func (r *flowsReport) kpis() sim.Values {
	window := float64(r.until-r.from) / float64(dag.Second)
	perSecond := func(bytes uint64) any { return share(float64(bytes), window) }
	capacity := r.c.net.hostRate() / 8 // bytes per second
	time := func(v float64) any { return timeOf(&r.fct, v) }
	lost := float64(r.dropped.flows + r.queued.flows)
	values := sim.Values{
		{Name: "window_from_ps", Value: r.from}, {Name: "window_until_ps", Value: r.until},
		{Name: "arrived_flows", Value: r.arrived.flows}, {Name: "completed_flows", Value: r.completed.flows},
		{Name: "dropped_flows", Value: r.dropped.flows}, {Name: "queued_flows", Value: r.queued.flows},
		{Name: "arrived_bytes", Value: r.arrived.bytes}, {Name: "completed_bytes", Value: r.completed.bytes},
		{Name: "mean_fct_ps", Value: time(r.fct.Mean)}, {Name: "p99_fct_ps", Value: time(r.fct.P99)},
		{Name: "max_fct_ps", Value: time(r.fct.Max)}, {Name: "sd_fct_ps", Value: time(r.deviation)},
		{Name: "flows_dropped", Value: share(lost, float64(r.arrived.flows))},
		{Name: "info_dropped", Value: share(float64(r.dropped.bytes+r.queued.bytes), float64(r.arrived.bytes))},
		{Name: "load_bytes_per_s", Value: perSecond(r.arrived.bytes)},
		{Name: "load_frac", Value: share(float64(r.arrived.bytes), window*capacity)},
		{Name: "throughput_bytes_per_s", Value: perSecond(r.completed.bytes)},
		{Name: "throughput_frac", Value: share(float64(r.completed.bytes), float64(r.arrived.bytes))},
		{Name: "t_score", Value: r.tScore(window, capacity)},
	}
	if r.c.jobs == nil {
		return values
	}
	j := &r.jobs
	jct := func(v float64) any { return timeOf(&j.jct, v) }
	return append(values, sim.Values{
		{Name: "arrived_jobs", Value: j.arrived}, {Name: "completed_jobs", Value: j.completed},
		{Name: "dropped_jobs", Value: j.dropped}, {Name: "running_jobs", Value: j.running},
		{Name: "mean_jct_ps", Value: jct(j.jct.Mean)}, {Name: "p99_jct_ps", Value: jct(j.jct.P99)},
		{Name: "max_jct_ps", Value: jct(j.jct.Max)}, {Name: "sd_jct_ps", Value: jct(j.deviation)},
		{Name: "jobs_dropped", Value: share(float64(j.dropped+j.running), float64(j.arrived))},
	}...)
}

// tScore returns TrafPy's score of a run, or nil if it is undefined. The capacity of a host link is that of both
// directions.
func (r *flowsReport) tScore(window, capacity float64) any {
	if r.fct.Mean == 0 || r.deviation == 0 || window <= 0 {
		return nil
	}
	hosts := float64(r.c.net.topology.Hosts)
	link := 2 * capacity / hosts / float64(dag.Second) // bytes per picosecond
	lost := float64(r.dropped.flows+r.queued.flows) / float64(r.arrived.flows)
	return r.sizes.mean/link/r.fct.Mean + r.sizes.deviation/link/r.deviation +
		1 - lost*float64(r.c.limit)*hosts*(hosts-1) + float64(r.completed.bytes)/window/capacity
}

// listedFlows is the largest number of flows that the JSON object lists.
const listedFlows = 100_000

// distributionMembers are the JSON members of distributions.
var distributionMembers = []string{"min", "mean", "p50", "p95", "p99", "p99.9", "max"}

// picoseconds formats a time rounded to whole picoseconds, number6 a number with six significant digits.
func picoseconds(t float64) string { return strconv.FormatInt(int64(math.Round(t)), 10) }
func number6(v float64) string     { return strconv.FormatFloat(v, 'g', 6, 64) }

// addSections adds the sections of the flows.
func (r *flowsReport) addSections(result *sim.Result, curves bool) {
	add := func(key string, value any) { result.Add(sim.Section{Key: key, Value: value, At: sim.Detail}) }
	kpis := r.kpis()
	result.Add(sim.Section{Key: "kpis", Value: kpis, At: sim.Detail, Rows: r.rows(kpis), Incomplete: r.incomplete()})
	add("slots", r.c.slots)
	add("last_completion_ps", r.lastCompletion)
	if r.fct.Count > 0 {
		add("fct_ps", r.fct.JSON("", picoseconds, distributionMembers...))
		add("slowdown", r.slowdown.JSON("", number6, distributionMembers...))
		if curves {
			add("fct_cdf", report.NewCurve(r.fcts, report.CurvePoints, picoseconds))
			add("slowdown_cdf", report.NewCurve(r.slowdowns, report.CurvePoints, number6))
		}
		add("jain_fairness_of_flow_throughput", r.jain)
	}
	if r.jobs.jct.Count > 0 {
		add("jct_ps", r.jobs.jct.JSON("", picoseconds, distributionMembers...))
	}
	if len(r.c.flows.op) > listedFlows {
		add("flows_not_listed", len(r.c.flows.op))
	} else {
		add("flows", r.flowTable(nil))
	}
	if curves {
		add("network", topology.NewFigure(r.c.net.topology, r.traffic()))
	}
}

// rows returns the summary lines.
func (r *flowsReport) rows(kpis sim.Values) (rows []sim.Row) {
	row := func(label, format string, args ...any) { rows = append(rows, sim.Rowf(label, format, args...)) }
	time := func(v float64) dag.Time { return measure.Short(dag.Time(math.Round(v))) }
	row("measured", "%v to %v", measure.Short(r.from), measure.Short(r.until))
	row("flows", "%d arrived, %d completed, %d dropped, %d queued at the end", r.arrived.flows, r.completed.flows,
		r.dropped.flows, r.queued.flows)
	if d := r.fct; d.Count > 0 {
		row("FCT", "mean %v, p99 %v, max %v, sd %v", time(d.Mean), time(d.P99), time(d.Max), time(r.deviation))
	}
	if d := r.slowdown; d.Count > 0 {
		row("slowdown", "mean %.4g, p50 %.4g, p99 %.4g, max %.4g, Jain's index %.4g", d.Mean, d.P50, d.P99, d.Max,
			r.jain)
	}
	number := func(name string) float64 {
		v, _ := kpis.Get(name).(float64)
		return v
	}
	if r.arrived.flows > 0 {
		row("dropped", "%.4g of the flows, %.4g of the bytes, with those queued at the end", number("flows_dropped"),
			number("info_dropped"))
		row("load", "%.4g Gb/s, %.4g of the capacity", number("load_bytes_per_s")*8e-9, number("load_frac"))
		row("throughput", "%.4g Gb/s, %.4g of the arrived bytes", number("throughput_bytes_per_s")*8e-9,
			number("throughput_frac"))
	}
	if j := &r.jobs; r.c.jobs != nil {
		row("jobs", "%d arrived, %d completed, %d dropped, %d running at the end", j.arrived, j.completed, j.dropped,
			j.running)
		if d := j.jct; d.Count > 0 {
			row("JCT", "mean %v, p99 %v, max %v, sd %v", time(d.Mean), time(d.P99), time(d.Max), time(j.deviation))
		}
		if j.arrived > 0 {
			row("jobs dropped", "%.4g of the jobs, with those running at the end", number("jobs_dropped"))
		}
	}
	if score, known := kpis.Get("t_score").(float64); known {
		row("T-score", "%.6g", score)
	}
	return rows
}

// incomplete explains an incomplete run.
func (r *flowsReport) incomplete() (lines []string) {
	if r.droppedAll > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d flows were dropped by full queues of %d flows; raise --max-flows",
			r.droppedAll, len(r.c.flows.op), r.c.limit))
	}
	if r.c.stopped {
		lines = append(lines, fmt.Sprintf("the run stopped at --end %v with %d flows in queues", r.end, r.queuedAtEnd))
	}
	return lines
}

// jobTable lists the job graphs by number. Those that did not arrive before the end of the run have no fate.
func (r *flowsReport) jobTable() *sim.Table {
	t := &sim.Table{Columns: []string{"job", "name", "ops", "edges", "data_edges", "bytes", "start_ps", "jct_ps",
		"fate"}}
	for number := range r.c.jobs.jobs {
		job := &r.c.jobs.jobs[number]
		data, bytes := int64(0), uint64(0)
		for n := range job.Edges {
			if e := &job.Edges[n]; !e.Control {
				data, bytes = data+1, bytes+uint64(e.Bytes)
			}
		}
		fate, took := r.jobFate(number)
		t.Begin()
		t.Int(int64(number))
		t.Text(job.Name)
		t.Int(int64(job.Ops))
		t.Int(int64(len(job.Edges)))
		t.Int(data)
		t.Uint(bytes)
		t.Int(int64(job.Arrival))
		if fate == "completed" {
			t.Int(int64(took))
		} else {
			t.Null()
		}
		t.TextOrNull(fate)
	}
	return t
}

// flowTable lists all flows by arrival, with their labels unless l is nil.
func (r *flowsReport) flowTable(l *measure.Labels) *sim.Table {
	t := &sim.Table{Columns: []string{"flow", "src", "dst", "bytes", "start_ps", "fct_ps", "ideal_ps", "fate"}}
	if l != nil {
		t.Columns = append(t.Columns, measure.LabelColumns...)
	}
	f := &r.c.flows
	for i := range f.op {
		op := &r.c.program.Ops[f.op[i]]
		from, to := topology.Endpoints(r.c.hosts, r.c.nics, op)
		t.Begin()
		t.Int(int64(i))
		t.Uint(uint64(from))
		t.Uint(uint64(to))
		t.Uint(op.Size)
		t.Uint(f.arrived[i])
		t.Span(dag.Time(f.arrived[i]), dag.Time(f.ended[i]))
		t.Int(int64(r.ideal[i]))
		switch {
		case f.dropped[i]:
			t.Text("dropped")
		case f.ended[i] == 0:
			t.Text("queued")
		default:
			t.Text("completed")
		}
		l.Append(t, r.c.program, f.op[i])
	}
	return t
}

// traffic returns the traffic of each port until the last completion.
func (r *flowsReport) traffic() []topology.Traffic {
	all := make([]topology.Traffic, len(r.c.served))
	for port, packets := range r.c.served {
		all[port].Bytes = packets * r.c.packet
		if r.lastCompletion > 0 {
			all[port].Use = min(1, float64(all[port].Bytes)*8e12/float64(r.c.net.topology.Links[port/2].Rate)/
				float64(r.lastCompletion))
		}
	}
	return all
}
