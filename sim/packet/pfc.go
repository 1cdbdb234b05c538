// This file is priority flow control (IEEE 802.1Qbb) with one priority: a switch counts for each of its inputs the bytes
// that came by it and are still there. Above a threshold it sends a pause to the port at the other end, which finishes the
// packet that it is at; below another it lets that port go on.

package packet

// pauses is flow control at all switches.
type pfc struct {
	xoff, xon uint64 // bytes: above high an input is paused, below low it may go on
	inputs    []pfcInput
	onResume  func(host uint32) // hears of interfaces that may go on; nil: nobody does
}

// pausedInput is an input of a switch, at the number of the port that sends there.
type pfcInput struct {
	bytes  uint64
	delay  uint64 // until a pause is there
	paused bool   // as far as the switch has said
}

// maxBytes is more than any queue holds.
const maxBytes = 1 << 50

// pauseParameters are the parameters of transports that use flow control.
var pfcParameters = []Parameter{
	{Name: "pfc", Unit: Switch, Value: 1, Doc: "switches pause the ports that send to them; 0: they drop what does not fit"},
	{Name: "pfc-high", Value: 15, Min: 1, Doc: "full payloads that came by an input, above which it is paused"},
	{Name: "pfc-low", Value: 12, Min: 1, Doc: "full payloads below which it may go on; not more than pfc-high"},
	{Name: "pfc-delay", Unit: Time, Value: -1, Compat: number(0), Min: -1,
		Doc: "until a pause is at the other end of a link; -1: the latency of the link. With a topology file htsim has 0"},
}

func newPFC(n *network, s *transportConfig) *pfc {
	c := &pfc{inputs: make([]pfcInput, len(n.ports))}
	c.xoff = uint64(min(maxBytes, s.number("pfc-high")*float64(s.mss)))
	c.xon = min(c.xoff, uint64(min(maxBytes, s.number("pfc-low")*float64(s.mss))))
	for i := range c.inputs {
		c.inputs[i].delay = pauseDelay(&n.ports[i], s.number("pfc-delay"))
	}
	return c
}

// pauseDelay returns how long a pause takes to a port.
func pauseDelay(pt *port, delay float64) uint64 {
	if delay < 0 {
		return pt.wireLatency
	}
	return uint64(delay)
}

// enter counts a packet that comes by an input.
func (c *pfc) enter(n *network, from, size uint32) {
	in := &c.inputs[from]
	in.bytes += uint64(size)
	if !in.paused && in.bytes > c.xoff {
		in.paused = true
		n.ports[from^1].pausesSent++ // the way back is the link's other port
		n.at(n.now+in.delay, pauseArrival, from)
	}
}

// leave counts a packet that came by an input and has left the switch.
func (c *pfc) leave(n *network, from, size uint32) {
	in := &c.inputs[from]
	in.bytes -= uint64(size)
	if in.paused && in.bytes < c.xon {
		in.paused = false
		n.at(n.now+in.delay, pauseArrival, from)
	}
}

// forget counts a packet that is lost, whether in a switch or at its host.
func (c *pfc) lose(n *network, p uint32) {
	if pk := &n.packets[p]; pk.port != none {
		c.leave(n, pk.port, pk.size)
	}
}

// arrive has a port stop, or go on: pauses and their ends come in turns, and none overtakes another.
func (c *pfc) takeEffect(n *network, i uint32) {
	pt := &n.ports[i]
	pt.paused = !pt.paused
	if pt.paused {
		pt.pausesReceived++
		pt.pausedAt = n.now
		return
	}
	pt.pausedTime += n.now - pt.pausedAt
	n.wake(i)
	if pt.host != none && c.onResume != nil {
		c.onResume(pt.host)
	}
}

// pausedFor returns how long a port has been paused until now.
func (pt *port) pausedFor(now uint64) uint64 {
	if pt.paused {
		return pt.pausedTime + now - pt.pausedAt
	}
	return pt.pausedTime
}

// losslessRoom returns how many bytes a port of a switch can have to hold at most where switches pause: what may have come
// by all inputs of its switch until the pauses take effect.
func (n *network) losslessCapacity(p *Params, switches int, full uint64) int64 {
	rooms := make([]float64, switches)
	most := float64(full)
	for i := range n.ports {
		pt := &n.ports[i]
		if pt.toHost {
			continue
		}
		// What is on the wire and in the switch when the pause is sent, what is sent until it is there, the packet that was
		// too many and the one that is finished.
		onTheWay := float64(pauseDelay(pt, p.TransportParams["pfc-delay"])+pt.latency)/float64(pt.psPerByte) + 2*float64(full)
		rooms[pt.to] += p.TransportParams["pfc-high"]*float64(p.MSS) + onTheWay
		most = max(most, rooms[pt.to])
	}
	return int64(min(most, maxBytes))
}
