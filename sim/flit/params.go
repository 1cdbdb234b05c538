// Package flit is the backend of networks of the machine room, cycle by cycle: routers with buffers at their inputs, and
// where they have some at their outputs, virtual channels, credits and virtual cut-through; network interfaces with a queue
// of bounded length; dragonflies, meshes, tori, fat trees and single switches. It is where contention within the routers is
// seen, and what routing and buffers do about it.
//
// All lengths are in flits, the unit that a link moves in one cycle. Virtual cut-through hands a packet on as a whole: it is
// granted an output once there is room for all of it, and then moves a flit a cycle without a gap. So the network is
// simulated packet by packet, and when each of its flits is where is known.
package flit

import (
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
)

// Params are the parameters of routers, interfaces and routing. The network's shape and the latencies of its links are
// those of the topology; a latency counts in whole cycles, rounded up, at least one. Rates and latencies of switches that
// the topology has do not count: every link moves a flit a cycle.
type Params struct {
	Cycle       dag.Time `json:"cycle_ps"`     // 1 ps to 1 s
	FlitBytes   int      `json:"flit_bytes"`   // 1 to 65536
	PacketFlits int      `json:"packet_flits"` // of a whole packet, 1 to 65535
	Pad         bool     `json:"pad_packets"`  // the last packet of a message is a whole one, too

	// Virtual channels of a router's input ports, 1 to 16 each: those from hosts, those from routers, and in a dragonfly
	// those from routers of other groups.
	InjectionVCs int `json:"injection_vcs"`
	LocalVCs     int `json:"local_vcs"`
	GlobalVCs    int `json:"global_vcs"`

	// What buffers hold, in flits: those at the inputs for each virtual channel, a whole packet at least.
	InjectionBuffer int `json:"injection_buffer"`
	LocalBuffer     int `json:"local_buffer"`
	GlobalBuffer    int `json:"global_buffer"`
	// OutputBuffer is that of each output port, for all channels. 0: there are none, and a packet leaves its input buffer
	// for the link.
	OutputBuffer int `json:"output_buffer"`

	Pipeline   int `json:"pipeline"`   // cycles from the grant to the head's leaving the router, 1 to 65535
	Speedup    int `json:"speedup"`    // flits that the crossbar moves in a cycle, 1 to 16; above 1 there are output buffers
	Iterations int `json:"iterations"` // of the allocator in a cycle, 1 to 8

	InputArbiter  Arbiter `json:"input_arbiter"`  // among the virtual channels of an input
	OutputArbiter Arbiter `json:"output_arbiter"` // among the inputs that request an output
	// TransitFirst has packets from other routers go before those from hosts.
	TransitFirst bool `json:"transit_first"`

	// WholeCredits has the credits of a packet go back with its first flit, all at once, and its room is free in the next
	// cycle; otherwise each flit's go back with it.
	WholeCredits bool `json:"whole_credits"`

	// SourceQueue is what the queue of an interface holds, in flits, between the messages and the link to the router.
	// 0: there is neither queue nor link: packets go from their messages into the router's buffer, one a cycle, and are
	// there after InjectionDelay cycles; and out of the router into the host at once, a packet at a time.
	SourceQueue    int `json:"source_queue"`
	InjectionDelay int `json:"injection_delay"` // 1 to 65535; only counts without SourceQueue

	Routing Routing `json:"routing"`
	// Threshold is by how many flits the queue of the minimal path may be longer than twice that of the other, for [UGAL]
	// and [UGALGlobal] to take the minimal one all the same.
	Threshold int `json:"ugal_threshold"`

	Coupling Coupling `json:"coupling"`
	Seed     int64    `json:"seed"`
}

// Coupling says how the ranks of a trace use the network.
type Coupling struct {
	Overhead dag.Time `json:"o_ps"` // that a send or a receive keeps its stream busy
	// Injected has a send end when its last packet has been taken by the interface's queue, not at once.
	Injected bool `json:"send_ends_injected"`
	// Paced has it end, moreover, no sooner than in the cycle in which the rank hands over the last flit, which hands over
	// one a cycle from that of the first packet on. It needs Injected.
	Paced bool `json:"send_paced"`
	// Head has a receive end with the first flit of the message's last packet, not with its last.
	Head bool `json:"receive_head"`
	// Local is how many cycles a message between ranks of one host takes.
	Local int `json:"local_cycles"`
}

// Arbiter is how one of several is chosen.
type Arbiter uint8

// The arbiters.
const (
	RoundRobin          Arbiter = iota // the first after the one served last
	LeastRecentlyServed                // the one that was not served for longest, at first the lowest number
)

var arbiters = []string{"rr", "lrs"}

// String returns the name.
func (a Arbiter) String() string { return nameOf(arbiters, int(a)) }

// MarshalText returns the name.
func (a Arbiter) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name.
func (a *Arbiter) UnmarshalText(text []byte) error {
	return unmarshalName(a, "arbiter", arbiters, text)
}

// Routing is how packets find their way.
type Routing uint8

// The routings. Minimal is dimension order in meshes and tori, and in other networks one of the shortest paths to each
// host. Adaptive takes, at each router, the shortest path with the most credits: in meshes and tori, where it needs a
// virtual channel more than Minimal, and in fat trees. Valiant goes through a random group of a dragonfly. UGAL takes that
// way only where the queue of the minimal one is longer, by what the source router knows of its own ports (UGAL-L of Kim,
// Dally, Scott, Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, section 4); UGALGlobal by the queues
// of the global ports of its group (UGAL-G there), which no real router knows.
const (
	Minimal Routing = iota
	Valiant
	UGAL
	UGALGlobal
	Adaptive
)

var routings = []string{"minimal", "valiant", "ugal", "ugal-g", "adaptive"}

// String returns the name.
func (r Routing) String() string { return nameOf(routings, int(r)) }

// MarshalText returns the name.
func (r Routing) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a name.
func (r *Routing) UnmarshalText(text []byte) error {
	return unmarshalName(r, "routing", routings, text)
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

func unmarshalName[T ~uint8](into *T, what string, names []string, text []byte) error {
	for i, name := range names {
		if name == string(text) {
			*into = T(i)
			return nil
		}
	}
	return fmt.Errorf("no %s %q, expected one of %v", what, text, names)
}

// Preset is a published network with its parameters.
type Preset struct {
	Name     string
	Title    string
	Topology string // as topology.Parse reads it
	Params   Params
}

// Presets returns the published networks.
func Presets() []Preset {
	return []Preset{
		{
			Name:     "vef-switch",
			Title:    "input-queued switch of Andújar et al., The Journal of Supercomputing 2023, section 4",
			Topology: "star:hosts=8,rate=128Gbps,latency=1ns",
			Params: Params{
				Cycle: dag.Nanosecond, FlitBytes: 16, PacketFlits: 8,
				InjectionVCs: 1, LocalVCs: 1, GlobalVCs: 1,
				InjectionBuffer: 1024, LocalBuffer: 1024, GlobalBuffer: 1024,
				Pipeline: 1, Speedup: 1, Iterations: 1,
				SourceQueue: 256, InjectionDelay: 1,
				Coupling: Coupling{Local: 1},
				Seed:     1,
			},
		},
		{
			Name:     "graph500-dragonfly",
			Title:    "dragonfly of Fuentes et al., A scalable synthetic traffic model of Graph500, table IV, at 40 Gbit/s",
			Topology: "dragonfly:p=2,a=4,h=2,arrangement=palmtree,rate=40Gbps,latency=40ns,globallatency=400ns",
			Params: Params{
				Cycle: 800 * dag.Picosecond, FlitBytes: 4, PacketFlits: 1024, Pad: true,
				InjectionVCs: 3, LocalVCs: 4, GlobalVCs: 2,
				InjectionBuffer: 32768, LocalBuffer: 4096, GlobalBuffer: 32768, OutputBuffer: 4096,
				Pipeline: 200, Speedup: 2, Iterations: 2,
				InputArbiter: LeastRecentlyServed, OutputArbiter: LeastRecentlyServed, TransitFirst: true,
				WholeCredits: true, InjectionDelay: 1, Threshold: 3 * 1024,
				Coupling: Coupling{Injected: true, Paced: true, Head: true, Local: 1},
				Seed:     1,
			},
		},
	}
}

// FindPreset returns the preset of a name.
func FindPreset(name string) (Preset, error) {
	presets := Presets()
	names := make([]string, len(presets))
	for i, p := range presets {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	return Preset{}, fmt.Errorf("no preset %q, expected one of %v", name, names)
}

// Limits of parameters that are lengths of time in cycles or in flits.
const (
	maxCycles = 1<<16 - 1
	maxBuffer = 1 << 30
	maxVCs    = 16
)

// Check returns what is wrong with the parameters.
func (p *Params) Check() error {
	buffers := func(least int) [][4]int64 {
		return [][4]int64{{int64(p.InjectionBuffer), int64(least), maxBuffer}, {int64(p.LocalBuffer), int64(least), maxBuffer},
			{int64(p.GlobalBuffer), int64(least), maxBuffer}}
	}(p.PacketFlits)
	for _, l := range []struct {
		name        string
		value       int64
		least, most int64
	}{
		{"cycle", int64(p.Cycle), 1, int64(dag.Second)},
		{"flit bytes", int64(p.FlitBytes), 1, 1 << 16},
		{"packet flits", int64(p.PacketFlits), 1, maxCycles},
		{"injection VCs", int64(p.InjectionVCs), 1, maxVCs},
		{"local VCs", int64(p.LocalVCs), 1, maxVCs},
		{"global VCs", int64(p.GlobalVCs), 1, maxVCs},
		{"injection buffer", buffers[0][0], buffers[0][1], buffers[0][2]},
		{"local buffer", buffers[1][0], buffers[1][1], buffers[1][2]},
		{"global buffer", buffers[2][0], buffers[2][1], buffers[2][2]},
		{"output buffer", int64(p.OutputBuffer), 0, maxBuffer},
		{"pipeline", int64(p.Pipeline), 1, maxCycles},
		{"speedup", int64(p.Speedup), 1, 16},
		{"iterations", int64(p.Iterations), 1, 8},
		{"source queue", int64(p.SourceQueue), 0, maxBuffer},
		{"injection delay", int64(p.InjectionDelay), 1, maxCycles},
		{"ugal threshold", int64(p.Threshold), math.MinInt32, math.MaxInt32},
		{"overhead", int64(p.Coupling.Overhead), 0, int64(dag.MaxTime / 4)},
		{"local cycles", int64(p.Coupling.Local), 0, maxCycles},
	} {
		if l.value < l.least || l.value > l.most {
			return fmt.Errorf("%s: expected %d to %d, found %d", l.name, l.least, l.most, l.value)
		}
	}
	switch {
	case p.OutputBuffer > 0 && p.OutputBuffer < p.PacketFlits:
		return fmt.Errorf("output buffer: expected none or room for a packet of %d flits, found %d", p.PacketFlits, p.OutputBuffer)
	case p.OutputBuffer == 0 && p.Speedup > 1:
		return fmt.Errorf("speedup: expected 1 without output buffers, found %d", p.Speedup)
	case p.SourceQueue > 0 && p.SourceQueue < p.PacketFlits:
		return fmt.Errorf("source queue: expected none or room for a packet of %d flits, found %d", p.PacketFlits, p.SourceQueue)
	case int(p.InputArbiter) >= len(arbiters) || int(p.OutputArbiter) >= len(arbiters):
		return fmt.Errorf("arbiters: expected 0 to %d, found %d and %d", len(arbiters)-1, p.InputArbiter, p.OutputArbiter)
	case int(p.Routing) >= len(routings):
		return fmt.Errorf("routing: expected 0 to %d, found %d", len(routings)-1, p.Routing)
	case p.Coupling.Paced && !p.Coupling.Injected:
		return fmt.Errorf("coupling: a paced send ends when it is injected, too")
	}
	return nil
}
