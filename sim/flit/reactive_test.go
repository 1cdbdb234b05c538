package flit

import (
	"fmt"
	"reflect"
	"testing"
)

// cycles is the length of a run.
const cycles = 2000

// newReactive returns a network with requests and replies.
func newReactive(t *testing.T, topology, pattern string, load float64, change func(o *SyntheticOptions)) *worker {
	t.Helper()
	traffic, err := parsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	traffic.Load, traffic.Measure = load, 1
	p := Presets()[0].Params
	p.InjectionVCs, p.InjectionBuffer, p.LocalBuffer, p.GlobalBuffer, p.SourceQueue = 2, 16, 16, 32, 16
	o := SyntheticOptions{Network: mustParse(t, topology), Params: p, Traffic: traffic}
	if change != nil {
		change(&o)
	}
	n, err := newSynthetic(&o)
	if err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	n.to = never // count all packets
	return n
}

// drain ends the generation of requests, and checks that each one has its reply and that all room is free.
func drain(t *testing.T, name string, n *worker) {
	t.Helper()
	for h := range n.nics {
		n.nics[h].generates = never
	}
	if err := n.runUntil(never, nil); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	c := &n.counters
	if n.live != 0 || c.packets == 0 || c.packets != 2*c.replies.packets || c.created != c.flits {
		t.Errorf("%s: %d packets left, %d received with %d replies, %d flits of %d", name, n.live, c.packets,
			c.replies.packets, c.flits, c.created)
	}
	for h, q := range n.hostPorts {
		if got := int(n.channels[q*n.vcs].credits); got != n.p.replyRoom() {
			t.Errorf("%s: host %d has room for %d flits of replies, want %d", name, h, got, n.p.replyRoom())
		}
		if a := n.traffic.reactive; a.limit > 0 && a.underWay[h] > 0 {
			t.Errorf("%s: host %d has %d requests under way", name, h, a.underWay[h])
		}
	}
	for q := range n.ports {
		for v := range uint32(n.count[n.ports[q].kind]) {
			ch := &n.channels[n.ports[q].peer*n.vcs+v]
			if got := ch.available(n.now+cycles, uint64(n.p.Speedup)); got != n.capacity[n.ports[q].kind] {
				t.Errorf("%s: %d credits at port %d, VC %d", name, got, q, v)
			}
		}
	}
}

// TestReactive checks conservation and progress with more load than the networks accept and with the smallest buffers.
func TestReactive(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	for _, test := range []struct {
		topology string
		routings []Routing
		patterns []string
	}{
		{"dragonfly:p=2,a=4,h=2", []Routing{Minimal, Valiant, UGAL, Piggyback, Progressive, Opportunistic, CurrentGlobal},
			[]string{"uniform", "adversarial+1", "hotspot:0.5:3"}},
		{"torus:dims=4x4", []Routing{Minimal, Adaptive}, []string{"uniform", "transpose", "hotspot:0.5:3"}},
		{"fattree:k=4", []Routing{Minimal, Adaptive}, []string{"uniform", "hotspot"}},
		{"star:hosts=8", []Routing{Minimal}, []string{"uniform", "permutation"}},
	} {
		for _, routing := range test.routings {
			for _, pattern := range test.patterns {
				for _, queue := range []int{0, 16} {
					for _, limit := range []int{0, 2} {
						name := fmt.Sprintf("%s %v %s, queue %d, limit %d", test.topology, routing, pattern, queue, limit)
						n := newReactive(t, test.topology, "reactive:"+pattern, 2, func(o *SyntheticOptions) {
							o.Params.Routing, o.Params.SourceQueue, o.Traffic.MaxRequests = routing, queue, limit
							if queue == 0 {
								o.Params.OutputBuffer, o.Params.Speedup = 16, 2
							}
						})
						if err := n.runUntil(cycles, nil); err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						for h, under := range n.traffic.reactive.underWay {
							if under > uint32(limit) {
								t.Errorf("%s: host %d has %d requests under way, want at most %d", name, h, under, limit)
							}
						}
						drain(t, name, n)
					}
				}
			}
		}
	}
}

// TestReactiveRoundTrip: a single request under way and its reply take as long as two packets in the idle network. The next
// request follows on average a cycle later, since half of the cycles generate one.
func TestReactiveRoundTrip(t *testing.T) {
	for _, queue := range []int{0, 16} {
		n := newReactive(t, "star:hosts=2,latency=1ns", "reactive:uniform", 8, func(o *SyntheticOptions) {
			o.Traffic.MaxRequests, o.Params.SourceQueue = 1, queue
		})
		n.nics[1].generates = never
		if err := n.runUntil(cycles, nil); err != nil {
			t.Fatal(err)
		}
		// The head of a packet of 8 flits reaches the router after a cycle, leaves it a cycle later and, with source
		// queues, crosses a link of a cycle to the host. Without, the host consumes each flit in the cycle after.
		round := 20.0
		if queue > 0 {
			round = 21 // the reply exists in the cycle after the last flit
		}
		v := n.report(cycles).Reactive
		near(t, "latency of requests", v.RequestLatency, 10, 0)
		near(t, "latency of replies", v.ReplyLatency, 10, 0)
		near(t, "round trip", v.RoundTrip, round, 0)
		if queue > 0 {
			round++ // the host sees the reply in the cycle after its last flit
		}
		near(t, "replies", float64(v.Replies), cycles/(round+1), 0.05)
	}
}

// TestReactiveThreads: the result does not depend on the number of threads.
func TestReactiveThreads(t *testing.T) {
	run := func(threads int) *Report {
		net, p := small(t)
		p.LocalVCs, p.GlobalVCs, p.Routing = 0, 0, UGAL
		traffic, err := parsePattern("reactive:uniform")
		if err != nil {
			t.Fatal(err)
		}
		traffic.Load, traffic.Warmup, traffic.Measure, traffic.MaxRequests = 0.6, 500, 4000, 4
		r, err := RunSynthetic(SyntheticOptions{Network: net, Params: p, Traffic: traffic, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		r.Wall = 0
		return r
	}
	one := run(1)
	for _, threads := range []int{2, 5} {
		if r := run(threads); !reflect.DeepEqual(r, one) {
			t.Errorf("%d threads: %+v, want %+v", threads, r, one)
		}
	}
	if v := one.Reactive; v.Requests == 0 || v.Replies == 0 || v.RoundTrip <= v.RequestLatency+v.ReplyLatency/2 {
		t.Errorf("%+v", v)
	}
}

// TestReactiveLoad: requests and replies are half of the load each, far below saturation.
func TestReactiveLoad(t *testing.T) {
	r := runPattern(t, "reactive:uniform", func(o *SyntheticOptions) {
		o.Params.LocalVCs, o.Params.GlobalVCs = 0, 0
		o.Traffic.Load, o.Traffic.Measure = 0.2, 20_000
	})
	near(t, "applied load", r.Applied, 0.2, 0.03)
	near(t, "accepted load", r.Accepted, 0.2, 0.03)
	near(t, "requests", float64(r.Reactive.Requests), float64(r.Packets)/2, 0.02)
	near(t, "latency of replies", r.Reactive.ReplyLatency, r.Reactive.RequestLatency, 0.05)
}
