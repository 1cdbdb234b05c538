package flit

import (
	"fmt"
	"io"
	"slices"

	"github.com/tracedag/tracedag/sim"
)

// figures are the backend's part of a result: latencies, throughput, utilization of links and channels, stalls.
// docs/reference/backends/flit.md defines them.
type figures struct {
	*Report
	Use   *sim.Table `json:"link_use"` // by kind of link
	Links *sim.Table `json:"links"`    // replaces the full list of links

	use []linkUse
}

func newFigures(r *Report) *figures {
	f := &figures{Report: r, Links: linkTable(r, listedLinks), use: linkUses(r)}
	f.Use = &sim.Table{Columns: []string{"kind", "links", "flits", "mean_use", "max_use"}}
	for i := range f.use {
		u := &f.use[i]
		f.Use.Begin()
		f.Use.Text(u.kind)
		f.Use.Uint(u.links)
		f.Use.Uint(u.flits)
		f.Use.Float(u.mean, 4)
		f.Use.Float(u.most, 4)
	}
	return f
}

// linkUse is the utilization of the links of a kind; each direction of a link counts once.
type linkUse struct {
	kind         string
	links, flits uint64
	mean, most   float64 // from 0 to 1
}

// linkUses returns the utilization of links by kind, in the order of the kinds in the report.
func linkUses(r *Report) (uses []linkUse) {
	for i := range r.Links {
		l := &r.Links[i]
		u := useOf(uses, l.Kind)
		if u == nil {
			uses = append(uses, linkUse{kind: l.Kind})
			u = &uses[len(uses)-1]
		}
		u.links++
		u.flits += l.Flits
		u.most = max(u.most, l.Utilization)
	}
	for i := range uses {
		if all := r.Cycles * uses[i].links; all > 0 {
			uses[i].mean = float64(uses[i].flits) / float64(all)
		}
	}
	return uses
}

// useOf returns the utilization of the links of a kind, or nil if there are none.
func useOf(uses []linkUse, kind string) *linkUse {
	for i := range uses {
		if uses[i].kind == kind {
			return &uses[i]
		}
	}
	return nil
}

// meanUse returns the mean utilization of the links of a kind, or 0 if there are none.
func meanUse(uses []linkUse, kind string) float64 {
	if u := useOf(uses, kind); u != nil {
		return u.mean
	}
	return 0
}

// linkTable lists the busiest links.
func linkTable(r *Report, most int) *sim.Table {
	t := &sim.Table{Columns: []string{"from", "to", "kind", "flits", "use"}}
	if len(r.Links) > most {
		t.Shown = fmt.Sprintf("%d busiest of %d", most, len(r.Links))
	}
	for i, l := range busiest(r.Links) {
		if i == most {
			break
		}
		t.Begin()
		t.Text(l.From)
		t.Text(l.To)
		t.Text(l.Kind)
		t.Uint(l.Flits)
		t.Float(l.Utilization, 4)
	}
	return t
}

// rows returns the summary lines.
func (f *figures) rows() (rows []sim.Row) {
	row := func(label, format string, args ...any) { rows = append(rows, sim.Rowf(label, format, args...)) }
	r := f.Report
	row("cycles", "%d", r.Cycles)
	row("throughput", "%.4g flits per cycle and host, %d flits in %d packets", r.Accepted, r.Flits, r.Packets)
	if r.Packets == 0 {
		return rows
	}
	row("flit latency", "mean %.5g cycles, in the network %.5g", r.FlitLatency, r.FlitNetworkLatency)
	d := &r.Packet
	row("packet latency", "mean %.5g cycles, p50 %d, p95 %d, p99 %d, max %d", d.Mean, d.P50, d.P95, d.P99, d.Max)
	row("message latency", "mean %.5g cycles", r.MessageLatency)
	row("hops", "mean %.4g", r.Hops)
	return rows
}

// printTables prints the utilization of links and channels, and the stalls.
func (f *figures) printTables(w io.Writer) {
	r := f.Report
	if r.Packets == 0 {
		return
	}
	fmt.Fprintln(w, "\nlinks\tnumber\tflits\tmean utilization\tmax utilization")
	for _, u := range f.use {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f%%\t%.1f%%\n", u.kind, u.links, u.flits, 100*u.mean, 100*u.most)
	}
	fmt.Fprintln(w, "\nbusiest links\t\tflits\tutilization")
	for i, l := range busiest(r.Links) {
		if i == busiestLinks {
			break
		}
		fmt.Fprintf(w, "%s-%s\t\t%d\t%.1f%%\n", l.From, l.To, l.Flits, 100*l.Utilization)
	}
	fmt.Fprintln(w, "\ninput buffers\tVC\tpackets\tmean flits\tof capacity")
	for _, v := range r.VCs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.4g\t%.1f%%\n", v.Kind, v.VC, v.Packets, v.Occupancy, 100*v.Share)
	}
	fmt.Fprintln(w, "\nstalls\tcycles")
	for _, s := range r.Stalls {
		fmt.Fprintf(w, "%s\t%d\n", s.Cause, s.Cycles)
	}
}

// busiest returns the links of a report in descending order of flits.
func busiest(links []LinkReport) []LinkReport {
	sorted := slices.Clone(links)
	slices.SortStableFunc(sorted, func(x, y LinkReport) int {
		switch {
		case x.Flits > y.Flits:
			return -1
		case x.Flits < y.Flits:
			return 1
		}
		return 0
	})
	return sorted
}

// listedLinks is the largest number of links in a result, busiestLinks the number in the human-readable table.
const (
	listedLinks  = 1000
	busiestLinks = 5
)
