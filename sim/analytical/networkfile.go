// This file reads ASTRA-sim's network configurations. docs/reference/backends/analytical.md lists their keys.

package analytical

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
)

// maxNetworkNPUs is the largest number of NPUs of a network.
const maxNetworkNPUs = 1 << 24

// ReadNetwork reads a network configuration file; name is the file name for errors and warnings. It calls warn for keys
// without effect; nil discards warnings.
func ReadNetwork(text []byte, name string, warn func(message string, args ...any)) (Network, error) {
	file, err := openYAML(text, name, warn)
	if err != nil {
		return Network{}, err
	}
	topologies := file.list("topology")
	npus, bandwidth, latency := file.list("npus_count"), file.list("bandwidth"), file.list("latency")
	for _, key := range []string{"npus_count", "bandwidth", "latency"} {
		if m := file.member(key); file.err == nil && len(m.list) != len(topologies) {
			file.fail(m.line, key, fmt.Sprintf("%d values, as many as topology has", len(topologies)),
				strconv.Itoa(len(m.list)))
		}
	}
	if file.err == nil && len(topologies) == 0 {
		file.fail(file.member("topology").line, "topology", "at least one dimension", "none")
	}
	var n Network
	for d := range topologies {
		if file.err != nil {
			break
		}
		n.Dims = append(n.Dims, Dim{
			Topology:  file.topology(topologies[d]),
			NPUs:      file.count(npus[d]),
			Bandwidth: file.number("bandwidth", bandwidth[d], "above 0", func(v float64) bool { return v > 0 }),
			Latency:   file.number("latency", latency[d], "of 0 or more", func(v float64) bool { return v >= 0 }),
		})
	}
	if file.err != nil {
		return Network{}, file.err
	}
	if err := n.checkSize(); err != nil {
		return Network{}, fmt.Errorf("%s:%d: npus_count: %w", name, file.member("npus_count").line, err)
	}
	file.warnUnknown("topology", "npus_count", "bandwidth", "latency")
	return n, nil
}

// checkSize returns an error if there are too many NPUs.
func (n *Network) checkSize() error {
	npus := 1
	for _, d := range n.Dims {
		if d.NPUs > maxNetworkNPUs/npus {
			return fmt.Errorf("expected at most %d NPUs, found more", maxNetworkNPUs)
		}
		npus *= d.NPUs
	}
	return nil
}

func (f *yamlFile) topology(v conf.Node) Topology {
	for t, name := range topologyNames {
		if v.Text == name {
			return Topology(t)
		}
	}
	f.fail(v.Line, "topology", "one of "+strings.Join(topologyNames[:], ", "), v.Text)
	return 0
}

func (f *yamlFile) count(v conf.Node) int {
	n, err := strconv.ParseUint(v.Text, 10, 31)
	if err != nil || n < 2 {
		f.fail(v.Line, "npus_count", "a whole number of 2 or more", v.Text)
	}
	return int(n)
}

func (f *yamlFile) number(key string, v conf.Node, expected string, good func(float64) bool) float64 {
	n, err := parseDecimal(v.Text)
	if err != nil || !good(n) {
		f.fail(v.Line, key, "a number "+expected, v.Text)
	}
	return n
}

// parseDecimal returns the double nearest to a decimal number.
func parseDecimal(text string) (float64, error) {
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, strconv.ErrSyntax
	}
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && math.IsInf(v, 0) {
		return 0, strconv.ErrRange
	}
	return v, err
}
