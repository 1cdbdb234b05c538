package analytical

import (
	"math"
	"slices"
)

// themis selects the order of dimensions for each chunk to balance the load of the dimensions (S. Rashidi et al.,
// "Themis: a network bandwidth-aware collective scheduling policy for distributed training of DL models", ISCA 2022),
// like the offline greedy scheduler of ASTRA-sim.
type themis struct {
	flexible bool // chunk sizes compensate load differences
	sizes    []int
	rates    []float64 // link rates relative to dimension 0
	loads    []load    // in an order that persists between plans; of the current row in choose
	all      []load    // of the collectives of all NPUs
	rows     map[row]*rowLoads
	began    uint64 // last time at which NPU 0 issued a collective
	npus     int
	known    map[chunkKey]*chunkOrder // plans not fetched by all NPUs yet
}

// load is the load of a dimension in 2^20 bytes at the rate of dimension 0.
type load struct {
	dim    int
	amount float64
}

// rowLoads are the loads of a collective in a row. An NPU runs one collective at a time, so the next one of the row
// finds idle dimensions.
type rowLoads struct {
	tag   uint64
	loads []load
}

type chunkKey struct {
	comm int32
	tag  uint64
	row  row
}

type chunkOrder struct {
	dims  []int
	chunk uint64
	asked int
}

func newThemis(n *Network, flexible bool) *themis {
	t := &themis{flexible: flexible, npus: n.NPUs(), known: make(map[chunkKey]*chunkOrder),
		rows: make(map[row]*rowLoads)}
	for i, d := range n.Dims {
		t.sizes = append(t.sizes, d.NPUs)
		t.rates = append(t.rates, d.Bandwidth/n.Dims[0].Bandwidth)
		t.all = append(t.all, load{dim: i})
	}
	return t
}

// begin is called when NPU 0 issues a collective. Collectives issued at the same time are planned together.
func (t *themis) begin(now uint64) {
	if t.began == now {
		return
	}
	t.began = now
	idle(t.all)
}

// idle sets all loads to 0.
func idle(loads []load) {
	for i := range loads {
		loads[i] = load{dim: i}
	}
}

// loadsOf returns the loads of the dimensions that a chunk finds.
func (t *themis) loadsOf(c *chunker) []load {
	if c.row == (row{}) {
		return t.all
	}
	r := t.rows[c.row]
	if r == nil {
		r = &rowLoads{tag: c.tag, loads: make([]load, len(t.all))}
		idle(r.loads)
		t.rows[c.row] = r
	}
	if r.tag != c.tag {
		r.tag = c.tag
		idle(r.loads)
	}
	return r.loads
}

// plan returns the plan of a chunk. All NPUs of a row get the plan created for the first one.
func (t *themis) plan(c *chunker, key chunkKey, left, recommended uint64) *chunkOrder {
	p := t.known[key]
	if p == nil {
		t.loads = t.loadsOf(c)
		p = t.choose(c, left, recommended)
		t.known[key] = p
	}
	if p.asked++; p.asked == c.e.members(key.row, t.npus) {
		delete(t.known, key)
	}
	return p
}

// takesPart reports whether a dimension takes part.
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
			size = t.add(c, l, l.dim, size, gather)
		}
	}
	return p
}

// inOrder makes a chunk traverse the dimensions in order. As in ASTRA-sim, the loads of an all-gather are added to the
// dimensions in reverse order.
func (t *themis) inOrder(c *chunker, p *chunkOrder, size uint64, gather bool) {
	slices.SortFunc(t.loads, func(a, b load) int { return a.dim - b.dim })
	if gather {
		slices.Reverse(t.loads)
	}
	for dim := range t.loads {
		if c.takesPart(dim) {
			p.dims = append(p.dims, dim)
			size = t.add(c, &t.loads[dim], dim, size, gather)
		}
	}
}

// size returns the number of NPUs of a dimension that takes part: those of a half, if the chunk uses only that.
func (t *themis) size(c *chunker, dim int) int {
	if r := &c.rings[dim]; !r.algorithm.One {
		return int(r.n)
	}
	return t.sizes[dim]
}

// add adds the load of a chunk in a dimension, at its entry dim: the dimension of the entry, except for an allgather
// in order. It returns the chunk's bytes afterwards.
func (t *themis) add(c *chunker, l *load, dim int, size uint64, gather bool) uint64 {
	n := t.size(c, dim)
	if gather {
		l.amount += float64(size) / (1 << 20) * float64(n-1) / t.rates[dim]
		return size * uint64(n)
	}
	l.amount += float64(size) / (1 << 20) * (float64(n-1) / float64(n)) / t.rates[dim]
	return size / uint64(n)
}

// gap returns the largest chunk size at which the load of the least loaded dimension, at the given index, does not
// exceed that of the most loaded one.
func (t *themis) gap(c *chunker, first int, gather bool) uint64 {
	last := len(t.loads) - 1
	if !gather {
		l := t.loads[first]
		n := float64(t.size(c, l.dim))
		return bytesOf(math.Abs(t.loads[last].amount-l.amount) * t.rates[l.dim] / ((n - 1) / n) * (1 << 20))
	}
	for !c.takesPart(t.loads[last].dim) {
		last--
	}
	dim := t.loads[last].dim
	bytes := bytesOf(math.Abs(t.loads[last].amount-t.loads[first].amount) * t.rates[dim] / float64(t.size(c, dim)-1) *
		(1 << 20))
	for last--; last >= first; last-- {
		if dim := t.loads[last].dim; c.takesPart(dim) {
			bytes /= uint64(t.size(c, dim))
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
