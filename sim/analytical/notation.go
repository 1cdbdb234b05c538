// This file parses and formats networks in the notation of the ASTRA-sim 2.0 paper (Won et al., ISPASS 2023, section
// IV-B), extended by bandwidths and latencies. docs/reference/backends/analytical.md describes it.

package analytical

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// shortNames are the short names of topologies.
var shortNames = [...]string{Ring: "R", FullyConnected: "FC", Switch: "SW"}

// systems are the networks of table I of the paper, 512 NPUs each. Every dimension is a Switch with the bandwidth of an
// NPU, which is what the table states; the latency of a link, which it does not, is 1 ns.
var systems = []struct{ name, network string }{
	{"w-1d-350", "Switch(512)@350GB/s,1ns"},
	{"w-1d-500", "Switch(512)@500GB/s,1ns"},
	{"w-1d-600", "Switch(512)@600GB/s,1ns"},
	{"w-2d", "Switch(32)_Switch(16)@250GB/s,1ns"},
	{"conv-3d", "Switch(16)_Switch(8)_Switch(4)@200,100,50GB/s,1ns"},
	{"conv-4d", "Switch(2)_Switch(8)_Switch(8)_Switch(4)@250,200,100,50GB/s,1ns"},
}

// systemNetwork returns the network of a system of the paper.
func systemNetwork(name string) (network string, found bool) {
	for _, s := range systems {
		if s.name == name {
			return s.network, true
		}
	}
	return "", false
}

// ParseNetwork parses a network such as
//
//	Ring(4)_FC(2)_Switch(8)@100,50,25GB/s,50,500,1000ns
//
// or R(4)_SW(8)@400Gbps,1us: the dimensions, then the link bandwidth of each, then the link latency of each. A single
// bandwidth or latency applies to all dimensions, and a unit to the numbers without one before it. GB/s and GiB/s are
// 2^30 bytes per second, as in ASTRA-sim's files; bandwidths in bits per second have decimal units. Switch(16*32) is a
// dimension of 512 NPUs in two halves, see Network.Inner.
func ParseNetwork(text string) (Network, error) {
	n, err := parseNetwork(text)
	if err == nil {
		err = n.checkSize()
	}
	if err != nil {
		return Network{}, fmt.Errorf("network %q: %w", text, err)
	}
	return n, nil
}

func parseNetwork(text string) (n Network, err error) {
	shape, links, found := strings.Cut(text, "@")
	if !found {
		return n, fmt.Errorf("expected @ followed by bandwidths and latencies, as in Ring(4)_FC(2)@100,50GB/s,500ns")
	}
	for _, part := range strings.Split(shape, "_") {
		d, inner, err := parseDim(part)
		if err != nil {
			return n, err
		}
		if inner > 0 && n.Inner == nil {
			n.Inner = make([]int, len(n.Dims))
		}
		n.Dims = append(n.Dims, d)
		if n.Inner != nil {
			n.Inner = append(n.Inner, inner)
		}
	}
	bandwidth, latency, err := parseLinks(links)
	if err == nil {
		err = checkCount("bandwidth", bandwidth, len(n.Dims))
	}
	if err == nil {
		err = checkCount("latency", latency, len(n.Dims))
	}
	if err != nil {
		return n, err
	}
	for i := range n.Dims {
		d := &n.Dims[i]
		d.Bandwidth, d.Latency = bandwidth[min(i, len(bandwidth)-1)], latency[min(i, len(latency)-1)]
		switch {
		case !(d.Bandwidth > 0) || math.IsInf(d.Bandwidth, 0):
			return n, fmt.Errorf("expected a bandwidth above 0, found %v", d.Bandwidth)
		case !(d.Latency >= 0) || math.IsInf(d.Latency, 0):
			return n, fmt.Errorf("expected a latency of at least 0, found %v", d.Latency)
		}
	}
	return n, nil
}

// parseDim parses a dimension such as Ring(4) or, in two halves, Switch(16*32).
func parseDim(text string) (d Dim, inner int, err error) {
	name, count, _ := strings.Cut(text, "(")
	number, closed := strings.CutSuffix(count, ")")
	low, high, halves := strings.Cut(number, "*")
	npus, err := strconv.ParseUint(low, 10, 31)
	if err != nil || !closed || npus < 2 {
		return d, 0, fmt.Errorf("expected a dimension such as Ring(4) with at least 2 NPUs, found %q", text)
	}
	if halves {
		outer, err := strconv.ParseUint(high, 10, 31)
		if err != nil || outer < 2 || npus*outer > maxNetworkNPUs {
			return d, 0, fmt.Errorf("expected halves such as Switch(16*32), of at least 2 NPUs each and at most %d "+
				"together, found %q", maxNetworkNPUs, text)
		}
		inner = int(npus)
		npus *= outer
	}
	d.NPUs = int(npus)
	for t := range topologyNames {
		if name == topologyNames[t] || name == shortNames[t] {
			d.Topology = Topology(t)
			if halves && d.Topology != Switch {
				return d, 0, fmt.Errorf("expected a Switch, whose groups have its full bandwidth, in two halves, "+
					"found %q", text)
			}
			return d, inner, nil
		}
	}
	return d, 0, fmt.Errorf("expected Ring (R), FullyConnected (FC) or Switch (SW), found %q", name)
}

// parseLinks parses bandwidths, in 2^30 bytes per second, and then latencies, in ns.
func parseLinks(text string) (bandwidths, latencies []float64, err error) {
	wrong := fmt.Errorf("expected bandwidths and latencies such as 100,50GB/s,500,1000ns or 400Gbps,1us, found %q",
		text)
	var numbers []float64 // those whose unit is still to come
	for part := range strings.SplitSeq(text, ",") {
		number, unit := cutUnit(part)
		v, err := parseDecimal(number)
		if err != nil {
			return nil, nil, fmt.Errorf("expected a number, found %q; bandwidths of all dimensions precede latencies, "+
				"separated by commas: 100,50GB/s,500,1000ns", part)
		}
		if numbers = append(numbers, v); unit == "" {
			continue
		}
		to := &latencies
		size, isTime := latencyUnit(unit)
		if !isTime {
			to = &bandwidths
			if size, err = bandwidthUnit(unit); err != nil {
				return nil, nil, err
			}
		}
		if isTime && len(bandwidths) == 0 || !isTime && len(latencies) > 0 {
			return nil, nil, wrong
		}
		for _, v := range numbers {
			*to = append(*to, v*size)
		}
		numbers = numbers[:0]
	}
	if len(numbers) > 0 || len(bandwidths) == 0 || len(latencies) == 0 {
		return nil, nil, wrong
	}
	return bandwidths, latencies, nil
}

// cutUnit splits a quantity into its number and its unit.
func cutUnit(text string) (number, unit string) {
	digits := strings.LastIndexAny(text, "0123456789.") + 1
	return text[:digits], text[digits:]
}

// latencyUnit returns a unit of time in ns.
func latencyUnit(unit string) (size float64, ok bool) {
	t, err := units.ParseTime("1"+unit, 0)
	return float64(t) / 1000, err == nil
}

// bandwidthUnit returns a unit of bandwidth in 2^30 bytes per second. Decimal multiples of bytes per second are
// refused, for GB/s is not one of them here.
func bandwidthUnit(unit string) (size float64, err error) {
	if unit == "GB/s" || unit == "GiB/s" {
		return 1, nil
	}
	if strings.HasSuffix(unit, "B/s") && !strings.HasSuffix(unit, "iB/s") {
		return 0, fmt.Errorf("expected bandwidths in GB/s, which is 2^30 bytes per second as in ASTRA-sim, GiB/s or "+
			"Gbps, found %s", unit)
	}
	rate, err := units.ParseRate("1"+unit, "")
	if err != nil || strings.HasSuffix(unit, "/B") {
		return 0, fmt.Errorf("expected a unit such as GB/s, Gbps, ns or us, found %q", unit)
	}
	perByte := rate.PerByte()
	size, _ = new(big.Rat).Quo(big.NewRat(int64(dag.Second), 1<<30), perByte).Float64()
	return size, nil
}

// checkCount returns an error unless there is one number per dimension, or one for all.
func checkCount(name string, numbers []float64, dims int) error {
	switch {
	case len(numbers) == 1 || len(numbers) == dims:
		return nil
	case dims == 1:
		return fmt.Errorf("%s: expected 1 number, found %d", name, len(numbers))
	}
	return fmt.Errorf("%s: expected 1 number or %d, found %d", name, dims, len(numbers))
}

// Shape returns the dimensions in the notation of [ParseNetwork], without links.
func (n *Network) Shape() string {
	var b strings.Builder
	for i, d := range n.Dims {
		if i > 0 {
			b.WriteByte('_')
		}
		if inner := n.inner(i); inner > 0 {
			fmt.Fprintf(&b, "%v(%d*%d)", d.Topology, inner, d.NPUs/inner)
			continue
		}
		fmt.Fprintf(&b, "%v(%d)", d.Topology, d.NPUs)
	}
	return b.String()
}

// String returns the network in the notation of [ParseNetwork], with the unambiguous GiB/s.
func (n Network) String() string {
	return n.Shape() + "@" + n.each(func(d Dim) float64 { return d.Bandwidth }) + "GiB/s," +
		n.each(func(d Dim) float64 { return d.Latency }) + "ns"
}

// each formats one number per dimension, or one number if all are equal.
func (n *Network) each(of func(Dim) float64) string {
	texts := make([]string, len(n.Dims))
	same := true
	for i, d := range n.Dims {
		texts[i] = strconv.FormatFloat(of(d), 'g', -1, 64)
		same = same && texts[i] == texts[0]
	}
	if same && len(texts) > 0 {
		return texts[0]
	}
	return strings.Join(texts, ",")
}
