// This file samples queue lengths at multiples of a period.

package packet

import (
	"math/bits"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/measure"
)

// Sample is the queue length of a port at a time.
type Sample struct {
	At            dag.Time
	Port          int    // index in topology.Network.Ports
	Data, Control uint64 // bytes, including the packet in service
}

// sampler takes samples while the network has events. At other times all queues are empty.
type sampler struct {
	period  uint64
	pending bool // an event for the next sample is scheduled
	count   measure.SampleCount
	samples uint64 // number of samples up to the last non-empty queue or the last completion, including empty queues
	queues  []histogram
	flows   int64        // flows that have started and are not complete
	history *history     // nil: no figures
	emit    func(Sample) // if not nil, called for each non-empty queue
}

func newSampler(o *Options, ports int) *sampler {
	if o.Sample <= 0 {
		return nil
	}
	s := &sampler{period: uint64(o.Sample), count: measure.SampleCount{Period: o.Sample},
		queues: make([]histogram, ports), emit: o.OnSample}
	if o.figures {
		s.history = newHistory(ports)
	}
	return s
}

// wake starts sampling, which continues until no other event is left.
func (s *sampler) wake(n *network) {
	if !s.pending {
		s.pending = true
		n.at((n.now+s.period-1)/s.period*s.period, sampling, 0)
	}
}

// sample samples all ports.
func (n *network) sample() {
	s := n.sampler
	if err := s.count.Take(dag.Time(n.now)); err != nil {
		n.err, n.stop = err, true
		return
	}
	s.pending = n.queue.Len() > 0
	if s.pending {
		n.at(n.now+s.period, sampling, 0)
	}
	for i := range n.ports {
		data, control := n.ports[i].queued(n.now)
		if n.observed != nil {
			n.observed.queue(n.now, i, data+control)
		}
		if data+control == 0 {
			continue
		}
		s.samples = n.now/s.period + 1
		s.queues[i].count(data)
		if s.history != nil && n.ports[i].host == none {
			s.history.add(n.now/s.period, i, data)
		}
		if s.emit != nil {
			if err := s.count.Row(dag.Time(n.now)); err != nil {
				n.err, n.stop = err, true
				return
			}
			s.emit(Sample{dag.Time(n.now), i, data, control})
		}
	}
	if n.observed != nil {
		n.observed.sampled(n)
	}
}

// queued returns the lengths of a port's queues in bytes at time now.
func (pt *port) queued(now uint64) (data, control uint64) {
	data, control = pt.bytes[dataQueue], pt.bytes[controlQueue]
	if data+control > 0 && pt.serving != none && !pt.pending && pt.busyUntil <= now { // it has left without an event
		if pt.servingQueue == dataQueue {
			data -= uint64(pt.servingSize)
		} else {
			control -= uint64(pt.servingSize)
		}
	}
	return data, control
}

// finish extends the samples to the last completion.
func (s *sampler) finish(last dag.Time) {
	s.samples = max(s.samples, uint64(last)/s.period+1)
}

// histogram counts positive values in buckets with a relative width of at most 1/64. Each value below 64 has its own
// bucket; bucket b*64+m contains values of b bits after the leading bits 1 and m.
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

// add adds the values of other.
func (h *histogram) add(other *histogram) {
	h.grow(len(other.counts))
	for i, c := range other.counts {
		h.counts[i] += c
	}
	h.sum += other.sum
}

// mean returns the mean of the given number of values. Values that were not counted are 0.
func (h *histogram) mean(values uint64) float64 {
	return float64(h.sum) / float64(max(values, 1))
}

// quantile returns the p-quantile of the given number of values, rounded down to the limit of its bucket.
func (h *histogram) quantile(values uint64, p float64) float64 {
	above := uint64(float64(values) * (1 - p)) // number of values that may exceed the result
	for bucket := len(h.counts) - 1; bucket >= 0; bucket-- {
		if h.counts[bucket] > above {
			return bucketValue(bucket)
		}
		above -= h.counts[bucket]
	}
	return 0
}

// bucketValue returns the lowest value of a bucket.
func bucketValue(bucket int) float64 {
	if bucket < 1<<bucketBits {
		return float64(bucket)
	}
	more := bucket>>bucketBits - 1
	return float64((uint64(1)<<bucketBits | uint64(bucket)&(1<<bucketBits-1)) << more)
}
