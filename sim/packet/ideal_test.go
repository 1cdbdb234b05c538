package packet

import (
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/sim/topology"
)

// TestIdealIsLowerBound compares the delivery times of single flows, and of several, with their ideal times, for all
// transports, load-balancing policies and networks, headers and handshakes, and sizes around whole packets.
func TestIdealIsLowerBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	networks := []struct {
		name string
		net  *topology.Network
	}{
		{"leafspine", parse(t, "leafspine:hosts=8,tor=4,spines=4,rate=100Gbps")},
		{"fattree", parse(t, "fattree:k=4,rate=100Gbps,latency=100ns")},
		{"torus", parse(t, "torus:dims=3x4,rate=25Gbps,latency=10ns")},
		{"dragonfly", parse(t, "dragonfly:p=2,a=4,h=2,rate=100Gbps")},
		{"slow core", links(t, "h0 s0 100Gbps 1us", "h1 s1 100Gbps 1us", "s0 s2 10Gbps 1us", "s2 s1 100Gbps 10ns")},
		{"mixed", links(t, "h0 s0 100Gbps 1us", "h1 s1 40Gbps 1us", "s0 s2 10Gbps 1us", "s2 s1 25Gbps 10ns",
			"s0 s3 400Gbps 10ns", "s3 s1 100Gbps 100ns", "h2 s0 10Gbps 1us", "h3 s1 400Gbps 1us")},
	}
	for _, c := range networks {
		name, net := c.name, c.net
		for _, m := range Transports {
			for b := range Balance(len(balances)) {
				if (b == Valiant || b == UGAL) && net.Dragonfly == nil {
					continue
				}
				cases := 3
				if long() {
					cases = 25 // 10,000 in all
				}
				for range cases {
					p := defaults(t, m.Name, CompatNone)
					p.Balance, p.Seed = b, random.Int64()
					p.MSS = []int64{4096, 1460, 9000, 64}[random.IntN(4)]
					if random.IntN(2) == 0 {
						p.HeaderSize, p.ControlSize = 1+random.Int64N(300), 1+random.Int64N(300)
					}
					if _, ok := p.TransportParams[handshake]; ok {
						p.TransportParams[handshake] = float64(random.IntN(2))
					}
					p.PadLastPacket = random.IntN(4) == 0
					size := func() uint64 {
						packets := uint64([]int{0, 1, 1, 2, 3, 10, 40}[random.IntN(7)])
						return packets*uint64(p.MSS) + uint64([]int{0, 1, 100, int(p.MSS) - 1}[random.IntN(4)])
					}
					var list []connection
					for range 1 + 3*random.IntN(2) {
						src := random.Uint32N(uint32(net.Hosts))
						dst := (src + 1 + random.Uint32N(uint32(net.Hosts)-1)) % uint32(net.Hosts)
						list = append(list, connection{src, dst, uint64(random.IntN(1000)), size()})
					}
					n := runConnections(t, net, p, nil, list)
					ideal := idealTimes(n.records, n.intact, &Options{Network: net, Params: p})
					for i := range n.records {
						r := &n.records[i]
						if took := r.Delivered - r.Start; r.Delivered > 0 && took < ideal[i] || ideal[i] <= 0 {
							t.Errorf("%s, %s, %v, %d of %d flows, %d bytes, mss %d: %d ps, ideal %d", name, m.Name, b, i,
								len(list), r.Bytes, p.MSS, took, ideal[i])
						}
					}
				}
			}
		}
	}
}

// TestIdealIsReached checks that single flows on one path take their ideal time.
func TestIdealIsReached(t *testing.T) {
	slow := links(t, "h0 s0 100Gbps 1us", "h1 s1 100Gbps 1us", "s0 s2 10Gbps 1us", "s2 s1 100Gbps 10ns")
	for _, bytes := range []uint64{0, 1, 4096, 4097, 8192, 10_000, 40_000} {
		for _, net := range []*topology.Network{slow, parse(t, "star:hosts=4,rate=100Gbps"), parse(t, "leafspine:hosts=8,tor=4,spines=4")} {
			p := defaults(t, "roce", CompatNone)
			n := runConnections(t, net, p, nil, []connection{{0, uint32(net.Hosts) - 1, 0, bytes}})
			if got, want := n.records[0].Delivered, idealTimes(n.records, n.intact, &Options{Network: net, Params: p})[0]; got != want {
				t.Errorf("%d bytes: %d ps, ideal %d", bytes, got, want)
			}
		}
	}
}
