package analytical

import (
	"math"
	"slices"
)

// themis chooses the order of dimensions for each chunk, so that the dimensions get about as much to do as each other
// (S. Rashidi et al., "Themis: a network bandwidth-aware collective scheduling policy for distributed training of DL
// models", ISCA 2022), as the offline greedy scheduler of ASTRA-sim does.
type themis struct {
	flexible bool // the size of a chunk is what makes up for the difference in load
	sizes    []int
	rates    []float64 // of a link, relative to dimension 0
	loads    []load    // in an order that lasts from one plan to the next
	began    uint64    // when NPU 0 last issued a collective
	npus     int
	known    map[chunkKey]*chunkOrder // plans that not all NPUs have asked for
}

// load is how much a dimension has to do, in 2^20 bytes at the rate of dimension 0.
type load struct {
	dim    int
	amount float64
}

type chunkKey struct {
	comm int32
	tag  uint64
}

type chunkOrder struct {
	dims  []int
	chunk uint64
	asked int
}

func newThemis(n *Network, flexible bool) *themis {
	t := &themis{flexible: flexible, npus: n.NPUs(), known: make(map[chunkKey]*chunkOrder)}
	for i, d := range n.Dims {
		t.sizes = append(t.sizes, d.NPUs)
		t.rates = append(t.rates, d.Bandwidth/n.Dims[0].Bandwidth)
		t.loads = append(t.loads, load{dim: i})
	}
	return t
}

// begin is told when NPU 0 issues a collective. What it issues at one time is planned together.
func (t *themis) begin(now uint64) {
	if t.began == now {
		return
	}
	t.began = now
	for i := range t.loads {
		t.loads[i] = load{dim: i}
	}
}

// plan returns what is chosen for a chunk. All NPUs get what the first to ask got.
func (t *themis) plan(c *chunker, key chunkKey, left, recommended uint64) *chunkOrder {
	p := t.known[key]
	if p == nil {
		p = t.choose(c, left, recommended)
		t.known[key] = p
	}
	if p.asked++; p.asked == t.npus {
		delete(t.known, key)
	}
	return p
}

// takesPart reports whether a dimension has anything to do.
func (c *chunker) takesPart(dim int) bool {
	return dim < len(c.rings) && c.involved>>dim&1 != 0
}

func (t *themis) choose(c *chunker, left, recommended uint64) *chunkOrder {
	gather := c.coll == AllGather
	slices.SortStableFunc(t.loads, func(a, b load) int {
		switch {
		case a.amount < b.amount:
			return -1
		case a.amount > b.amount:
			return 1
		}
		return 0
	})
	if gather {
		slices.Reverse(t.loads)
	}
	first := slices.IndexFunc(t.loads, func(l load) bool { return c.takesPart(l.dim) })
	p := &chunkOrder{chunk: min(left, recommended)}
	size := recommended
	even := false
	if first >= 0 {
		gap := t.gap(c, first, gather)
		if t.flexible {
			if even = gap < recommended; even {
				size = p.chunk
			} else {
				p.chunk, size = min(left, gap), gap
			}
		} else {
			even = gap < recommended/16
		}
	}
	if even {
		t.inOrder(c, p, size, gather)
		return p
	}
	for i := range t.loads {
		l := &t.loads[i]
		if c.takesPart(l.dim) {
			p.dims = append(p.dims, l.dim)
			size = t.add(l, l.dim, size, gather)
		}
	}
	return p
}

// inOrder has a chunk go through the dimensions in their order. The loads of an all-gather are added to the dimensions in
// the opposite order, as in ASTRA-sim.
func (t *themis) inOrder(c *chunker, p *chunkOrder, size uint64, gather bool) {
	slices.SortFunc(t.loads, func(a, b load) int { return a.dim - b.dim })
	if gather {
		slices.Reverse(t.loads)
	}
	for dim := range t.loads {
		if c.takesPart(dim) {
			p.dims = append(p.dims, dim)
			size = t.add(&t.loads[dim], dim, size, gather)
		}
	}
}

// add adds what a dimension has to do for a chunk of so many bytes to a load, and returns the bytes after it.
func (t *themis) add(l *load, dim int, size uint64, gather bool) uint64 {
	n := t.sizes[dim]
	if gather {
		l.amount += float64(size) / (1 << 20) * float64(n-1) / t.rates[dim]
		return size * uint64(n)
	}
	l.amount += float64(size) / (1 << 20) * (float64(n-1) / float64(n)) / t.rates[dim]
	return size / uint64(n)
}

// gap returns how many bytes a chunk may have so that the least loaded dimension, at a given place, has no more to do than
// the most loaded one.
func (t *themis) gap(c *chunker, first int, gather bool) uint64 {
	last := len(t.loads) - 1
	if !gather {
		l := t.loads[first]
		n := float64(t.sizes[l.dim])
		return bytesOf(math.Abs(t.loads[last].amount-l.amount) * t.rates[l.dim] / ((n - 1) / n) * (1 << 20))
	}
	for !c.takesPart(t.loads[last].dim) {
		last--
	}
	dim := t.loads[last].dim
	bytes := bytesOf(math.Abs(t.loads[last].amount-t.loads[first].amount) * t.rates[dim] / float64(t.sizes[dim]-1) *
		(1 << 20))
	for last--; last >= first; last-- {
		if dim := t.loads[last].dim; c.takesPart(dim) {
			bytes /= uint64(t.sizes[dim])
		}
	}
	return bytes
}

func bytesOf(amount float64) uint64 {
	if amount >= 1<<62 {
		return 1 << 62
	}
	return uint64(amount)
}
