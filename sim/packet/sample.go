// This file samples how full queues are, at times that are multiples of a period.

package packet

import (
	"math/bits"

	"github.com/tracedag/tracedag/dag"
)

// Sample is how full the queue of a port was.
type Sample struct {
	At            dag.Time
	Port          int    // as topology.Network.Ports has them
	Data, Control uint64 // bytes, with the packet in service
}

// sampler takes samples while something goes on in the network; at other times all queues are empty.
type sampler struct {
	period  uint64
	pending bool   // there is an event for the next sample
	taken   int64  // events
	count   uint64 // samples from the beginning to the last with a queue, or the last completion; empty ones included
	queues  []histogram
	emit    func(Sample) // nil, or hears of queues that are not empty
}

func newSampler(o *Options, ports int) *sampler {
	if o.Sample <= 0 {
		return nil
	}
	return &sampler{period: uint64(o.Sample), queues: make([]histogram, ports), emit: o.OnSample}
}

// wake has samples be taken from now on, until nothing is left to do.
func (s *sampler) wake(n *network) {
	if !s.pending {
		s.pending = true
		n.at((n.now+s.period-1)/s.period*s.period, sampling, 0)
	}
}

// sample takes a sample of all ports.
func (n *network) sample() {
	s := n.sampler
	s.taken++
	s.pending = n.queue.Len() > 0
	if s.pending {
		n.at(n.now+s.period, sampling, 0)
	}
	for i := range n.ports {
		pt := &n.ports[i]
		data, control := pt.bytes[dataQueue], pt.bytes[controlQueue]
		if data+control == 0 {
			continue
		}
		if pt.serving != none && !pt.pending && pt.busyUntil <= n.now { // has left, and nobody needed to know
			if pt.servingQueue == dataQueue {
				data -= uint64(pt.servingSize)
			} else {
				control -= uint64(pt.servingSize)
			}
		}
		if data+control == 0 {
			continue
		}
		s.count = n.now/s.period + 1
		s.queues[i].count(data)
		if s.emit != nil {
			s.emit(Sample{dag.Time(n.now), i, data, control})
		}
	}
}

// finish has the samples reach to the last completion at least.
func (s *sampler) finish(last dag.Time) {
	s.count = max(s.count, uint64(last)/s.period+1)
}

// histogram counts values above 0 in buckets whose limits are at most 1/64 apart: bucket b*64+m holds those that begin with the
// bits 1 and m and have b bits more, or below 64 the value itself.
type histogram struct {
	counts []uint64
	sum    uint64
}

const bucketBits = 6

func (h *histogram) count(v uint64) {
	if v == 0 {
		return
	}
	bucket := int(v)
	if more := bits.Len64(v) - 1 - bucketBits; more >= 0 {
		bucket = (more+1)<<bucketBits + int(v>>more)&(1<<bucketBits-1)
	}
	h.grow(bucket + 1)
	h.counts[bucket]++
	h.sum += v
}

func (h *histogram) grow(n int) {
	for len(h.counts) < n {
		h.counts = append(h.counts, 0)
	}
}

// add adds the values of another.
func (h *histogram) add(other *histogram) {
	h.grow(len(other.counts))
	for i, c := range other.counts {
		h.counts[i] += c
	}
	h.sum += other.sum
}

// mean returns the mean of so many values, those that were not counted being 0.
func (h *histogram) mean(values uint64) float64 {
	return float64(h.sum) / float64(max(values, 1))
}

// quantile returns a value that at most a share of 1-p of so many values is above, rounded down to the limit of its bucket.
func (h *histogram) quantile(values uint64, p float64) float64 {
	above := uint64(float64(values) * (1 - p)) // may be above the result
	for bucket := len(h.counts) - 1; bucket >= 0; bucket-- {
		if h.counts[bucket] > above {
			if bucket < 1<<bucketBits {
				return float64(bucket)
			}
			more := bucket>>bucketBits - 1
			return float64((uint64(1)<<bucketBits | uint64(bucket)&(1<<bucketBits-1)) << more)
		}
		above -= h.counts[bucket]
	}
	return 0
}
