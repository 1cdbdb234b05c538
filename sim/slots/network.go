package slots

import (
	"context"
	"fmt"
	"math/big"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// network is a network with its capacity per slot. An edge is a channel of a port: edge port*channels+channel.
type network struct {
	topology *topology.Network
	routes   *routes
	channels int

	// budgets are the most packets per slot on each channel of a port, by part of the capacity and port. Each part has
	// a scheduler of its own; most schedulers have one.
	budgets [][]int64
}

// newNetwork returns the network with parts of the capacity of its edges, each a share from 0 to 1. k is the number of
// paths per pair of hosts.
func newNetwork(ctx context.Context, t *topology.Network, slot dag.Time, packet int64, channels, k int,
	parts []*big.Rat) (*network, error) {
	r, err := newRoutes(ctx, t, k)
	if err != nil {
		return nil, err
	}
	n := &network{topology: t, routes: r, channels: channels, budgets: make([][]int64, len(parts))}
	for i, share := range parts {
		known := make(map[int64]int64) // by rate
		budgets := make([]int64, 2*len(t.Links))
		for l := range t.Links {
			rate := t.Links[l].Rate
			packets, is := known[rate]
			if !is {
				packets = packetsPerSlot(rate, slot, packet, channels, share)
				known[rate] = packets
			}
			budgets[2*l], budgets[2*l+1] = packets, packets
		}
		n.budgets[i] = budgets
	}
	return n, n.check(slot, packet)
}

// maxPackets is the largest number of packets per slot, so that sums over flows stay in range.
const maxPackets = 1 << 40

// packetsPerSlot returns floor(share x rate x slot / (channels x packet)), at most maxPackets.
func packetsPerSlot(rate int64, slot dag.Time, packet int64, channels int, share *big.Rat) int64 {
	n := new(big.Int).Mul(big.NewInt(rate), big.NewInt(int64(slot)))
	n.Mul(n, share.Num())
	per := new(big.Int).Mul(big.NewInt(8e12), big.NewInt(packet)) // 8 bits, and picoseconds per second
	per.Mul(per, big.NewInt(int64(channels))).Mul(per, share.Denom())
	if n.Quo(n, per); n.IsInt64() {
		return min(n.Int64(), maxPackets)
	}
	return maxPackets
}

// check returns an error if a link never transmits a packet.
func (n *network) check(slot dag.Time, packet int64) error {
	for l := range n.topology.Links {
		most := int64(0)
		for _, budgets := range n.budgets {
			most = max(most, budgets[2*l])
		}
		if most == 0 {
			link := &n.topology.Links[l]
			return fmt.Errorf("link %s-%s: expected a capacity of at least one packet of %d bytes per slot of %v and "+
				"channel, found less; use a longer --slot or a smaller --packet-size", n.topology.Name(link.A),
				n.topology.Name(link.B), packet, slot)
		}
	}
	return nil
}

// hostRate returns the sum of the rates of all host links, per direction, in bit/s.
func (n *network) hostRate() float64 {
	sum := 0.0
	for host := range uint32(n.topology.Hosts) {
		if port := n.routes.table.NIC(host); port != topology.NoPort {
			sum += float64(n.topology.Links[port/2].Rate)
		}
	}
	return sum
}

// most returns the most packets per slot of a flow on any of its paths.
func (n *network) most(from, to uint32, pair pathRange) (most int64) {
	for p := pair.first; p < pair.first+pair.count; p++ {
		sum := int64(0)
		for _, budgets := range n.budgets {
			sum += n.narrowest(budgets, from, to, p)
		}
		most = max(most, sum)
	}
	return most
}

// onFirst returns the packets per slot of a flow alone, which takes the first path.
func (n *network) onFirst(from, to uint32, pair pathRange) (sum int64) {
	for _, budgets := range n.budgets {
		sum += n.narrowest(budgets, from, to, pair.first)
	}
	return sum
}

// narrowest returns the smallest budget on a path.
func (n *network) narrowest(budgets []int64, from, to, path uint32) int64 {
	least := min(budgets[n.routes.table.NIC(from)], budgets[n.routes.table.HostPort(to)])
	for _, port := range n.routes.path(path) {
		least = min(least, budgets[port])
	}
	return least
}
