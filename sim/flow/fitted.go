package flow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/topology"
)

// setParams sets the parameters of a file that the fit of measured times wrote.
func (b *backend) setParams(name string) error {
	f, err := fit.ReadFile(name)
	if err != nil {
		return err
	}
	settings, err := Settings(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := b.Params().SetNamed(settings); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if b.topology == "" {
		b.topology = f.Beside(name)
	}
	b.fitted = f
	return nil
}

// fittedTables are the tables of parameters by size: their flags, and the parameters of each segment of the file.
var fittedTables = []struct {
	flag   string
	values []string
	factor bool // by the bytes that travel, not by those of the message
}{
	{"os", []string{"os", "os_per_byte"}, false}, {"ois", []string{"ois", "ois_per_byte"}, false},
	{"or", []string{"or", "or_per_byte"}, false}, {"lat-factors", []string{"latency_factor"}, true},
	{"bw-factors", []string{"bandwidth_factor"}, true},
}

// fittedValues are the parameters of all sizes in the file, with their flags and units.
var fittedValues = []struct{ name, flag, unit string }{
	{"tcp_gamma", "tcp-gamma", "B"}, {"weight_s", "weight-s", "1"}, {"envelope", "envelope", "B"},
	{"async_small", "async-small", "B"}, {"detached", "detached", "B"},
}

// Settings returns the settings of the backend, each a name and its value, that apply a parameter file. The file must
// be one of this backend.
func Settings(f *fit.File) (settings [][2]string, err error) {
	if f.Backend != Backend.Name {
		return nil, fmt.Errorf("expected parameters of backend %s, found backend %q", Backend.Name, f.Backend)
	}
	if len(f.Segments) == 0 {
		return nil, errors.New("expected at least one segment of sizes")
	}
	add := func(name, value string) { settings = append(settings, [2]string{name, value}) }
	add("flow-model", f.Model)
	add("protocol", protocolSMPI)
	envelope := int64(DefaultEnvelope)
	known := 0
	for _, v := range fittedValues {
		p, is := f.Parameters[v.name]
		if !is {
			continue
		}
		known++
		switch {
		case p.Unit != v.unit:
			return nil, fmt.Errorf("%s is %g %s, expected the unit %s", v.name, p.Value, p.Unit, v.unit)
		case p.Value > largestFrom:
			return nil, fmt.Errorf("%s is %g %s, expected at most %g", v.name, p.Value, p.Unit, float64(largestFrom))
		case v.unit == "B":
			add(v.flag, strconv.FormatInt(int64(p.Value), 10))
		default:
			add(v.flag, decimal(p.Value))
		}
		if v.name == "envelope" {
			envelope = int64(p.Value)
		}
	}
	if p, is := f.Parameters["cross_traffic"]; is {
		known++
		if p.Unit != "1" || p.Value != 0 && p.Value != 1 {
			return nil, fmt.Errorf("cross_traffic is %g %s, expected 0 or 1", p.Value, p.Unit)
		}
		add("cross-traffic", strconv.FormatBool(p.Value == 1))
	}
	if known < len(f.Parameters) {
		return nil, fmt.Errorf("unknown parameter among %s, expected tcp_gamma, weight_s, envelope, async_small, "+
			"detached and cross_traffic", strings.Join(f.Names(), ", "))
	}
	if err := checkFitted(f); err != nil {
		return nil, err
	}
	for _, t := range fittedTables {
		text, last := "", ""
		for _, s := range f.Segments {
			value := ""
			for _, name := range t.values {
				p, is := s.Parameters[name]
				if !is && t.factor {
					return nil, fmt.Errorf("the segment from %d bytes lacks %s", s.From, name)
				}
				value += ":" + decimal(p.Value)
			}
			if value == last {
				continue
			}
			above := max(s.From-1, 0) // an entry applies above its size
			if t.factor && s.From > 0 {
				above += envelope
			}
			text, last = text+strconv.FormatInt(above, 10)+value+";", value
		}
		add(t.flag, strings.TrimSuffix(text, ";"))
	}
	return settings, nil
}

// checkFitted returns an error if a segment has an unknown parameter, or one of another unit.
func checkFitted(f *fit.File) error {
	units := map[string]string{}
	for _, t := range fittedTables {
		for i, name := range t.values {
			switch units[name] = "s"; {
			case t.factor:
				units[name] = "1"
			case i > 0:
				units[name] = "s/B"
			}
		}
	}
	for _, s := range f.Segments {
		for name, p := range s.Parameters {
			switch unit, known := units[name]; {
			case !known:
				return fmt.Errorf("the segment from %d bytes has the unknown parameter %q", s.From, name)
			case p.Unit != unit:
				return fmt.Errorf("the segment from %d bytes has %s in %s, expected %s", s.From, name, p.Unit, unit)
			}
		}
	}
	return nil
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Factors returns the latency and bandwidth factors by size of the models in which the latency weights flows.
func Factors() (all []fit.Factors) {
	for _, m := range models {
		if m.equal {
			continue
		}
		f := fit.Factors{Model: m.name, From: []int64{0}, Latency: []float64{m.latencyFactor},
			Bandwidth: []float64{m.bandwidthFactor}, WeightS: m.weightS}
		for i, l := range m.latencies { // those of bandwidths begin at the same sizes
			if i == 0 {
				f.Latency, f.Bandwidth = nil, nil
			} else {
				f.From = append(f.From, int64(l.above))
			}
			f.Latency, f.Bandwidth = append(f.Latency, l.factor), append(f.Bandwidth, m.bandwidths[i].factor)
		}
		all = append(all, f)
	}
	return all
}

// Routes returns a function for the routes between hosts of a network, as --topology names it, and the number of
// hosts. With cross-traffic, a link that is on the way back too has a lower rate. The function is not safe for
// concurrent use.
func Routes(ctx context.Context, network string, crossTraffic bool) (func(from, to int) (fit.Route, error), int,
	error) {
	b := newBackend()
	if err := (param.Set)(b.Params()).Apply(param.Texts{"topology": {network}}); err != nil {
		return nil, 0, err
	}
	if err := b.Check(nil); err != nil {
		return nil, 0, err
	}
	var found paths
	var links []link
	if b.platform != nil {
		g := newGiven(b.platform)
		found, links = g, g.solverLinks()
	} else {
		routes, err := topology.NewRoutes(ctx, b.network, nil)
		if err != nil {
			return nil, 0, err
		}
		s := newSelector(b.network, routes, b.balance, b.seed, b.entropy, false)
		found, links = s, s.links
	}
	hosts := b.size()
	m := model{equal: true, crossTraffic: crossTraffic, acks: simGridACKs}
	return func(from, to int) (fit.Route, error) {
		if from < 0 || to < 0 || max(from, to) >= hosts {
			return fit.Route{}, fmt.Errorf("expected ranks below %d, the number of hosts of %s, found %d and %d", hosts,
				network, from, to)
		}
		var there, back path
		if _, err := found.find(&there, uint32(from), uint32(to), 0, nil); err != nil {
			return fit.Route{}, err
		}
		if _, err := found.find(&back, uint32(to), uint32(from), 0, nil); err != nil {
			return fit.Route{}, err
		}
		var r route
		m.fill(&r, links, &there, &back)
		if math.IsInf(r.alone, 0) {
			return fit.Route{}, fmt.Errorf("expected links between ranks %d and %d, found none", from, to)
		}
		return fit.Route{Latency: r.latency / psPerSecond, Rate: r.alone}, nil
	}, hosts, nil
}
