// This file implements DCQCN (Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015). Switches
// mark packets, receivers convert marks into congestion notification packets (CNPs), and senders adapt their rates.

package packet

// dcqcn is the rate control of all flows. Times are in picoseconds, rates in bit/s.
type dcqcn struct {
	cnpInterval  uint64 // shortest time between CNPs of a flow
	alphaTimer   uint64 // period after which alpha decays without a CNP
	rateTimer    uint64 // period of timed increases
	byteCounter  uint64 // bytes between increases by the byte counter
	gain         float64
	fastRecovery uint32 // number of increases in fast recovery
	rateAI       float64
	rateHAI      float64 // additive and hyper increase of the target rate
	minRate      float64

	sources []dcqcnSource
	sinks   []dcqcnSink
}

// dcqcnSource is the reaction point of a flow (section 3.1). roceSource.rate is the current rate.
type dcqcnSource struct {
	lineRate       float64 // rate of the NIC
	target         float64 // target rate
	alpha          float64
	alphaUpdated   uint64 // time of the last update of alpha
	bytes          uint64 // bytes counted by the byte counter
	byteIncreases  uint32 // increases since the last CNP
	timerIncreases uint32
	timerDue       uint64 // expiry of the timer; 0: off
	gotCNP         bool   // at least one CNP has arrived
}

// dcqcnSink is the notification point of a flow (section 3.1).
type dcqcnSink struct {
	nextCNP uint64 // earliest time of the next CNP
	pending bool   // a CNP is due then
}

func newDCQCN(n *network, s *transportConfig) transport {
	t := makeRoCE(n, s)
	t.dcqcn = &dcqcn{
		cnpInterval: s.time("cnp-interval"), alphaTimer: s.time("alpha-timer"), rateTimer: s.time("rate-timer"),
		byteCounter: s.bytes("byte-counter"), gain: s.number("g"), fastRecovery: uint32(s.number("fast-recovery")),
		rateAI: s.number("rate-ai"), rateHAI: s.number("rate-hai"), minRate: s.number("rate-min"),
	}
	for i := range n.ports {
		n.ports[i].markChance = uint64(s.number("pmax") * alwaysMark)
	}
	return t
}

func (d *dcqcn) open(f uint32, line float64) {
	for int(f) >= len(d.sources) {
		d.sources = append(d.sources, dcqcnSource{})
		d.sinks = append(d.sinks, dcqcnSink{})
	}
	d.sources[f] = dcqcnSource{lineRate: line, target: line, alpha: 1}
	d.sinks[f] = dcqcnSink{}
}

// onMark sends a CNP from the receiver of a flow, or schedules one if the previous one was sent within the interval.
func (d *dcqcn) onMark(t *roce, f uint32) {
	k := &d.sinks[f]
	switch {
	case k.pending || t.n.flows[f].delivered:
	case t.n.now >= k.nextCNP:
		d.sendCNP(t, f, k)
	default:
		k.pending = true
		t.n.at(k.nextCNP, timerD, f)
	}
}

func (d *dcqcn) sendCNP(t *roce, f uint32, k *dcqcnSink) {
	k.pending, k.nextCNP = false, t.n.now+d.cnpInterval
	t.reply(f, t.n.newPacket(f, cnp, t.control))
}

// sendDelayedCNP sends the scheduled CNP.
func (d *dcqcn) sendDelayedCNP(t *roce, f uint32) {
	if k := &d.sinks[f]; k.pending && k.nextCNP == t.n.now && !t.n.flows[f].delivered {
		d.sendCNP(t, f, k)
	}
}

// onCNP reduces the rate of a flow (equation 1).
func (d *dcqcn) onCNP(t *roce, f uint32, s *roceSource) {
	r := &d.sources[f]
	if r.gotCNP && d.alphaTimer > 0 {
		r.alpha *= integerPower(1-d.gain, (t.n.now-r.alphaUpdated)/d.alphaTimer) // equation 2
	}
	r.gotCNP, r.alphaUpdated = true, t.n.now
	r.target = s.rate
	s.rate = max(d.minRate, s.rate*(1-r.alpha/2))
	r.alpha = (1-d.gain)*r.alpha + d.gain
	r.bytes, r.byteIncreases, r.timerIncreases = 0, 0, 0
	d.arm(t, f, r)
}

// integerPower returns x^n.
func integerPower(x float64, n uint64) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			y *= x
		}
		x *= x
	}
	return y
}

// arm sets the timer of timed increases.
func (d *dcqcn) arm(t *roce, f uint32, r *dcqcnSource) {
	r.timerDue = t.n.now + d.rateTimer
	t.n.at(r.timerDue, timerC, f)
}

func (d *dcqcn) timer(t *roce, f uint32, s *roceSource) {
	r := &d.sources[f]
	if r.timerDue != t.n.now || t.n.flows[f].complete || s.state == givenUp {
		return
	}
	r.timerIncreases++
	d.increase(t, f, s, r)
	r.timerDue = 0
	if s.rate < r.lineRate {
		d.arm(t, f, r)
	}
}

// sent counts the bytes of a packet.
func (d *dcqcn) sent(t *roce, f uint32, s *roceSource) {
	r := &d.sources[f]
	if r.timerDue == 0 {
		return
	}
	if r.bytes += s.lastSize; r.bytes < d.byteCounter {
		return
	}
	r.bytes -= d.byteCounter
	r.byteIncreases++
	d.increase(t, f, s, r)
}

// increase raises the rate of a flow (equations 3 and 4). The paper refers to QCN for the hyper phase; here the target
// grows by rateHAI each time.
func (d *dcqcn) increase(t *roce, f uint32, s *roceSource, r *dcqcnSource) {
	switch {
	case max(r.timerIncreases, r.byteIncreases) < d.fastRecovery:
	case min(r.timerIncreases, r.byteIncreases) > d.fastRecovery:
		r.target += d.rateHAI
	default:
		r.target += d.rateAI
	}
	r.target = min(r.target, r.lineRate)
	s.rate = (r.target + s.rate) / 2
	if due := max(t.n.now, s.time()); s.state == waiting && due < s.due {
		t.wait(f, s, due)
	}
}

var dcqcnTransport = Transport{
	Name: "dcqcn", Title: "DCQCN on RoCE v2: senders adapt rates to ECN marks",
	goBackN:    true,
	discipline: lossless, nic: scheduled, header: 64, control: 64, balance: ByFlow, queueBDPs: 1, build: newDCQCN,
	ecn: ecnDefaults{bytes: [2]int64{5_000, 200_000}}, // figure 14 of the paper
	Parameters: append([]Parameter{
		{Name: "cnp-interval", Unit: Time, Value: 50e6,
			Doc: "shortest time between congestion notifications (CNPs) of a flow"},
		{Name: "alpha-timer", Unit: Time, Value: 55e6, Doc: "period without a CNP after which alpha decays; 0: " +
			"never"},
		{Name: "rate-timer", Unit: Time, Value: 55e6, Min: 1, Doc: "period of rate increases by the timer"},
		{Name: "byte-counter", Unit: Bytes, Value: 10e6, Min: 1, Doc: "bytes sent between rate increases by the byte " +
			"counter"},
		{Name: "g", Value: 1. / 256, Doc: "gain of alpha, 0 to 1"},
		{Name: "fast-recovery", Value: 5, Doc: "increases before the target rate grows"},
		{Name: "rate-ai", Value: 40e6, Doc: "additive increase of the target rate, in bit/s"},
		{Name: "rate-hai", Value: 400e6, Doc: "hyper increase of the target rate, in bit/s"},
		{Name: "rate-min", Value: 40e6, Min: 1e3, Doc: "lowest rate of a flow, in bit/s"},
		{Name: "pmax", Value: 0.01, Doc: "marking probability at KMAX"},
	}, roceParameters...),
}
