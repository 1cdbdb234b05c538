// This file applies parameters that were estimated from measured times, and has what the estimate needs to know.

package packet

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/platform"
	"github.com/tracedag/tracedag/sim/topology"
)

// fittedSettings are the parameters of a file with their options.
var fittedSettings = []fit.Setting{
	{Parameter: "o", Option: "o", Unit: "s", Scale: 1e9},
	{Parameter: "mss", Option: "mss", Unit: "B", Scale: 1},
	{Parameter: "header_size", Option: "header-size", Unit: "B", Scale: 1},
	{Parameter: "latency_factor", Option: "latency-factor", Unit: "1", Scale: 1},
	{Parameter: "bandwidth_factor", Option: "bandwidth-factor", Unit: "1", Scale: 1},
}

// setParams sets the parameters of a file that the fit of measured times wrote.
func (b *backend) setParams(name string) error {
	f, err := fit.ReadFile(name)
	if err != nil {
		return err
	}
	settings, err := Settings(f)
	if err == nil && !b.chosen && f.Model != "" {
		err = b.setTransport(f.Model)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := b.Params().SetNamed(settings); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.fitted, b.topology = f, f.Beside(name)
	return nil
}

// Settings returns the settings of the backend, each a name and its value, that apply the parameters of a file. Its
// topology and its model, the transport, are beside them.
func Settings(f *fit.File) (settings [][2]string, err error) {
	err = f.Apply(Backend.Name, fittedSettings, func(option, text string) error {
		settings = append(settings, [2]string{option, text})
		return nil
	})
	return settings, err
}

// scale applies the factors of latencies and rates to the network.
func (b *backend) scale() error {
	if b.latencyFactor == 1 && b.bandwidthFactor == 1 {
		return nil
	}
	if b.platform != nil {
		return b.platform.Scale(b.latencyFactor, b.bandwidthFactor)
	}
	return b.network.Scale(b.latencyFactor, b.bandwidthFactor)
}

// Routes has the times of messages alone in a network. It is not safe for concurrent use.
type Routes struct {
	name     string
	ctx      context.Context
	platform *platform.Platform // nil: network
	hosts    int
	timer    *idealTimer            // of the network
	timers   map[[2]int]*idealTimer // of the platform, by hosts
}

// NewRoutes returns the routes of a network, as --topology names it.
func NewRoutes(ctx context.Context, network string) (*Routes, error) {
	b := newBackend()
	b.topology = network
	if err := b.load(); err != nil {
		return nil, err
	}
	r := &Routes{name: network, ctx: ctx, platform: b.platform, timers: make(map[[2]int]*idealTimer)}
	if b.platform != nil {
		r.hosts = len(b.platform.Hosts)
		return r, nil
	}
	r.hosts = b.network.Hosts
	var err error
	r.timer, err = newAloneTimer(ctx, b.network)
	return r, err
}

// newAloneTimer returns the timer of a network.
func newAloneTimer(ctx context.Context, n *topology.Network) (*idealTimer, error) {
	routes, err := topology.NewRoutes(ctx, n, nil)
	if err != nil {
		return nil, err
	}
	p, err := NewParams(DefaultTransport, CompatNone)
	if err != nil {
		return nil, err
	}
	p.Balance = Fixed
	return newIdealTimer(routes, &Options{Network: n, Params: p}, 0), nil
}

// Hosts returns the number of hosts.
func (r *Routes) Hosts() int { return r.hosts }

// Alone returns the latency of a path between two hosts and the time of the bytes of a message alone on its links, in
// seconds, with packets of a payload and a header in bytes.
func (r *Routes) Alone(from, to int, bytes, mss, header int64) (latency, transfer float64, err error) {
	if from < 0 || to < 0 || max(from, to) >= r.hosts {
		return 0, 0, fmt.Errorf("expected ranks below %d, the number of hosts of %s, found %d and %d", r.hosts, r.name,
			from, to)
	}
	timer, pair := r.timer, [2]int{from, to}
	if timer == nil {
		timer = r.timers[pair]
	}
	if timer == nil {
		n, err := topology.FromPlatform(r.platform, func(yield func(from, to uint32) bool) {
			yield(uint32(from), uint32(to))
		}, func(func(from, to uint32) bool) {})
		if err == nil {
			timer, err = newAloneTimer(r.ctx, n)
		}
		if err != nil {
			return 0, 0, err
		}
		r.timers[pair] = timer
	}
	timer.params.MSS, timer.header = mss, uint64(header)
	f := &Flow{Source: uint32(from), Target: uint32(to), Bytes: uint64(bytes)}
	route := timer.lay(f.Source, f.Target)
	if route == nil {
		return 0, 0, fmt.Errorf("expected a path between ranks %d and %d, found none", from, to)
	}
	all := timer.delivery(f, route)
	sum := uint64(0)
	for _, h := range timer.hops {
		sum += h.latency
	}
	return float64(sum) / float64(dag.Second), float64(all-sum) / float64(dag.Second), nil
}
