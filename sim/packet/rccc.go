// This file implements RCCC, the receiver-driven congestion control of the Ultra Ethernet Specification 1.0, as in the
// simulator of the Ultra Ethernet Consortium (ultraethernet/uet-htsim). The rest is in uet.go and credit.go.

package packet

import (
	"math"

	"github.com/tracedag/tracedag/sim"
)

// uetTimeout is the retransmission timeout in picoseconds, in addition to the time of six full queues.
const uetTimeout = 15_000_000

// setUET sets the common parameters of both congestion controls of Ultra Ethernet.
func (t *uet) setUET(s *transportConfig) {
	t.setTimeout(s, uetTimeout)
	t.sprayer.mode = sprayMode(min(s.number("entropies"), float64(reps)))
	t.sprayer.penalty.mark, t.sprayer.penalty.trim, t.sprayer.penalty.limit = 1, 4, 15
	t.waitForCredit = s.quirks.waitForCredit
	t.base = t.n.reference
	if v := s.number("base-rtt"); v >= 0 {
		t.base.roundTrip, t.fixedBase = uint64(v), true
	}
}

// basePath returns the rate and the base round trip of a flow: those of the network, unless the flow's path has a
// slower link or a longer round trip.
func (t *uet) basePath(f uint32) pathInfo {
	if t.n.quirks.firstHostRate {
		return t.base
	}
	path := t.n.path(t.n.flows[f].src, t.n.flows[f].dst)
	if t.fixedBase || path.roundTrip < t.base.roundTrip {
		path.roundTrip = t.base.roundTrip
	}
	return path
}

// bandwidthDelay returns the bandwidth-delay product of a flow in bytes, and its base round trip in picoseconds.
func (t *uet) bandwidthDelay(f uint32) (bdp float64, roundTrip uint64) {
	path := t.basePath(f)
	return wholeBytes(&path), path.roundTrip
}

// wholeBytes returns a bandwidth-delay product, rounded as in the reference.
func wholeBytes(p *pathInfo) float64 {
	return math.Trunc(float64(p.roundTrip) / 1e12 * float64(p.rate/8))
}

func newRCCC(n *network, s *transportConfig) transport {
	t := newUET(n, s)
	t.setUET(s)
	quantum := s.number("quantum")
	c := newCredits(t, quantum, s.number("packets-per-pull")*float64(t.mss))
	c.perQuantum, c.grantExact, c.shareDemand, c.capCredit = true, true, true, true
	c.grantFinished = s.quirks.grantFinished
	c.grantIdle = s.quirks.fullPackets
	c.trimmedFirst = !s.quirks.fullPackets // otherwise, a trimmed last packet waits for the timeout
	if c.limitBytes = float64(s.sizes["window"]); c.limitBytes == 0 {
		c.limitBDPs = s.number("window")
	}
	c.setPeriods(func(rate float64) float64 {
		return math.Trunc(float64(c.quantum) * 8e12 / rate / s.number("pull-rate"))
	})
	if over := s.number("oversubscription"); over > 1 {
		c.rate = newPullRateControl(n, over, t.base.roundTrip)
	}
	return t
}

// pullRateControl reduces the pull rate of a receiver when its packets are marked or trimmed, for oversubscribed
// networks.
type pullRateControl struct {
	minRate  float64 // share of the link rate
	interval uint64  // mean time between two adjustments, in picoseconds
	rates    []pullRate
}

// pullRate is the pull rate of a host.
type pullRate struct {
	rate                            float64 // share of the link rate
	marks                           float64 // average share of marked packets
	increases                       uint    // consecutive increases
	packets                         uint32  // since the last adjustment
	marked                          uint32
	trimmedInside, trimmedAtLastHop uint32 // packets trimmed since then, within the network and at the port to the host
	running                         bool   // a timer is set
	random                          sim.Random
}

// Defaults of the reference simulator.
const (
	pullMarkTarget = 0.3  // share of marked packets
	pullIncrease   = 0.01 // share of the link rate
	pullDecrease   = 0.5
	pullMarkGain   = 0.5 // gain of the average of marks
	pullRTTs       = 1.5
	pullMinShare   = 0.9
	pullMinRate    = 0.01
)

func newPullRateControl(n *network, over float64, roundTrip uint64) *pullRateControl {
	c := &pullRateControl{
		minRate: max(pullMinShare/over, pullMinRate), interval: uint64(pullRTTs * float64(roundTrip)),
		rates: make([]pullRate, n.hosts),
	}
	for i := range c.rates {
		c.rates[i] = pullRate{rate: 1, random: sim.NewRandom(n.seed, forHost, uint64(i))}
	}
	return c
}

// count counts a packet at a receiver.
func (c *pullRateControl) count(n *network, f uint32, pk *packet) {
	host := n.flows[f].dst
	r := &c.rates[host]
	r.packets++
	switch {
	case pk.flags&trimmed == 0 && pk.flags&marked != 0:
		r.marked++
	case pk.flags&trimmed != 0 && pk.trimmedAtLastHop:
		r.trimmedAtLastHop++
	case pk.flags&trimmed != 0:
		r.trimmedInside++
	}
	if !r.running {
		c.schedule(n, host)
	}
}

// schedule sets the timer of the next adjustment to a random time, so that hosts do not adjust in lockstep.
func (c *pullRateControl) schedule(n *network, host uint32) {
	r := &c.rates[host]
	r.running = true
	n.at(n.now+3*c.interval/4+r.random.Next()%(c.interval/2+1), timerC, host)
}

// adapt adjusts the pull rate. Without packets the rate does not change.
func (c *pullRateControl) adapt(n *network, host uint32) {
	r := &c.rates[host]
	r.running = false
	if r.packets == 0 {
		return
	}
	share := 0.0
	if untrimmed := r.packets - r.trimmedInside - r.trimmedAtLastHop; untrimmed > 0 {
		share = float64(r.marked) / float64(untrimmed)
	}
	fall := r.trimmedInside > 0
	if fall {
		r.rate -= float64(r.trimmedInside) / float64(r.packets)
	}
	r.marks = float64(r.marks*(1-pullMarkGain)) + float64(pullMarkGain*share)
	if r.marks > pullMarkTarget {
		r.rate *= 1 - float64((r.marks-pullMarkTarget)*pullDecrease)
		fall = true
	}
	switch {
	case fall:
		r.increases = 0
	case r.marked == 0:
		r.rate += float64(pullIncrease * float64(uint(1)<<min(r.increases, 7)))
		r.increases++
	default:
		r.rate += pullIncrease
		r.increases++
	}
	r.rate = min(1, max(c.minRate, r.rate))
	r.packets, r.marked, r.trimmedInside, r.trimmedAtLastHop = 0, 0, 0, 0
	c.schedule(n, host)
}

// uetParameters returns the parameters of a congestion control, followed by those shared by both.
func uetParameters(own ...Parameter) []Parameter {
	return append(own, []Parameter{
		{Name: "window", Unit: BDPs, Value: 1.5, Min: 1e-3,
			Doc: "initial window of a sender, including headers, " +
				"in bandwidth-delay products or bytes"},
		{Name: "base-rtt", Unit: Time, Value: -1, Min: -1,
			Doc: "unloaded round trip of a full packet; auto: that of the path with the largest bandwidth-delay " +
				"product; flows with longer paths use their own"},
		{Name: "ack-every", Unit: Bytes, Value: 16384, Doc: "bytes received after which a receiver sends an ACK"},
		{Name: "control-turns", Value: 10, Min: 1, Doc: "control packets that a host sends in a row while " +
			"data waits"},
		{Name: "entropies", Value: 2,
			Doc: "entropy policy of senders: 0 cycles, 1 cycles and skips values with marks or trims, " +
				"2 recycles values without marks and otherwise is 1, 3 REPS"},
		{Name: "rto", Unit: Time, Value: -1, Min: -1,
			Doc: "retransmission timeout; 0: never; auto: 15 us plus the time of six full data queues and one " +
				"control queue; it doubles with each timeout without an answer, up to 64 times"},
	}...)
}

var rcccTransport = Transport{
	Name: "rccc", Title: "Ultra Ethernet with RCCC: receivers grant credit, switches trim",
	discipline: trimming, nic: scheduled, header: 64, control: 64, balance: Spray, queueBDPs: 1, neverPad: true,
	build: newRCCC,
	ecn:   ecnDefaults{minShare: 0.2, maxShare: 0.8, notToHosts: true, noHeaders: true},
	Parameters: uetParameters(
		Parameter{Name: "quantum", Unit: Bytes, Value: 256, Min: 1, Doc: "unit of credit"},
		Parameter{Name: "packets-per-pull", Value: 4, Min: 1, Doc: "credit of a pull, in packet payloads"},
		Parameter{Name: "pull-rate", Value: 0.99, Min: 1e-3, Doc: "rate of credit relative to the link rate"},
		Parameter{Name: "oversubscription", Value: 1, Min: 1,
			Doc: "above 1, receivers reduce the pull rate if packets are marked or trimmed within the network, " +
				"to at least 0.9 of the link rate divided by this value"},
	),
}
