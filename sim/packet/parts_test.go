package packet

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/sim"
)

// TestShuffled checks that shuffled is a permutation that depends on the key.
func TestShuffled(t *testing.T) {
	g := sim.Random(1)
	for _, n := range []uint32{1, 2, 3, 4, 5, 7, 16, 31, 64, 100, 128, 1000} {
		first := make(map[uint32]int)
		const keys = 400
		for range keys {
			key := g.Next()
			seen := make([]bool, n)
			for i := range n {
				x := shuffled(i, n, key)
				if x >= n || seen[x] {
					t.Fatalf("of %d: %d is taken to %d", n, i, x)
				}
				seen[x] = true
			}
			first[shuffled(0, n, key)]++
		}
		for x, count := range first {
			if n <= 16 && (count < keys/int(n)/2 || count > 2*keys/int(n)+1) {
				t.Errorf("of %d: %d comes first %d times out of %d", n, x, count, keys)
			}
		}
	}
}

// TestReassembly compares reassembly with a map.
func TestReassembly(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var r reassembly
	for _, spread := range []int{1, 2, 60, 64, 65, 130, 1000} {
		r.reset()
		want := make(map[uint64]bool)
		next := uint64(0)
		for range 5000 {
			i := next + uint64(random.IntN(spread))
			if random.IntN(10) == 0 && next > 0 {
				i = uint64(random.IntN(int(next)))
			}
			if got := r.add(i); got == want[i] {
				t.Fatalf("spread %d: add(%d) = %v", spread, i, got)
			}
			want[i] = true
			for want[next] {
				next++
			}
			if r.next != next || !r.has(i) || r.has(next) {
				t.Fatalf("spread %d: the first that is missing is %d, want %d", spread, r.next, next)
			}
			if probe := next + uint64(random.IntN(2*spread)); r.has(probe) != want[probe] {
				t.Fatalf("spread %d: has(%d) = %v", spread, probe, r.has(probe))
			}
		}
	}
}

// bare returns a network that has flows 1 to n only.
func bare(flows int) *network {
	n := &network{freePacket: none, freeFlow: none, headerSize: 64, controlSize: 64}
	for i := range flows {
		n.flows = append(n.flows, flow{id: uint32(i + 1)})
	}
	return n
}

// TestFairQueue checks that flows are served in the order of their numbers, and that a new flow waits for the next
// round if the current one has passed its number.
func TestFairQueue(t *testing.T) {
	for _, keep := range []bool{false, true} {
		n := bare(5)
		q := fairQueue{keepIdle: keep}
		put := func(flows ...uint32) {
			for _, f := range flows {
				q.push(n, f, n.newPacket(f-1, data, 100))
			}
		}
		var got []uint32
		take := func(count int) {
			for range count {
				got = append(got, n.flows[n.packets[q.pop(n)].flow].id)
			}
		}
		put(2, 2, 4)
		take(1)
		put(1, 1, 3) // flow 3 is served before flow 4, which is next
		take(5)
		put(5, 2)
		take(2)
		if q.pop(n) != none {
			t.Error("there is one too many")
		}
		if want := []uint32{2, 4, 1, 2, 3, 1, 2, 5}; !slices.Equal(got, want) {
			t.Errorf("keep %v: %v, want %v", keep, got, want)
		}
		if len(q.flows) > 0 != keep {
			t.Errorf("keep %v: %d flows are known", keep, len(q.flows))
		}
	}
}

// TestTrimming checks the queue of NDP: the arriving or the last queued packet is trimmed, and control goes first.
func TestTrimming(t *testing.T) {
	trims, tails := 0, 0
	for seed := range int64(40) {
		n := bare(1)
		n.queue = newQueue(len(n.ports))
		pt := port{
			discipline: trimming, twoQueues: true, psPerByte: 1, serving: none, host: none, capacity: [2]uint64{2000, 100},
			queues: [2]fifo{newFIFO(), newFIFO()}, controlTurns: 10, random: sim.NewRandom(seed, forPort, 0), kmin: NoECN, kmax: NoECN,
		}
		n.ports = []port{pt}
		var sent []uint32
		for range 4 {
			p := n.newPacket(0, data, 1000)
			sent = append(sent, p)
			n.enqueue(0, p)
		}
		at := &n.ports[0]
		// The first packet is in service, the second is queued. The others are trimmed one by one, with room for one
		// header.
		if at.bytes != [2]uint64{2000, 64} || at.trims+at.trimsTail != 2 || at.controlDrops != 1 || at.peak[dataQueue] != 2000 {
			t.Fatalf("%+v", at)
		}
		trims += int(at.trims)
		tails += int(at.trimsTail)
		if first := at.serving; first != sent[0] {
			t.Errorf("packet %d is in service", first)
		}
		if queue := n.nextQueue(at); queue != controlQueue {
			t.Error("data goes first")
		}
	}
	if trims < 20 || tails < 20 {
		t.Errorf("%d of what comes are trimmed, and %d of what waits", trims, tails)
	}
}
