package analytical

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Topology is the topology of one dimension.
type Topology uint8

// Topologies of ASTRA-sim's analytical network.
const (
	Ring           Topology = iota // links in both directions between neighbors
	FullyConnected                 // a link between any two NPUs
	Switch                         // a link from each NPU to a switch, and one back
)

var topologyNames = [...]string{"Ring", "FullyConnected", "Switch"}

// String returns the topology's name in ASTRA-sim's network files.
func (t Topology) String() string {
	return topologyNames[t]
}

// Dim is one dimension of a network.
type Dim struct {
	Topology  Topology
	NPUs      int     // number of NPUs per ring, clique or switch of the dimension, at least 2
	Bandwidth float64 // per link in 2^30 bytes per second, as in the configuration file
	Latency   float64 // per link in nanoseconds
}

// Network is a network of NPUs with any number of dimensions. The number of an NPU is its address; dimension 0 varies
// fastest.
type Network struct {
	Dims  []Dim
	Aware bool // congestion-aware: messages on the same link wait for each other

	// Inner cuts dimensions in two that collectives can address apart, the inner and the outer half, which share the
	// dimension's queues: by dimension, the NPUs of the inner half, a divisor of Dim.NPUs; 0: not cut. nil: none is.
	Inner []int
}

// inner returns the NPUs of the inner half of a dimension, 0 if it is not cut.
func (n *Network) inner(dim int) int {
	if dim >= len(n.Inner) {
		return 0
	}
	return n.Inner[dim]
}

// addresses returns the sizes of the dimensions that collectives can address: those of the network, or their halves.
func (n *Network) addresses() (sizes []int32) {
	for i, d := range n.Dims {
		if inner := n.inner(i); inner > 0 {
			sizes = append(sizes, int32(inner), int32(d.NPUs/inner))
		} else {
			sizes = append(sizes, int32(d.NPUs))
		}
	}
	return sizes
}

// NPUs returns the number of NPUs.
func (n *Network) NPUs() int {
	npus := 1
	for _, d := range n.Dims {
		npus *= d.NPUs
	}
	return npus
}

// describe returns the description of the network for results. given is the specification or file that it was read
// from.
func (n *Network) describe(given string) *sim.Topology {
	t := &sim.Topology{Given: given, Hosts: n.NPUs()}
	for _, d := range n.Dims {
		bits := int64(math.Round(min(d.Bandwidth*(1<<33), math.MaxInt64/2)))
		latency := dag.Time(math.Round(d.Latency * float64(dag.Nanosecond)))
		t.Dims = append(t.Dims, sim.Dim{Shape: d.Topology.String(), NPUs: d.NPUs, BitsPerS: bits, Latency: latency})
	}
	return t
}
