// This file adapts a system to a network and checks it for a trace.

package analytical

import (
	"fmt"
	"strconv"
)

// DefaultSystem returns the default system for a network: in each dimension the algorithm for its topology, one chunk,
// and ASTRA-sim's end-point delay. Reductions take no time.
func DefaultSystem(n *Network) System {
	s := System{LocalBWAware: true, Splits: 1, ActiveChunks: 1, Queues: 1, EndpointDelay: defaultEndpointDelay}
	for c := range numCollectives {
		for _, d := range n.Dims {
			a := Algorithm{Name: Direct}
			switch {
			case d.Topology == Ring:
				a.Name = RingAlgorithm
			case d.Topology == Switch && c != AllToAll && isPowerOfTwo(d.NPUs):
				a.Name = HalvingDoubling
			}
			s.Implementations[c] = append(s.Implementations[c], a)
		}
	}
	return s
}

func isPowerOfTwo(n int) bool {
	return n&(n-1) == 0
}

// For returns the system adapted to a network, with implementations for the network's dimensions only. It calls warn
// for settings that are probably mistakes, those of a collective only if uses reports that it occurs. nil discards
// warnings.
func (s System) For(n *Network, uses func(Collective) bool, warn func(message string, args ...any)) System {
	if warn == nil {
		warn = func(string, ...any) {}
	}
	for c := range numCollectives {
		list := s.Implementations[c]
		key := collectiveKeys[c] + "-implementation"
		used := len(list) > 0 && s.Custom[c] == nil && uses(c)
		if len(list) > len(n.Dims) {
			if used {
				warn("%s has %d entries, but the network has %d dimensions: the last %d have no effect", key, len(list),
					len(n.Dims), len(list)-len(n.Dims))
			}
			list = list[:len(n.Dims)]
			s.Implementations[c] = list
		}
		if !used {
			continue
		}
		for d, a := range list {
			npus, where := n.Dims[d].NPUs, fmt.Sprintf("dimension %d", d)
			if a.One {
				npus, where = n.NPUs(), "the network"
			}
			if (a.Name == HalvingDoubling || a.Name == DoubleBinaryTree) && !isPowerOfTwo(npus) {
				warn("%s: %v needs a power of two of NPUs, but %s has %d", key, a, where, npus)
			}
			if a.Name == HalvingDoubling && c == AllToAll || a.Name == DoubleBinaryTree && c != AllReduce {
				warn("%s: %v does not support %v", key, a, c)
			}
		}
		if last := list[len(list)-1]; len(list) < len(n.Dims) && !last.One {
			warn("%s has %d entries, but the network has %d dimensions: NPUs that differ in the others (%s) take no "+
				"part in each other's %v", key, len(list), len(n.Dims), dimensions(len(list), len(n.Dims)), c)
		}
	}
	if chunks := (s.ActiveChunks + s.Queues - 1) / s.Queues * s.Queues; chunks > 1 && !n.Aware {
		warn("up to %d chunks run concurrently in a dimension: without congestion they do not share the "+
			"bandwidth, so collectives are faster than the links", chunks)
	}
	return s
}

// dimensions formats the dimensions from first to last-1.
func dimensions(first, last int) string {
	if first == last-1 {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d to %d", first, last-1)
}

// Uses reports whether the program has such a collective.
func (p *Program) Uses(c Collective) bool {
	var last *graph
	for _, g := range p.graphs {
		if g == last { // ranks with the same DAG have the same collectives
			continue
		}
		last = g
		for i := range g.ops {
			if o := &g.ops[i]; o.kind == opCollective && o.coll == c {
				return true
			}
		}
	}
	return false
}
