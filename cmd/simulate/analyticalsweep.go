// This file has the parameters of the analytical backend: what a sweep can vary, and what a result says of them.

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim/analytical"
)

// analyticalParameter is a number of the backend's configuration.
type analyticalParameter struct {
	name  string // in sweeps
	field string // in results, where its unit is a part of it; "": several parameters set at the same time
	parse func(string) (*big.Rat, error)
	set   func(*analytical.Network, *analytical.System, setting)
	get   func(*analytical.Network, *analytical.System) any
}

// table lists the parameters of the network and the system. What sets a number of several dimensions comes before what
// sets that of one.
func (b *analyticalBackend) table() []analyticalParameter {
	type network = *analytical.Network
	type system = *analytical.System
	var all, single []analyticalParameter
	for _, link := range []struct {
		name, unit string
		parse      func(string) (*big.Rat, error)
		of         func(*analytical.Dim) *float64
	}{
		{"bw", "GiBps", parseBandwidth, func(d *analytical.Dim) *float64 { return &d.Bandwidth }},
		{"lat", "ns", parseNanoseconds, func(d *analytical.Dim) *float64 { return &d.Latency }},
	} {
		all = append(all, analyticalParameter{link.name, "", link.parse, func(n network, _ system, v setting) {
			for d := range n.Dims {
				*link.of(&n.Dims[d]) = v.float()
			}
		}, nil})
		for d := range b.network.Dims {
			name := fmt.Sprintf("%s%d", link.name, d)
			single = append(single, analyticalParameter{name, name + "_" + link.unit, link.parse,
				func(n network, _ system, v setting) { *link.of(&n.Dims[d]) = v.float() },
				func(n network, _ system) any { return *link.of(&n.Dims[d]) }})
		}
	}
	all = append(append(all, single...),
		analyticalParameter{"splits", "splits", parseCount(analytical.MaxSplits),
			func(_ network, s system, v setting) { s.Splits = int(v.rounded()) },
			func(_ network, s system) any { return s.Splits }},
		analyticalParameter{"active-chunks", "active_chunks", parseCount(math.MaxInt32),
			func(_ network, s system, v setting) { s.ActiveChunks = int(v.rounded()) },
			func(_ network, s system) any { return s.ActiveChunks }},
		analyticalParameter{"queues", "queues", parseCount(analytical.MaxQueues),
			func(_ network, s system, v setting) { s.Queues = int(v.rounded()) },
			func(_ network, s system) any { return s.Queues }},
		analyticalParameter{"endpoint-delay", "endpoint_delay_ns", parseDelay,
			func(_ network, s system, v setting) { s.EndpointDelay = v.rounded() },
			func(_ network, s system) any { return s.EndpointDelay }},
		analyticalParameter{"local-mem-bw", "local_mem_bw_GBps", parseNumber,
			func(_ network, s system, v setting) { s.LocalMemBW = v.float() },
			func(_ network, s system) any { return s.LocalMemBW }})
	if b.system.Roofline {
		all = append(all, analyticalParameter{"peak-perf", "peak_perf_TFLOPS", parseNumber,
			func(_ network, s system, v setting) { s.PeakPerf = v.float() },
			func(_ network, s system) any { return s.PeakPerf }})
	}
	return all
}

func (b *analyticalBackend) parameters() []parameter {
	var all []parameter
	for _, p := range b.table() {
		all = append(all, parameter{p.name, p.parse})
	}
	return all
}

// with returns the configuration with the given settings.
func (b *analyticalBackend) with(settings []setting) (analytical.Network, analytical.System) {
	network, system := b.network, b.system
	network.Dims = slices.Clone(network.Dims)
	for _, p := range b.table() {
		for _, s := range settings {
			if s.name == p.name {
				p.set(&network, &system, s)
			}
		}
	}
	return network, system
}

// float returns the double that is nearest to the value.
func (s setting) float() float64 {
	v, _ := s.value.Float64()
	return v
}

func parseNumber(text string) (*big.Rat, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1e300) {
		return nil, fmt.Errorf("expected a number of 0 or more, found %q", text)
	}
	return new(big.Rat).SetFloat64(v), nil
}

// parseBandwidth reads a number of 2^30 bytes a second, which ASTRA-sim calls GB/s.
func parseBandwidth(text string) (*big.Rat, error) {
	v, err := parseNumber(strings.TrimSuffix(text, "GB/s"))
	if err == nil && v.Sign() == 0 {
		err = fmt.Errorf("expected a number above 0, found %q", text)
	}
	return v, err
}

// parseNanoseconds reads a time, which without a unit is in nanoseconds.
func parseNanoseconds(text string) (*big.Rat, error) {
	if v, err := parseNumber(text); err == nil {
		return v, nil
	}
	t, err := units.ParseTime(text, 0)
	return big.NewRat(int64(t), 1000), err
}

// parseDelay reads a time of at most a second or two.
func parseDelay(text string) (*big.Rat, error) {
	v, err := parseNanoseconds(text)
	if err == nil && v.Cmp(big.NewRat(math.MaxInt32, 1)) > 0 {
		err = fmt.Errorf("expected at most %d ns, found %q", math.MaxInt32, text)
	}
	return v, err
}

// parseCount returns what reads a whole number from 1 to most.
func parseCount(most int64) func(string) (*big.Rat, error) {
	return func(text string) (*big.Rat, error) {
		n, err := units.ParseCount(text, 1, most)
		return new(big.Rat).SetInt64(n), err
	}
}

// analyticalParams are the parameters of a run as its result has them.
type analyticalParams struct {
	network analytical.Network
	names   []string
	values  []any
}

func (b *analyticalBackend) parametersOf(n analytical.Network, s analytical.System) analyticalParams {
	p := analyticalParams{network: n}
	for _, known := range b.table() {
		if known.field != "" {
			p.names, p.values = append(p.names, known.field), append(p.values, known.get(&n, &s))
		}
	}
	p.names = append(p.names, "system", "memory")
	p.values = append(p.values, b.flags.system, b.memory.Kind.String())
	return p
}

// MarshalJSON returns the shape of the network, and then the rest.
func (p analyticalParams) MarshalJSON() ([]byte, error) {
	b := fmt.Appendf(nil, `{"network":%q`, p.network.Shape())
	for i, name := range p.names {
		value, err := json.Marshal(p.values[i])
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(b, `,%q:%s`, name, value)
	}
	return append(b, '}'), nil
}

// String returns the parameters for the table.
func (p analyticalParams) String() string {
	text := p.network.String()
	for i, name := range p.names {
		if !strings.HasPrefix(name, "bw") && !strings.HasPrefix(name, "lat") && p.values[i] != "" {
			text += fmt.Sprintf(" %s=%v", name, p.values[i])
		}
	}
	return text
}
