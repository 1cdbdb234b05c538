// This file lets ranks share ops.

package sim

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cpu"
	"github.com/tracedag/tracedag/internal/par"
)

// Folded is a program in which ranks share ops: those that differ only in the partners of their sends and receives and
// in the lengths of their calcs. Many schedules give all ranks the same ops, so replays read and write a fraction of
// the memory. An op keeps its number; the loop reads its constant part with [Folded.Find] and its state in State. A
// folded program has no wildcard receives, start dependents, release times or any-tags of sends.
type Folded struct {
	// State is the state of each op, by number: the number of its unmet dependencies, of which manyWaits stands for as
	// many or more, and the bits of Op.Flags that belong to the replay loop.
	State []uint8

	many   [][]uint32  // by rank: the unmet dependencies of ops with manyWaits; nil if no op has that many
	ops    []Op        // those of ranks that differ from all before; see Find
	blocks []blockOps  // each of 1<<bits ops
	bits   uint8       // so that no block has ops of more than two ranks, unless it is of foldedBlock ops
	mixed  bool        // some blocks have ops of more ranks, or of two that do not follow each other
	common []foldedOps // by rank
	ranks  []foldedRank
}

const (
	waitsMask = 1<<5 - 1  // the bits of Folded.State with the unmet dependencies
	manyWaits = waitsMask // this number or more: Folded.many has it at the index Op.Waits
)

// foldedOps is what the ops of a rank have in common.
type foldedOps struct {
	rank  uint32
	end   uint32 // number after that of its last op
	delta uint32 // added to the number of an op: its index in Folded.ops
}

// blockOps is what [Folded.Find] needs for the ops of a block: of one rank, or of one and the next.
type blockOps struct {
	rank  uint32 // that of the first op
	last  uint32 // number of its last op, which may be in a later block
	delta uint32 // foldedOps.delta of this rank
	step  uint32 // by how much that of the next rank is more
}

// foldedBlock is the smallest number of ops of a block. Programs whose ranks have fewer on average are not folded.
const (
	foldedBlock     = 1 << foldedBlockBits
	foldedBlockBits = 6
)

// foldedRank is what a rank has of its own.
type foldedRank struct {
	peers   []uint32 // its partners; Op.Peer of a send or receive in Folded.ops is an index
	matches []uint32 // if not nil, Op.Match of a send or receive in Folded.ops is an index
	lengths []uint64 // of calcs with a position in Folded.ops, see Op.ownLength
	words   []uint16 // see dependents.go
	start   uint32   // number of its first op
	like    uint32   // the rank whose ops it shares, plus 1; 0: its ops are not folded
}

// Folded returns the folded form of the program, in which Program.Ops is nil; nil if ranks do not share ops.
func (p *Program) Folded() *Folded {
	return p.folded
}

// Find returns the constant part of op i and its rank. Op.Rank and Op.Waits are undefined, and so are Op.Peer and
// Op.Match of a send or receive, see [Folded.Partner], and Op.Size of a calc, see [Folded.Length].
func (f *Folded) Find(i uint32) (op *Op, rank uint32) {
	b := &f.blocks[i>>(f.bits&31)]
	if f.mixed {
		c := &f.common[b.rank]
		for i >= c.end {
			c = &f.common[c.rank+1]
		}
		return &f.ops[i+c.delta], c.rank
	}
	next := (b.last - i) >> 31 // 1 if the op is of the next rank: without a branch, since that would be unpredictable
	return &f.ops[i+b.delta+b.step&-next], b.rank + next
}

// Ops returns the constant parts of the ops of a rank. An op with number i is at index i+delta, modulo 1<<32.
func (f *Folded) Ops(rank uint32) (ops []Op, delta uint32) {
	return f.ops, f.common[rank].delta
}

// Partner returns the partner of a send or receive of a rank, as Op.Peer and Op.Match have it in other programs.
func (f *Folded) Partner(rank uint32, op *Op) (peer, match uint32) {
	r := &f.ranks[rank]
	if r.matches == nil {
		return r.peers[op.Peer], op.Match
	}
	return r.peers[op.Peer], r.matches[op.Match]
}

// Length returns the length of a calc of a rank, as Op.Size has it in other programs.
func (f *Folded) Length(rank uint32, op *Op) uint64 {
	if op.Rank == 0 {
		return op.Size
	}
	lengths := f.ranks[rank].lengths
	if length := op.Rank - 1; length%lengthsInLine == 0 {
		next := uintptr(unsafe.Pointer(&lengths[length])) + lengthsInLine*unsafe.Sizeof(lengths[0])
		cpu.PrefetchLines(next, next)
	}
	return lengths[op.Rank-1]
}

// lengthsInLine is the number of lengths of a cache line.
const lengthsInLine = 8

// Release is [Program.Release] for op i of a rank, with the constant part op.
func (f *Folded) Release(ready []uint32, i uint32, op *Op, rank uint32, skipped uint8) []uint32 {
	if op.first&listInOp == 0 {
		return f.releaseList(ready, i, op, rank, skipped)
	}
	for near := op.first & inOpMask; near != 0; near >>= inOpBits {
		d := i + near&farthestInOp
		if f.State[d]&(skipped|waitsMask) == 1 { // the usual case
			f.State[d]--
			ready = append(ready, d)
		} else if f.releases(d, rank, skipped) {
			ready = append(ready, d)
		}
	}
	return ready
}

// releases marks the end of a dependency of op d, and reports whether that was the last. An op without unmet
// dependencies became ready before all had ended, since some end twice in the reference; see hasRun of loggops.
func (f *Folded) releases(d, rank uint32, skipped uint8) bool {
	waits := f.State[d] & (skipped | waitsMask)
	if waits-1 < manyWaits-1 {
		f.State[d]--
		return waits == 1
	}
	return waits == manyWaits && f.releasesMany(d, rank)
}

// releasesMany is releases for an op with manyWaits.
func (f *Folded) releasesMany(d, rank uint32) bool {
	left := &f.many[rank][f.ops[d+f.common[rank].delta].Waits]
	*left--
	if *left > 0 {
		return false
	}
	f.State[d] &^= waitsMask
	return true
}

// releaseList is Release for an op whose dependents are not in Op.first.
func (f *Folded) releaseList(ready []uint32, i uint32, op *Op, rank uint32, skipped uint8) []uint32 {
	f.eachInList(i, op, rank, func(d uint32) {
		if f.releases(d, rank, skipped) {
			ready = append(ready, d)
		}
	})
	return ready
}

// eachInList calls do with the dependents of op i, which are not in Op.first, in order.
func (f *Folded) eachInList(i uint32, op *Op, rank uint32, do func(d uint32)) {
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
		do(d)
		if word&lastDependent != 0 {
			return
		}
	}
}

// statesInLine is the number of ops whose state is in a cache line.
const statesInLine = 64

// Prefetch prefetches the state of ops that follow op i, and their dependents; see [Program.PrefetchOps].
func (f *Folded) Prefetch(i uint32) {
	if i%statesInLine == 0 {
		next := uintptr(unsafe.Pointer(unsafe.SliceData(f.State))) + uintptr(i+statesInLine)
		cpu.PrefetchLines(next, next)
	}
}

// op returns op i as in a program that is not folded.
func (f *Folded) op(i uint32) Op {
	op, rank := f.Find(i)
	return f.own(*op, i, rank)
}

// own gives the constant part of op i of a rank all else that an op has.
func (f *Folded) own(op Op, i, rank uint32) Op {
	s := f.State[i]
	waits := uint32(s & waitsMask)
	if waits == manyWaits {
		waits = f.many[rank][op.Waits]
	}
	op.Flags |= s &^ waitsMask
	if op.IsMessage() {
		peer, match := f.Partner(rank, &op)
		op.Peer, op.Match = int32(peer), match
	} else {
		op.Size = f.Length(rank, &op)
	}
	op.Rank, op.Waits = rank, waits
	return op
}

// clone returns a copy with its own state.
func (f *Folded) clone() *Folded {
	c := *f
	c.State = cpu.InHugePages(make([]uint8, len(f.State)))
	copy(c.State, f.State)
	if f.many != nil {
		c.many = make([][]uint32, len(f.many))
		for rank, left := range f.many {
			c.many[rank] = slices.Clone(left)
		}
	}
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

	making sync.Mutex // held while a rank is compiled that may become a pattern; see fewUnlike
	mutex  sync.Mutex
	all    []*pattern // of all folders, the first ones
}

const (
	// fewestFolded is the number of ranks from which programs are folded. It limits the memory of the patterns.
	fewestFolded = 64
	// mostPatterns is the largest number of patterns of a goroutine, and of those that goroutines share.
	mostPatterns = 32
	// fewUnlike is the number of ranks with a pattern per rank without from which goroutines wait for the patterns of
	// others: at most one in fewUnlike ranks is compiled while others wait.
	fewUnlike = 8
	// mostUnlike is the number of ranks without a pattern from which these must be fewer than those with one.
	mostUnlike = 8
)

// newFolding returns the folding of a program with the given number of ops; nil if it is not to be folded.
func (o *CompileOptions) newFolding(p *Program, ops int64) *folding {
	ranks := int64(p.Ranks())
	if !o.Fold || o.HighLevel || p.windows != nil || ranks < fewestFolded || ops < ranks*foldedBlock {
		return nil
	}
	f := &folding{}
	f.State, f.ranks = cpu.InHugePages(make([]uint8, ops)), make([]foldedRank, ranks)
	f.many = make([][]uint32, ranks)
	return f
}

// end ends the folding after the compilation: the program is folded if ranks share at least half of the ops. Otherwise
// all ranks get their own ops.
func (f *folding) end(p *Program) {
	shared := 0
	f.common = make([]foldedOps, len(f.ranks))
	if !slices.ContainsFunc(f.many, func(left []uint32) bool { return left != nil }) {
		f.many = nil
	}
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
		f.divide(p)
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

// divide divides the ops into blocks. Large blocks need little of the cache.
func (f *folding) divide(p *Program) {
	fewest := uint32(p.NumOps())
	for rank := range p.Ranks() {
		fewest = min(fewest, p.Start[rank+1]-p.Start[rank])
	}
	f.bits = uint8(max(foldedBlockBits, bits.Len32(fewest)-1))
	f.blocks = make([]blockOps, (p.NumOps()-1)>>f.bits+1)
	rank := 0
	for block := range f.blocks {
		for f.common[rank].end <= uint32(block)<<f.bits {
			rank++
		}
		own, b := &f.common[rank], &f.blocks[block]
		*b = blockOps{rank: own.rank, last: own.end - 1, delta: own.delta}
		end := min(uint32(block+1)<<f.bits, uint32(p.NumOps())) // of the block
		if own.end < end {
			next := &f.common[rank+1]
			b.step = next.delta - own.delta
			f.mixed = f.mixed || next.end < end
		}
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
	seen         int        // number of folding.all in patterns so far
	alike, other int        // number of ranks with and without a pattern
	last         sharer     // the last rank of the batch that shares ops; without a pattern: none so far

	// State of the current rank:
	peers    []int32    // by partner of the pattern; unknownPeer: none so far
	commTags []foundTag // by match of the pattern, if tags or communicators are not those of the pattern
	indices  struct{ peers, matches, channels numbers }
}

// unknownPeer is no peer of a send or receive.
const unknownPeer = -2

// foundTag is a pair of communicator and tag that stands for one of a pattern.
type foundTag struct {
	commTag
	known bool
}

// sharer is a rank that shares the ops of a pattern, with its columns in the memory of the reader. They equal those of
// the pattern, but the comparison of ranks in the same memory takes no time.
type sharer struct {
	columns  dag.Rank
	pattern  *pattern
	variant  *variant
	commTags []foundTag // by match of the pattern; nil: those of the pattern
	matches  []uint32   // their numbers
}

// pattern is what the ranks that share ops have in common.
type pattern struct {
	folder   *folder
	rank     int       // the first one
	columns  *dag.Rank // all that is compiled but peers
	messages []patternMessage
	channels []patternChannel
	peers    int      // number of partners
	matches  []uint32 // of the first rank: what Op.Match may be
	internal []bool   // by match: whether the tag is that of a lowered collective
	state    []uint8  // by op
	many     []uint32 // see Folded.many
	totals   totals

	mutex    sync.Mutex // protects what follows
	indexed  bool       // Op.Match is an index; see foldedRank.matches
	variants []*variant // the first is that of the first rank
	varied   bool       // ranks have lengths of their own; see foldedRank.lengths
	sharers  []int      // the ranks
}

// patternMessage is a send or receive of a pattern, with the indices of partner and match.
type patternMessage struct{ op, peer, match uint32 }

// patternChannel is the messages of a pattern with one partner and match: sums of sizeHash of the receives and the
// sends, for Program.lengths.
type patternChannel struct {
	peer, match uint32
	lengths     [2]uint64
}

// variant is the lengths of the calcs of ranks that share ops.
type variant struct {
	durations dag.Column[dag.Time]
	lengths   []uint64
	calcs     uint64 // see rankFacts
	totals    totals // rounded, calcs and longest
}

// mostVariants is the number of variants of a pattern that several ranks can have. All others belong to one rank.
const mostVariants = 8

// compileFolded compiles the current rank, or lets it share the ops of an earlier one.
func (c *rankCompiler) compileFolded() error {
	f := c.folder
	if f == nil || f.stopped.Load() {
		return c.compile()
	}
	if f.fold(0) {
		return nil
	}
	if f.other < mostUnlike || f.other < f.alike/fewUnlike {
		f.making.Lock()
		defer f.making.Unlock()
	}
	known := len(f.patterns)
	f.adopt()
	if f.fold(known) {
		return nil
	}
	f.other++
	if f.other >= mostUnlike && f.other > f.alike {
		f.halt(c.p)
	}
	before := c.totals
	c.totals = totals{}
	err := c.compile()
	own := c.totals
	c.totals.add(&before)
	if err == nil {
		f.keep(own)
	}
	return err
}

// adopt adds the new patterns of other goroutines, as the last ones.
func (f *folder) adopt() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for ; f.seen < len(f.all); f.seen++ {
		if t := f.all[f.seen]; t.folder != f && len(f.patterns) < 2*mostPatterns {
			f.patterns = append(f.patterns, t)
		}
	}
}

// fold reports whether the current rank fits one of the patterns from index first on, and if so lets it share the ops.
func (f *folder) fold(first int) bool {
	for k, t := range f.patterns[first:] {
		like := t.columns
		if f.last.pattern == t {
			like = &f.last.columns
		}
		if !fits(f.c.r, like) {
			continue
		}
		same, ok := f.match(t)
		if !ok {
			continue
		}
		copy(f.patterns[1:first+k+1], f.patterns[:first+k])
		f.patterns[0] = t
		f.share(t, same)
		f.alike++
		return true
	}
	return false
}

// fits reports whether a rank has the columns of another one, foldable, but those that determine the partners and, if
// they do not depend on flops, the lengths of calcs.
func fits(r, c *dag.Rank) bool {
	return len(r.Kind) == len(c.Kind) && len(r.Deps.Off) == len(c.Deps.Off) && len(r.Release) == 0 &&
		len(r.StartDeps.Off) == 0 && dag.Column[dag.Kind](r.Kind).Equal(c.Kind) && r.Bytes.Equal(c.Bytes) &&
		r.Deps.Equal(&c.Deps) && r.Order.Equal(&c.Order) && r.Stream.Equal(&c.Stream) && r.NIC.Equal(&c.NIC) &&
		r.Subkind.Equal(c.Subkind) && (len(c.Flops) == 0 && len(r.Flops) == 0 ||
		r.Flops.Equal(c.Flops) && r.Duration.Equal(c.Duration))
}

// match finds the partners of the current rank, and reports whether each is that of the same ops as in the pattern, and
// whether tags and communicators are the same.
func (f *folder) match(t *pattern) (same, ok bool) {
	r, ranks := f.c.r, uint32(f.c.p.Ranks())
	f.peers = slices.Grow(f.peers[:0], t.peers)[:t.peers]
	for k := range f.peers {
		f.peers[k] = unknownPeer
	}
	for _, m := range t.messages {
		if peer, found := r.Peer.At(int(m.op)), &f.peers[m.peer]; *found != peer {
			if *found != unknownPeer || uint32(peer) >= ranks {
				return false, false
			}
			*found = peer
		}
	}
	if slices.Contains(f.peers, unknownPeer) { // compile reports that peer
		return false, false
	}
	if r.Tag.Equal(t.columns.Tag) && r.Comm.Equal(&t.columns.Comm) { // the usual case
		return true, true
	}
	f.commTags = slices.Grow(f.commTags[:0], len(t.matches))[:len(t.matches)]
	clear(f.commTags)
	for _, m := range t.messages {
		is, found := foundTag{commTag{r.Comm.At(int(m.op)), r.Tag.At(int(m.op))}, true}, &f.commTags[m.match]
		if *found == is {
			continue
		}
		if found.known || is.tag == dag.AnyTag || is.tag < dag.AnyTag != t.internal[m.match] {
			return false, false
		}
		*found = is
	}
	return false, true
}

// share gives the current rank the ops of a pattern. Its partners have been found, and its tags and communicators
// unless they are the same.
func (f *folder) share(t *pattern, same bool) {
	c, p := f.c, f.c.p
	rank, start := uint32(c.rank), p.Start[t.rank]
	own := &f.ranks[rank]
	own.like = uint32(t.rank + 1)
	own.peers = make([]uint32, len(f.peers))
	for k, peer := range f.peers {
		own.peers[k] = uint32(peer)
	}
	matches := t.matches
	if !same {
		matches = f.numbers(t)
	}
	for k := range t.channels {
		channel := &t.channels[k]
		peer, match := own.peers[channel.peer], uint64(matches[channel.match])
		if sum := channel.lengths[0]; sum != 0 {
			c.lengths[rank] -= sum * channelHash(peer, rank, match)
		}
		if sum := channel.lengths[1]; sum != 0 {
			c.lengths[peer] += sum * channelHash(rank, peer, match)
		}
	}
	v := f.differ(t, own, matches, same)
	last := sharer{columns: *c.r, pattern: t, variant: v}
	if !same {
		last.matches = matches
		last.commTags, f.commTags = f.commTags, f.last.commTags // which is no longer used
	}
	f.last = last
	facts := p.ranks[t.rank]
	facts.roots, facts.calcs = slices.Clone(facts.roots), v.calcs
	for k := range facts.roots {
		facts.roots[k] += c.base - start
	}
	p.ranks[rank] = facts
	if p.streams != nil {
		p.streams[rank] = p.streams[t.rank]
	}
	copy(f.State[c.base:], t.state)
	f.many[rank] = slices.Clone(t.many)
	c.totals.add(&t.totals)
	c.totals.add(&v.totals)
}

// numbers returns the numbers of the current rank's pairs of communicator and tag. Many are those of the rank before.
func (f *folder) numbers(t *pattern) []uint32 {
	var known []foundTag
	if f.last.pattern == t {
		known = f.last.commTags
	}
	matches := make([]uint32, len(f.commTags))
	for k, found := range f.commTags {
		if k < len(known) && known[k] == found {
			matches[k] = f.last.matches[k]
		} else {
			matches[k] = f.c.tags.number(found.comm, found.tag)
		}
	}
	return matches
}

// differ gives the current rank the matches and, which it returns, the lengths of calcs that it has of its own.
func (f *folder) differ(t *pattern, own *foldedRank, matches []uint32, same bool) *variant {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if !same {
		f.index(t)
	}
	if t.indexed {
		own.matches = matches
	}
	v := f.variant(t)
	if t.varied {
		own.lengths = v.lengths
	}
	t.sharers = append(t.sharers, f.c.rank)
	return v
}

// index makes Op.Match of a pattern an index.
func (f *folder) index(t *pattern) {
	if t.indexed {
		return
	}
	t.indexed = true
	ops := f.c.p.Ops[f.c.p.Start[t.rank]:]
	for _, m := range t.messages {
		ops[m.op].Match = m.match
	}
	for _, rank := range t.sharers {
		f.ranks[rank].matches = t.matches
	}
}

// variant returns the lengths of the current rank's calcs, which it makes a variant of the pattern.
func (f *folder) variant(t *pattern) *variant {
	c := f.c
	if last := &f.last; last.pattern == t && c.r.Duration.Equal(last.columns.Duration) {
		return last.variant
	}
	for _, v := range t.variants {
		if c.r.Duration.Equal(v.durations) {
			return v
		}
	}
	first := t.variants[0]
	if !t.varied {
		t.varied = true
		first.lengths = make([]uint64, 0, len(c.r.Kind)-len(t.messages))
		ops := c.p.Ops[c.p.Start[t.rank]:][:len(c.r.Kind)]
		for i := range ops {
			if op := &ops[i]; !op.IsMessage() {
				first.lengths = append(first.lengths, op.Size)
				op.Rank = uint32(len(first.lengths))
			}
		}
		for _, rank := range t.sharers {
			f.ranks[rank].lengths = first.lengths
		}
	}
	before := c.totals
	c.totals = totals{}
	v := &variant{lengths: make([]uint64, 0, len(first.lengths))}
	for i, kind := range c.r.Kind {
		if kindFlags[kind] != 0 {
			continue
		}
		length := uint64(0)
		if c.r.Subkind.At(i) != dag.Marker {
			length = c.length(c.r.Duration.At(i))
		}
		v.lengths = append(v.lengths, length)
		v.calcs += length
		c.totals.calcs = addUp(c.totals.calcs, length)
		c.totals.longest = max(c.totals.longest, length)
	}
	v.totals, c.totals = c.totals, before
	if len(t.variants) < mostVariants {
		v.durations = slices.Clone(c.r.Duration)
		t.variants = append(t.variants, v)
	}
	return v
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
	r := c.r
	t := &pattern{folder: f, rank: c.rank, totals: own, state: f.State[c.base:][:len(c.ops)], sharers: []int{c.rank}}
	t.columns = (&dag.Rank{Kind: r.Kind, Subkind: r.Subkind, Bytes: r.Bytes, Duration: r.Duration, Flops: r.Flops,
		Tag: r.Tag, Comm: r.Comm, Stream: r.Stream, NIC: r.NIC, Deps: r.Deps, Order: r.Order}).Clone()
	t.variants = []*variant{{
		durations: t.columns.Duration, calcs: p.ranks[c.rank].calcs,
		totals: totals{rounded: own.rounded, calcs: own.calcs, longest: own.longest},
	}}
	t.totals.rounded, t.totals.calcs, t.totals.longest = 0, 0, 0
	f.indices.peers.clear()
	f.indices.matches.clear()
	f.indices.channels.clear()
	t.messages = make([]patternMessage, 0, len(c.ops))
	var peers []uint32
	for i := range c.ops {
		op := &c.ops[i]
		t.state[i] = uint8(min(op.Waits, manyWaits))
		if op.Waits >= manyWaits {
			t.many = append(t.many, op.Waits)
			op.Waits = uint32(len(t.many) - 1)
		}
		op.Rank = 0
		if !op.IsMessage() {
			continue
		}
		peer := f.indices.peers.of(uint64(op.Peer))
		if int(peer) == len(peers) {
			peers = append(peers, uint32(op.Peer))
		}
		match := f.indices.matches.of(uint64(op.Match))
		if int(match) == len(t.matches) {
			t.matches, t.internal = append(t.matches, op.Match), append(t.internal, op.Flags&Internal != 0)
		}
		channel := f.indices.channels.of(uint64(peer)<<32 | uint64(match))
		if int(channel) == len(t.channels) {
			t.channels = append(t.channels, patternChannel{peer: peer, match: match})
		}
		sum := &t.channels[channel].lengths[0]
		if op.Flags&IsSend != 0 {
			sum = &t.channels[channel].lengths[1]
		}
		*sum += sizeHash(op.Size)
		op.Peer = int32(peer)
		t.messages = append(t.messages, patternMessage{uint32(i), peer, match})
	}
	t.peers = len(peers)
	f.many[c.rank] = slices.Clone(t.many)
	rank := &f.ranks[c.rank]
	rank.like, rank.peers = uint32(c.rank+1), peers
	f.last = sharer{columns: *r, pattern: t, variant: t.variants[0]}
	f.patterns = append([]*pattern{t}, f.patterns[:min(len(f.patterns), mostPatterns-1)]...)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.all) < mostPatterns {
		f.all = append(f.all, t)
	}
}

// numbers numbers values 0, 1, 2, ... in order of first use.
type numbers struct {
	index  map[uint64]uint32
	recent [256]recentNumber // the last ones looked up
}

type recentNumber struct {
	value  uint64
	number uint32 // plus 1; 0: none
}

// clear removes all values.
func (n *numbers) clear() {
	if n.index == nil {
		n.index = make(map[uint64]uint32)
	}
	clear(n.index)
	clear(n.recent[:])
}

// of returns the number of a value.
func (n *numbers) of(value uint64) uint32 {
	recent := &n.recent[hash(uint32(value>>32), uint32(value))%uint32(len(n.recent))]
	if recent.number > 0 && recent.value == value {
		return recent.number - 1
	}
	k, known := n.index[value]
	if !known {
		k = uint32(len(n.index))
		n.index[value] = k
	}
	*recent = recentNumber{value, k + 1}
	return k
}
