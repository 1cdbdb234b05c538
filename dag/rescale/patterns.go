package rescale

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// pattern is which calls ranks of the new trace make.
type pattern struct {
	bits string // of instances
}

func (p *pattern) has(i int32) bool { return p.bits[i/8]&(1<<(i%8)) != 0 }

// template is what ranks with the same pattern and the same donor have in common: all but their partners,
// communicators, tags that count ranks, and sizes that depend on the place.
type template struct {
	rank dag.Rank
	has  []int32 // instance of each op
}

// templates are the templates of a target.
type templates struct {
	mutex sync.Mutex
	known map[templateKey]*template
	full  bool // others are not known
}

type templateKey struct{ pattern, donor int32 }

// findPatterns finds the patterns of all ranks. Differences of two ranks in the calls that they make are few.
func (g *target) findPatterns(ctx context.Context) error {
	g.calls = make([]call, len(g.instances))
	for i := range g.instances {
		if g.slots[g.instances[i].slot].call != nil {
			g.calls[i], _ = g.callAt(&g.instances[i])
		}
	}
	g.patternOf = make([]int32, g.new.ranks)
	known := map[string]int32{}
	var mutex sync.Mutex
	start := func() []byte { return make([]byte, (len(g.instances)+7)/8) }
	_, err := par.EachWith(g.new.ranks, start, func(bits []byte, rank int) error {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		clear(bits)
		for i := range g.instances {
			if g.slots[g.instances[i].slot].call == nil {
				continue
			}
			ok, err := g.has(int32(i), rank)
			if err != nil {
				return err
			}
			if ok {
				bits[i/8] |= 1 << (i % 8)
			}
		}
		mutex.Lock()
		defer mutex.Unlock()
		n, ok := known[string(bits)]
		if !ok {
			n = int32(len(g.patterns))
			p := &pattern{bits: string(bits)}
			known[p.bits] = n
			g.patterns = append(g.patterns, p)
		}
		g.patternOf[rank] = n
		return nil
	})
	return err
}

// has reports whether a rank has the instance of a call.
func (g *target) has(i int32, rank int) (bool, error) {
	s, c := &g.slots[g.instances[i].slot], &g.calls[i]
	if isMessage(c.kind) {
		if _, ok := g.new.partner(c.rule, c.at, rank); !ok {
			return false, nil
		}
	}
	if s.always {
		return true, nil
	}
	f := s.feature
	f.call = c
	has, known := s.table[f.of(&g.new, rank)]
	if !known && f.kind != inTree && f.kind != belowTree { // whose largest distance has not all kinds of place
		return false, refuse("%s depends on the %s, and no recorded rank has that of rank %d on the new grid",
			s.call.describe(), s.feature.describe(), rank)
	}
	return has, nil
}

// hasCalc reports whether ranks with a pattern and a donor have the instance of a calc.
func (g *target) hasCalc(i int32, p *pattern, donor int32) bool {
	slot := g.instances[i].slot
	s := &g.slots[slot]
	switch {
	case !s.join:
		return g.opAt[slot][donor] >= 0
	case s.needs == nil:
		return true
	}
	for _, need := range s.needs {
		for i := range g.instancesOf(need) {
			if p.has(i) {
				return true
			}
		}
	}
	return false
}

// templateOf returns the template of a rank.
func (g *target) templateOf(rank int) (*template, error) {
	key := templateKey{g.patternOf[rank], g.donors[rank]}
	g.templates.mutex.Lock()
	t := g.templates.known[key]
	g.templates.mutex.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := g.newTemplate(rank)
	if err != nil {
		return nil, err
	}
	const most = 1 << 12 // ranks that all differ take as much memory without them
	g.templates.mutex.Lock()
	defer g.templates.mutex.Unlock()
	if g.templates.full = len(g.templates.known) >= most; !g.templates.full {
		if g.templates.known == nil {
			g.templates.known = map[templateKey]*template{}
		}
		g.templates.known[key] = t
	}
	return t, nil
}

// newTemplate makes a rank, with what ranks like it have in common.
func (g *target) newTemplate(rank int) (*template, error) {
	p, donor := g.patterns[g.patternOf[rank]], g.donors[rank]
	t := &template{}
	index := make([]int32, len(g.instances))
	for i := range g.instances {
		index[i] = -1
		if g.slots[g.instances[i].slot].call != nil && p.has(int32(i)) ||
			g.slots[g.instances[i].slot].call == nil && g.hasCalc(int32(i), p, donor) {
			index[i] = int32(len(t.has))
			t.has = append(t.has, int32(i))
		}
	}
	w := waiting{target: g, index: index, stamp: make([]int32, 2*len(g.instances))}
	var b dag.RankBuilder
	for _, i := range t.has {
		op, err := g.op(i, rank)
		if err != nil {
			return nil, err
		}
		at := b.Add(op)
		for _, e := range w.of(i) {
			if e.start {
				b.RequiresStart(at, int(e.on))
			} else {
				b.Requires(at, int(e.on))
			}
		}
	}
	t.rank = b.Rank()
	return t, b.Err()
}

// varying is which columns ranks with the same template have of their own, besides that of partners.
type varying struct{ tags, comms, sizes, counts bool }

// findVarying sets varying.
func (g *target) findVarying() {
	v := &g.varying
	v.tags = g.tags != fromZero
	for i := range g.slots {
		s := &g.slots[i]
		if s.call == nil {
			continue
		}
		v.comms = v.comms || s.call.comm != 0
		v.sizes = v.sizes || s.size.kind == byPlace || s.recv.kind == byPlace
		v.counts = v.counts || s.call.sub == dag.Alltoallv
	}
}

// rank makes a rank of the new trace. It shares columns with other ranks.
func (g *target) rank(rank int) (dag.Rank, error) {
	t, err := g.templateOf(rank)
	if err != nil {
		return dag.Rank{}, err
	}
	r := t.rank
	r.Peer = make(dag.Column[int32], 0, len(t.has))
	v := &g.varying
	if !v.tags && !v.comms && !v.sizes && !v.counts {
		for n, i := range t.has {
			r.Peer.Set(n, g.peer(i, rank))
		}
		return r, nil
	}
	r.Tag, r.Comm, r.Bytes, r.RecvBytes = nil, dag.Narrow{}, nil, nil
	if v.counts {
		r.Attrs = dag.Text{}
	}
	for n, i := range t.has {
		op, err := g.op(i, rank)
		if err != nil {
			return r, err
		}
		r.Peer.Set(n, op.Peer)
		r.Tag.Set(n, op.Tag)
		r.Comm.Set(n, op.Comm)
		r.Bytes.Set(n, op.Bytes)
		r.RecvBytes.Set(n, op.RecvBytes)
		if v.counts && !r.Attrs.Append(n, op.Attrs) {
			return r, refuse("rank %d: the attributes of its ops are too long", rank)
		}
	}
	return r, nil
}

// peer returns the partner of a rank in an instance, the root of a collective.
func (g *target) peer(i int32, rank int) int32 {
	switch c := &g.calls[i]; {
	case isMessage(c.kind):
		peer, _ := g.new.partner(c.rule, c.at, rank)
		return int32(peer)
	case c.rule == member:
		_, size := g.new.memberOf(c.comm, rank)
		return g.memberAt(c.comm, rank, c.root(size))
	}
	return g.slots[g.instances[i].slot].template.Peer
}

// balance is a digest of the messages and collectives of ranks. It is the same in whichever order ranks add to it.
type balance struct {
	messages [2]uint64 // sends less receives
	unknown  bool      // a receive may match several messages, or a partner does not exist
}

// fits reports whether all messages have a receive and the members of each communicator make the same collectives, as
// far as two digests of 64 bits show it. It returns false if only the whole trace can show it.
func (g *target) fits(ctx context.Context) (bool, error) {
	type own struct {
		balance
		sequences map[int32]uint64 // of the collectives of a rank on each communicator
	}
	first, members := make([]atomic.Uint64, len(g.comms)), make([]atomic.Int64, len(g.comms))
	start := func() *own { return &own{sequences: map[int32]uint64{}} }
	all, err := par.EachWith(g.new.ranks, start, func(o *own, rank int) error {
		if err := par.Interrupted(ctx); err != nil {
			return err
		}
		t, err := g.templateOf(rank)
		if err != nil {
			return err
		}
		clear(o.sequences)
		for n, i := range t.has {
			c := &g.calls[i]
			if g.slots[g.instances[i].slot].call == nil {
				continue
			}
			comm, peer := g.commOf(c.comm, rank), g.peer(i, rank)
			if c.kind == dag.Coll {
				h := o.sequences[comm]
				o.sequences[comm] = mix(h^mix(uint64(uint32(peer))<<8|uint64(c.sub))) | 1
				continue
			}
			tag := t.rank.Tag.At(n)
			if tag >= 0 && g.varying.tags {
				op, err := g.op(i, rank)
				if err != nil {
					return err
				}
				tag = op.Tag
			}
			if peer < 0 || int(peer) >= g.new.ranks || tag == dag.AnyTag {
				o.unknown = true
				continue
			}
			from, to, sign := uint64(rank), uint64(peer), uint64(1)
			if c.kind == dag.Recv {
				from, to, sign = to, from, math.MaxUint64
			}
			h := mix(mix(from<<32|to) ^ mix(uint64(tag)^uint64(uint32(comm))<<40))
			o.messages[0] += sign * h
			o.messages[1] += sign * mix(h^0x9e3779b97f4a7c15)
		}
		for comm, h := range o.sequences {
			if !first[comm].CompareAndSwap(0, h) && first[comm].Load() != h {
				o.unknown = true
			}
			members[comm].Add(1)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	sum := balance{}
	for _, o := range all {
		sum.messages[0] += o.messages[0]
		sum.messages[1] += o.messages[1]
		sum.unknown = sum.unknown || o.unknown
	}
	for i := range members {
		n := members[i].Load()
		sum.unknown = sum.unknown || n != 0 && n != int64(g.comms[i].Size())
	}
	for _, t := range g.templates.known {
		sum.unknown = sum.unknown || !t.ordered()
	}
	return sum == balance{} && !g.templates.full, nil
}

// ordered reports whether all dependencies are on earlier ops, so that there is no cycle.
func (t *template) ordered() bool {
	for _, e := range [][]int32{t.rank.Deps.Off, t.rank.StartDeps.Off} {
		for _, off := range e {
			if off <= 0 {
				return false
			}
		}
	}
	return true
}

// mix returns a number whose bits depend on all bits of x (the finalizer of MurmurHash3, A. Appleby, public domain).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
