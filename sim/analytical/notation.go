// This file parses and formats networks in the notation of the ASTRA-sim 2.0 paper (Won et al., ISPASS 2023, section
// IV-B), extended by bandwidths and latencies. docs/reference/backends/analytical.md describes it.

package analytical

import (
	"fmt"
	"strconv"
	"strings"
)

// shortNames are the short names of topologies.
var shortNames = [...]string{Ring: "R", FullyConnected: "FC", Switch: "SW"}

// ParseNetwork parses a network such as
//
//	Ring(4)_FC(2)_Switch(8)@100,50,25GB/s,50,500,1000ns
//
// or R(4)_SW(8)@100GB/s,500ns: the dimensions, then the link bandwidth of each in 2^30 bytes per second, as in
// ASTRA-sim's files, then the link latency of each. A single bandwidth or latency applies to all dimensions.
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
		d, err := parseDim(part)
		if err != nil {
			return n, err
		}
		n.Dims = append(n.Dims, d)
	}
	bandwidths, rest, found := strings.Cut(links, "GB/s")
	latencies, isTime := strings.CutSuffix(rest, "ns")
	latencies, isNext := strings.CutPrefix(latencies, ",")
	if !found || !isTime || !isNext {
		return n, fmt.Errorf("expected bandwidths and latencies such as 100,50GB/s,500,1000ns, found %q", links)
	}
	bandwidth, err := parseEach(bandwidths, len(n.Dims))
	if err != nil {
		return n, fmt.Errorf("bandwidth: %w", err)
	}
	latency, err := parseEach(latencies, len(n.Dims))
	if err != nil {
		return n, fmt.Errorf("latency: %w", err)
	}
	for i := range n.Dims {
		d := &n.Dims[i]
		d.Bandwidth, d.Latency = bandwidth[i], latency[i]
		switch {
		case !(d.Bandwidth > 0):
			return n, fmt.Errorf("expected a bandwidth above 0, found %v", d.Bandwidth)
		case !(d.Latency >= 0):
			return n, fmt.Errorf("expected a latency of at least 0, found %v", d.Latency)
		}
	}
	return n, nil
}

// parseDim parses a dimension such as Ring(4).
func parseDim(text string) (d Dim, err error) {
	name, count, _ := strings.Cut(text, "(")
	number, closed := strings.CutSuffix(count, ")")
	npus, err := strconv.ParseUint(number, 10, 31)
	if err != nil || !closed || npus < 2 {
		return d, fmt.Errorf("expected a dimension such as Ring(4) with at least 2 NPUs, found %q", text)
	}
	d.NPUs = int(npus)
	for t := range topologyNames {
		if name == topologyNames[t] || name == shortNames[t] {
			d.Topology = Topology(t)
			return d, nil
		}
	}
	return d, fmt.Errorf("expected Ring (R), FullyConnected (FC) or Switch (SW), found %q", name)
}

// parseEach parses comma-separated numbers: one per dimension, or one for all.
func parseEach(text string, dims int) ([]float64, error) {
	parts := strings.Split(text, ",")
	switch {
	case len(parts) == 1 || len(parts) == dims:
	case dims == 1:
		return nil, fmt.Errorf("expected 1 number, found %d", len(parts))
	default:
		return nil, fmt.Errorf("expected 1 number or %d, found %d", dims, len(parts))
	}
	values := make([]float64, dims)
	for d := range values {
		part := parts[min(d, len(parts)-1)]
		v, err := parseDecimal(part)
		if err != nil {
			return nil, fmt.Errorf("expected a number, found %q", part)
		}
		values[d] = v
	}
	return values, nil
}

// Shape returns the dimensions in the notation of [ParseNetwork], without links.
func (n *Network) Shape() string {
	var b strings.Builder
	for i, d := range n.Dims {
		if i > 0 {
			b.WriteByte('_')
		}
		fmt.Fprintf(&b, "%v(%d)", d.Topology, d.NPUs)
	}
	return b.String()
}

// String returns the network in the notation of [ParseNetwork].
func (n Network) String() string {
	return n.Shape() + "@" + n.each(func(d Dim) float64 { return d.Bandwidth }) + "GB/s," +
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
