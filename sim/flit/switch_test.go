package flit

import (
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// recorder is a driver that keeps when messages were received, by their numbers.
type recorder struct {
	received []arrival
	taken    map[uint32]uint64
}

type arrival struct {
	op uint32
	at uint64
}

type record struct{ r *recorder }

func (r record) taken(op uint32, _, t uint64) { r.r.taken[op] = t }
func (r record) received(op uint32, t uint64) { r.r.received = append(r.r.received, arrival{op, t}) }

// post is a message of a test.
type post struct {
	from, to uint32
	bytes    uint64
	at       uint64
}

// play runs messages, numbered in order, through a network, and returns it and when they were received. Check is called after
// each cycle.
func play(t *testing.T, n *worker, posts []post, check func()) *recorder {
	t.Helper()
	r := &recorder{taken: map[uint32]uint64{}}
	n.driver = record{r}
	for i := 0; i < len(posts) || n.nextCycle() != never; {
		cycle := n.nextCycle()
		if i < len(posts) {
			cycle = min(cycle, posts[i].at)
		}
		n.runRouters(cycle)
		for ; i < len(posts) && posts[i].at == cycle; i++ {
			n.post(uint32(i), posts[i].from, posts[i].to, posts[i].bytes, cycle)
		}
		n.runNICs()
		if check != nil {
			check()
		}
	}
	if n.live != 0 {
		t.Fatal(n.deadlock())
	}
	return r
}

// vefSwitch returns a switch of the preset with a number of hosts.
func vefSwitch(t testing.TB, topology string, change func(p *Params)) *worker {
	t.Helper()
	preset, err := FindPreset("vef-switch")
	if err != nil {
		t.Fatal(err)
	}
	p := preset.Params
	if change != nil {
		change(&p)
	}
	n, err := newNetwork(t.Context(), mustParse(t, topology), &p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestZeroLoad: a packet of f flits takes 2 L + 1 cycles to its first flit's reception, and f - 1 more to its last's.
func TestZeroLoad(t *testing.T) {
	for _, latency := range []string{"1ns", "3ns", "10ns"} {
		for flits := uint64(1); flits <= 8; flits++ {
			n := vefSwitch(t, "star:hosts=4,latency="+latency, nil)
			l := uint64(n.ports[0].latency)
			r := play(t, n, []post{{0, 1, 16 * flits, 7}}, nil)
			if want := 7 + 2*l + 1 + flits - 1; r.received[0].at != want {
				t.Errorf("latency %s: %d flits are received in cycle %d, want %d", latency, flits, r.received[0].at, want)
			}
			report := n.report(100)
			mean := float64(2*l+1) + float64(flits-1)/2
			if report.FlitLatency != mean || report.FlitNetworkLatency != mean || report.Flits != flits {
				t.Errorf("latency %s, %d flits: latencies %v and %v of %d flits, want %v", latency, flits, report.FlitLatency,
					report.FlitNetworkLatency, report.Flits, mean)
			}
		}
	}
}

// TestLongMessage checks that the packets of a message follow each other without a gap, the last one with the remaining
// flits, or padded.
func TestLongMessage(t *testing.T) {
	for _, pad := range []bool{false, true} {
		n := vefSwitch(t, "star:hosts=4,latency=1ns", func(p *Params) { p.Pad = pad })
		r := play(t, n, []post{{2, 3, 1600 + 1, 0}, {1, 0, 0, 5}}, nil)
		want := [2]arrival{{1, 5 + 3}, {0, 3 + 101 - 1}}
		if pad {
			want = [2]arrival{{1, 5 + 10}, {0, 3 + 104 - 1}}
		}
		if got := [2]arrival(r.received); got != want {
			t.Errorf("pad %v: received %v, want %v", pad, got, want)
		}
	}
}

// TestFairness: two hosts that send to a third get every other packet each; two streams of their own do not meet.
func TestFairness(t *testing.T) {
	const messages = 500
	n := vefSwitch(t, "star:hosts=4,latency=1ns", nil)
	var posts []post
	for i := range uint32(messages) {
		posts = append(posts, post{i % 2, 2, 128, 0})
	}
	r := play(t, n, posts, nil)
	for i, a := range r.received {
		if want := uint64(10 + 8*i); a.at != want || i > 0 && a.op%2 == r.received[i-1].op%2 {
			t.Fatalf("message %d is received in cycle %d after one of host %d, want %d", a.op, a.at, r.received[max(i, 1)-1].op%2, want)
		}
	}
	n = vefSwitch(t, "star:hosts=4,latency=1ns", nil)
	r = play(t, n, []post{{0, 1, 128 * messages, 0}, {2, 3, 128 * messages, 0}}, nil)
	for _, a := range r.received {
		if want := uint64(3 + 8*messages - 1); a.at != want {
			t.Errorf("stream %d ends in cycle %d, want %d", a.op, a.at, want)
		}
	}
}

// TestHeadOfLine checks head-of-line blocking: packets of host 0 to output 2 wait behind those to output 1, which host
// 3 keeps busy.
func TestHeadOfLine(t *testing.T) {
	const messages = 1000
	n := vefSwitch(t, "star:hosts=4,latency=1ns", nil)
	var posts []post
	for i := range uint32(messages) {
		posts = append(posts, post{0, 1 + i%2, 128, 0}, post{3, 1, 128, 0})
	}
	r := play(t, n, posts, nil)
	var one, two []uint64 // when those of host 0 were received at each
	for _, a := range r.received {
		switch {
		case a.op%2 == 1:
		case posts[a.op].to == 1:
			one = append(one, a.at)
		default:
			two = append(two, a.at)
		}
	}
	// Output 1 gives host 0 every other packet: 16 cycles for each pair of its packets, where half of that would do.
	for name, times := range map[string][]uint64{"busy": one, "idle": two} {
		took := float64(times[len(times)-1]-times[0]) / float64(len(times)-1)
		if took < 15.9 || took > 16.1 {
			t.Errorf("the %s output gets a packet of host 0 every %.2f cycles, want 16", name, took)
		}
	}
}

// TestCredits: a buffer never holds more than it has room for, whatever is lost on the way, and one that is as large as a
// round trip keeps the link busy.
func TestCredits(t *testing.T) {
	for _, c := range []struct {
		buffer, latency int
		each            float64 // cycles a packet
	}{
		{1024, 1, 8},
		// The head is there after L cycles, granted at once, the last flit leaves 8 cycles later, and L after that its credit is
		// back: as many packets as the buffer holds in 2 L + 8 cycles.
		{8, 1, 2 + 8},
		{8, 10, 20 + 8},
		{16, 4, 8},
		{16, 6, 20.0 / 2},
	} {
		n := vefSwitch(t, fmt.Sprintf("star:hosts=4,latency=%dns", c.latency), func(p *Params) {
			p.InjectionBuffer, p.LocalBuffer, p.GlobalBuffer = c.buffer, c.buffer, c.buffer
		})
		const packets = 1000
		check := func() {
			for q := range n.ports {
				held := uint32(0)
				for id := n.inputs[q].first; id != none; id = n.packets[id].next {
					held += n.packets[id].flits
				}
				credits := n.channels[n.ports[q].peer].credits
				if held > uint32(c.buffer) || credits < -8 || credits > int32(c.buffer) {
					t.Fatalf("cycle %d: %d flits in a buffer of %d, %d credits", n.now, held, c.buffer, credits)
				}
			}
		}
		r := play(t, n, []post{{0, 1, 128 * packets, 0}}, check)
		if each := float64(r.received[0].at) / packets; each < c.each*0.99 || each > c.each*1.01+0.1 {
			t.Errorf("buffer of %d, latency %d: %.3f cycles a packet, want %.3f", c.buffer, c.latency, each, c.each)
		}
		for q := range n.ports {
			ch := &n.channels[n.ports[q].peer]
			if got := ch.available(n.now+100, 1); got != int32(c.buffer) {
				t.Errorf("at the end port %d has %d credits, want %d", q, got, c.buffer)
			}
		}
	}
}

// TestSourceQueue: a packet is made as soon as the source queue has room for it, flit by flit.
func TestSourceQueue(t *testing.T) {
	n := vefSwitch(t, "star:hosts=4,latency=1ns", func(p *Params) { p.SourceQueue = 20 })
	r := play(t, n, []post{{0, 1, 128, 0}, {0, 1, 128, 0}, {0, 1, 64, 0}, {0, 1, 128, 0}, {0, 1, 128, 0}}, nil)
	// 20 flits at first: 8 + 8 + 4. The next fits when 8 have left, in cycle 8, the last in cycle 16.
	want := map[uint32]uint64{0: 0, 1: 0, 2: 0, 3: 8, 4: 16}
	for op, at := range want {
		if r.taken[op] != at {
			t.Errorf("message %d is taken in cycle %d, want %d", op, r.taken[op], at)
		}
	}
	if last := r.received[4].at; last != 3+36-1 {
		t.Errorf("the last is received in cycle %d, want %d", last, 3+36-1)
	}
}

// TestConservation checks that every generated packet is received or in the network at any time.
func TestConservation(t *testing.T) {
	for _, text := range []string{"star:hosts=5,latency=1ns", "mesh:dims=3x3,latency=2ns", "fattree:k=4,latency=1ns"} {
		n := vefSwitch(t, text, func(p *Params) { p.LocalBuffer = 16 })
		g := sim.NewRandom(1, 99, 0)
		var posts []post
		for i := range 3000 {
			from := g.Below(uint32(n.hosts))
			to := (from + 1 + g.Below(uint32(n.hosts-1))) % uint32(n.hosts)
			posts = append(posts, post{from, to, uint64(g.Below(1000)), uint64(i / 4)})
		}
		made := uint64(0)
		for _, p := range posts {
			made += max(1, (p.bytes+15)/16)
		}
		r := play(t, n, posts, func() {
			flits := uint64(0)
			for i := range n.inputs {
				for id := n.inputs[i].first; id != none; id = n.packets[id].next {
					flits += uint64(n.packets[id].flits)
				}
			}
			for h := range n.nics {
				flits += uint64(n.nics[h].queued)
			}
			if n.counters.created != n.counters.flits+flits {
				t.Fatalf("%s, cycle %d: %d flits made, %d received, %d under way", text, n.now, n.counters.created, n.counters.flits, flits)
			}
		})
		if n.counters.flits != made || len(r.received) != len(posts) {
			t.Errorf("%s: %d flits of %d messages received, want %d of %d", text, n.counters.flits, len(r.received), made, len(posts))
		}
	}
}

// TestReplayTimes checks a trace's view of a message: it is received after a fixed number of cycles, and after one on
// its own host.
func TestReplayTimes(t *testing.T) {
	preset, err := FindPreset("vef-switch")
	if err != nil {
		t.Fatal(err)
	}
	b := dag.NewBuilder(4)
	send := b.Rank(0).Send(2, 128, 0)
	b.Rank(0).Send(1, 128, 1, send)
	b.Rank(2).Send(3, 16, 3, b.Rank(2).Recv(0, 128, 0))
	b.Rank(1).Send(2, 16, 2, b.Rank(1).Calc(500*dag.Picosecond))
	b.Rank(2).Recv(1, 16, 2)
	b.Rank(3).Recv(2, 16, 3)
	b.Rank(1).Recv(0, 128, 1)
	c, err := Compile(dag.FromTrace(b.Trace()))
	if err != nil {
		t.Fatal(err)
	}
	result, report, err := c.Run(Options{Network: mustParse(t, preset.Topology), Params: preset.Params,
		Placement: Placement{Cores: 2}})
	if err != nil || !result.Complete {
		t.Fatalf("%v, complete %v", err, result.Complete)
	}
	// Ranks 0 and 1 are on host 0, 2 and 3 on host 1. That of rank 0 is injected in cycle 0, that of rank 1, which comes in
	// the middle of it, behind its 8 flits.
	for rank, want := range []uint64{0, 1000, 8000 + 3000, 10000 + 1000} {
		if got := result.Finish[rank].Ticks; got != want {
			t.Errorf("rank %d ends at %d ps, want %d", rank, got, want)
		}
	}
	if report.Cycles != 11 || report.Flits != 9 || report.Messages != 2 {
		t.Errorf("%d cycles, %d flits, %d messages in the network", report.Cycles, report.Flits, report.Messages)
	}
}
