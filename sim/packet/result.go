// This file builds the sections of results: flows, ports and tiers. docs/reference/backends/packet.md defines them.

package packet

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/measure"
)

// listedPorts is the largest number of ports in a result, listedFlows the largest number of incomplete flows with
// details.
const (
	listedPorts   = 1000
	listedMissing = 20
)

// addSections adds the sections of a report to a result. It lists flows one by one if there are at most maxFlows.
// bins prints the table of bins even if it has one row.
func addSections(result *sim.Result, r *Report, maxFlows int, bins bool) {
	add := func(key string, value any) { result.Add(sim.Section{Key: key, Value: value, At: sim.Detail}) }
	addDistribution := func(key string, d *measure.Distribution[float64], format func(float64) string) {
		if d.Count > 0 {
			add(key, d.JSON("", format, distributionMembers...))
		}
	}
	goodput := 0.0 // Gb/s
	if r.Last > 0 {
		goodput = float64(r.Bytes) * 8000 / float64(r.Last)
	}
	add("last_completion_ps", r.Last)
	addDistribution("fct_ps", &r.FCT, picoseconds)
	addDistribution("delivered_ps", &r.Delivered, picoseconds)
	addDistribution("slowdown", &r.Slowdown, number6)
	if r.figures {
		add("fct_cdf", report.NewCurve(r.FCTs, report.CurvePoints, picoseconds))
		add("slowdown_cdf", report.NewCurve(r.slowdowns, report.CurvePoints, number6))
	}
	add("goodput_gbps", goodput)
	add("jain_fairness_of_flow_throughput", r.Jain)
	add("counters", r.Counters)
	listed := len(r.Flows) <= maxFlows
	if !listed {
		add("flows_not_listed", len(r.Flows))
		if q := newQuantiles(r); len(q) > 0 {
			add("fct_quantiles_ps", q)
		}
	}
	if r.window.Limits() {
		add("fct_window", r.window.Section(len(r.Flows), r.Excluded))
	}
	add("fct_by_size", sizeTable(r))
	add("fct_bins", binTable(r))
	if r.Incomplete > 0 {
		add("incomplete_flows", newMissingFlows(r))
	}
	if len(r.Deadlock) > 0 {
		add("pfc_deadlock", &deadlockSection{r.DeadlockSince, r.Deadlock})
	}
	if r.queues != nil {
		add("queues", r.queues)
	}
	add("tiers", tierTable(r))
	add("ports", portTable(r, listedPorts))
	if listed {
		add("flows", flowTable(r, nil))
	}
	result.Add(sim.Section{
		At: sim.Detail, Rows: summary(r, goodput), Tables: func(w io.Writer) {
			if len(r.Bins) > 1 || bins {
				printBins(w, r)
			}
			printPorts(w, r)
		}, Incomplete: incomplete(r),
	})
}

// distributionMembers are the JSON members of distributions.
var distributionMembers = []string{"min", "mean", "p50", "p95", "p99", "p99.9", "max"}

// picoseconds formats a time rounded to whole picoseconds.
func picoseconds(t float64) string { return strconv.FormatInt(int64(math.Round(t)), 10) }

// number6 formats a number with six significant digits.
func number6(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// quantiles are percentiles of the flow times in picoseconds.
type quantiles []int64

var quantilesListed = []float64{0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100}

func newQuantiles(r *Report) quantiles {
	var q quantiles
	for _, p := range quantilesListed {
		if r.FCT.Count > 0 {
			q = append(q, int64(math.Round(measure.Quantile(r.FCTs, p/100))))
		}
	}
	return q
}

// MarshalJSON returns an object with the percentages as names.
func (q quantiles) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, v := range q {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%v":%d`, quantilesListed[i], v)
	}
	return append(b, '}'), nil
}

// deadlockSection is a deadlock of priority flow control.
type deadlockSection struct {
	Since dag.Time `json:"since_ps"`
	Cycle []string `json:"cycle"` // paused ports, each of which waits for the next
}

// missingFlows are the incomplete flows.
type missingFlows struct {
	Count int        `json:"count"`
	First *sim.Table `json:"first"`
}

func newMissingFlows(r *Report) *missingFlows {
	t := &sim.Table{Columns: []string{"src", "dst", "bytes", "start_ps", "flow"}}
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Acknowledged == 0 && t.Rows < listedMissing {
			t.Begin()
			t.Uint(uint64(f.Source))
			t.Uint(uint64(f.Target))
			t.Uint(f.Bytes)
			t.Int(int64(f.Start))
			t.Uint(uint64(f.ID))
		}
	}
	return &missingFlows{r.Incomplete, t}
}

// flowTable lists the flows, with their labels unless l is nil.
func flowTable(r *Report, l *measure.Labels) *sim.Table {
	t := &sim.Table{Columns: []string{"src", "dst", "bytes", "start_ps", "fct_ps_at_sender", "delivered_ps_after_start",
		"flow", "retransmits", "nacks", "ideal_ps"}}
	if l != nil {
		t.Columns = append(t.Columns, measure.LabelColumns...)
	}
	for i := range r.Flows {
		f := &r.Flows[i]
		t.Begin()
		t.Uint(uint64(f.Source))
		t.Uint(uint64(f.Target))
		t.Uint(f.Bytes)
		t.Int(int64(f.Start))
		t.Span(f.Start, f.Acknowledged)
		t.Span(f.Start, f.Delivered)
		t.Uint(uint64(f.ID))
		t.Uint(uint64(f.Retransmits))
		t.Uint(uint64(f.Nacks))
		t.Span(0, r.Ideal[i])
		l.Append(t, r.program, f.message)
	}
	return t
}

// binTable lists the bins of flow sizes.
func binTable(r *Report) *sim.Table {
	t := &sim.Table{Columns: []string{"job", "class", "size", "from_bytes", "to_bytes", "flows"}}
	for _, figure := range [...]struct{ name, unit string }{{"fct", "_ps"}, {"slowdown", ""}} {
		for _, value := range [...]string{"mean", "p50", "p95", "p99", "p99.9"} {
			t.Columns = append(t.Columns, figure.name+"_"+value+figure.unit)
		}
	}
	for i := range r.Bins {
		b := &r.Bins[i]
		t.Begin()
		t.TextOrNull(b.Job)
		t.TextOrNull(b.Class)
		t.Text(b.Name)
		t.Uint(b.From)
		if b.Open() {
			t.Null()
		} else {
			t.Uint(b.To)
		}
		t.Int(b.FCT.Count)
		t.Float(b.FCT.Mean, 0)
		for _, v := range [...]dag.Time{b.FCT.P50, b.FCT.P95, b.FCT.P99, b.FCT.P999} {
			t.Int(int64(v))
		}
		s := &b.Slowdown
		for _, v := range [...]float64{s.Mean, s.P50, s.P95, s.P99, s.P999} {
			if s.Count == 0 {
				t.Null()
			} else {
				t.Float(v, 4)
			}
		}
	}
	return t
}

// printBins prints the bins of flow sizes.
func printBins(w io.Writer, r *Report) {
	for i := range r.Bins {
		b := &r.Bins[i]
		if i == 0 || b.Job != r.Bins[i-1].Job || b.Class != r.Bins[i-1].Class {
			of := ""
			if b.Job != "" {
				of = fmt.Sprintf(" of job %q", b.Job)
			} else if b.Class != "" {
				of = fmt.Sprintf(" of class %q", b.Class)
			}
			fmt.Fprintf(w, "\nflows%s up to\tnumber\tFCT mean\tp50\tp95\tp99\tp99.9"+
				"\tslowdown mean\tp50\tp95\tp99\tp99.9\n", of)
		}
		size := "larger"
		if !b.Open() {
			size = units.FormatSize(int64(b.To))
		}
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%v\t%v\t%v", size, b.FCT.Count, measure.Short(dag.Time(math.Round(b.FCT.Mean))),
			measure.Short(b.FCT.P50), measure.Short(b.FCT.P95), measure.Short(b.FCT.P99), measure.Short(b.FCT.P999))
		if s := &b.Slowdown; s.Count > 0 {
			fmt.Fprintf(w, "\t%.4g\t%.4g\t%.4g\t%.4g\t%.4g", s.Mean, s.P50, s.P95, s.P99, s.P999)
		}
		fmt.Fprintln(w)
	}
}

// portTable lists the busiest ports.
func portTable(r *Report, most int) *sim.Table {
	t := &sim.Table{Columns: []string{"port", "packets", "bytes", "trims", "drops", "ecn_marks", "max_data_queue_bytes",
		"utilisation_until_last_completion", "header_drops", "pfc_pauses", "pfc_paused_ps", "ecn_header_marks"}}
	if r.Sampled {
		t.Columns = append(t.Columns, "mean_data_queue_bytes", "p99_data_queue_bytes")
	}
	if len(r.Ports) > most {
		t.Shown = fmt.Sprintf("%d busiest of %d", most, len(r.Ports))
	}
	for i := range min(most, len(r.Ports)) {
		p := &r.Ports[i]
		t.Begin()
		t.Text(p.Name)
		t.Uint(p.Packets)
		t.Uint(p.Bytes)
		t.Uint(p.Trims)
		t.Uint(p.Drops)
		t.Uint(p.Marks)
		t.Uint(p.MaxQueue)
		t.Float(p.Utilization, 4)
		t.Uint(p.ControlDrops)
		t.Uint(p.Pauses)
		t.Int(int64(p.Paused))
		t.Uint(p.HeaderMarks)
		if r.Sampled {
			t.Float(p.MeanQueue, 1)
			t.Float(p.P99Queue, 0)
		}
	}
	return t
}

func tierTable(r *Report) *sim.Table {
	t := &sim.Table{Columns: []string{"tier", "ports", "packets", "bytes", "trims", "drops", "ecn_marks",
		"max_data_queue_bytes",
		"mean_utilisation", "max_utilisation", "imbalance", "ecn_header_marks"}}
	if r.Sampled {
		t.Columns = append(t.Columns, "mean_data_queue_bytes", "p99_data_queue_bytes")
	}
	for i := range r.Tiers {
		s := &r.Tiers[i]
		t.Begin()
		t.Text(s.Name)
		t.Int(int64(s.Ports))
		t.Uint(s.Packets)
		t.Uint(s.Bytes)
		t.Uint(s.Trims)
		t.Uint(s.Drops)
		t.Uint(s.Marks)
		t.Uint(s.MaxQueue)
		t.Float(s.MeanUtilization, 4)
		t.Float(s.MaxUtilization, 4)
		t.Float(s.Imbalance, 4)
		t.Uint(s.HeaderMarks)
		if r.Sampled {
			t.Float(s.MeanQueue, 1)
			t.Float(s.P99Queue, 0)
		}
	}
	return t
}

func sizeTable(r *Report) *sim.Table {
	t := &sim.Table{Columns: []string{"bytes", "count", "mean_ps", "p50_ps", "p99_ps", "max_ps", "mean_slowdown",
		"p99_slowdown"}}
	for i := range r.Sizes {
		s := &r.Sizes[i]
		t.Begin()
		t.Uint(s.Bytes)
		t.Int(int64(s.FCT.Count))
		for _, v := range []float64{s.FCT.Mean, s.FCT.P50, s.FCT.P99, s.FCT.Max} {
			t.Float(v, 0)
		}
		t.Float(s.Slowdown.Mean, 4)
		t.Float(s.Slowdown.P99, 4)
	}
	return t
}

// busiestPorts is the number of ports in the human-readable table.
const busiestPorts = 5

// summary returns the summary lines.
func summary(r *Report, goodput float64) (rows []sim.Row) {
	row := func(label, format string, args ...any) { rows = append(rows, sim.Rowf(label, format, args...)) }
	time := func(v float64) dag.Time { return dag.Time(math.Round(v)) }
	if n := r.Incomplete; n > 0 {
		row("flows", "%d, %d of them incomplete", len(r.Flows), n)
	} else {
		row("flows", "%d", len(r.Flows))
	}
	if r.window.Limits() {
		rows = append(rows, r.window.Row(len(r.Flows), r.Excluded))
	}
	if d := r.FCT; d.Count > 0 {
		row("FCT at sender", "mean %v, p50 %v, p99 %v, p99.9 %v, max %v", time(d.Mean), time(d.P50), time(d.P99),
			time(d.P999), time(d.Max))
	}
	if d := r.Delivered; d.Count > 0 {
		row("delivered", "mean %v, p50 %v, p99 %v, p99.9 %v, max %v", time(d.Mean), time(d.P50), time(d.P99),
			time(d.P999), time(d.Max))
	}
	if d := r.Slowdown; d.Count > 0 {
		row("slowdown", "mean %.4g, p50 %.4g, p99 %.4g, p99.9 %.4g, max %.4g", d.Mean, d.P50, d.P99, d.P999, d.Max)
	}
	row("goodput", "%.4g Gb/s, Jain's index of flows %.4g", goodput, r.Jain)
	c := &r.Counters
	headerMarks := ""
	if c.HeaderMarks > 0 {
		headerMarks = fmt.Sprintf(", %d marks of trimmed headers", c.HeaderMarks)
	}
	row("switches", "%d trims, %d drops, %d control packet drops, %d marks%s, longest queue %s", c.TrimsArriving+
		c.TrimsTail, c.Drops, c.ControlDrops, c.Marks, headerMarks, roughly(c.MaxDataQueue))
	if c.Pauses > 0 {
		row("pauses", "%d", c.Pauses)
	}
	if len(r.Deadlock) > 0 {
		row("PFC deadlock", "since %v, of %d paused ports", r.DeadlockSince, len(r.Deadlock))
	}
	row("senders", "%d retransmissions, %d NACKs", c.Retransmitted, c.Nacks)
	return rows
}

// printPorts prints the tiers, and the busiest ports.
func printPorts(w io.Writer, r *Report) {
	fmt.Fprint(w, "\nports\tnumber\tpackets\tbytes\tmean utilization\tmax utilization"+
		"\timbalance\ttrims\tdrops\tmarks\tlongest queue")
	if r.Sampled {
		fmt.Fprint(w, "\tmean\tp99")
	}
	fmt.Fprintln(w)
	for i := range r.Tiers {
		s := &r.Tiers[i]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%.1f%%\t%.1f%%\t%.3g\t%d\t%d\t%d\t%s", s.Name, s.Ports, s.Packets,
			roughly(s.Bytes), 100*s.MeanUtilization, 100*s.MaxUtilization, s.Imbalance, s.Trims, s.Drops, s.Marks,
			roughly(s.MaxQueue))
		printSampled(w, r.Sampled, s.MeanQueue, s.P99Queue)
	}
	if len(r.Ports) == 0 {
		return
	}
	fmt.Fprintln(w, "\nbusiest ports\t\tpackets\tbytes\tutilization\t\t\ttrims\tdrops\tmarks\tlongest queue")
	for i := range min(busiestPorts, len(r.Ports)) {
		q := &r.Ports[i]
		fmt.Fprintf(w, "%s\t\t%d\t%s\t%.1f%%\t\t\t%d\t%d\t%d\t%s", q.Name, q.Packets, roughly(q.Bytes),
			100*q.Utilization, q.Trims, q.Drops, q.Marks, roughly(q.MaxQueue))
		printSampled(w, r.Sampled, q.MeanQueue, q.P99Queue)
	}
}

// roughly formats a size with three digits in a suitable unit.
func roughly(bytes uint64) string {
	v, unit := float64(bytes), 0
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	for ; v >= 999.5 && unit+1 < len(units); unit++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + units[unit]
}

func printSampled(w io.Writer, sampled bool, mean, p99 float64) {
	if sampled {
		fmt.Fprintf(w, "\t%s\t%s", roughly(uint64(mean)), roughly(uint64(p99)))
	}
	fmt.Fprintln(w)
}

// incomplete describes the incomplete flows.
func incomplete(r *Report) (messages []string) {
	if len(r.Deadlock) > 0 {
		messages = append(messages, fmt.Sprintf("PFC deadlock since %v: the paused ports %s wait for each other; "+
			"use a topology and load balancing without cycles, such as a fat tree, or a transport with drops or "+
			"trimming",
			r.DeadlockSince, strings.Join(r.Deadlock, ", ")))
	}
	count := 0
	for i := range r.Flows {
		f := &r.Flows[i]
		if f.Acknowledged > 0 {
			continue
		}
		if count++; count > listedMissing {
			return append(messages, fmt.Sprintf("and %d more", r.Incomplete-listedMissing))
		}
		state := "was never delivered"
		if f.Delivered > 0 {
			state = "was delivered, but its sender received no final ACK"
		}
		messages = append(messages, fmt.Sprintf("flow %d from host %d to host %d, %d bytes, started at %v, %s", f.ID,
			f.Source, f.Target, f.Bytes, f.Start, state))
	}
	return messages
}
