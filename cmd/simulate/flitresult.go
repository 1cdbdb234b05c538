// This file is what a result of the flit backend has beyond that of others: latencies, throughput, use of links and channels,
// stalls. docs/backends/flit.md has the definitions.

package main

import (
	"fmt"
	"io"

	"github.com/tracedag/tracedag/sim/flit"
)

// flitResult is the backend's part of a result.
type flitResult struct {
	*flit.Report
	Use   *rowTable `json:"link_use"` // by kind of link
	Links *rowTable `json:"links"`    // instead of all

	use []linkUse
}

func newFlitResult(r *flit.Report) *flitResult {
	f := &flitResult{Report: r, Links: linkTable(r, listedPorts), use: linkUses(r)}
	f.Use = &rowTable{Columns: []string{"kind", "links", "flits", "mean_use", "max_use"}}
	for i := range f.use {
		u := &f.use[i]
		f.Use.begin()
		f.Use.string(u.kind)
		f.Use.uint(u.links)
		f.Use.uint(u.flits)
		f.Use.float(u.mean, 4)
		f.Use.float(u.most, 4)
	}
	return f
}

// linkUse is the use of links of a kind, in one direction each.
type linkUse struct {
	kind         string
	links, flits uint64
	mean, most   float64 // 0 to 1
}

// linkUses returns the use of links by kind, in the order in which the report first has each.
func linkUses(r *flit.Report) (uses []linkUse) {
	for i := range r.Links {
		l := &r.Links[i]
		u := useOf(uses, l.Kind)
		if u == nil {
			uses = append(uses, linkUse{kind: l.Kind})
			u = &uses[len(uses)-1]
		}
		u.links++
		u.flits += l.Flits
		u.most = max(u.most, l.Use)
	}
	for i := range uses {
		if all := r.Cycles * uses[i].links; all > 0 {
			uses[i].mean = float64(uses[i].flits) / float64(all)
		}
	}
	return uses
}

// useOf returns the use of links of a kind, nil if there are none.
func useOf(uses []linkUse, kind string) *linkUse {
	for i := range uses {
		if uses[i].kind == kind {
			return &uses[i]
		}
	}
	return nil
}

// meanUse returns the mean use of links of a kind, 0 if there are none.
func meanUse(uses []linkUse, kind string) float64 {
	if u := useOf(uses, kind); u != nil {
		return u.mean
	}
	return 0
}

// linkTable lists the busiest links.
func linkTable(r *flit.Report, most int) *rowTable {
	t := &rowTable{Columns: []string{"from", "to", "kind", "flits", "use"}}
	if len(r.Links) > most {
		t.Shown = fmt.Sprintf("%d busiest of %d", most, len(r.Links))
	}
	for i, l := range busiest(r.Links) {
		if i == most {
			break
		}
		t.begin()
		t.string(l.From)
		t.string(l.To)
		t.string(l.Kind)
		t.uint(l.Flits)
		t.float(l.Use, 4)
	}
	return t
}

// flitColumns are the columns of sweeps.
var flitColumns = []string{"cycles", "accepted_load", "flit_latency", "flit_network_latency", "packet_latency_mean",
	"packet_latency_p99", "packet_latency_max", "message_latency", "host_use", "local_use", "global_use"}

// columns returns the cells of flitColumns, none of results of other backends.
func (f *flitResult) columns() []string {
	if f == nil {
		return nil
	}
	r := f.Report
	return []string{fmt.Sprint(r.Cycles), number6(r.Accepted), number6(r.FlitLatency), number6(r.FlitNetworkLatency),
		number6(r.Packet.Mean), fmt.Sprint(r.Packet.P99), fmt.Sprint(r.Packet.Max), number6(r.MessageLatency),
		number6(meanUse(f.use, "host")), number6(meanUse(f.use, "local")), number6(meanUse(f.use, "global"))}
}

// number6 returns a number with six digits.
func number6(v float64) string { return fmt.Sprintf("%.6g", v) }

// print adds the backend's part to the table for people: first the rows of one value.
func (f *flitResult) print(row func(what, format string, args ...any)) {
	r := f.Report
	row("cycles", "%d", r.Cycles)
	row("throughput", "%.4g flits a cycle and host, %d flits in %d packets", r.Accepted, r.Flits, r.Packets)
	if r.Packets == 0 {
		return
	}
	row("flit latency", "mean %.5g cycles, in the network %.5g", r.FlitLatency, r.FlitNetworkLatency)
	d := &r.Packet
	row("packet latency", "mean %.5g cycles, p50 %d, p95 %d, p99 %d, max %d", d.Mean, d.P50, d.P95, d.P99, d.Max)
	row("message latency", "mean %.5g cycles", r.MessageLatency)
	row("hops", "mean %.4g", r.Hops)
}

// printTables prints the use of links and channels, and the stalls.
func (f *flitResult) printTables(w io.Writer) {
	r := f.Report
	if r.Packets == 0 {
		return
	}
	fmt.Fprintln(w, "\nlinks\tnumber\tflits\tmean use\tmax use")
	for _, u := range f.use {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f%%\t%.1f%%\n", u.kind, u.links, u.flits, 100*u.mean, 100*u.most)
	}
	fmt.Fprintln(w, "\nbusiest links\t\tflits\tuse")
	for i, l := range busiest(r.Links) {
		if i == busiestPorts {
			break
		}
		fmt.Fprintf(w, "%s-%s\t\t%d\t%.1f%%\n", l.From, l.To, l.Flits, 100*l.Use)
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
