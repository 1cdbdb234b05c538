// Package flit is the cycle-level backend for interconnection networks: routers with input buffers and optional output
// buffers, virtual channels, credits and virtual cut-through; NICs with bounded queues; dragonflies, meshes, tori, fat
// trees and single switches. It models contention within routers and the effect of routing and buffers on it.
//
// All lengths are in flits, the unit that a link transmits in one cycle. Virtual cut-through forwards a packet as a
// whole: an output is granted when there is room for all of it, and then its flits move one per cycle without a gap. So
// the backend simulates packets, and the position of each flit is known.
//
// docs/reference/backends/flit.md defines the rules.
package flit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Params are the parameters of routers, NICs and routing. The topology defines the shape of the network and the
// latencies of links, rounded up to whole cycles, at least one. Link rates and switch latencies of the topology are
// ignored: every link moves one flit per cycle.
type Params struct {
	Cycle       dag.Time `json:"cycle_ps"`     // 1 ps to 1 s
	FlitBytes   int      `json:"flit_bytes"`   // 1 to 65536
	PacketFlits int      `json:"packet_flits"` // flits of a full packet, 1 to 65535
	Pad         bool     `json:"pad_packets"`  // pad the last packet of a message to full size

	// Virtual channels per router input port, 1 to 16: from hosts, from routers, and in a dragonfly from routers of
	// other groups. LocalVCs and GlobalVCs are at least those that the topology and the routing need to avoid deadlock,
	// and exactly those if they are 0.
	InjectionVCs int `json:"injection_vcs"`
	LocalVCs     int `json:"local_vcs"`
	GlobalVCs    int `json:"global_vcs"`

	// Buffer capacity in flits per virtual channel of an input port, at least a full packet.
	InjectionBuffer int `json:"injection_buffer" unit:"flits"`
	LocalBuffer     int `json:"local_buffer" unit:"flits"`
	GlobalBuffer    int `json:"global_buffer" unit:"flits"`
	// OutputBuffer is the capacity in flits per output port, for all channels. If it is 0, there are no output buffers,
	// and a packet moves from its input buffer to the link.
	OutputBuffer int `json:"output_buffer" unit:"flits"`

	// Pipeline is the cycles from the grant until the head leaves the router, 1 to 65535.
	Pipeline int `json:"pipeline" unit:"cycles"`
	// Speedup is the flits per cycle of the crossbar, 1 to 16; more than 1 requires output buffers.
	Speedup    int `json:"speedup" unit:"flits/cycle"`
	Iterations int `json:"iterations"` // iterations of the allocator per cycle, 1 to 8

	InputArbiter  Arbiter `json:"input_arbiter"`  // among the virtual channels of an input
	OutputArbiter Arbiter `json:"output_arbiter"` // among the inputs that request an output
	// TransitFirst gives packets from other routers priority over those from hosts.
	TransitFirst bool `json:"transit_first"`

	// WholeCredits returns all credits of a packet with its first flit, and frees its room in the next cycle. Otherwise
	// each flit returns its own credit.
	WholeCredits bool `json:"whole_credits"`

	// SourceQueue is the capacity in flits of a NIC's queue between the messages and the link to the router. If it is
	// 0, there are neither queues nor links to routers: packets move from their messages to the router's buffer, one
	// per cycle, and arrive after InjectionDelay cycles; at the destination they move from the router to the host at
	// once, one packet at a time.
	SourceQueue    int `json:"source_queue" unit:"flits"`
	InjectionDelay int `json:"injection_delay" unit:"cycles"` // 1 to 65535; ignored with SourceQueue

	Routing Routing `json:"routing"`
	// Threshold applies to [UGAL] and [UGALGlobal]: they take the minimal path unless its queue exceeds twice that of
	// the other path by more than Threshold.
	Threshold Length `json:"ugal_threshold" unit:"flits"`

	// UGALWeight selects the weights of the two queues, for [UGAL], [UGALGlobal] and [Piggyback].
	UGALWeight Weight `json:"ugal_weight"`

	// For [Piggyback], a global link is congested if its queue exceeds PiggybackCoefficient percent of the mean over
	// the global links of its router by more than PiggybackThreshold. Queues are means over virtual channels.
	PiggybackCoefficient int    `json:"pb_coefficient" unit:"%"` // 0 to 10000
	PiggybackThreshold   Length `json:"pb_threshold" unit:"flits"`

	// For [Progressive] and [Opportunistic]: a packet leaves the minimal path if at least MisrouteMinimum percent of
	// the next buffers are filled. The buffers behind the other port are filled by at most LocalThreshold or
	// GlobalThreshold percent of that. A global link is left only if it is congested by RestrictionCoefficient and
	// RestrictionThreshold, as for Piggyback.
	MisroutePolicy         Policy `json:"misroute_policy"`
	MisrouteMinimum        int    `json:"misroute_minimum" unit:"%"` // 0 to 100
	LocalThreshold         int    `json:"local_threshold" unit:"%"`  // 0 to 10000
	GlobalThreshold        int    `json:"global_threshold" unit:"%"` // 0 to 10000
	RestrictionCoefficient int    `json:"restriction_coefficient" unit:"%"`
	RestrictionThreshold   Length `json:"restriction_threshold" unit:"flits"`

	Coupling Coupling `json:"coupling"`
	Seed     int64    `json:"seed"`

	classes uint8 // of packets, each with its virtual channels; 0: one
}

// setClasses separates the virtual channels of requests and replies.
func (p *Params) setClasses(t *Traffic) {
	if p.classes = 0; t.Pattern == Reactive {
		p.classes = 2
	}
}

// classCount returns the number of classes of packets.
func (p *Params) classCount() uint8 { return max(1, p.classes) }

// checkClasses returns an error if the virtual channels cannot be divided among the classes. The last one of an
// odd number of channels from hosts is unused.
func (p *Params) checkClasses() error {
	if p.classes < 2 {
		return nil
	}
	for _, vcs := range []struct {
		key   string
		count int
	}{{"local-vcs", p.LocalVCs}, {"global-vcs", p.GlobalVCs}} {
		if vcs.count%2 > 0 {
			return fmt.Errorf("%s: expected an even number, half for requests and half for replies, found %d; use "+
				"--set %s=%d", vcs.key, vcs.count, vcs.key, vcs.count+1)
		}
	}
	if p.InjectionVCs < 2 {
		return fmt.Errorf("injection-vcs: expected at least 2, for requests and for replies, found %d; use --set "+
			"injection-vcs=2", p.InjectionVCs)
	}
	return nil
}

// Weight is the weight of the queues that UGAL compares.
type Weight uint8

// Weights.
const (
	WeightTwo Weight = iota // the queue of the other path counts twice
	// Queues are multiplied by the hops that FOGSim attributes to their paths: those in a dragonfly with the absolute
	// arrangement, and through a random router of the intermediate group instead of the first one.
	WeightHops
	WeightPaths // queues are multiplied by the hops of their paths
)

var weights = []string{"2", "hops", "paths"}

// String returns the weight's name.
func (w Weight) String() string { return nameOf(weights, int(w)) }

// MarshalText returns the weight's name.
func (w Weight) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText parses a weight's name.
func (w *Weight) UnmarshalText(text []byte) error { return unmarshalName(w, "weight", weights, text) }

// Policy selects the links off the minimal path that adaptive routing in transit considers.
type Policy uint8

// Policies. In its source group, a packet considers the global links of its first router and, with a mixed policy, at
// the next router a local link, after which it takes any global link. Policies with Local also consider a local link
// per group elsewhere, and within a single group.
const (
	DefaultPolicy Policy = iota // Mixed for Progressive, MixedLocal for Opportunistic
	Mixed
	MixedLocal
	Current
	CurrentLocal
)

var policies = []string{"auto", "mm", "mm-l", "crg", "crg-l"}

// String returns the policy's name.
func (p Policy) String() string { return nameOf(policies, int(p)) }

// MarshalText returns the policy's name.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText parses a policy's name.
func (p *Policy) UnmarshalText(text []byte) error { return unmarshalName(p, "policy", policies, text) }

// Coupling defines how the ranks of a trace use the network.
type Coupling struct {
	Overhead dag.Time `json:"o_ps"` // time for which a send or a receive occupies its stream
	// Injected makes a send end when the NIC's queue has taken its last packet instead of immediately.
	Injected bool `json:"send_ends_injected"`
	// Paced delays that end to at least the cycle in which the rank hands over the last flit, at one flit per cycle
	// from the cycle of the first packet. It requires Injected.
	Paced bool `json:"send_paced"`
	// Head makes a receive end with the first flit of the message's last packet instead of its last flit.
	Head bool `json:"receive_head"`
	// Local is the delay in cycles of a message between ranks of one host.
	Local int `json:"local_cycles"`
}

// Length is the length of a queue in flits, or in full packets, which then follows the size of packets.
type Length struct {
	N       int64
	Packets bool
}

// flits returns the length in flits with full packets of the given size.
func (l Length) flits(packet int) int64 {
	if l.Packets {
		return l.N * int64(packet)
	}
	return l.N
}

// String returns the number of flits, or the number of packets with the unit.
func (l Length) String() string {
	if l.Packets {
		return strconv.FormatInt(l.N, 10) + "packets"
	}
	return strconv.FormatInt(l.N, 10)
}

// MarshalJSON returns the number of flits, or a text with the unit for packets.
func (l Length) MarshalJSON() ([]byte, error) {
	if l.Packets {
		return strconv.AppendQuote(nil, l.String()), nil
	}
	return strconv.AppendInt(nil, l.N, 10), nil
}

// UnmarshalJSON parses a number of flits, or a text with a unit.
func (l *Length) UnmarshalJSON(text []byte) error {
	if unquoted, err := strconv.Unquote(string(text)); err == nil {
		return l.parse(unquoted)
	}
	return l.parse(string(text))
}

// parse parses a number of flits such as 24 or 24flits, or of packets such as 3packets.
func (l *Length) parse(text string) error {
	number, packets := text, false
	for _, unit := range []string{"packets", "packet", "flits", "flit"} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			number, packets = strings.TrimSpace(rest), unit[0] == 'p'
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("expected a number of flits such as 24, or of packets such as 3packets, found %q", text)
	}
	*l = Length{n, packets}
	return nil
}

// Arbiter is the selection policy of an arbiter.
type Arbiter uint8

// Arbiter policies.
const (
	RoundRobin          Arbiter = iota // the first one after the one served last
	LeastRecentlyServed                // the least recently served one; initially the one with the lowest number
)

var arbiters = []string{"rr", "lrs"}

// String returns the policy's name.
func (a Arbiter) String() string { return nameOf(arbiters, int(a)) }

// MarshalText returns the policy's name.
func (a Arbiter) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses a policy's name.
func (a *Arbiter) UnmarshalText(text []byte) error {
	return unmarshalName(a, "arbiter", arbiters, text)
}

// Routing is a routing algorithm.
type Routing uint8

// Routing algorithms. Minimal is dimension order in meshes and tori, and one of the shortest paths per host in other
// networks. Adaptive takes, at each router, the shortest path with the most credits. It supports fat trees, and meshes
// and tori, where it needs one more virtual channel than Minimal. Valiant routes through a random group of a dragonfly.
// UGAL takes that path only if the queue of the minimal path is longer when the packet is the first of its buffer at
// the source router, according to that router's own ports (UGAL-L of Kim, Dally, Scott, Abts, Technology-Driven,
// Highly-Scalable Dragonfly Topology, ISCA 2008, section 4). UGALGlobal knows the queues of all global ports of its
// group (UGAL-G there), unlike a real router.
const (
	Minimal Routing = iota
	Valiant
	UGAL
	UGALGlobal
	Adaptive
	ValiantAny    // Valiant through a random router, also within a group
	Piggyback     // UGAL, or Valiant if the global link of the minimal path is known to be congested
	Progressive   // leaves the minimal path in transit
	Opportunistic // as Progressive, with fewer virtual channels and local detours in all groups
	CurrentGlobal // through a random router of a group that the first router has a link to
	RandomGlobal  // through a random router of a random group; minimal within a group
)

var routings = []string{"minimal", "valiant", "ugal", "ugal-g", "adaptive", "valiant-any", "pb", "par", "olm", "crg",
	"rrg"}

// String returns the algorithm's name.
func (r Routing) String() string { return nameOf(routings, int(r)) }

// MarshalText returns the algorithm's name.
func (r Routing) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses an algorithm's name.
func (r *Routing) UnmarshalText(text []byte) error {
	return unmarshalName(r, "routing", routings, text)
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

func unmarshalName[T ~uint8](into *T, noun string, names []string, text []byte) error {
	for i, name := range names {
		if name == string(text) {
			*into = T(i)
			return nil
		}
	}
	return fmt.Errorf("unknown %s %q, expected one of %s", noun, text, strings.Join(names, ", "))
}

// Preset is a published network with its parameters.
type Preset struct {
	Name     string
	Title    string
	Topology string // syntax of topology.Parse
	Params   Params
}

// withRouting sets the parameters of adaptive routings in dragonflies to those of FOGSim. packets are five packets.
func (p Params) withRouting(packets Length) Params {
	p.PiggybackCoefficient, p.PiggybackThreshold = 200, packets
	p.LocalThreshold, p.GlobalThreshold = 50, 50
	p.RestrictionCoefficient, p.RestrictionThreshold = 150, packets
	return p
}

// Presets returns the published networks.
func Presets() []Preset {
	return []Preset{
		{
			Name:     "vef-switch",
			Title:    "input-queued switch (Andújar et al., The Journal of Supercomputing 2023, section 4)",
			Topology: "star:hosts=8,rate=128Gbps,latency=1ns",
			Params: Params{
				Cycle: dag.Nanosecond, FlitBytes: 16, PacketFlits: 8,
				InjectionVCs:    1,
				InjectionBuffer: 1024, LocalBuffer: 1024, GlobalBuffer: 1024,
				Pipeline: 1, Speedup: 1, Iterations: 1,
				SourceQueue: 256, InjectionDelay: 1,
				Coupling: Coupling{Local: 1},
				Seed:     1,
			}.withRouting(Length{N: 40}),
		},
		{
			Name: "graph500-dragonfly",
			Title: "dragonfly at 40 Gb/s (Fuentes et al., A scalable synthetic traffic model of " +
				"Graph500, table IV)",
			Topology: "dragonfly:p=2,a=4,h=2,arrangement=palmtree,rate=40Gbps,latency=40ns,globallatency=400ns",
			Params: Params{
				Cycle: 800 * dag.Picosecond, FlitBytes: 4, PacketFlits: 1024, Pad: true,
				InjectionVCs: 3, LocalVCs: 4, GlobalVCs: 2,
				InjectionBuffer: 32768, LocalBuffer: 4096, GlobalBuffer: 32768, OutputBuffer: 4096,
				Pipeline: 200, Speedup: 2, Iterations: 2,
				InputArbiter: LeastRecentlyServed, OutputArbiter: LeastRecentlyServed, TransitFirst: true,
				WholeCredits: true, InjectionDelay: 1, Threshold: Length{3, true},
				Coupling: Coupling{Injected: true, Paced: true, Head: true, Local: 1},
				Seed:     1,
			}.withRouting(Length{5, true}),
		},
	}
}

// FindPreset returns the named preset.
func FindPreset(name string) (Preset, error) {
	presets := Presets()
	names := make([]string, len(presets))
	for i, p := range presets {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	return Preset{}, fmt.Errorf("unknown preset %q, expected one of %s", name, strings.Join(names, ", "))
}

// Limits of parameters in cycles or flits.
const (
	maxCycles = 1<<16 - 1
	maxBuffer = 1 << 30
	maxVCs    = 16
	// maxPercent is the largest percentage of a queue.
	maxPercent = 10_000
)

// Check returns an error if a parameter is out of range or conflicts with another one.
func (p *Params) Check() error {
	buffers := func(least int) [][4]int64 {
		return [][4]int64{{int64(p.InjectionBuffer), int64(least), maxBuffer}, {int64(p.LocalBuffer), int64(least),
			maxBuffer},
			{int64(p.GlobalBuffer), int64(least), maxBuffer}}
	}(p.PacketFlits)
	for _, l := range []struct {
		name        string
		value       int64
		least, most int64
	}{
		{"cycle", int64(p.Cycle), 1, int64(dag.Second)},
		{"flit-bytes", int64(p.FlitBytes), 1, 1 << 16},
		{"packet-flits", int64(p.PacketFlits), 1, maxCycles},
		{"injection-vcs", int64(p.InjectionVCs), 1, maxVCs},
		{"local-vcs", int64(p.LocalVCs), 0, maxVCs},
		{"global-vcs", int64(p.GlobalVCs), 0, maxVCs},
		{"injection-buffer", buffers[0][0], buffers[0][1], buffers[0][2]},
		{"local-buffer", buffers[1][0], buffers[1][1], buffers[1][2]},
		{"global-buffer", buffers[2][0], buffers[2][1], buffers[2][2]},
		{"output-buffer", int64(p.OutputBuffer), 0, maxBuffer},
		{"pipeline", int64(p.Pipeline), 1, maxCycles},
		{"speedup", int64(p.Speedup), 1, 16},
		{"iterations", int64(p.Iterations), 1, 8},
		{"source-queue", int64(p.SourceQueue), 0, maxBuffer},
		{"injection-delay", int64(p.InjectionDelay), 1, maxCycles},
		{"ugal-threshold", p.Threshold.N, math.MinInt32, math.MaxInt32},
		{"pb-coefficient", int64(p.PiggybackCoefficient), 0, maxPercent},
		{"pb-threshold", p.PiggybackThreshold.N, math.MinInt32, math.MaxInt32},
		{"misroute-minimum", int64(p.MisrouteMinimum), 0, 100},
		{"local-threshold", int64(p.LocalThreshold), 0, maxPercent},
		{"global-threshold", int64(p.GlobalThreshold), 0, maxPercent},
		{"restriction-coefficient", int64(p.RestrictionCoefficient), 0, maxPercent},
		{"restriction-threshold", p.RestrictionThreshold.N, math.MinInt32, math.MaxInt32},
		{"o", int64(p.Coupling.Overhead), 0, int64(dag.MaxTime / 4)},
		{"local-cycles", int64(p.Coupling.Local), 0, maxCycles},
	} {
		if l.value < l.least || l.value > l.most {
			return fmt.Errorf("%s: expected %d to %d, found %d", l.name, l.least, l.most, l.value)
		}
	}
	switch {
	case p.OutputBuffer > 0 && p.OutputBuffer < p.PacketFlits:
		return fmt.Errorf("output-buffer: expected 0 or at least a packet of %d flits, found %d", p.PacketFlits,
			p.OutputBuffer)
	case p.OutputBuffer == 0 && p.Speedup > 1:
		return fmt.Errorf("speedup: expected 1 without output buffers (output-buffer=0), found %d", p.Speedup)
	case p.SourceQueue > 0 && p.SourceQueue < p.PacketFlits:
		return fmt.Errorf("source-queue: expected 0 or at least a packet of %d flits, found %d", p.PacketFlits,
			p.SourceQueue)
	case int(p.InputArbiter) >= len(arbiters) || int(p.OutputArbiter) >= len(arbiters):
		return fmt.Errorf("arbiters: expected 0 to %d, found %d and %d", len(arbiters)-1, p.InputArbiter,
			p.OutputArbiter)
	case int(p.UGALWeight) >= len(weights) || int(p.MisroutePolicy) >= len(policies):
		return fmt.Errorf("ugal-weight and misroute-policy: expected 0 to %d and 0 to %d, found %d and %d",
			len(weights)-1, len(policies)-1, p.UGALWeight, p.MisroutePolicy)
	case int(p.Routing) >= len(routings):
		return fmt.Errorf("routing: expected 0 to %d, found %d", len(routings)-1, p.Routing)
	case p.Coupling.Paced && !p.Coupling.Injected:
		return fmt.Errorf("send-paced: expected send-injected=on too, found off")
	}
	return nil
}
