// This file lets ranks share ops.

package sim

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/par"
)

// Folded is a program in which ranks share ops: those that differ only in the partners of their sends and receives.
// Many schedules give all ranks the same ops, so replays read and write a fraction of the memory. An op keeps its
// number; the loop reads its constant part with [Folded.Find] and its state in State. A folded program has no wildcard
// receives, start dependents, release times or any-tags of sends.
type Folded struct {
	State  []OpState   // by number
	ops    []Op        // those of ranks that differ from all before; see partners
	blocks []foldedOps // by block of foldedBlock ops: that of the rank of its first one
	common []foldedOps // by rank
	ranks  []foldedRank
}

// OpState is the state of an op of a folded program. Waits is the number of unmet dependencies.
type OpState struct {
	Waits uint16
	Flags uint8 // the bits of Op.Flags that belong to the replay loop
}

// foldedOps is what the ops of a rank have in common.
type foldedOps struct {
	rank  uint32
	end   uint32 // number after that of its last op
	delta uint32 // added to the number of an op: its index in Folded.ops
}

// foldedBlock is the number of ops of a block. Programs whose ranks have fewer on average are not
// folded.
const foldedBlock = 64

// foldedRank is what a rank has of its own.
type foldedRank struct {
	start uint32   // number of its first op
	words []uint16 // see dependents.go

	// partners are the partners of the rank in the order of its ops. In Folded.ops, Op.Peer of a send or receive is the
	// index of its partner.
	partners []partner

	like uint32 // the rank whose ops it shares, plus 1; 0: its ops are not folded
}

// partner is the other end of messages.
type partner struct {
	peer  uint32
	match uint32 // see Op.Match
}

// Folded returns the folded form of the program, in which Program.Ops is nil; nil if ranks do not share ops.
func (p *Program) Folded() *Folded {
	return p.folded
}

// Find returns the constant part of op i and its rank. Op.Rank and Op.Waits are undefined, and so are Op.Peer and
// Op.Match of a send or receive; see [Folded.Partner].
func (f *Folded) Find(i uint32) (op *Op, rank uint32) {
	b := &f.blocks[i/foldedBlock]
	for i >= b.end {
		b = &f.common[b.rank+1]
	}
	return &f.ops[i+b.delta], b.rank
}

// Ops returns the constant parts of the ops of a rank. An op with number i is at index i+delta, modulo 1<<32.
func (f *Folded) Ops(rank uint32) (ops []Op, delta uint32) {
	return f.ops, f.common[rank].delta
}

// Partner returns the partner of a send or receive of a rank, as Op.Peer and Op.Match have it in other programs.
func (f *Folded) Partner(rank uint32, op *Op) (peer, match uint32) {
	p := &f.ranks[rank].partners[op.Peer]
	return p.peer, p.match
}

// Release is [Program.Release] for op i of a rank, with the constant part op.
func (f *Folded) Release(ready []uint32, i uint32, op *Op, rank uint32, skipped uint8) []uint32 {
	if op.first&listInOp == 0 {
		return f.releaseList(ready, i, op, rank, skipped)
	}
	for near := op.first & inOpMask; near != 0; near >>= inOpBits {
		d := i + near&farthestInOp
		if s := &f.State[d]; s.Flags&skipped == 0 {
			if s.Waits--; s.Waits == 0 {
				ready = append(ready, d)
			}
		}
	}
	return ready
}

// releaseList is Release for an op whose dependents are not in Op.first.
func (f *Folded) releaseList(ready []uint32, i uint32, op *Op, rank uint32, skipped uint8) []uint32 {
	r := &f.ranks[rank]
	words := r.words[op.first:]
	start := r.start
	for k := 0; ; k++ {
		word := words[k]
		d := i + uint32(word)&^lastDependent
		if d == i { // farDependent
			d = start + (uint32(words[k+1]) | uint32(words[k+2])<<16)
			k += 2
		}
		if s := &f.State[d]; s.Flags&skipped == 0 {
			if s.Waits--; s.Waits == 0 {
				ready = append(ready, d)
			}
		}
		if word&lastDependent != 0 {
			return ready
		}
	}
}

// prefetchedStates is the number of ops whose state Prefetch skips: a cache line has sixteen.
const prefetchedStates = 24

// Prefetch prefetches the state of ops that follow op i, and their dependents; see [Program.PrefetchOps].
func (f *Folded) Prefetch(i uint32) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(f.State))) +
		uintptr(i+prefetchedStates)*unsafe.Sizeof(OpState{})
	cpu.PrefetchLines(at, at)
}

// op returns op i as in a program that is not folded.
func (f *Folded) op(i uint32) Op {
	op, rank := f.Find(i)
	return f.own(*op, i, rank)
}

// own gives the constant part of op i of a rank all else that an op has.
func (f *Folded) own(op Op, i, rank uint32) Op {
	s := f.State[i]
	op.Rank, op.Waits = rank, uint32(s.Waits)
	op.Flags |= s.Flags
	if op.IsMessage() {
		partner := f.ranks[rank].partners[op.Peer]
		op.Peer, op.Match = int32(partner.peer), partner.match
	}
	return op
}

// clone returns a copy with its own state.
func (f *Folded) clone() *Folded {
	c := *f
	c.State = cpu.InHugePages(make([]OpState, len(f.State)))
	copy(c.State, f.State)
	return &c
}

// Unfold gives each rank its own ops, in Program.Ops, with their state. Without a folded program, it does nothing.
func (p *Program) Unfold() {
	f := p.folded
	if f == nil {
		return
	}
	p.Ops = cpu.InHugePages(make([]Op, p.NumOps()))
	par.For(p.Ranks(), func(rank int) {
		for i := p.Start[rank]; i < p.Start[rank+1]; i++ {
			p.Ops[i] = f.own(f.ops[i+f.common[rank].delta], i, uint32(rank))
		}
	})
	p.folded = nil
}

// folding folds a program while it is compiled.
type folding struct {
	Folded
	stopped atomic.Bool // ranks are no longer folded, since too few are alike, or one is not foldable
	stop    sync.Once
}

const (
	// fewestFolded is the number of ranks from which programs are folded. It limits the memory of the patterns.
	fewestFolded = 64
	// mostPatterns is the largest number of patterns of a goroutine.
	mostPatterns = 32
	// mostUnlike is the number of ranks without a pattern from which these must be fewer than those with one.
	mostUnlike = 8
)

// newFolding returns the folding of a program with the given number of ops; nil if it is not to be folded.
func (o *CompileOptions) newFolding(p *Program, ops int64) *folding {
	ranks := int64(p.Ranks())
	if !o.Fold || o.HighLevel || o.DenseStreams || ranks < fewestFolded || ops < ranks*foldedBlock {
		return nil
	}
	f := &folding{}
	f.State, f.ranks = cpu.InHugePages(make([]OpState, ops)), make([]foldedRank, ranks)
	return f
}

// end ends the folding after the compilation: the program is folded if ranks share at least half of the ops. Otherwise
// all ranks get their own ops.
func (f *folding) end(p *Program) {
	shared := 0
	f.common = make([]foldedOps, len(f.ranks))
	for rank := range f.ranks {
		r := &f.ranks[rank]
		r.start = p.Start[rank]
		f.common[rank] = foldedOps{rank: uint32(rank), end: p.Start[rank+1]}
		if r.like > 0 {
			f.common[rank].delta = p.Start[r.like-1] - r.start
			r.words = p.dependents[r.like-1]
			p.dependents[rank] = r.words
		}
		if r.like != uint32(rank+1) {
			shared += int(p.Start[rank+1] - r.start)
		}
	}
	f.ops = p.Ops
	if !f.stopped.Load() && shared >= p.NumOps()/2 {
		f.blocks = make([]foldedOps, (p.NumOps()+foldedBlock-1)/foldedBlock)
		rank := uint32(0)
		for block := range f.blocks {
			for f.common[rank].end <= uint32(block*foldedBlock) {
				rank++
			}
			f.blocks[block] = f.common[rank]
		}
		p.folded, p.Ops = &f.Folded, nil
		return
	}
	f.halt(p)
	// Ops that others share become those of one rank only after they have been copied.
	for _, original := range []bool{false, true} {
		par.For(len(f.ranks), func(rank int) {
			r := &f.ranks[rank]
			if r.like == 0 || (r.like == uint32(rank+1)) != original {
				return
			}
			for i := r.start; i < p.Start[rank+1]; i++ {
				p.Ops[i] = f.own(f.ops[i+f.common[rank].delta], i, uint32(rank))
			}
		})
	}
}

// halt stops the folding.
func (f *folding) halt(p *Program) {
	f.stop.Do(func() {
		f.stopped.Store(true)
		cpu.InHugePages(p.Ops)
	})
}

// folder folds the ranks of a rankCompiler.
type folder struct {
	*folding
	c            *rankCompiler
	patterns     []*pattern // the last one used first
	alike, other int        // number of ranks with and without a pattern

	found   []foundPartner     // of the current rank, by partner of the pattern
	indices map[partner]uint32 // of the partners of the current rank
	recent  [256]recentPartner // the last ones looked up
}

// pattern is what the ranks that share ops have in common.
type pattern struct {
	rank     int       // the first one
	columns  *dag.Rank // all that is compiled but peers
	messages []patternMessage
	internal []bool      // by partner: whether its tags are those of lowered collectives
	lengths  [][2]uint64 // by partner: sums of sizeHash of the receives and the sends, for Program.lengths
	state    []OpState   // by op
	totals   totals
}

// patternMessage is a send or receive of a pattern.
type patternMessage struct{ op, partner uint32 }

// foundPartner is a partner as the trace has it.
type foundPartner struct {
	tag        int64
	peer, comm int32
	known      bool
}

type recentPartner struct {
	partner
	index uint32 // plus 1
}

// compileFolded compiles the current rank, or lets it share the ops of an earlier one.
func (c *rankCompiler) compileFolded() error {
	if c.folder == nil || c.folder.stopped.Load() {
		return c.compile()
	}
	if c.folder.fold() {
		return nil
	}
	before := c.totals
	c.totals = totals{}
	err := c.compile()
	own := c.totals
	c.totals.add(&before)
	if err == nil {
		c.folder.keep(own)
	}
	return err
}

// fold reports whether the current rank shares the ops of an earlier one, and if so completes it.
func (f *folder) fold() bool {
	for k, t := range f.patterns {
		if t.fits(f.c.r) && f.match(t) {
			copy(f.patterns[1:k+1], f.patterns[:k])
			f.patterns[0] = t
			f.share(t)
			f.alike++
			return true
		}
	}
	f.other++
	if f.other >= mostUnlike && f.other > f.alike {
		f.halt(f.c.p)
		f.patterns = nil
	}
	return false
}

// fits reports whether the rank has the columns of the pattern but those that determine the partners.
func (t *pattern) fits(r *dag.Rank) bool {
	c := t.columns
	return len(r.Kind) == len(c.Kind) && len(r.Deps.Off) == len(c.Deps.Off) && len(r.Release) == 0 &&
		len(r.StartDeps.Off) == 0 && dag.Column[dag.Kind](r.Kind).Equal(c.Kind) && r.Bytes.Equal(c.Bytes) &&
		r.Duration.Equal(c.Duration) && r.Deps.Equal(&c.Deps) && r.Order.Equal(&c.Order) &&
		r.Stream.Equal(&c.Stream) && r.NIC.Equal(&c.NIC) && r.Subkind.Equal(c.Subkind) && r.Flops.Equal(c.Flops)
}

// match finds the partners of the current rank, and reports whether each is that of the same ops as in the pattern.
func (f *folder) match(t *pattern) bool {
	r := f.c.r
	f.found = slices.Grow(f.found[:0], len(t.lengths))[:len(t.lengths)]
	clear(f.found)
	if r.Tag.Equal(t.columns.Tag) && r.Comm.Equal(&t.columns.Comm) { // the usual case, in a short loop
		for _, m := range t.messages {
			peer, found := r.Peer.At(int(m.op)), &f.found[m.partner]
			if found.known && found.peer != peer || !found.known && !f.find(t, m) {
				return false
			}
		}
		return true
	}
	for _, m := range t.messages {
		i, found := int(m.op), &f.found[m.partner]
		if !found.known && !f.find(t, m) ||
			found.peer != r.Peer.At(i) || found.tag != r.Tag.At(i) || found.comm != r.Comm.At(i) {
			return false
		}
	}
	return true
}

// find finds a partner of the current rank from the first of its messages, and reports whether it could be one of the
// pattern.
func (f *folder) find(t *pattern, m patternMessage) bool {
	r, i := f.c.r, int(m.op)
	peer, tag, comm := r.Peer.At(i), r.Tag.At(i), r.Comm.At(i)
	f.found[m.partner] = foundPartner{tag, peer, comm, true}
	return uint32(peer) < uint32(f.c.p.Ranks()) && tag != dag.AnyTag && tag < dag.AnyTag == t.internal[m.partner]
}

// share gives the current rank, whose partners have been found, the ops of a pattern.
func (f *folder) share(t *pattern) {
	c, p := f.c, f.c.p
	rank, start := uint32(c.rank), p.Start[t.rank]
	own := &f.ranks[rank]
	own.like = uint32(t.rank + 1)
	own.partners = make([]partner, len(f.found))
	for k, found := range f.found {
		to := partner{uint32(found.peer), c.tags.number(found.comm, found.tag)}
		own.partners[k] = to
		if sum := t.lengths[k][0]; sum != 0 {
			c.lengths[rank] -= sum * channelHash(to.peer, rank, uint64(to.match))
		}
		if sum := t.lengths[k][1]; sum != 0 {
			c.lengths[to.peer] += sum * channelHash(rank, to.peer, uint64(to.match))
		}
	}
	facts := p.ranks[t.rank]
	facts.roots = slices.Clone(facts.roots)
	for k := range facts.roots {
		facts.roots[k] += c.base - start
	}
	p.ranks[rank] = facts
	copy(f.State[c.base:], t.state)
	c.totals.add(&t.totals)
}

// keep makes the current rank, which has been compiled and has the given totals, a pattern for others. It replaces the
// peers of its ops by the indices of its partners.
func (f *folder) keep(own totals) {
	c, p := f.c, f.c.p
	if f.stopped.Load() {
		return
	}
	if p.ranks[c.rank].wildcards || own.special || own.releases || own.starts {
		f.halt(p)
		return
	}
	for i := range c.ops {
		if c.ops[i].Waits > math.MaxUint16 {
			f.halt(p)
			return
		}
	}
	t := &pattern{rank: c.rank, totals: own, state: f.State[c.base:][:len(c.ops)]}
	if f.indices == nil {
		f.indices = make(map[partner]uint32)
	}
	clear(f.indices)
	clear(f.recent[:])
	var partners []partner
	for i := range c.ops {
		op := &c.ops[i]
		t.state[i].Waits = uint16(op.Waits)
		if !op.IsMessage() {
			continue
		}
		to := partner{uint32(op.Peer), op.Match}
		k := f.index(to)
		if int(k) == len(partners) {
			partners = append(partners, to)
			t.internal = append(t.internal, op.Flags&Internal != 0)
			t.lengths = append(t.lengths, [2]uint64{})
		}
		sum := &t.lengths[k][0]
		if op.Flags&IsSend != 0 {
			sum = &t.lengths[k][1]
		}
		*sum += sizeHash(op.Size)
		op.Peer = int32(k)
		t.messages = append(t.messages, patternMessage{uint32(i), k})
	}
	rank := &f.ranks[c.rank]
	rank.like, rank.partners = uint32(c.rank+1), partners
	r := c.r
	t.columns = (&dag.Rank{Kind: r.Kind, Subkind: r.Subkind, Bytes: r.Bytes, Duration: r.Duration, Flops: r.Flops,
		Tag: r.Tag, Comm: r.Comm, Stream: r.Stream, NIC: r.NIC, Deps: r.Deps, Order: r.Order}).Clone()
	f.patterns = append([]*pattern{t}, f.patterns[:min(len(f.patterns), mostPatterns-1)]...)
}

// index returns the index of a partner of the current rank.
func (f *folder) index(to partner) uint32 {
	recent := &f.recent[hash(to.peer, to.match)%uint32(len(f.recent))]
	if recent.index > 0 && recent.partner == to {
		return recent.index - 1
	}
	k, known := f.indices[to]
	if !known {
		k = uint32(len(f.indices))
		f.indices[to] = k
	}
	*recent = recentPartner{to, k + 1}
	return k
}
