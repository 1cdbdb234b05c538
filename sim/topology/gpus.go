// This file has networks of GPUs, each of which has several ports: NVLink and NICs. A port is a host of the network.

package topology

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/sim"
)

// GPUs describes the GPUs of a network and their servers. Every port of a GPU is a host of the network.
type GPUs struct {
	PerServer int // GPUs of a server: GPU g belongs to server g / PerServer
	// First is the first host of each GPU: GPU g has the hosts First[g] to First[g+1]-1.
	First []uint32
	// NVSwitches is the number of NVSwitches, which are the first switches. They have links to GPUs only.
	NVSwitches int

	// uniform is true if each access switch has one link to each switch above it, and to the same switches as all
	// access switches of its plane.
	uniform bool
}

// Count returns the number of GPUs.
func (g *GPUs) Count() int { return len(g.First) - 1 }

// gpuOf returns the GPU of a host.
func (g *GPUs) gpuOf(host uint32) int {
	i, found := slices.BinarySearch(g.First, host)
	if !found {
		i--
	}
	return i
}

// check returns an error if the description does not match the network.
func (g *GPUs) check(n *Network) error {
	switch last := len(g.First) - 1; {
	case g.PerServer < 1 || last < 1 || last%g.PerServer != 0:
		return fmt.Errorf("expected a multiple of %d GPUs per server, found %d GPUs", g.PerServer, last)
	case g.First[0] != 0 || int(g.First[last]) != n.Hosts || !slices.IsSorted(g.First):
		return errors.New("expected the first hosts of all GPUs in ascending order")
	case g.NVSwitches < 0 || g.NVSwitches > n.Switches:
		return fmt.Errorf("expected at most %d NVSwitches, found %d", n.Switches, g.NVSwitches)
	}
	for i := range g.Count() {
		if g.First[i] == g.First[i+1] {
			return fmt.Errorf("GPU %d: expected at least one port, found none", i)
		}
	}
	return nil
}

// RefuseGPUs returns an error if GPUs with several ports are the hosts of the network. Backends that need hosts with
// one link call it.
func (n *Network) RefuseGPUs() error {
	if n.GPUs == nil {
		return nil
	}
	return errors.New("expected hosts with one link, found GPUs with several (NVLink and NICs); use the backend " +
		"packet or flow, or another topology")
}

// nameGPUs sets the names of nodes: gpu3.nv0, gpu3.nic1, nvs0, asw2, psw1. Ports at NVSwitches are the first of a GPU;
// switches of tier 1 are PSWs.
func (n *Network) nameGPUs() {
	g := n.GPUs
	numbers := make([]uint32, n.Switches) // by switch
	var counts [2]uint32
	for s := range numbers {
		switch count := &counts[n.Tier[s]]; {
		case s < g.NVSwitches:
			numbers[s] = uint32(s)
		default:
			numbers[s] = *count
			*count++
		}
	}
	nvPorts := make([]uint32, g.Count())
	for i := range n.Links {
		host, sw := n.Links[i].A, n.Links[i].B
		if int(host) < n.Hosts && int(sw) < n.Hosts+g.NVSwitches {
			nvPorts[g.gpuOf(host)]++
		}
	}
	n.Name = func(node uint32) string {
		if s := int(node) - n.Hosts; s >= 0 {
			kind := "asw"
			if s < g.NVSwitches {
				kind = "nvs"
			} else if n.Tier[s] == 1 {
				kind = "psw"
			}
			return numbered(kind, int(numbers[s]))
		}
		gpu := g.gpuOf(node)
		port, name := node-g.First[gpu], numbered("gpu", gpu)
		if port < nvPorts[gpu] {
			return numbered(name+".nv", int(port))
		}
		return numbered(name+".nic", int(port-nvPorts[gpu]))
	}
}

// Place returns the first hosts of the ranks by a policy, as [Placement.Place]. In networks of GPUs, a rank is on a
// GPU, and the numbers in a file are those of GPUs. The policy nodes places the ranks with node number s on the GPUs of
// server s in turn; nics must be 1.
func (n *Network) Place(p *Placement, ranks, nics int, seed int64, nodes []int32) ([]uint32, error) {
	g := n.GPUs
	if g == nil {
		return p.Place(ranks, n.Hosts, nics, seed, nodes)
	}
	if nics != 1 {
		return nil, fmt.Errorf("expected 1 NIC per rank (--nics), because the GPUs of the network have their own, "+
			"found %d", nics)
	}
	at, err := g.place(p, ranks, seed, nodes)
	if err != nil {
		return nil, err
	}
	hosts := make([]uint32, len(at))
	for rank, gpu := range at {
		if int(gpu) >= g.Count() {
			return nil, fmt.Errorf("rank %d is placed on GPU %d, expected GPUs 0 to %d of the network", rank, gpu,
				g.Count()-1)
		}
		hosts[rank] = g.First[gpu]
	}
	return hosts, nil
}

// place returns the GPUs of the ranks.
func (g *GPUs) place(p *Placement, ranks int, seed int64, nodes []int32) ([]uint32, error) {
	if p.hosts != nil || p.by.Policy != compose.OwnNodes || nodes == nil {
		return p.Place(ranks, g.Count(), 1, seed, nil)
	}
	at, used := make([]uint32, ranks), make(map[int32]int)
	for rank := range at {
		node := nodes[rank]
		if int(node) >= g.Count()/g.PerServer {
			return nil, fmt.Errorf("rank %d is on node %d, but the network has only %d servers", rank, node,
				g.Count()/g.PerServer)
		}
		at[rank] = uint32(int(node)*g.PerServer + used[node]%g.PerServer)
		used[node]++
	}
	return at, nil
}

// Ends selects the hosts of both ends of messages. It is not safe for concurrent use.
type Ends struct {
	first []uint32                   // by rank: first host
	nics  []portPair                 // of ranks that are not on GPUs: each NIC with that of its number
	gpus  *gpuEnds                   // nil unless the network is of GPUs
	works func(from, to uint32) bool // nil: all
}

// gpuEnds selects the ports of GPUs.
type gpuEnds struct {
	*GPUs
	network *Network
	routes  *Routes
	at      []uint32 // by rank: GPU
	byNIC   bool     // the trace numbers NICs
	numbers []uint32 // by op: number of the send among those of its rank
	classes []uint32 // by GPU: GPUs with NICs at the same switches have the same number
	pairs   map[[2]uint32][]portPair
}

// portPair is a port of the source and one of the destination, each counted from the first of its GPU or rank.
type portPair struct{ from, to uint32 }

// NewEnds returns the selection for a program. first has the first hosts of ranks, each of which has the given number
// of NICs; 0 NICs are one. routes is needed for networks of GPUs only. n may be nil for hosts without GPUs.
func NewEnds(n *Network, routes *Routes, first []uint32, nics int, p *sim.Program) *Ends {
	e := &Ends{first: first}
	if n == nil || n.GPUs == nil {
		for nic := range uint32(max(1, nics)) {
			e.nics = append(e.nics, portPair{nic, nic})
		}
		return e
	}
	g := &gpuEnds{GPUs: n.GPUs, network: n, routes: routes, at: make([]uint32, len(first)), byNIC: p.NICs > 1,
		pairs: make(map[[2]uint32][]portPair)}
	e.gpus = g
	for rank, host := range first {
		g.at[rank] = uint32(g.gpuOf(host))
	}
	g.classify()
	if g.byNIC {
		return e
	}
	g.numbers = make([]uint32, len(p.Ops))
	number, rank := uint32(0), uint32(0)
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Rank != rank {
			number, rank = 0, op.Rank
		}
		if op.Flags&sim.IsColl == sim.IsSend {
			g.numbers[i] = number
			number++
		}
	}
	return e
}

// SetWorks makes messages avoid pairs of hosts, the NICs or ports of their ranks, that have no working path, as long as
// there are others.
func (e *Ends) SetWorks(works func(from, to uint32) bool) {
	e.works = works
}

// classify numbers the sets of switches at which the NICs of GPUs are.
func (g *gpuEnds) classify() {
	g.classes = make([]uint32, g.Count())
	known := make(map[string]uint32)
	var key []byte
	for gpu := range g.classes {
		key = key[:0]
		for host := g.First[gpu]; host < g.First[gpu+1]; host++ {
			if edge := g.routes.Edge(host); int(edge) >= g.NVSwitches {
				key = binary.LittleEndian.AppendUint32(key, host-g.First[gpu])
				key = binary.LittleEndian.AppendUint32(key, edge)
			}
		}
		class, ok := known[string(key)]
		if !ok {
			class = uint32(len(known))
			known[string(key)] = class
		}
		g.classes[gpu] = class
	}
}

// Of returns the source and destination hosts of a send, op number m of the program: NIC i of a rank is its first host
// plus i mod the number of NICs, or the next one with a working path. In a network of GPUs, a message takes NVLink if
// both GPUs have it in common, else the NICs with the shortest paths; those with equal paths carry messages by NIC
// number or, if the trace has none, in round robin.
func (e *Ends) Of(send *sim.Op, m uint32) (from, to uint32) {
	if e.gpus != nil {
		return e.choosePorts(send, m)
	}
	first, last := e.first[send.Rank], e.first[send.Peer]
	pair, _ := e.choose(e.nics, uint32(send.NIC), first, last)
	return first + pair.from, last + pair.to
}

// Messages returns the source and destination hosts of the messages of a program, as Of selects them.
func (e *Ends) Messages(p *sim.Program) iter.Seq2[uint32, uint32] {
	return func(yield func(from, to uint32) bool) {
		for i := range p.Ops {
			if op := &p.Ops[i]; op.Flags&sim.IsColl == sim.IsSend && !yield(e.Of(op, uint32(i))) {
				return
			}
		}
	}
}

// Spare returns the pairs of hosts that Of may select for the messages of a program if links fail. The network has no
// GPUs.
func (e *Ends) Spare(p *sim.Program) iter.Seq2[uint32, uint32] {
	return func(yield func(from, to uint32) bool) {
		for i := range p.Ops {
			send := &p.Ops[i]
			if send.Flags&sim.IsColl != sim.IsSend {
				continue
			}
			for _, nic := range e.nics {
				if !yield(e.first[send.Rank]+nic.from, e.first[send.Peer]+nic.to) {
					return
				}
			}
		}
	}
}

// choosePorts returns the ports of a message between GPUs.
func (e *Ends) choosePorts(send *sim.Op, m uint32) (from, to uint32) {
	g := e.gpus
	a, b := g.at[send.Rank], g.at[send.Peer]
	first, last := g.First[a], g.First[b]
	if a == b {
		return first, last
	}
	number := uint32(send.NIC)
	if !g.byNIC {
		number = g.numbers[m]
	}
	links := g.nvlinks(a, b)
	direct, works := e.choose(links, number, first, last)
	if works {
		return first + direct.from, last + direct.to
	}
	key := [2]uint32{g.classes[a], g.classes[b]}
	pairs, known := g.pairs[key]
	if !known {
		pairs = g.shortest(a, b)
		g.pairs[key] = pairs
	}
	pair, works := e.choose(pairs, number, first, last)
	if len(links) > 0 && !works { // all have failed
		pair = direct
	}
	return first + pair.from, last + pair.to
}

// choose returns the pair with the given number, modulo the number of pairs, or the next that works. If none works, it
// returns false and the former; without pairs, the first ports.
func (e *Ends) choose(pairs []portPair, number, first, last uint32) (portPair, bool) {
	if len(pairs) == 0 {
		return portPair{}, false
	}
	n := uint32(len(pairs))
	for k := range n {
		pair := pairs[(number+k)%n]
		if e.works == nil || e.works(first+pair.from, last+pair.to) {
			return pair, true
		}
	}
	return pairs[number%n], false
}

// nvlinks returns the ports of two GPUs at the same NVSwitches.
func (g *gpuEnds) nvlinks(a, b uint32) []portPair {
	if int(a)/g.PerServer != int(b)/g.PerServer || g.NVSwitches == 0 {
		return nil
	}
	key := [2]uint32{^a, ^b} // no class
	pairs, known := g.pairs[key]
	if known {
		return pairs
	}
	for i := g.First[a]; i < g.First[a+1]; i++ {
		edge := g.routes.Edge(i)
		if int(edge) >= g.NVSwitches {
			continue
		}
		for j := g.First[b]; j < g.First[b+1]; j++ {
			if g.routes.Edge(j) == edge {
				pairs = append(pairs, portPair{i - g.First[a], j - g.First[b]})
			}
		}
	}
	g.pairs[key] = pairs
	return pairs
}

// shortest returns the pairs of NICs of two GPUs with the shortest paths. Consecutive ones have different NICs.
func (g *gpuEnds) shortest(a, b uint32) (pairs []portPair) {
	var sources, targets []uint32
	nics := func(gpu uint32) (list []uint32) {
		for host := g.First[gpu]; host < g.First[gpu+1]; host++ {
			if int(g.routes.Edge(host)) >= g.NVSwitches {
				list = append(list, host)
			}
		}
		return list
	}
	sources, targets = nics(a), nics(b)
	least := 0
	for shift := range targets {
		for i, from := range sources {
			to := targets[(i+shift)%len(targets)]
			hops, ok := g.hops(g.routes.Edge(from), g.routes.Edge(to))
			if !ok || len(pairs) > 0 && hops > least {
				continue
			}
			if hops < least || len(pairs) == 0 {
				pairs, least = pairs[:0], hops
			}
			pairs = append(pairs, portPair{from - g.First[a], to - g.First[b]})
		}
	}
	return pairs
}

// hops returns the number of links of the shortest paths between two edge switches, as counted on the first of them.
func (g *gpuEnds) hops(sw, edge uint32) (links int, ok bool) {
	for sw != edge {
		ports := g.routes.Next(sw, edge)
		if len(ports) == 0 {
			return 0, false
		}
		sw = g.network.Head(ports[0]) - uint32(g.network.Hosts)
		links++
	}
	return links, true
}
