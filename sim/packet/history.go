// This file keeps the lengths of queues over time for figures.

package packet

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/report"
	"github.com/tracedag/tracedag/sim/topology"
)

const (
	historyPoints = 512     // points of a port, at most
	historyPorts  = 1 << 14 // ports that are followed, at most; they take 64 MB
	fullestPorts  = 10      // ports in a result
	queueCurve    = 128     // points of the distribution of a port, at most
)

// history is the longest data queue of ports over intervals of time. All ports have the same intervals. It follows the
// first ports of switches that queue data.
type history struct {
	width  uint64     // samples of an interval, a power of two
	place  []int32    // by port: place in series plus 1; 0: not seen, -1: not followed
	ports  []int32    // followed
	series [][]uint64 // by place, then interval; in bytes
	others int        // number of ports that queued data and are not followed
}

func newHistory(ports int) *history {
	return &history{width: 1, place: make([]int32, ports)}
}

// add adds the data queue of a port at a sample.
func (h *history) add(sample uint64, port int, bytes uint64) {
	if bytes == 0 || h.place[port] < 0 {
		return
	}
	for sample/h.width >= historyPoints {
		h.coarsen()
	}
	if h.place[port] == 0 {
		if len(h.ports) == historyPorts {
			h.place[port] = -1
			h.others++
			return
		}
		h.ports = append(h.ports, int32(port))
		h.series = append(h.series, nil)
		h.place[port] = int32(len(h.ports))
	}
	s := &h.series[h.place[port]-1]
	for uint64(len(*s)) <= sample/h.width {
		*s = append(*s, 0)
	}
	(*s)[sample/h.width] = max((*s)[sample/h.width], bytes)
}

// coarsen doubles the intervals.
func (h *history) coarsen() {
	h.width *= 2
	for i, s := range h.series {
		for k := range s {
			if k%2 == 0 {
				s[k/2] = s[k]
			} else {
				s[k/2] = max(s[k/2], s[k])
			}
		}
		h.series[i] = s[:(len(s)+1)/2]
	}
}

// queueSection is the section "queues" of a result: the lengths of the data queues with the longest samples.
type queueSection struct {
	Period   dag.Time    `json:"period_ps"`    // between samples
	Interval dag.Time    `json:"interval_ps"`  // of a number of a port's list
	Samples  uint64      `json:"samples"`      // of each port
	Queued   int         `json:"queued_ports"` // number of ports with data in a sample
	Others   int         `json:"ports_not_followed,omitempty"`
	Ports    []portQueue `json:"ports"`
}

// portQueue is the data queue of a port.
type portQueue struct {
	Port  string        `json:"port"`
	Min   *uint64       `json:"ecn_min_bytes"` // marking threshold; nil: the port does not mark
	Max   *uint64       `json:"ecn_max_bytes"`
	Mean  float64       `json:"mean_bytes"`
	P99   float64       `json:"p99_bytes"`
	Most  uint64        `json:"max_bytes"`
	Bytes []uint64      `json:"bytes"` // the longest in each interval from 0
	Curve *report.Curve `json:"cdf"`   // of all samples
}

// queues returns the section of queues.
func (n *network) queues(t *topology.Network) *queueSection {
	s := n.sampler
	h := s.history
	q := &queueSection{Period: dag.Time(s.period), Interval: dag.Time(s.period * h.width), Samples: s.samples,
		Queued: len(h.ports) + h.others, Others: h.others, Ports: []portQueue{}}
	order := make([]int, len(h.ports))
	most := make([]uint64, len(h.ports))
	for i := range order {
		order[i], most[i] = i, slices.Max(h.series[i])
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(h.ports[a], h.ports[b]))
	})
	names := t.PortNames()
	for _, i := range order[:min(len(order), fullestPorts)] {
		port := h.ports[i]
		counts := &s.queues[port]
		one := portQueue{Port: names[port], Mean: counts.mean(s.samples), P99: counts.quantile(s.samples, 0.99),
			Most:  most[i],
			Bytes: h.series[i], Curve: counts.curve(s.samples)}
		if pt := &n.ports[port]; pt.marksPackets() {
			one.Min, one.Max = &pt.kmin, &pt.kmax
		}
		q.Ports = append(q.Ports, one)
	}
	return q
}

// marksPackets reports whether the port marks packets by the length of its queue.
func (pt *port) marksPackets() bool {
	switch pt.discipline {
	case markingDropTail, markingFirst, trimming, lossless:
		return pt.kmax != NoECN
	}
	return false
}

// curve returns the distribution function of the given number of values. Values that were not counted are 0.
func (h *histogram) curve(values uint64) *report.Curve {
	var numbers []float64
	var counts []int64
	counted := uint64(0)
	for bucket, c := range h.counts {
		if c > 0 {
			counted += c
			numbers, counts = append(numbers, bucketValue(bucket)), append(counts, int64(c))
		}
	}
	if zero := int64(values - min(values, counted)); zero > 0 {
		numbers, counts = slices.Insert(numbers, 0, 0), slices.Insert(counts, 0, zero)
	}
	return report.NewCountedCurve(numbers, counts, queueCurve, func(v float64) string {
		return strconv.FormatFloat(v, 'f', 0, 64)
	})
}
