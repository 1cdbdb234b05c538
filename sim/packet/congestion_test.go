package packet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// These tests apply to all transports with windows and drop-tail queues: tcp, dctcp and swift.

var windowTransports = []string{"tcp", "dctcp", "swift"}

// fourRacks returns four ToRs with four hosts each and as many spines, links of 200 Gb/s (40 ps a byte) and 500 ns.
func fourRacks(t testing.TB, spines int) *topology.Network {
	t.Helper()
	tier := topology.FatTreeTier{Down: 4, Up: spines, Rate: 200e9, Latency: 500 * dag.Nanosecond}
	top := tier
	top.Up = 0
	net, err := topology.FatTree(topology.FatTreeParams{Hosts: 16, PodHosts: 16, Tiers: []topology.FatTreeTier{tier, top}})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// allThere fails the test unless all flows are delivered and complete and no packet is left.
func (n *network) allThere(t testing.TB) {
	t.Helper()
	for i, r := range n.records {
		if r.Delivered == 0 || r.Acknowledged <= r.Start || r.Delivered < r.Start || r.Acknowledged < r.Delivered {
			t.Errorf("flow %d of %d bytes from %d to %d: start %v, delivered %v, acknowledged %v", i, r.Bytes, r.Source, r.Target,
				int64(r.Start), int64(r.Delivered), int64(r.Acknowledged))
		}
	}
	free := 0
	for p := n.freePacket; p != none; p = n.packets[p].next {
		free++
	}
	if free != len(n.packets) {
		t.Errorf("%d of %d packets were never freed", len(n.packets)-free, len(n.packets))
	}
}

// total returns the numbers of drops and retransmissions.
func (n *network) total() (drops, again uint64) {
	for i := range n.ports {
		drops += n.ports[i].drops
	}
	for i := range n.records {
		again += uint64(n.records[i].Retransmits)
	}
	return drops, again
}

// TestSmallFlowTimes compares flows that fit into the first window with closed forms.
func TestSmallFlowTimes(t *testing.T) {
	const (
		wire, beta, mss, control = 500_000, 40, 4096, 64
		header                   = 64
		connect                  = 2 * 4 * (wire + control*beta)
		ackTrip                  = 4 * (wire + control*beta)
	)
	for _, transport := range windowTransports {
		for _, c := range []struct {
			bytes uint64
			data  uint64 // on the wire, until delivery
		}{
			{0, 4 * (wire + (1+header)*beta)},
			{1, 4 * (wire + (1+header)*beta)},
			{1000, 4 * (wire + (1000+header)*beta)},
			{mss, 4 * (wire + (mss+header)*beta)},
			{mss + 100, 4*(wire+(mss+header)*beta) + (100+header)*beta},
			{9*mss + control, 4*(wire+(mss+header)*beta) + (8*(mss+header)+control+header)*beta}, // less, and the last ACK waits for the previous one
			{10 * mss, 4*(wire+(mss+header)*beta) + 9*(mss+header)*beta},
		} {
			t.Run(fmt.Sprint(transport, c.bytes), func(t *testing.T) {
				p, want := defaults(t, transport, CompatNone), c.data
				if transport != "swift" {
					p.TransportParams[handshake] = 1
					want += connect
				}
				n := runConnections(t, fourRacks(t, 4), p, nil, []connection{{0, 15, 1000, c.bytes}})
				r := n.records[0]
				if got := uint64(r.Delivered - r.Start); got != want {
					t.Errorf("delivered after %d, want %d", got, want)
				}
				if got := uint64(r.Acknowledged - r.Start); got != want+ackTrip {
					t.Errorf("acknowledged after %d, want %d", got, want+ackTrip)
				}
			})
		}
	}
}

func TestFlowWithoutHandshake(t *testing.T) {
	p := defaults(t, "tcp", CompatNone)
	n := runConnections(t, fourRacks(t, 4), p, nil, []connection{{0, 15, 1000, 4096}})
	if got, want := n.records[0].Delivered-n.records[0].Start, dag.Time(4*(500_000+4160*40)); got != want {
		t.Errorf("delivered after %d, want %d", got, want)
	}
}

func TestLongFlowFillsTheLink(t *testing.T) {
	const bytes = 32 << 20
	for _, transport := range windowTransports {
		n := runConnections(t, fourRacks(t, 4), defaults(t, transport, CompatNone), nil, []connection{{0, 15, 0, bytes}})
		n.allThere(t)
		if took, least := float64(n.records[0].Delivered), float64(bytes*40); took < least || took > 1.05*least {
			t.Errorf("%s: took %v, want %v to 5 %% more", transport, took, least)
		}
		if drops, again := n.total(); drops > 0 || again > 0 {
			t.Errorf("%s: %d drops, %d packets sent again", transport, drops, again)
		}
	}
}

// TestIncastShares checks that the link to the receiver stays full and that flows share it about equally.
func TestIncastShares(t *testing.T) {
	const bytes = 2 << 20
	for _, transport := range windowTransports {
		var list []connection
		for i := range uint32(8) {
			list = append(list, connection{i, 15, 0, bytes})
		}
		p := defaults(t, transport, CompatNone)
		p.Queue = 1 << 20
		n := runConnections(t, fourRacks(t, 4), p, nil, list)
		n.allThere(t)
		sum, squares, last := 0., 0., dag.Time(0)
		for _, r := range n.records {
			x := bytes / float64(r.Delivered-r.Start)
			sum, squares, last = sum+x, squares+x*x, max(last, r.Delivered)
		}
		if jain := sum * sum / (8 * squares); jain < 0.9 {
			t.Errorf("%s: Jain's index is %v", transport, jain)
		}
		if took, least := float64(last), 8.*bytes*40; took < least || took > 1.1*least {
			t.Errorf("%s: took %v, want %v to 10 %% more", transport, took, least)
		}
	}
}

// TestIncastWithSmallQueues checks that all flows complete although packets are lost.
func TestIncastWithSmallQueues(t *testing.T) {
	for _, transport := range windowTransports {
		for _, queue := range []int64{1, 2, 5, 20} {
			t.Run(fmt.Sprint(transport, queue), func(t *testing.T) {
				var list []connection
				for i := range uint32(45) {
					list = append(list, connection{i % 15, 15, 0, 100_000 + uint64(i)})
				}
				p := defaults(t, transport, CompatNone)
				p.Queue = queue * (p.MSS + p.HeaderSize)
				n := runConnections(t, fourRacks(t, 4), p, nil, list)
				n.allThere(t)
				if drops, again := n.total(); drops == 0 || again < drops {
					t.Errorf("%d drops, %d packets sent again", drops, again)
				}
			})
		}
	}
}

// endless is a driver that starts a new flow after each completion, as long as flows are left.
type endless struct {
	quiet
	n    *network
	rest []connection
}

func (d *endless) acknowledged(uint32) { d.another() }

func (d *endless) another() {
	if len(d.rest) > 0 {
		c, i := d.rest[0], uint32(len(d.rest))
		d.rest = d.rest[1:]
		d.n.at(d.n.now+c.start, flowStart, d.n.openFlow(c.src, c.dst, i, i, c.bytes))
	}
}

func randomRun(t testing.TB, transport string, c Compat, seed uint64) *network {
	random := rand.New(rand.NewPCG(seed, 0))
	p := defaults(t, transport, c)
	p.MSS = 1 + random.Int64N(9000)
	p.Queue = p.HeaderSize + p.MSS*(1+random.Int64N(30))
	p.Seed = int64(seed)
	p.PadLastPacket = p.PadLastPacket || random.IntN(2) == 0
	p.TransportParams["window"] = float64(1 + random.IntN(30))
	if transport == "swift" && random.IntN(2) == 0 {
		p.TransportParams["window"] = 0.1
		p.TransportParams["target"] = 1e6
	}
	hosts := 2 + random.Uint32N(15)
	largest := 1 + random.Uint64N(uint64(40*p.MSS))
	var list []connection
	for range 100 {
		c := connection{random.Uint32N(hosts), random.Uint32N(hosts), random.Uint64N(20e6), random.Uint64N(largest)}
		if random.IntN(3) > 0 {
			c.dst = 0
		}
		if c.src == c.dst {
			c.src = (c.dst + 1) % hosts
		}
		list = append(list, c)
	}
	n, err := newNetwork(&Options{Network: fourRacks(t, 1+random.IntN(4)), Params: p})
	if err != nil {
		t.Fatal(err)
	}
	d := &endless{n: n, rest: list}
	n.driver = d
	for range 1 + random.IntN(50) {
		d.another()
	}
	n.run(1 << 62)
	return n
}

// TestRandomFlowsEnd runs random traffic through random, mostly far too small queues. Flow slots are reused.
func TestRandomFlowsEnd(t *testing.T) {
	for _, transport := range windowTransports {
		lost := uint64(0)
		for seed := range uint64(60) {
			n := randomRun(t, transport, CompatNone, seed)
			n.allThere(t)
			if len(n.records) != 100 {
				t.Errorf("%d flows", len(n.records))
			}
			if t.Failed() {
				t.Fatalf("%s with seed %d", transport, seed)
			}
			drops, _ := n.total()
			lost += drops
		}
		if lost == 0 {
			t.Errorf("%s: nothing was dropped, so nothing was tested", transport)
		}
	}
}

// TestRandomFlowsAsHTSim runs the same with htsim's quirks, with which all flows of tcp and dctcp complete.
func TestRandomFlowsAsHTSim(t *testing.T) {
	for _, transport := range windowTransports {
		for seed := range uint64(20) {
			n := randomRun(t, transport, CompatHTSim, seed)
			if transport != "swift" {
				n.allThere(t)
			}
			if t.Failed() {
				t.Fatalf("%s with seed %d", transport, seed)
			}
		}
	}
}

func TestRunsAreRepeatable(t *testing.T) {
	for _, transport := range windowTransports {
		a, b := randomRun(t, transport, CompatNone, 7), randomRun(t, transport, CompatNone, 7)
		for i := range a.records {
			if a.records[i] != b.records[i] {
				t.Fatalf("%s: flow %d is %+v, then %+v", transport, i, a.records[i], b.records[i])
			}
		}
		if a.events != b.events {
			t.Errorf("%s: %d events, then %d", transport, a.events, b.events)
		}
	}
}

// hole is a time during which a port accepts no packets.
type hole struct{ from, until uint64 }

// holes is a driver that drops all packets that arrive at a port during certain times.
type holes struct {
	quiet
	n    *network
	port uint32
	room uint64
	list []hole
}

func (d *holes) event(_ event, i uint32) {
	pt := &d.n.ports[d.port]
	if pt.capacity[dataQueue] = d.room; i%2 == 0 {
		pt.capacity[dataQueue] = 0
	}
}

// runWithHoles runs a flow from host 0 to host 15, during which the ToR's uplink drops packets.
func runWithHoles(t testing.TB, p Params, bytes uint64, list ...hole) *network {
	t.Helper()
	net := fourRacks(t, 1)
	n, err := newNetwork(&Options{Network: net, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	d := &holes{n: n, list: list}
	for i, port := range net.Ports() {
		if net.Name(port.From) == "tor0" && net.Name(port.To) == "agg0" {
			d.port, d.room = uint32(i), n.ports[i].capacity[dataQueue]
		}
	}
	n.driver = d
	for i, h := range list {
		n.at(h.from, driverEvent, uint32(2*i))
		n.at(h.until, driverEvent, uint32(2*i+1))
	}
	n.at(0, flowStart, n.openFlow(0, 15, 0, 1, bytes))
	n.run(1 << 62)
	return n
}

// TestLosses drops chosen packets of a flow of 40 packets, and checks their recovery.
func TestLosses(t *testing.T) {
	const (
		mss, packet = 4096, 4096 * 40
		ms          = 1_000_000_000
		rto         = 3 * ms
	)
	for _, transport := range windowTransports {
		first := uint64(500_000) // arrival of the first bit at the ToR
		if transport != "swift" {
			first += 8 * (500_000 + 40*40)
		}
		// Packet k, from 0, has arrived after k+1 packet times. A hole is open from half a packet time before to half a
		// packet time after that.
		during := func(from, to uint64) hole {
			return hole{first + from*packet + packet/2, first + (to+1)*packet + packet/2}
		}
		for _, c := range []struct {
			name            string
			packets         uint64
			holes           []hole
			drops, again    uint64
			nacks           uint32
			earliest, until dag.Time // of the end
			linear          float64
		}{
			{"one", 40, []hole{during(3, 3)}, 1, 1, 1, 0, ms / 10, 0},
			{"the first", 40, []hole{during(0, 0)}, 1, 1, 1, 0, ms / 10, 0},
			{"two apart", 40, []hole{during(2, 2), during(5, 5)}, 2, 2, 1, 0, ms / 10, 0},
			{"three together", 40, []hole{during(2, 4)}, 3, 3, 1, 0, ms / 10, 0},
			{"the only one", 1, []hole{during(0, 0)}, 1, 1, 0, rto, rto + ms/10, 0},
			{"the last", 10, []hole{during(9, 9)}, 1, 1, 0, rto, rto + ms/10, 0},
			{"the whole window", 40, []hole{during(0, 9)}, 10, 10, 0, rto, rto + ms/2, 0},
			{"three times the only one", 1,
				[]hole{during(0, 0), {rto, rto + ms}, {3 * rto, 3*rto + ms}}, 3, 3, 0, 7 * rto, 7*rto + ms/10, 0},
			{"linear timeouts", 1,
				[]hole{during(0, 0), {rto, rto + ms}, {2 * rto, 2*rto + ms}}, 3, 3, 0, 3 * rto, 3*rto + ms/10, 2},
		} {
			t.Run(transport+" "+c.name, func(t *testing.T) {
				p := defaults(t, transport, CompatNone)
				p.TransportParams["window"] = 10
				p.TransportParams["rto-min"], p.TransportParams["rto-initial"] = rto, rto
				p.TransportParams["rto-linear"] = c.linear
				if transport != "swift" {
					p.TransportParams[handshake] = 1
				}
				p.Queue = 1 << 20
				n := runWithHoles(t, p, c.packets*mss, c.holes...)
				n.allThere(t)
				drops, again := n.total()
				r := n.records[0]
				if drops != c.drops || again != c.again || r.Nacks != c.nacks {
					t.Errorf("%d drops, %d packets sent again, %d signs of loss, want %d, %d, %d", drops, again, r.Nacks,
						c.drops, c.again, c.nacks)
				}
				if r.Delivered < c.earliest || r.Delivered > c.until {
					t.Errorf("delivered at %v, want %v to %v", int64(r.Delivered), int64(c.earliest), int64(c.until))
				}
			})
		}
	}
}

// TestNoAllocationPerPacket counts the allocations of a run with thousands of packets.
func TestNoAllocationPerPacket(t *testing.T) {
	net := fourRacks(t, 4)
	for _, transport := range windowTransports {
		for _, c := range []Compat{CompatNone, CompatHTSim} {
			allocations := func(bytes uint64) float64 {
				return testing.AllocsPerRun(1, func() {
					runConnections(t, net, defaults(t, transport, c), nil, []connection{{0, 15, 0, bytes}, {1, 15, 0, bytes}})
				})
			}
			small, large := allocations(4<<20), allocations(32<<20) // 14,000 packets more
			if large > small+100 {
				t.Errorf("%s: %v allocations, with eight times as many packets %v", transport, small, large)
			}
		}
	}
}

func BenchmarkWindowTransports(b *testing.B) {
	net := fourRacks(b, 4)
	for _, transport := range windowTransports {
		b.Run(transport, func(b *testing.B) {
			var list []connection
			for i := range uint32(16) {
				list = append(list, connection{i, (i + 5) % 16, 0, 8 << 20})
			}
			b.ReportAllocs()
			hops, events := uint64(0), int64(0)
			for b.Loop() {
				n := runConnections(b, net, defaults(b, transport, CompatNone), nil, list)
				events += n.events
				for i := range n.ports {
					hops += n.ports[i].packets
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(hops), "ns/hop")
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// TestFailingNIC fails the link of a host for some time, with packets queued at its NIC.
func TestFailingNIC(t *testing.T) {
	const us = dag.Microsecond
	net := fourRacks(t, 4)
	link, err := net.LinkByName("host0-tor0")
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range windowTransports {
		o := &Options{
			Network: net, Params: defaults(t, transport, CompatNone),
			Failures: []Failure{{Links: link, At: 30 * us, Until: 300 * us}, {Links: link, At: 2000 * us, Until: 2001 * us}},
		}
		n, err := newNetwork(o)
		if err != nil {
			t.Fatal(err)
		}
		n.driver = quiet{}
		for i := range uint32(8) {
			from, to := uint32(0), i+4
			if i >= 4 {
				from, to = to, from
			}
			n.at(0, flowStart, n.openFlow(from, to, i, i+1, 8<<20))
		}
		n.run(1 << 62)
		n.allThere(t)
		if _, again := n.total(); again == 0 {
			t.Errorf("%s: nothing was sent again", transport)
		}
	}
}
