package flow

import (
	"math"
	"slices"
)

// model contains the parameters of the fluid model. docs/reference/backends/flow.md has their meanings.
type model struct {
	latencyFactor   float64
	bandwidthFactor float64
	latencies       []sizeFactor // by size, ascending; they replace latencyFactor above the first size
	bandwidths      []sizeFactor // by size, ascending; they replace bandwidthFactor above the first size
	weightS         float64      // bytes
	gamma           int64        // bytes; 0: the window does not limit flows
	crossTraffic    bool
	acks            float64 // with crossTraffic: share of a flow's rate on the way back
	equal           bool    // all flows have the same weight
	leaves          bool    // a send ends when its last byte leaves the host; otherwise, when it arrives
}

// sizeFactor is the factor of messages larger than a size.
type sizeFactor struct {
	above  uint64 // bytes
	factor float64
}

// namedModel is a choice of --flow-model.
type namedModel struct {
	name string
	model
}

// models are the choices of --flow-model. cm02, lv08 and smpi have the values of SimGrid 3.32.
var models = []namedModel{
	{"fair", model{latencyFactor: 1, bandwidthFactor: 1, equal: true, leaves: true}},
	{"cm02", model{latencyFactor: 1, bandwidthFactor: 1, gamma: defaultGamma, crossTraffic: true}},
	{"lv08", model{latencyFactor: 13.01, bandwidthFactor: 0.97, weightS: 20537, gamma: defaultGamma,
		crossTraffic: true}},
	{"smpi", model{latencyFactor: 1, bandwidthFactor: 1, weightS: 8775, gamma: defaultGamma, crossTraffic: true,
		latencies: []sizeFactor{{0, 2.01467}, {257, 1.95341}, {732, 1.9503}, {1426, 1.61075}, {3484, 1.88101},
			{5776, 2.18796}, {9376, 2.59299}, {15424, 3.48845}, {65472, 11.6436}},
		bandwidths: []sizeFactor{{0, 0.812084}, {257, 0.338112}, {732, 0.341987}, {1426, 0.608902}, {3484, 0.77493},
			{5776, 1.08739}, {9376, 0.58729}, {15424, 0.697866}, {65472, 0.940694}}}},
}

// defaultGamma is the largest TCP window of SimGrid's models in bytes.
const defaultGamma = 4194304

// simGridACKs is the share of a flow's rate that its acknowledgements take on the way back in SimGrid.
const simGridACKs = 0.05

// factors returns the latency and bandwidth factors of a message.
func (m *model) factors(bytes uint64) (latency, bandwidth float64) {
	return factorOf(m.latencies, bytes, m.latencyFactor), factorOf(m.bandwidths, bytes, m.bandwidthFactor)
}

// factorOf returns the factor of a message by size, or another one if the message is not above the first size.
func factorOf(sizes []sizeFactor, bytes uint64, factor float64) float64 {
	for i := range sizes {
		if bytes <= sizes[i].above {
			break
		}
		factor = sizes[i].factor
	}
	return factor
}

// path is the links that a message uses in one direction.
type path struct {
	hops    []hop
	latency float64 // picoseconds
	seconds float64 // latency in seconds as a platform has it, without the rounding of its conversion; 0: not given
}

// hop is a link of a path, with the part of the message that uses it.
type hop struct {
	link uint32
	part float64 // 0 to 1
}

// demand describes a flow.
type demand struct {
	route   *route
	latency float64 // length of the latency phase in picoseconds
	factor  float64 // rate per share
	penalty float64 // seconds
	early   float64 // time between the end of the send and that of the flow in picoseconds
}

// fill sets r to the route of messages on a path. back is the path of their acknowledgements.
func (m *model) fill(r *route, links []link, there, back *path) {
	*r = route{links: r.links[:0], weights: r.weights[:0], latency: there.latency, bound: math.Inf(1)}
	add := func(i uint32, weight float64) {
		k := slices.Index(r.links, i)
		switch {
		case k < 0:
			r.links, r.weights = append(r.links, i), append(r.weights, weight)
		case links[i].fat:
			r.weights[k] = max(r.weights[k], weight)
		default:
			r.weights[k] += weight
		}
	}
	lat := there.seconds
	if lat == 0 {
		lat = there.latency / psPerSecond
	}
	r.penalty = lat
	for _, h := range there.hops {
		l := &links[h.link]
		r.penalty += h.part * m.weightS * float64(l.ports()) / l.capacity
		r.bound = min(r.bound, l.capacity/h.part)
		add(h.link, h.part)
	}
	if m.crossTraffic && m.acks > 0 { // what takes nothing does not use the link
		for _, h := range back.hops {
			add(h.link, m.acks*h.part)
		}
	}
	if m.gamma > 0 && lat > 0 {
		r.bound = min(r.bound, float64(m.gamma)/(2*lat))
	}
	r.alone = r.bound
	for k, i := range r.links {
		r.alone = min(r.alone, links[i].capacity/r.weights[k])
	}
}

// flow returns the demand of a message.
func (m *model) flow(bytes uint64, r *route) demand {
	latencyFactor, factor := m.factors(bytes)
	d := demand{route: r, latency: r.latency * latencyFactor, factor: factor, penalty: r.penalty}
	if m.equal || d.latency == 0 {
		d.penalty = 1
	}
	return d
}
