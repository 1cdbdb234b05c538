// This file lists the behavior of the reference simulators that runs follow with --compat only.

package packet

// quirks are the accidents of the reference simulators' code that a run reproduces. The zero value, apart from the two
// limits of control queues, is the default behavior. quirksOf sets the fields once, when the network is built.
//
// The sources are htsim (Broadcom/csg-htsim), ATLAHS (spcl/atlahs, which has a copy of htsim) and the simulator of the
// Ultra Ethernet Consortium (ultraethernet/uet-htsim, also based on htsim). Fields without a source apply to all three.
type quirks struct {
	// Network.

	// stagedEvents schedules one event for each end of service, end of a wire and switch crossing. The number of events
	// affects the order of events of equal time.
	stagedEvents bool
	// pfcCountsAtArrival counts a packet at the input of a switch before the switch's latency instead of after it.
	pfcCountsAtArrival bool
	// telemetryAtServiceEnd records HPCC telemetry when the last bit of a packet leaves a port instead of the first.
	telemetryAtServiceEnd bool
	// overfillLossless counts packets beyond the capacity of a lossless queue as drops, but queues them. htsim prints a
	// warning for each. Otherwise, lossless queues have at least the capacity for all that arrives until pauses take
	// effect.
	overfillLossless bool
	// ownQueues gives each port a queue of its own by default, where others share the buffer of the switch.
	ownQueues bool
	// fairCoin selects the packet that a trimming queue trims by a fair coin.
	fairCoin bool
	// trimInService lets a trimming queue trim the packet in service. The arriving packet is sent in the rest of its
	// service time.
	trimInService bool
	// keepIdleFlows keeps the position of a flow in the round robin of a NIC while it has no packet there (csg-htsim,
	// fair queues).
	keepIdleFlows bool
	// stampAtFirstSwitch sets the send time of data packets sent at time 0 at the first switch (ATLAHS).
	stampAtFirstSwitch bool
	// fixedEntropyOrder uses entropy values in ascending order instead of a new random order each round (ATLAHS).
	fixedEntropyOrder bool
	// firstHostRate assumes the rate of host 0's NIC for all hosts, and the path between the first and the last host
	// for the bandwidth-delay product of the network.
	firstHostRate bool
	// wholePicoseconds rounds the transmission time of a byte down to whole picoseconds also for fast links.
	wholePicoseconds bool
	// fixedRoundTrip assumes four hops of 1 us with packets of 4 KiB for the unloaded round trip of every network
	// (ATLAHS).
	fixedRoundTrip bool
	// controlTurns is the default of Params.ControlRatio.
	controlTurns int64
	// onePacketPerTurn serves a single data packet, however small, after the control packets of Params.ControlRatio.
	onePacketPerTurn bool
	// controlQueues is the default capacity of a control queue, in data queues, and controlBytes its minimum.
	controlQueues, controlBytes int64

	// All transports except EQDS, NSCC and RCCC.

	// padLastPacket is the default of Params.PadLastPacket.
	padLastPacket bool

	// countHeaderMarks counts marked headers of trimmed packets as marked packets.
	countHeaderMarks bool

	// firstPathIdeal computes ideal times on the first path, for packets that keep their order. Sprayed flows may be
	// faster.
	firstPathIdeal bool

	// Window transports (ATLAHS, uec.cpp).

	// capAtLowestRTT limits the window to the bandwidth-delay product of the shortest round trip.
	capAtLowestRTT bool
	// finishOnLastACK completes a flow only with the ACK of its last packet instead of the last missing ACK.
	finishOnLastACK bool

	// TCP, DCTCP and Swift (csg-htsim, tcp.cpp and swift.cpp).

	// sendPastEnd sends full packets only, and continues for one or two packets after the end of the data.
	sendPastEnd bool
	// countIdleDuplicates counts duplicate ACKs that arrive while no data is in flight.
	countIdleDuplicates bool
	// recoverAtSent ends the recovery after a timeout at the last retransmitted byte instead of the last byte sent.
	recoverAtSent bool
	// oneByteSYN sends a SYN of one byte instead of a full header.
	oneByteSYN bool
	// countSYNACK treats the ACK of the handshake like an ACK of data: it widens the window, and DCTCP counts it.
	countSYNACK bool
	// dropSmallIncrease rounds a window increase of less than a byte down to 0 instead of up to 1.
	dropSmallIncrease bool
	// separateDataNumbers gives Swift packets a data number in addition to their path number. A timeout rewinds only
	// the latter, so a second hole is never filled.
	separateDataNumbers bool
	// unarmedPacing does not set Swift's retransmission timer when a paced packet is sent.
	unarmedPacing bool
	// wholePacketTarget computes Swift's target delay from the window in whole packets.
	wholePacketTarget bool
	// smoothedDecrease lets Swift decrease its window once per smoothed round trip, which lags behind growing queues.
	// Otherwise the round trip of the ACK counts too, so that packets sent before a decrease cause no other one.
	smoothedDecrease bool
	// timeoutKeepsState leaves Swift's inflation by duplicate ACKs, its count of packets at the NIC and the time of the
	// last decrease unchanged at a timeout, and lets the window leave its bounds.
	timeoutKeepsState bool

	// RoCE and HPCC (csg-htsim, roce.cpp and hpcc.cpp).

	// pushToNIC makes flows push a packet to the NIC whenever their rate permits one, regardless of waiting packets.
	// Otherwise the NIC requests packets from its flows.
	pushToNIC bool
	// nackEveryPacket answers every out-of-order packet with a NACK instead of only the first.
	nackEveryPacket bool
	// nackShrinksWindow sets the window of HPCC to one packet after a NACK.
	nackShrinksWindow bool
	// increaseByMSS is the default of HPCC's additive increase: the payload of one packet.
	increaseByMSS bool
	// startAtTarget sets the first utilization estimate of HPCC to the target instead of 1.
	startAtTarget bool
	// wholePacketWindow lets HPCC send only packets that completely fit into the window.
	wholePacketWindow bool
	// singleWindow uses one window of HPCC as current and as reference window, and measures load since the first ACK.
	singleWindow bool

	// Receiver credit and pulls.

	// fullPackets spaces the pulls of NDP and EQDS for full packets, whatever their flows have to send.
	fullPackets bool
	eqds        eqdsQuirks
	// grantFinished grants credit to complete flows, and lists a flow once for each time that its demand was met
	// (csg-htsim, eqds.cpp; uet-htsim).
	grantFinished bool
	// constantTimeout does not increase timeouts of EQDS, NSCC and RCCC after others.
	constantTimeout bool
	// waitForCredit makes a sender without credit wait forever. Otherwise it repeats its request at each timeout.
	waitForCredit bool
}

// eqdsQuirks are the quirks of EQDS (csg-htsim, eqds.cpp).
type eqdsQuirks struct {
	// detachedNIC schedules the NIC separately from its port: each turn to a waiting packet is an event, and a flow
	// that finds the NIC idle sends one packet and then waits for the receiver, even if it may send more.
	detachedNIC bool
	// drainSpeculation consumes speculative credit that remains after the receiver's answer, packet by packet at each
	// send opportunity, without sending.
	drainSpeculation bool
	// wrapTarget lets the target of a flow that is smaller than the window wrap around, so that it receives credit
	// forever. Such credit counts against the demand of the flow: a flow slightly larger than the window may wait
	// forever.
	wrapTarget bool
	// repeatTarget requests credit in a retransmission with the target of the last packet instead of a new one.
	repeatTarget bool
	// fixedPullSize spaces pulls for full packets of 4160 bytes, regardless of the MSS.
	fixedPullSize bool
}

// controlRatio is the default of Params.ControlRatio: the ratio of headers to packets in NDP (Handley et al., SIGCOMM
// 2017, section 3.2).
const controlRatio = 10

// quirksOf returns the quirks of a compatibility mode.
func quirksOf(c Compat) quirks {
	q := quirks{controlTurns: controlRatio, controlQueues: 2, controlBytes: 8 << 20}
	if c == CompatNone {
		return q
	}
	q = quirks{
		stagedEvents: true, pfcCountsAtArrival: true, telemetryAtServiceEnd: true, overfillLossless: true,
		ownQueues: true, fairCoin: true, trimInService: true, firstHostRate: true, countHeaderMarks: true,
		wholePicoseconds: true,
		controlTurns:     100_000, onePacketPerTurn: true, firstPathIdeal: true, fullPackets: true,
		controlQueues: q.controlQueues, padLastPacket: true,
		sendPastEnd: true, countIdleDuplicates: true, recoverAtSent: true, oneByteSYN: true, countSYNACK: true,
		dropSmallIncrease: true, separateDataNumbers: true, unarmedPacing: true, wholePacketTarget: true,
		timeoutKeepsState: true, smoothedDecrease: true,
		pushToNIC: true, nackEveryPacket: true, nackShrinksWindow: true, increaseByMSS: true,
		startAtTarget:     true,
		wholePacketWindow: true, singleWindow: true,
		eqds: eqdsQuirks{
			detachedNIC: true, drainSpeculation: true, wrapTarget: true, repeatTarget: true, fixedPullSize: true,
		},
		grantFinished: true, waitForCredit: true, constantTimeout: true,
	}
	switch c {
	case CompatHTSim:
		q.keepIdleFlows = true
	case CompatATLAHS:
		q.stampAtFirstSwitch, q.fixedEntropyOrder, q.fixedRoundTrip = true, true, true
		q.capAtLowestRTT, q.finishOnLastACK = true, true
		q.controlTurns = 10_000
		q.controlQueues = 20_000 // practically unlimited
	}
	return q
}

// couplingQuirks are the rules by which htsim runs a list of flows (csg-htsim, main_*.cpp), for [Coupling].Rules.
type couplingQuirks struct {
	// emptyIsLocal delivers messages without bytes, which represent triggers, without the network.
	emptyIsLocal bool
	// freeHandshake makes the announcement of a message and its answer take no time.
	freeHandshake bool
	// endAtLastACK ends both the send and the receive of a message when its last byte is acknowledged.
	endAtLastACK bool
	// numberByTag numbers flows by their line in the connection matrix, not in the order of their starts.
	numberByTag bool
}

func couplingQuirksOf(rules Compat) couplingQuirks {
	if rules != CompatHTSim {
		return couplingQuirks{}
	}
	return couplingQuirks{emptyIsLocal: true, freeHandshake: true, endAtLastACK: true, numberByTag: true}
}
