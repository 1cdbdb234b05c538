// This file reports the state of the network to timelines.

package packet

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/topology"
)

// observation reports failures and, with samples, counters to a timeline.
type observation struct {
	to   sim.NetworkTimeline
	unit uint64 // of the timeline in picoseconds

	names []string // of ports; nil without samples
	ports []portCounters
	flows int64  // last reported number
	last  uint64 // time of the last sample
}

// portCounters are the last reported values of a port.
type portCounters struct {
	queue, sent uint64
	utilization float64 // in percent
}

// observe reports the network to a timeline if it receives the state of networks.
func (n *network) observe(t sim.Timeline, unit dag.Time) {
	to, ok := t.(sim.NetworkTimeline)
	if !ok {
		return
	}
	n.observed = &observation{to: to, unit: uint64(unit)}
	if n.sampler != nil {
		n.observed.names, n.observed.ports = n.topology.PortNames(), make([]portCounters, len(n.ports))
	}
}

// failure reports the start or the end of a failure at time t.
func (o *observation) failure(t uint64, net *topology.Network, f *Failure, ends bool) {
	o.to.Mark(t/o.unit, f.Mark(net.LinkName, ends))
}

// queue reports the sampled length of the queue of a port if it changed.
func (o *observation) queue(t uint64, port int, bytes uint64) {
	p := &o.ports[port]
	if bytes != p.queue {
		p.queue = bytes
		o.to.Counter(t/o.unit, "queue "+o.names[port], "bytes", float64(bytes))
	}
}

// sampled reports the other counters at a sample. The utilization is that of the period before.
func (o *observation) sampled(n *network) {
	s := n.sampler
	start := n.now - min(n.now, s.period)
	if start > o.last {
		o.idle()
	}
	for i := range o.ports {
		p, sent := &o.ports[i], n.ports[i].sent
		share := 100 * min(1, float64(sent-p.sent)*n.ports[i].byteTime().float()/float64(s.period))
		p.sent = sent
		o.utilization(i, start, share)
	}
	if s.flows != o.flows {
		o.flows = s.flows
		o.to.Counter(n.now/o.unit, "flows in flight", "flows", float64(s.flows))
	}
	o.last = n.now
}

// idle reports that nothing was sent after the last sample.
func (o *observation) idle() {
	for i := range o.ports {
		o.utilization(i, o.last, 0)
	}
}

func (o *observation) utilization(port int, t uint64, percent float64) {
	if p := &o.ports[port]; percent != p.utilization {
		p.utilization = percent
		o.to.Counter(t/o.unit, "utilization "+o.names[port], "%", percent)
	}
}
