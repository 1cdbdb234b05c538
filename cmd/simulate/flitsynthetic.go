// This file runs synthetic traffic on the flit backend, for curves of latency over load.

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/sim/flit"
)

// defaultHotShare is the share of packets that go to hot hosts, where hotspot does not say.
const defaultHotShare = 0.1

// checkSynthetic reads the flags of synthetic traffic.
func (b *flitBackend) checkSynthetic() error {
	f, o, changed := &b.flags, b.common, b.cmd.Flags().Changed
	for _, name := range []string{"sweep", "timeline", "alone", "compare", "trace", "placement", "cores", "o"} {
		if changed(name) {
			return cli.Usagef("--%s and --synthetic exclude each other", name)
		}
	}
	if o.json && o.csv {
		return cli.Usagef("--json and --csv exclude each other")
	}
	if f.plot != "" {
		if _, err := plotFormat(f.plot); err != nil {
			return err
		}
		if err := b.p.CheckOutput(f.plot, true); err != nil {
			return err
		}
	}
	t, err := parsePattern(f.synthetic)
	if err != nil {
		return cli.Usagef("--synthetic: %v", err)
	}
	if b.network.Hosts < 2 {
		return cli.Usagef("--synthetic: expected a network of 2 hosts at least, found %d", b.network.Hosts)
	}
	if t.Pattern == flit.Adversarial {
		switch d := b.network.Dragonfly; {
		case d == nil:
			return cli.Usagef("--synthetic: adversarial traffic is for dragonflies")
		case t.Offset < 1 || t.Offset >= d.Groups:
			return cli.Usagef("--synthetic: adversarial+I: expected I from 1 to %d, found %d", d.Groups-1, t.Offset)
		}
	}
	if len(t.Hot) > 0 && int(slices.Max(t.Hot)) >= b.network.Hosts {
		return cli.Usagef("--synthetic: expected hosts 0 to %d, found %d", b.network.Hosts-1, slices.Max(t.Hot))
	}
	const most = 1 << 40
	switch {
	case f.warmup < 0 || f.warmup > most:
		return cli.Usagef("--warmup: expected 0 to %d cycles, found %d", int64(most), f.warmup)
	case f.measure < 1 || f.measure > most:
		return cli.Usagef("--measure: expected 1 to %d cycles, found %d", int64(most), f.measure)
	}
	t.Warmup, t.Measure = uint64(f.warmup), uint64(f.measure)
	axis := parameter{"load", b.parseLoad}
	loads, err := axis.axis(f.load)
	if err != nil {
		return cli.Usagef("--load: %v", err)
	}
	for _, load := range loads {
		t.Load, _ = load.Float64()
		b.traffic = append(b.traffic, t)
	}
	return nil
}

// parseLoad reads a load.
func (b *flitBackend) parseLoad(text string) (*big.Rat, error) {
	v, err := strconv.ParseFloat(text, 64)
	if most := float64(b.base.PacketFlits); err != nil || !(v >= 0 && v <= most) {
		return nil, fmt.Errorf("expected 0 to %v flits a cycle and host, found %q", most, text)
	}
	exact, ok := new(big.Rat).SetString(text) // so that distances are those of the text
	if !ok {
		exact = new(big.Rat).SetFloat64(v)
	}
	return exact, nil
}

// parsePattern reads a pattern such as adversarial+1 or hotspot:0.2:0,8.
func parsePattern(text string) (t flit.Traffic, err error) {
	name, rest, hasRest := strings.Cut(text, ":")
	name, offset, hasOffset := strings.Cut(name, "+")
	if err := t.Pattern.UnmarshalText([]byte(name)); err != nil {
		return t, err
	}
	switch {
	case hasOffset && t.Pattern != flit.Adversarial:
		return t, fmt.Errorf("expected an offset of adversarial only, found %q", text)
	case hasRest && t.Pattern != flit.Hotspot:
		return t, fmt.Errorf("expected a share of hotspot only, found %q", text)
	case t.Pattern == flit.Adversarial:
		t.Offset = 1
		if hasOffset {
			if t.Offset, err = strconv.Atoi(offset); err != nil {
				return t, fmt.Errorf("adversarial+I: expected a whole number, found %q", offset)
			}
		}
	case t.Pattern == flit.Hotspot:
		t.Share, t.Hot = defaultHotShare, []uint32{0}
		if hasRest {
			err = parseHotspot(rest, &t)
		}
	}
	return t, err
}

// parseHotspot reads SHARE or SHARE:HOST,...
func parseHotspot(text string, t *flit.Traffic) (err error) {
	share, hosts, some := strings.Cut(text, ":")
	if t.Share, err = strconv.ParseFloat(share, 64); err != nil || !(t.Share >= 0 && t.Share <= 1) {
		return fmt.Errorf("hotspot: expected a share of 0 to 1, found %q", share)
	}
	if !some {
		return nil
	}
	t.Hot = nil
	for host := range strings.SplitSeq(hosts, ",") {
		n, err := strconv.ParseUint(host, 10, 31)
		if err != nil {
			return fmt.Errorf("hotspot: expected the number of a host, found %q", host)
		}
		t.Hot = append(t.Hot, uint32(n))
	}
	return nil
}

// syntheticPoint is the outcome of synthetic traffic at a load.
type syntheticPoint struct {
	Backend string       `json:"backend"`
	Model   string       `json:"model"` // the routing
	Params  flitParams   `json:"params"`
	Traffic flit.Traffic `json:"traffic"`
	Error   string       `json:"error,omitempty"`
	*flitResult
}

// standsAlone reports whether there is no trace to run.
func (b *flitBackend) standsAlone() bool {
	return b.traffic != nil
}

// runAlone runs synthetic traffic at all loads, several at the same time. A deadlock at one does not stop the others.
func (b *flitBackend) runAlone(args []string) error {
	if len(args) > 0 {
		return cli.Usagef("--synthetic needs no trace, found %q", args[0])
	}
	out, err := b.p.Create("", false)
	if err != nil {
		return err
	}
	defer out.Close()
	var picture *cli.Output
	if b.flags.plot != "" {
		if picture, err = b.p.Create(b.flags.plot, true); err != nil {
			return err
		}
		defer picture.Close()
	}
	each := b.flags.warmup + b.flags.measure
	progress := b.p.Progress("simulating", each*int64(len(b.traffic)), "cycles")
	points := make([]syntheticPoint, len(b.traffic))
	threads := 1 // of each load
	if len(points) == 1 {
		if threads = 0; b.cmd.Flags().Changed("threads") {
			threads = b.common.threads
		}
	}
	err = par.EachOn(b.common.threads, len(points), func(i int) error {
		pt := &points[i]
		*pt = syntheticPoint{Backend: "flit", Model: b.base.Routing.String(), Params: flitParams(b.base), Traffic: b.traffic[i]}
		seen := int64(0)
		r, err := flit.RunSynthetic(flit.SyntheticOptions{Network: b.network, Params: b.base, Traffic: b.traffic[i], Threads: threads,
			Progress: func(cycle uint64) error {
				progress.Add(int64(cycle) - seen)
				seen = int64(cycle)
				return nil
			}})
		progress.Add(each - seen)
		if deadlock := (*flit.DeadlockError)(nil); errors.As(err, &deadlock) {
			pt.Error = err.Error()
			return nil
		} else if err != nil {
			return err // of the network, whatever the load
		}
		pt.flitResult = newFlitResult(r)
		r.Links = nil // there may be many, and the tables have them
		return nil
	})
	progress.Close()
	if err != nil {
		return err
	}
	failed := 0
	for i := range points {
		switch pt := &points[i]; {
		case pt.Error != "":
			failed++
			b.p.Error("load %v: %s", pt.Traffic.Load, pt.Error)
		default:
			wall := pt.Wall.Seconds()
			b.p.Explain("load %v: %d cycles in %.3f s, %.4g cycles/s, %.4g events/s", pt.Traffic.Load, each, wall,
				float64(each)/wall, float64(pt.Events)/wall)
		}
	}
	if err := b.writePoints(out, points); err != nil {
		return err
	}
	if picture != nil {
		format, _ := plotFormat(b.flags.plot) // checked
		if err := plotCurve(picture, format, points); err != nil {
			return fmt.Errorf("drawing %s: %w", b.flags.plot, err)
		}
		if err := picture.Commit(); err != nil {
			return err
		}
	}
	if err := out.Commit(); err != nil {
		return err
	}
	if failed > 0 {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

func (b *flitBackend) writePoints(out io.Writer, points []syntheticPoint) error {
	switch {
	case b.common.json:
		for i := range points {
			line, err := marshal(&points[i])
			if err != nil {
				return fmt.Errorf("writing a result: %w", err)
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	case b.common.csv:
		return writeSyntheticCSV(out, points)
	}
	return b.printSynthetic(out, points)
}

// syntheticColumns are those of comma-separated values.
var syntheticColumns = []string{"pattern", "routing", "load", "applied_load", "accepted_load", "packet_latency_mean",
	"packet_latency_p50", "packet_latency_p95", "packet_latency_p99", "packet_latency_max", "packet_injection_latency",
	"packet_network_latency", "flit_latency", "flit_network_latency", "hops", "packets", "dropped", "host_use", "local_use",
	"global_use", "error"}

func writeSyntheticCSV(w io.Writer, points []syntheticPoint) error {
	table := csv.NewWriter(w)
	records := [][]string{syntheticColumns}
	for i := range points {
		pt := &points[i]
		record := make([]string, len(syntheticColumns))
		record[0], record[1], record[2] = patternName(&pt.Traffic), pt.Model, fmt.Sprint(pt.Traffic.Load)
		record[len(record)-1] = pt.Error
		if pt.flitResult != nil {
			r, d := pt.Report, &pt.Packet
			cells := []string{number6(r.Applied), number6(r.Accepted), number6(d.Mean), fmt.Sprint(d.P50), fmt.Sprint(d.P95),
				fmt.Sprint(d.P99), fmt.Sprint(d.Max), number6(r.InjectionLatency), number6(r.NetworkLatency), number6(r.FlitLatency),
				number6(r.FlitNetworkLatency), number6(r.Hops), fmt.Sprint(r.Packets), fmt.Sprint(r.Dropped)}
			for _, kind := range []string{"host", "local", "global"} {
				cells = append(cells, number6(meanUse(pt.use, kind)))
			}
			copy(record[3:], cells)
		}
		records = append(records, record)
	}
	return table.WriteAll(records)
}

// patternName returns a pattern as parsePattern reads it.
func patternName(t *flit.Traffic) string {
	switch t.Pattern {
	case flit.Adversarial:
		return fmt.Sprintf("%v+%d", t.Pattern, t.Offset)
	case flit.Hotspot:
		text := fmt.Sprintf("%v:%v:", t.Pattern, t.Share)
		for i, host := range t.Hot {
			if i > 0 {
				text += ","
			}
			text += strconv.FormatUint(uint64(host), 10)
		}
		return text
	}
	return t.Pattern.String()
}

// printSynthetic prints the table for people.
func (b *flitBackend) printSynthetic(w io.Writer, points []syntheticPoint) error {
	params := flitParams(b.base)
	fmt.Fprintf(w, "%s, routing %v, %d hosts, links of %.4g Gb/s, %d cycles measured after %d\n%v\n\n", patternName(&points[0].Traffic),
		b.base.Routing, b.network.Hosts, params.linkRate(), b.flags.measure, b.flags.warmup, params)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "load\tapplied\taccepted\tlatency\tp50\tp99\tmax\tnetwork\thops\tdropped\tlocal use\tglobal use\t")
	for i := range points {
		pt := &points[i]
		if pt.flitResult == nil {
			fmt.Fprintf(tab, "%.4g\tfailed\t\n", pt.Traffic.Load)
			continue
		}
		d := &pt.Packet
		fmt.Fprintf(tab, "%.4g\t%.4f\t%.4f\t%.1f\t%d\t%d\t%d\t%.1f\t%.3f\t%d\t%.1f%%\t%.1f%%\t\n", pt.Traffic.Load, pt.Applied, pt.Accepted,
			d.Mean, d.P50, d.P99, d.Max, pt.NetworkLatency, pt.Hops, pt.Dropped, 100*meanUse(pt.use, "local"),
			100*meanUse(pt.use, "global"))
	}
	return tab.Flush()
}
