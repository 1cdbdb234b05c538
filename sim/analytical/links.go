package analytical

import (
	"fmt"
	"math"
)

// links models the links of a network.
type links struct {
	dims   []linkDim
	all    []link
	linked bool // congestion-aware
}

// linkDim is a dimension of a network.
type linkDim struct {
	topology Topology
	n        int32
	stride   int32 // distance of neighbors in the dimension
	rate     float64
	latency  float64
	first    int32 // first of its links
}

// link is a directed link, which transmits one message at a time.
type link struct {
	busy        bool
	first, last uint32 // waiting messages; 0: none
}

// newLinks returns the links of a network, which must be valid.
func newLinks(n *Network) (*links, error) {
	ls := &links{linked: n.Aware}
	npus, count := int64(1), int64(0)
	for _, d := range n.Dims {
		// The order of these operations affects the last bit.
		rate := d.Bandwidth * (1 << 30) / 1e9
		ls.dims = append(ls.dims, linkDim{topology: d.Topology, n: int32(d.NPUs), stride: int32(npus), rate: rate,
			latency: d.Latency})
		npus *= int64(d.NPUs)
	}
	if !n.Aware {
		return ls, nil
	}
	for i, d := range n.Dims {
		ls.dims[i].first = int32(count)
		switch d.Topology {
		case FullyConnected:
			count += npus * int64(d.NPUs)
		default: // both directions of a ring, or to and from the switch
			count += 2 * npus
		}
		if count > math.MaxInt32 {
			return nil, fmt.Errorf("expected at most %d links, found more", math.MaxInt32)
		}
	}
	ls.all = make([]link, count)
	return ls, nil
}

// differing returns the lowest dimension in which the addresses of two NPUs differ, and both addresses in it. The
// dimension is -1 if the NPUs are equal.
func (ls *links) differing(a, b int32) (dim int, x, y int32) {
	if a == b {
		return -1, 0, 0
	}
	for i := range ls.dims {
		n := ls.dims[i].n
		x, y = a%n, b%n
		if x != y {
			return i, x, y
		}
		a, b = a/n, b/n
	}
	return -1, 0, 0
}

// delay returns the delay of a message in a congestion-unaware network in nanoseconds; false if out of range.
func (ls *links) delay(from, to int32, size uint64) (uint64, bool) {
	return ls.delayOf(ls.distance(from, to), size)
}

// distance is what the delay between two NPUs depends on in a congestion-unaware network.
type distance struct {
	dim  int32 // the dimension that a message uses; -1: none
	hops int32
}

func (ls *links) distance(from, to int32) distance {
	dim, x, y := ls.differing(from, to)
	if dim < 0 {
		return distance{dim: -1}
	}
	hops := int32(1)
	switch d := &ls.dims[dim]; d.topology {
	case Switch:
		hops = 2
	case Ring:
		forward := y - x
		if forward < 0 {
			forward += d.n
		}
		hops = min(forward, d.n-forward)
	}
	return distance{int32(dim), hops}
}

// delayOf returns the delay of a message over a distance in nanoseconds; false if out of range.
func (ls *links) delayOf(d distance, size uint64) (uint64, bool) {
	if d.dim < 0 {
		return 0, true
	}
	dim := &ls.dims[d.dim]
	return truncate(float64(d.hops)*dim.latency + float64(size)/dim.rate)
}

// truncate truncates a time to whole nanoseconds; false if out of range.
func truncate(t float64) (uint64, bool) {
	if !(t < 1<<62) {
		return 0, false
	}
	return uint64(t), true
}

// hop returns the next link of a message's route to an NPU, and the device at its end. A device is an NPU, with sw -1,
// or the NPU's switch of dimension sw. Dimensions are traversed in ascending order. On a ring, a message takes the
// shorter direction, forward if both are equal.
func (ls *links) hop(from, to int32, sw int) (l int32, next int32, nextSwitch int) {
	if sw >= 0 {
		d := &ls.dims[sw]
		target := from + (to/d.stride%d.n-from/d.stride%d.n)*d.stride
		return d.first + 2*target + 1, target, -1
	}
	dim, x, y := ls.differing(from, to)
	d := &ls.dims[dim]
	switch d.topology {
	case Switch:
		return d.first + 2*from, from, dim
	case FullyConnected:
		return d.first + from*d.n + y, from + (y-x)*d.stride, -1
	}
	forward := y - x
	if forward < 0 {
		forward += d.n
	}
	if forward <= d.n-forward {
		return d.first + 2*from, from + ((x+1)%d.n-x)*d.stride, -1
	}
	return d.first + 2*from + 1, from + ((x+d.n-1)%d.n-x)*d.stride, -1
}

// dimOf returns the dimension of a link.
func (ls *links) dimOf(l int32) *linkDim {
	i := len(ls.dims) - 1
	for ls.dims[i].first > l {
		i--
	}
	return &ls.dims[i]
}
