// This file implements priority flow control (IEEE 802.1Qbb) with one priority. A switch counts its buffered bytes by
// input. Above the XOFF threshold it pauses the port at the other end, which finishes the packet in service. Below the
// XON threshold it resumes that port.

package packet

// pfc is the flow control of all switches.
type pfc struct {
	xoff, xon uint64 // thresholds in bytes
	inputs    []pfcInput
	onResume  func(host uint32) // if not nil, called when a NIC resumes
}

// pfcInput is an input of a switch, indexed by the port that sends to it.
type pfcInput struct {
	bytes  uint64
	delay  uint64 // picoseconds until a pause takes effect
	paused bool   // the last frame sent was a pause
}

// maxBytes exceeds the capacity of all queues.
const maxBytes = 1 << 50

// pfcParameters are the parameters of transports with flow control.
var pfcParameters = []Parameter{
	{Name: "pfc", Unit: Switch, Value: 1,
		Doc: "priority flow control: switches pause the ports that send to them; 0: switches drop instead"},
	{Name: "pfc-high", Value: 15, Min: 1,
		Doc: "XOFF threshold: buffered full payloads of an input above which it is paused"},
	{Name: "pfc-low", Value: 12, Min: 1,
		Doc: "XON threshold: buffered full payloads below which it resumes; at most pfc-high"},
	{Name: "pfc-delay", Unit: Time, Value: -1, Compat: number(0), Min: -1,
		Doc: "delay of a pause to the other end of a link; -1: the latency of the link. With a topology file, htsim " +
			"has 0"},
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

// pauseDelay returns the time until a pause takes effect at a port.
func pauseDelay(pt *port, delay float64) uint64 {
	if delay < 0 {
		return pt.wireLatency
	}
	return uint64(delay)
}

// enter counts a packet that arrives at an input.
func (c *pfc) enter(n *network, from, size uint32) {
	in := &c.inputs[from]
	in.bytes += uint64(size)
	if !in.paused && in.bytes > c.xoff {
		in.paused = true
		n.ports[from^1].pausesSent++ // pause frames use the opposite port of the link
		n.at(n.now+in.delay, pauseArrival, from)
	}
}

// leave counts a packet that has left the switch, by the input at which it arrived.
func (c *pfc) leave(n *network, from, size uint32) {
	in := &c.inputs[from]
	in.bytes -= uint64(size)
	if in.paused && in.bytes < c.xon {
		in.paused = false
		n.at(n.now+in.delay, pauseArrival, from)
	}
}

// lose counts a packet lost in a switch or at its host.
func (c *pfc) lose(n *network, p uint32) {
	if pk := &n.packets[p]; pk.port != none {
		c.leave(n, pk.port, pk.size)
	}
}

// takeEffect pauses or resumes a port. Pause and resume frames alternate, and none overtakes another.
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

// pausedFor returns the total pause time of a port.
func (pt *port) pausedFor(now uint64) uint64 {
	if pt.paused {
		return pt.pausedTime + now - pt.pausedAt
	}
	return pt.pausedTime
}

// losslessCapacity returns the largest possible queue in bytes of a switch port with flow control: all bytes that can
// arrive at the inputs of a switch until the pauses take effect.
func (n *network) losslessCapacity(p *Params, switches int, full uint64) int64 {
	rooms := make([]float64, switches)
	most := float64(full)
	for i := range n.ports {
		pt := &n.ports[i]
		if pt.toHost || !n.exists(i) {
			continue
		}
		// Bytes on the wire and in the switch at the time of the pause, bytes sent until it takes effect, the packet
		// that exceeded the threshold, and the packet in service.
		delay := pauseDelay(pt, p.TransportParams["pfc-delay"]) + pt.latency
		inTransit := float64(delay)/pt.byteTime().float() + 2*float64(full)
		rooms[pt.to] += p.TransportParams["pfc-high"]*float64(p.MSS) + inTransit
		most = max(most, rooms[pt.to])
	}
	return int64(min(most, maxBytes))
}
