package analytical

// Topology is how the NPUs of one dimension are connected.
type Topology uint8

// The topologies of ASTRA-sim's analytical network.
const (
	Ring           Topology = iota // links both ways between neighbours
	FullyConnected                 // a link between any two
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
	NPUs      int     // in each ring, clique or switch of the dimension; 2 or more
	Bandwidth float64 // of a link, in 2^30 bytes a second, as the configuration file has it
	Latency   float64 // of a link, in nanoseconds
}

// Network is a network of NPUs in any number of dimensions. The number of an NPU is that of its address, dimension 0
// varying fastest.
type Network struct {
	Dims  []Dim
	Aware bool // of congestion: messages that want a link at the same time wait for each other
}

// NPUs returns how many NPUs the network has.
func (n *Network) NPUs() int {
	npus := 1
	for _, d := range n.Dims {
		npus *= d.NPUs
	}
	return npus
}
