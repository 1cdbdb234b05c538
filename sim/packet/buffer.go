// This file implements switches whose ports share a buffer.

package packet

import (
	"math"

	"github.com/tracedag/tracedag/sim/topology"
)

// sharedBuffer is the buffer of a switch. Its ports share it by dynamic thresholds (Choudhury and Hahne, Dynamic queue
// length thresholds for shared-memory packet switches, IEEE/ACM Transactions on Networking, 1998): the packets that
// wait at a port take at most a multiple of the free part. The packet in service has room of its own.
type sharedBuffer struct {
	size uint64 // bytes
	used uint64 // bytes of waiting packets
}

// Defaults of shared buffers.
const (
	// bufferPerGbps is the buffer in bytes per Gb/s of a switch's ports: that of Broadcom's Tomahawk, 5.12 kB (Addanki
	// et al., ABM: active buffer management in datacenters, SIGCOMM 2022, section 2).
	bufferPerGbps = 5120
	// smallestBuffer is the buffer of small switches, that of the switches in Alizadeh et al., Data center TCP,
	// SIGCOMM 2010, table 1.
	smallestBuffer = 4_000_000
	// defaultBufferShare is the multiple of the free part that a port may use: the alpha of lossy queues in SONiC
	// (egress_lossy_profile, dynamic_th 3).
	defaultBufferShare = 8
)

// maxBufferShare is the largest multiple of the free part that a port may use.
const maxBufferShare = 1 << 20

// shares reports whether ports of a discipline share the buffer of their switch.
func (d discipline) shares() bool {
	switch d {
	case dropTail, markingDropTail, randomDrop, controlFirst, markingFirst:
		return true
	}
	return false
}

// shareBuffers lets the ports of each switch share its buffer: by default in place of queues without a capacity in the
// parameters or in the topology file, otherwise in addition. byDefault is set if the parameters do not state the
// capacity of queues.
func (n *network) shareBuffers(t *topology.Network, d discipline, p *Params, byDefault bool) {
	if !d.shares() || p.SharedBuffer == 0 && (!byDefault || n.quirks.ownQueues) {
		p.SharedBuffer, p.BufferShare = 0, 0
		return
	}
	if p.BufferShare == 0 {
		p.BufferShare = defaultBufferShare
	}
	n.bufferShare, n.buffers = p.BufferShare, make([]sharedBuffer, t.Switches)
	ports := t.Ports()
	for i, port := range ports {
		if n.ports[i].host == none && n.exists(i) {
			n.buffers[int(port.From)-t.Hosts].size += uint64(float64(n.linkRate(uint32(i))) / 1e9 * bufferPerGbps)
		}
	}
	given := p.SharedBuffer
	for i := range n.buffers {
		b := &n.buffers[i]
		if b.size = max(b.size, smallestBuffer); given > 0 {
			b.size = uint64(given)
		}
		p.SharedBuffer = max(p.SharedBuffer, int64(b.size))
	}
	for i, port := range ports {
		pt := &n.ports[i]
		if pt.host != none || given == 0 && t.Queue(i) > 0 {
			continue
		}
		pt.buffer = port.From - uint32(t.Hosts) + 1
		pt.loadCapacity = pt.capacity[dataQueue]
		most := uint64(math.Ceil(n.bufferShare / (1 + n.bufferShare) * float64(n.buffers[pt.buffer-1].size)))
		most += uint64(n.fullSize) // in service
		if !byDefault {
			most = min(most, pt.capacity[dataQueue])
		}
		pt.capacity[dataQueue] = most
	}
}

// bufferLeft returns the bytes of data that a port with a shared buffer may still queue.
func (n *network) bufferLeft(pt *port) uint64 {
	if pt.serving == none {
		return math.MaxUint64
	}
	b := &n.buffers[pt.buffer-1]
	free, waiting := b.size-b.used, pt.bytes[dataQueue]-uint64(pt.servingSize)
	if most := uint64(n.bufferShare * float64(free)); most > waiting {
		return min(free, most-waiting)
	}
	return 0
}
