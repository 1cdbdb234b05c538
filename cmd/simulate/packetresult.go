// This file is what a result of the packet backend has beyond that of others: what became of messages, ports and tiers.
// docs/backends/packet.md has the definitions.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/packet"
)

// packetResult is the backend's part of a result.
type packetResult struct {
	Last      dag.Time        `json:"last_completion_ps"`
	FCT       json.RawMessage `json:"fct_ps,omitempty"`
	Delivered json.RawMessage `json:"delivered_ps,omitempty"`
	Slowdown  json.RawMessage `json:"slowdown,omitempty"`
	Goodput   float64         `json:"goodput_gbps"`
	Jain      float64         `json:"jain_fairness_of_flow_throughput"`
	Counters  packet.Counters `json:"counters"`
	Unlisted  int             `json:"flows_not_listed,omitempty"`
	Quantiles quantiles       `json:"fct_quantiles_ps,omitempty"`
	Sizes     *rowTable       `json:"fct_by_size,omitempty"`
	Missing   *missingFlows   `json:"incomplete_flows,omitempty"`
	Tiers     *rowTable       `json:"tiers,omitempty"`
	Ports     *rowTable       `json:"ports,omitempty"`
	Flows     *rowTable       `json:"flows,omitempty"`

	report *packet.Report
}

// listedPorts is up to how many ports a result lists, and listedFlows of how many flows that never ended it has details.
const (
	listedPorts   = 1000
	listedMissing = 20
)

func newPacketResult(r *packet.Report, maxFlows int) *packetResult {
	p := &packetResult{
		Last: r.Last, Jain: r.Jain, Counters: r.Counters, report: r, Tiers: tierTable(r), Sizes: sizeTable(r),
		FCT: distributionJSON(&r.FCT, picoseconds), Delivered: distributionJSON(&r.Delivered, picoseconds),
		Slowdown: distributionJSON(&r.Slowdown, number6),
		Ports:    portTable(r, listedPorts),
	}
	if r.Last > 0 {
		p.Goodput = float64(r.Bytes) * 8000 / float64(r.Last)
	}
	if len(r.Flows) <= maxFlows {
		p.Flows = flowTable(r, len(r.Flows))
	} else {
		p.Unlisted = len(r.Flows)
		p.Quantiles = newQuantiles(r)
	}
	if r.Incomplete > 0 {
		p.Missing = newMissingFlows(r)
	}
	return p
}

// packetColumns are the columns of sweeps.
var packetColumns = []string{"fct_mean_ps", "fct_p99_ps", "fct_max_ps", "slowdown_mean", "slowdown_p99", "trims", "drops",
	"ecn_marks", "max_data_queue_bytes", "incomplete_flows"}

// columns returns the cells of packetColumns, none of results of other backends.
func (p *packetResult) columns() []string {
	if p == nil {
		return nil
	}
	times, slowdowns := make([]string, 3), make([]string, 2) // empty cells for a distribution of nothing
	if fct := &p.report.FCT; fct.Count > 0 {
		times = []string{picoseconds(fct.Mean), picoseconds(fct.P99), picoseconds(fct.Max)}
	}
	if slowdown := &p.report.Slowdown; slowdown.Count > 0 {
		slowdowns = []string{number6(slowdown.Mean), number6(slowdown.P99)}
	}
	c := &p.Counters
	return append(append(times, slowdowns...),
		fmt.Sprint(c.TrimsArriving+c.TrimsTail), fmt.Sprint(c.Drops), fmt.Sprint(c.Marks), fmt.Sprint(c.MaxDataQueue),
		fmt.Sprint(p.report.Incomplete))
}

// distributionMembers are the members of distributions in results.
var distributionMembers = []string{"min", "mean", "p50", "p95", "p99", "p99.9", "max"}

// picoseconds formats a time, rounded to whole picoseconds.
func picoseconds(t float64) string { return strconv.FormatInt(int64(math.Round(t)), 10) }

// distributionJSON returns a distribution as results have it, nil if it is of nothing.
func distributionJSON(d *measure.Distribution[float64], format func(float64) string) json.RawMessage {
	if d.Count == 0 {
		return nil
	}
	return d.JSON("", format, distributionMembers...)
}

// quantiles are quantiles of the times of flows, in picoseconds.
type quantiles []int64

var quantilesListed = []float64{0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100}

func newQuantiles(r *packet.Report) quantiles {
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

// missingFlows are flows that never ended.
type missingFlows struct {
	Count int       `json:"count"`
	First *rowTable `json:"first"`
}

func newMissingFlows(r *packet.Report) *missingFlows {
	t := &rowTable{Columns: []string{"src", "dst", "bytes", "start_ps", "flow"}}
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Acknowledged == 0 && t.rows < listedMissing {
			t.begin()
			t.uint(uint64(f.Source))
			t.uint(uint64(f.Target))
			t.uint(f.Bytes)
			t.int(int64(f.Start))
			t.uint(uint64(f.ID))
		}
	}
	return &missingFlows{r.Incomplete, t}
}

// rowTable is rows of cells below columns, as JSON has it; it is text already, for there may be many.
type rowTable struct {
	Columns []string
	Shown   string // what is listed, if that is not all
	rows    int
	cells   []byte // of all rows, separated by commas; rows by newlines
}

func (t *rowTable) begin() {
	if t.rows > 0 {
		t.cells = append(t.cells[:len(t.cells)-1], '\n')
	}
	t.rows++
}

func (t *rowTable) uint(v uint64) { t.cells = append(strconv.AppendUint(t.cells, v, 10), ',') }
func (t *rowTable) int(v int64)   { t.cells = append(strconv.AppendInt(t.cells, v, 10), ',') }

// span adds the time from start to end, null if the end never came.
func (t *rowTable) span(start, end dag.Time) {
	if end == 0 {
		t.cells = append(t.cells, "null,"...)
		return
	}
	t.int(int64(end - start))
}

// float adds a number with so many digits after the point.
func (t *rowTable) float(v float64, digits int) {
	t.cells = append(strconv.AppendFloat(t.cells, v, 'f', digits, 64), ',')
}

func (t *rowTable) string(s string) {
	t.cells = append(strconv.AppendQuote(t.cells, s), ',')
}

// MarshalJSON returns an object with columns and rows.
func (t *rowTable) MarshalJSON() ([]byte, error) {
	columns, err := json.Marshal(t.Columns)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(t.cells)+2*t.rows+len(columns)+100)
	b = append(append(b, `{"columns":`...), columns...)
	if t.Shown != "" {
		b = fmt.Appendf(b, `,"shown":%q`, t.Shown)
	}
	b = append(b, `,"rows":[`...)
	if t.rows > 0 {
		b = append(b, '[')
		for _, c := range t.cells[:len(t.cells)-1] {
			if c == '\n' {
				b = append(b, "],["...)
			} else {
				b = append(b, c)
			}
		}
		b = append(b, ']')
	}
	return append(b, "]}"...), nil
}

// writeTable writes a table as comma-separated values; null is an empty cell.
func writeTable(w io.Writer, t *rowTable) {
	for i, column := range t.Columns {
		if i > 0 {
			io.WriteString(w, ",")
		}
		io.WriteString(w, column)
	}
	io.WriteString(w, "\n")
	if t.rows == 0 {
		return
	}
	text := t.cells[:len(t.cells)-1]
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] != '\n' {
			n++
		}
		writeCells(w, text[:n])
		io.WriteString(w, "\n")
		text = text[min(n+1, len(text)):]
	}
}

func writeCells(w io.Writer, row []byte) {
	start := 0
	for i := 0; i <= len(row); i++ {
		if i < len(row) && row[i] != ',' {
			continue
		}
		if cell := row[start:i]; string(cell) != "null" {
			w.Write(cell)
		}
		if i < len(row) {
			io.WriteString(w, ",")
		}
		start = i + 1
	}
}

// flowTable lists the first flows.
func flowTable(r *packet.Report, most int) *rowTable {
	t := &rowTable{Columns: []string{"src", "dst", "bytes", "start_ps", "fct_ps_at_sender", "delivered_ps_after_start", "flow",
		"retransmits", "nacks", "ideal_ps"}}
	for i := range min(most, len(r.Flows)) {
		f := &r.Flows[i]
		t.begin()
		t.uint(uint64(f.Source))
		t.uint(uint64(f.Target))
		t.uint(f.Bytes)
		t.int(int64(f.Start))
		t.span(f.Start, f.Acknowledged)
		t.span(f.Start, f.Delivered)
		t.uint(uint64(f.ID))
		t.uint(uint64(f.Retransmits))
		t.uint(uint64(f.Nacks))
		t.span(0, r.Ideal[i])
	}
	return t
}

// portTable lists the busiest ports.
func portTable(r *packet.Report, most int) *rowTable {
	t := &rowTable{Columns: []string{"port", "packets", "bytes", "trims", "drops", "ecn_marks", "max_data_queue_bytes",
		"utilisation_until_last_completion", "header_drops", "pfc_pauses", "pfc_paused_ps"}}
	if r.Sampled {
		t.Columns = append(t.Columns, "mean_data_queue_bytes", "p99_data_queue_bytes")
	}
	if len(r.Ports) > most {
		t.Shown = fmt.Sprintf("%d busiest of %d", most, len(r.Ports))
	}
	for i := range min(most, len(r.Ports)) {
		p := &r.Ports[i]
		t.begin()
		t.string(p.Name)
		t.uint(p.Packets)
		t.uint(p.Bytes)
		t.uint(p.Trims)
		t.uint(p.Drops)
		t.uint(p.Marks)
		t.uint(p.MaxQueue)
		t.float(p.Utilization, 4)
		t.uint(p.ControlDrops)
		t.uint(p.Pauses)
		t.int(int64(p.Paused))
		if r.Sampled {
			t.float(p.MeanQueue, 1)
			t.float(p.P99Queue, 0)
		}
	}
	return t
}

func tierTable(r *packet.Report) *rowTable {
	t := &rowTable{Columns: []string{"tier", "ports", "packets", "bytes", "trims", "drops", "ecn_marks", "max_data_queue_bytes",
		"mean_utilisation", "max_utilisation", "imbalance"}}
	if r.Sampled {
		t.Columns = append(t.Columns, "mean_data_queue_bytes", "p99_data_queue_bytes")
	}
	for i := range r.Tiers {
		s := &r.Tiers[i]
		t.begin()
		t.string(s.Name)
		t.int(int64(s.Ports))
		t.uint(s.Packets)
		t.uint(s.Bytes)
		t.uint(s.Trims)
		t.uint(s.Drops)
		t.uint(s.Marks)
		t.uint(s.MaxQueue)
		t.float(s.MeanUtilization, 4)
		t.float(s.MaxUtilization, 4)
		t.float(s.Imbalance, 4)
		if r.Sampled {
			t.float(s.MeanQueue, 1)
			t.float(s.P99Queue, 0)
		}
	}
	return t
}

func sizeTable(r *packet.Report) *rowTable {
	t := &rowTable{Columns: []string{"bytes", "count", "mean_ps", "p50_ps", "p99_ps", "max_ps", "mean_slowdown", "p99_slowdown"}}
	for i := range r.Sizes {
		s := &r.Sizes[i]
		t.begin()
		t.uint(s.Bytes)
		t.int(int64(s.FCT.Count))
		for _, v := range []float64{s.FCT.Mean, s.FCT.P50, s.FCT.P99, s.FCT.Max} {
			t.float(v, 0)
		}
		t.float(s.Slowdown.Mean, 4)
		t.float(s.Slowdown.P99, 4)
	}
	return t
}

// busiestPorts is how many ports the table for people has.
const busiestPorts = 5

// print adds the backend's part to the table for people: first the rows of one value, then tables.
func (p *packetResult) print(row func(what, format string, args ...any)) {
	r := p.report
	time := func(v float64) dag.Time { return dag.Time(math.Round(v)) }
	if n := r.Incomplete; n > 0 {
		row("flows", "%d, %d of them incomplete", len(r.Flows), n)
	} else {
		row("flows", "%d", len(r.Flows))
	}
	if d := r.FCT; d.Count > 0 {
		row("FCT at sender", "mean %v, p50 %v, p99 %v, p99.9 %v, max %v", time(d.Mean), time(d.P50), time(d.P99), time(d.P999),
			time(d.Max))
	}
	if d := r.Delivered; d.Count > 0 {
		row("delivered", "mean %v, p50 %v, p99 %v, p99.9 %v, max %v", time(d.Mean), time(d.P50), time(d.P99), time(d.P999),
			time(d.Max))
	}
	if d := r.Slowdown; d.Count > 0 {
		row("slow-down", "mean %.4g, p50 %.4g, p99 %.4g, p99.9 %.4g, max %.4g", d.Mean, d.P50, d.P99, d.P999, d.Max)
	}
	row("goodput", "%.4g Gb/s, Jain's index of flows %.4g", p.Goodput, r.Jain)
	c := &r.Counters
	row("switches", "%d trims, %d drops, %d drops of control packets, %d marks, longest queue %s", c.TrimsArriving+c.TrimsTail,
		c.Drops, c.ControlDrops, c.Marks, roughly(c.MaxDataQueue))
	if c.Pauses > 0 {
		row("pauses", "%d", c.Pauses)
	}
	row("senders", "%d packets sent again, %d nacks", c.Retransmitted, c.Nacks)
}

// printPorts prints the tiers, and the busiest ports.
func (p *packetResult) printPorts(w io.Writer) {
	r := p.report
	fmt.Fprint(w, "\nports\tnumber\tpackets\tbytes\tmean use\tmax use\timbalance\ttrims\tdrops\tmarks\tlongest queue")
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
	fmt.Fprintln(w, "\nbusiest ports\t\tpackets\tbytes\tuse\t\t\ttrims\tdrops\tmarks\tlongest queue")
	for i := range min(busiestPorts, len(r.Ports)) {
		q := &r.Ports[i]
		fmt.Fprintf(w, "%s\t\t%d\t%s\t%.1f%%\t\t\t%d\t%d\t%d\t%s", q.Name, q.Packets, roughly(q.Bytes),
			100*q.Utilization, q.Trims, q.Drops, q.Marks, roughly(q.MaxQueue))
		printSampled(w, r.Sampled, q.MeanQueue, q.P99Queue)
	}
}

// roughly returns a size in the unit that suits it, with three digits.
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

// explain says on stderr which messages never ended.
func (p *packetResult) explain(program *cli.Program, name string) {
	r := p.report
	if r.Incomplete == 0 {
		return
	}
	said := 0
	for i := range r.Flows {
		f := &r.Flows[i]
		if f.Acknowledged > 0 {
			continue
		}
		if said++; said > listedMissing {
			program.Info("%s: and %d more", name, r.Incomplete-listedMissing)
			return
		}
		what := "was never delivered"
		if f.Delivered > 0 {
			what = "was delivered, but its sender never knew"
		}
		program.Info("%s: flow %d from host %d to host %d, %d bytes, started at %v, %s", name, f.ID, f.Source, f.Target, f.Bytes,
			f.Start, what)
	}
}
