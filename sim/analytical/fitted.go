// This file applies parameters that were estimated from measured times, and has what the estimate needs to know.

package analytical

import (
	"fmt"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/fit"
)

// fittedSettings are the parameters of a file for a network with their settings.
func fittedSettings(n *Network) (all []fit.Setting) {
	for d := range n.Dims {
		lat, bw := fmt.Sprintf("lat%d", d), fmt.Sprintf("bw%d", d)
		all = append(all, fit.Setting{Parameter: lat, Option: lat, Unit: "s", Scale: 1e9},
			fit.Setting{Parameter: bw, Option: bw, Unit: "B/s", Scale: 1.0 / (1 << 30)})
	}
	return all
}

// setParams reads a file that the fit of measured times wrote. Its parameters apply once the network is known.
func (b *backend) setParams(name string) (err error) {
	if b.fitted, err = fit.ReadFile(name); err != nil {
		return err
	}
	b.fittedFile, b.networkFile = name, b.fitted.Beside(name)
	return nil
}

// selectFitted selects the congestion of the parameter file unless the caller did.
func (b *backend) selectFitted() error {
	if b.fitted == nil || b.env.IsGiven("congestion") {
		return nil
	}
	switch b.fitted.Model {
	case "unaware", "aware":
		b.congestion = b.fitted.Model
	default:
		return fmt.Errorf("%s: expected the model unaware or aware, found %q", b.fittedFile, b.fitted.Model)
	}
	return nil
}

// applyFitted applies the parameters of the file to the network.
func (b *backend) applyFitted() error {
	if b.fitted == nil {
		return nil
	}
	set := b.numbers(&b.network, &b.system)
	err := b.fitted.Apply(Backend.Name, fittedSettings(&b.network), func(option, text string) error {
		return set.Find(option).Value.Set(text)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", b.fittedFile, err)
	}
	if !b.fitted.On(b.networkFile) {
		b.env.Warnf("--network %s: bandwidths and latencies of %s, which were estimated with %s, replace those given",
			b.networkFile, b.fittedFile, b.fitted.Topology)
	}
	return nil
}

// LoadNetwork returns the network that --network and --congestion name.
func LoadNetwork(network, congestion string) (*Network, error) {
	b := newBackend()
	b.networkFile, b.congestion, b.env = network, congestion, (*sim.Env)(nil).OrEmpty()
	if err := b.readNetwork(); err != nil {
		return nil, err
	}
	return &b.network, nil
}

// Crossed returns, for each dimension, the number of links of it that a message alone takes between two NPUs, whose
// latencies it waits for, and the number of times that it waits for its bytes on one of them.
func (n *Network) Crossed(from, to int) (links, transfers []int, err error) {
	if from < 0 || to < 0 || max(from, to) >= n.NPUs() {
		return nil, nil, fmt.Errorf("expected ranks below %d, the number of NPUs of the network, found %d and %d",
			n.NPUs(), from, to)
	}
	links, transfers = make([]int, len(n.Dims)), make([]int, len(n.Dims))
	for i, d := range n.Dims {
		x, y := from%d.NPUs, to%d.NPUs
		from, to = from/d.NPUs, to/d.NPUs
		if x == y {
			continue
		}
		switch links[i] = 1; d.Topology {
		case Switch:
			links[i] = 2
		case Ring:
			forward := (y - x + d.NPUs) % d.NPUs
			links[i] = min(forward, d.NPUs-forward)
		}
		if transfers[i] = links[i]; !n.Aware {
			transfers[i] = 1
			break
		}
	}
	return links, transfers, nil
}
