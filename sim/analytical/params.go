package analytical

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// number declares a number of the network or system configuration that a sweep can vary.
func number[T float64 | int | int64](name string,
	parse func(string) (*big.Rat, error), help string, at ...*T) param.Param {
	set := func(x *big.Rat) error {
		for _, at := range at {
			switch at := any(at).(type) {
			case *float64:
				*at, _ = x.Float64()
			case *int:
				n, err := param.Rounded(x)
				if err != nil {
					return err
				}
				*at = int(n)
			case *int64:
				n, err := param.Rounded(x)
				if err != nil {
					return err
				}
				*at = n
			}
		}
		return nil
	}
	text := func() string {
		if len(at) == 0 {
			return ""
		}
		return fmt.Sprint(*at[0])
	}
	return param.Custom("number", name, help, parse, set, text).Only().Sweep()
}

// numbers returns the table of the numbers that sweeps can vary. A number for all dimensions precedes those for single
// dimensions, which override it.
func (b *backend) numbers(n *Network, s *System) param.Set {
	var all, single param.Set
	var bandwidths, latencies []*float64
	for d := range n.Dims {
		dim := &n.Dims[d]
		bandwidths, latencies = append(bandwidths, &dim.Bandwidth), append(latencies, &dim.Latency)
	}
	for _, link := range []struct {
		name, help string
		parse      func(string) (*big.Rat, error)
		at         []*float64
	}{
		{"bw", "bandwidth in GiB/s", parseBandwidth, bandwidths},
		{"lat", "latency in ns", parseNanoseconds, latencies},
	} {
		all = append(all, number(link.name, link.parse, link.help+", of all dimensions", link.at...))
		for d, at := range link.at {
			single = append(single, number(fmt.Sprintf("%s%d", link.name, d), link.parse,
				fmt.Sprintf("%s, of dimension %d", link.help, d), at))
		}
	}
	all = append(append(all, single...),
		number("splits", parseCount(MaxSplits), "chunks per collective", &s.Splits),
		number("active-chunks", parseCount(math.MaxInt32), "concurrent chunks per rank", &s.ActiveChunks),
		number("queues", parseCount(MaxQueues), "queues per dimension", &s.Queues),
		number("endpoint-delay", parseDelay, "end-point delay of a message, in ns", &s.EndpointDelay),
		number("local-mem-bw", parseNumber, "local memory bandwidth, in GB/s", &s.LocalMemBW))
	if s.Roofline {
		all = append(all, number("peak-perf", parseNumber, "peak performance, in TFLOPS", &s.PeakPerf))
	}
	return all
}

func parseNumber(text string) (*big.Rat, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1e300) {
		return nil, fmt.Errorf("expected a number of 0 or more, found %q", text)
	}
	return new(big.Rat).SetFloat64(v), nil
}

// parseBandwidth parses a bandwidth in 2^30 bytes per second, which ASTRA-sim calls GB/s, or with a unit.
func parseBandwidth(text string) (*big.Rat, error) {
	number, unit := cutUnit(text)
	v, err := parseNumber(number)
	if err == nil && v.Sign() == 0 {
		err = fmt.Errorf("expected a number above 0, found %q", text)
	}
	if err != nil || unit == "" {
		return v, err
	}
	size, err := bandwidthUnit(unit)
	if err != nil {
		return nil, err
	}
	return v.Mul(v, new(big.Rat).SetFloat64(size)), nil
}

// parseNanoseconds parses a time; without a unit, it is in nanoseconds.
func parseNanoseconds(text string) (*big.Rat, error) {
	if v, err := parseNumber(text); err == nil {
		return v, nil
	}
	t, err := units.ParseTime(text, 0)
	return big.NewRat(int64(t), 1000), err
}

// parseDelay parses a time of at most 2^31-1 ns.
func parseDelay(text string) (*big.Rat, error) {
	v, err := parseNanoseconds(text)
	if err == nil && v.Cmp(big.NewRat(math.MaxInt32, 1)) > 0 {
		err = fmt.Errorf("expected at most %d ns, found %q", math.MaxInt32, text)
	}
	return v, err
}

// parseCount returns a parser of integers from 1 to most.
func parseCount(most int64) func(string) (*big.Rat, error) {
	return func(text string) (*big.Rat, error) {
		n, err := units.ParseCount(text, 1, most)
		return new(big.Rat).SetInt64(n), err
	}
}

// parametersOf returns the parameters of a run for its result.
func (b *backend) parametersOf(n *Network, s *System) sim.Values {
	var all sim.Values
	add := func(name string, value any) { all = append(all, sim.Value{Name: name, Value: value}) }
	add("network", n.Shape())
	for d := range n.Dims {
		add(fmt.Sprintf("bw%d_GiBps", d), n.Dims[d].Bandwidth)
	}
	for d := range n.Dims {
		add(fmt.Sprintf("lat%d_ns", d), n.Dims[d].Latency)
	}
	add("splits", s.Splits)
	add("active_chunks", s.ActiveChunks)
	add("queues", s.Queues)
	add("endpoint_delay_ns", s.EndpointDelay)
	add("local_mem_bw_GBps", s.LocalMemBW)
	if s.Roofline {
		add("peak_perf_TFLOPS", s.PeakPerf)
	}
	add("system", b.systemFile)
	add("memory", b.memory.Kind.String())
	return all
}

// settings formats the parameters of a run in one line.
func settings(n *Network, all sim.Values) string {
	text := n.String()
	for _, v := range all[1:] { // skip the shape of the network
		if !strings.HasPrefix(v.Name, "bw") && !strings.HasPrefix(v.Name, "lat") && v.Value != "" {
			text += fmt.Sprintf(" %s=%v", v.Name, v.Value)
		}
	}
	return text
}
