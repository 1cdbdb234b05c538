// This file builds the sections of results: flows, ports and tiers.

package flow

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/topology"
)

// results are the results of a run beyond those of all backends.
type results struct {
	network  *topology.Network // nil: a platform
	number   int               // of flows
	flows    []record          // by start; nil: too many to be listed
	labels   *measure.Labels   // nil: not requested
	program  *sim.Program
	open     int // flows that have not ended
	window   measure.Window
	excluded int // flows outside of the window
	fct      measure.Distribution[float64]
	slowdown measure.Distribution[float64]
	last     uint64 // time of the last completion in picoseconds
	totals
	goodput float64 // Gb/s
	jain    float64
	ports   []portRow // with traffic, the busiest first
	tiers   []tierRow // from hosts up to hosts down
	cutOff  []string  // messages about the messages without a path

	fctCurve, slowdownCurve *report.Curve // nil without figures
}

// portRow is the traffic of a port.
type portRow struct {
	port  int
	name  string
	bytes float64 // with acknowledgements
	use   float64 // utilization until the last completion, 0 to 1

	capacity float64 // bytes per second
	tier     int     // index in topology.Tiers; -1: none
}

// tierRow is the traffic of all ports of a tier.
type tierRow struct {
	name              string
	ports             int
	bytes, mean, most float64 // most: largest utilization
	busiest           float64 // bytes of the busiest port
}

func newResults(c *coupling, labels *measure.Labels, figures bool) (*results, error) {
	r := &results{number: c.flows, labels: labels, program: c.program, window: c.window}
	if s, ok := c.paths.(*selector); ok {
		r.network = s.net
	}
	if c.history == nil {
		r.list(c, figures)
	} else if err := c.history.results(c, r, figures); err != nil {
		return nil, err
	}
	if r.squares > 0 {
		r.jain = r.sum * r.sum / (float64(r.fct.Count) * r.squares)
	}
	if r.last > 0 {
		r.goodput = r.bytes * 8000 / float64(r.last)
	}
	r.count(c)
	r.cutOff = c.cutOff()
	return r, nil
}

// list sets the results of all flows by their records.
func (r *results) list(c *coupling, figures bool) {
	r.flows = c.records
	fcts, slowdowns := make([]float64, 0, len(r.flows)), make([]float64, 0, len(r.flows))
	for i := range r.flows {
		f := &r.flows[i]
		measured := r.window.Holds(dag.Time(f.start))
		if !measured {
			r.excluded++
		}
		if f.end == unfinished {
			r.open++
			continue
		}
		r.last = max(r.last, f.end)
		if !measured {
			r.add(float64(f.bytes), 0)
			continue
		}
		r.add(float64(f.bytes), f.throughput())
		fcts = append(fcts, float64(f.end-f.start))
		if slowdown, ok := f.slowdown(); ok {
			slowdowns = append(slowdowns, slowdown)
		}
	}
	r.fct, r.slowdown = measure.Interpolate(fcts), measure.Interpolate(slowdowns)
	if figures {
		r.fctCurve = report.NewCurve(fcts, report.CurvePoints, picoseconds)
		r.slowdownCurve = report.NewCurve(slowdowns, report.CurvePoints, number6)
	}
}

// count adds the traffic of ports and tiers.
func (r *results) count(c *coupling) {
	tiers := make([]tierRow, len(topology.Tiers))
	rows, links := c.paths.portRows()
	for i, row := range rows {
		l := links[i]
		row.bytes = c.carried[l] / float64(c.fluid.links[l].ports())
		if r.last > 0 {
			row.use = min(1, row.bytes/row.capacity*psPerSecond/float64(r.last))
		}
		if row.tier >= 0 {
			tiers[row.tier].add(&row)
		}
		if row.bytes > 0 {
			r.ports = append(r.ports, row)
		}
	}
	slices.SortStableFunc(r.ports, func(a, b portRow) int { return cmp.Compare(b.bytes, a.bytes) })
	for i := range tiers {
		if t := &tiers[i]; t.ports > 0 {
			t.name = topology.Tiers[i]
			t.mean /= float64(t.ports)
			r.tiers = append(r.tiers, *t)
		}
	}
}

// add adds the traffic of a port.
func (t *tierRow) add(p *portRow) {
	t.ports++
	t.bytes += p.bytes
	t.mean += p.use
	t.most = max(t.most, p.use)
	t.busiest = max(t.busiest, p.bytes)
}

// listedPorts is the largest number of ports in a result.
const listedPorts = 1000

// addSections adds the sections to a result. It lists flows one by one if there are at most maxFlows.
func (r *results) addSections(result *sim.Result, maxFlows int, figures bool) {
	add := func(key string, value any) { result.Add(sim.Section{Key: key, Value: value, At: sim.Detail}) }
	members := []string{"min", "mean", "p50", "p95", "p99", "p99.9", "max"}
	add("last_completion_ps", r.last)
	if r.fct.Count > 0 {
		add("fct_ps", r.fct.JSON("", picoseconds, members...))
	}
	if r.slowdown.Count > 0 {
		add("slowdown", r.slowdown.JSON("", number6, members...))
	}
	if r.window.Limits() {
		add("fct_window", r.window.Section(r.number, r.excluded))
	}
	if figures {
		add("fct_cdf", r.fctCurve)
		add("slowdown_cdf", r.slowdownCurve)
	}
	add("goodput_gbps", r.goodput)
	add("jain_fairness_of_flow_throughput", r.jain)
	if r.network != nil {
		add("tiers", r.tierTable())
	}
	add("ports", r.portTable(listedPorts))
	if r.number <= maxFlows {
		add("flows", r.flowTable())
	} else {
		add("flows_not_listed", r.number)
	}
	if figures && r.network != nil {
		traffic := make([]topology.Traffic, 2*len(r.network.Links))
		for i := range r.ports {
			traffic[r.ports[i].port] = topology.Traffic{Bytes: whole(r.ports[i].bytes), Use: r.ports[i].use}
		}
		add("network", topology.NewFigure(r.network, traffic))
	}
	result.Add(sim.Section{At: sim.Detail, Rows: r.summary(), Tables: r.print, Incomplete: r.cutOff})
}

// picoseconds formats a time rounded to whole picoseconds.
func picoseconds(t float64) string { return strconv.FormatInt(int64(math.Round(t)), 10) }

// number6 formats a number with six significant digits.
func number6(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// whole rounds a number of bytes.
func whole(bytes float64) uint64 { return uint64(min(math.Round(bytes), math.MaxInt64)) }

// flowTable lists the flows.
func (r *results) flowTable() *sim.Table {
	t := &sim.Table{Columns: []string{"src", "dst", "bytes", "start_ps", "delivered_ps_after_start", "flow",
		"ideal_ps",
		"finish_s"}}
	if r.labels != nil {
		t.Columns = append(t.Columns, measure.LabelColumns...)
	}
	for i := range r.flows {
		f := &r.flows[i]
		t.Begin()
		t.Uint(uint64(f.source))
		t.Uint(uint64(f.target))
		t.Uint(f.bytes)
		t.Uint(f.start)
		if f.end == unfinished {
			t.Null()
		} else {
			t.Uint(f.end - f.start)
		}
		t.Uint(uint64(i + 1))
		t.Int(int64(f.ideal()))
		if f.end == unfinished {
			t.Null()
		} else {
			t.Exact((float64(f.end) - float64(f.early)) / psPerSecond)
		}
		r.labels.Append(t, r.program, f.message)
	}
	return t
}

// portTable lists the busiest ports.
func (r *results) portTable(most int) *sim.Table {
	t := &sim.Table{Columns: []string{"port", "bytes", "utilisation_until_last_completion"}}
	if len(r.ports) > most {
		t.Shown = fmt.Sprintf("%d busiest of %d", most, len(r.ports))
	}
	for i := range min(most, len(r.ports)) {
		p := &r.ports[i]
		t.Begin()
		t.Text(p.name)
		t.Uint(whole(p.bytes))
		t.Float(p.use, 4)
	}
	return t
}

func (r *results) tierTable() *sim.Table {
	t := &sim.Table{Columns: []string{"tier", "ports", "bytes", "mean_utilisation", "max_utilisation", "imbalance"}}
	for i := range r.tiers {
		s := &r.tiers[i]
		t.Begin()
		t.Text(s.name)
		t.Int(int64(s.ports))
		t.Uint(whole(s.bytes))
		t.Float(s.mean, 4)
		t.Float(s.most, 4)
		t.Float(s.imbalance(), 4)
	}
	return t
}

// imbalance returns the bytes of the busiest port divided by the mean, or 0 without traffic.
func (t *tierRow) imbalance() float64 {
	if t.bytes == 0 {
		return 0
	}
	return t.busiest * float64(t.ports) / t.bytes
}

// summary returns the summary lines.
func (r *results) summary() (rows []sim.Row) {
	row := func(label, format string, args ...any) { rows = append(rows, sim.Rowf(label, format, args...)) }
	time := func(v float64) dag.Time { return dag.Time(math.Round(v)) }
	if row("flows", "%d", r.number); r.open > 0 {
		row("incomplete", "%d flows", r.open)
	}
	if r.window.Limits() {
		rows = append(rows, r.window.Row(r.number, r.excluded))
	}
	if d := r.fct; d.Count > 0 {
		row("delivered", "mean %v, p50 %v, p99 %v, p99.9 %v, max %v", time(d.Mean), time(d.P50), time(d.P99),
			time(d.P999), time(d.Max))
	}
	if d := r.slowdown; d.Count > 0 {
		row("slowdown", "mean %.4g, p50 %.4g, p99 %.4g, p99.9 %.4g, max %.4g", d.Mean, d.P50, d.P99, d.P999, d.Max)
	}
	row("goodput", "%.4g Gb/s, Jain's index of flows %.4g", r.goodput, r.jain)
	return rows
}

// busiestPorts is the number of ports in the human-readable table.
const busiestPorts = 5

// print prints the tiers, and the busiest ports.
func (r *results) print(w io.Writer) {
	size := func(bytes float64) string { return units.FormatSize(int64(whole(bytes))) }
	if len(r.tiers) > 0 {
		fmt.Fprintln(w, "\nports\tnumber\tbytes\tmean utilization\tmax utilization\timbalance")
		for i := range r.tiers {
			s := &r.tiers[i]
			fmt.Fprintf(w, "%s\t%d\t%s\t%.1f%%\t%.1f%%\t%.3g\n", s.name, s.ports, size(s.bytes), 100*s.mean, 100*s.most,
				s.imbalance())
		}
	}
	if len(r.ports) == 0 {
		return
	}
	fmt.Fprintln(w, "\nbusiest ports\t\tbytes\tutilization")
	for i := range min(busiestPorts, len(r.ports)) {
		p := &r.ports[i]
		fmt.Fprintf(w, "%s\t\t%s\t%.1f%%\n", p.name, size(p.bytes), 100*p.use)
	}
}
