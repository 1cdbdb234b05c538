package sim

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// NoOp is an op number that identifies no op.
const NoOp = math.MaxUint32

// Matcher pairs the receives of one rank with its messages by the rules of MPI (MPI 4.1, section 3.5): a receive takes
// the first matching message to arrive, and a message matches the first matching receive to be posted.
//
// A message with GOAL's any-tag matches only receives of any tag. A receive of any tag matches no message of a lowered
// collective.
//
// A short list keeps up to a few waiting receives and messages in order, with linear search. For more of them, receives
// with a given source and tag use a hash table, and wildcard receives a linear search.
type Matcher struct {
	p    *Program
	many *many // nil while the short list suffices
	n    uint32
	few  [maxFew]waiter // the first n elements are in use; with the fields above, two cache lines
}

// waiter is a waiting receive or message.
type waiter struct {
	from, match uint32 // as in Op; undefined for a wildcard receive
	entry       uint32 // op number, with the flags below
}

const (
	waitingMessage  = 1 << 31
	waitingWildcard = 1 << 30
	waitingOp       = 1<<29 - 1
)

// maxFew is the capacity of the short list.
const maxFew = 9

// many is the state of a matcher with more than maxFew waiters. It is kept for later use when all have left.
type many struct {
	channels
	wild *wildcards // nil if the rank has no wildcard receives
}

// empty reports whether nothing waits.
func (m *many) empty() bool {
	return m.used == 0 && (m.wild == nil || m.wild.posted.Head == NoOp)
}

// wildcards is the additional state for wildcard receives.
type wildcards struct {
	posted  List              // waiting wildcard receives in posting order
	stamp   map[uint32]uint32 // of these; see channels.stamps
	arrived List              // all waiting messages in arrival order
	around  map[uint32]around // links arrived in both directions, since messages leave from any position
}

// around is a message's neighbors in wildcards.arrived.
type around struct{ prev, next uint32 }

// List is a first-in, first-out list of ops that have started, linked through [Op.Link].
type List struct {
	Head uint32 // the first op, NoOp if the list is empty
	tail uint32
}

// NewList returns an empty list.
func NewList() List {
	return List{NoOp, NoOp}
}

// Put appends op i to the list.
func (l *List) Put(ops []Op, i uint32) {
	ops[i].SetLink(NoOp)
	if l.Head == NoOp {
		l.Head = i
	} else {
		ops[l.tail].SetLink(i)
	}
	l.tail = i
}

// Remove removes op i. prev is its predecessor, or NoOp if i is the first.
func (l *List) Remove(ops []Op, i, prev uint32) {
	if prev == NoOp {
		l.Head = ops[i].Link()
	} else {
		ops[prev].SetLink(ops[i].Link())
	}
	if l.tail == i {
		l.tail = prev
	}
}

// Take removes and returns the first op. The list must not be empty.
func (l *List) Take(ops []Op) uint32 {
	i := l.Head
	l.Head = ops[i].Link()
	return i
}

// NewMatcher returns a matcher for one rank of a program.
func NewMatcher(p *Program) Matcher {
	return Matcher{p: p}
}

// Post returns the waiting message that matches receive i. If there is none, the receive waits and Post returns NoOp.
func (m *Matcher) Post(i uint32, op *Op) uint32 {
	if op.Flags&(AnySource|AnyTag) != 0 {
		i |= waitingWildcard
	}
	return m.post(waiter{uint32(op.Peer), op.Match, i})
}

// PostFrom is Post for a receive from a given rank with the given Op.Match.
func (m *Matcher) PostFrom(i, from, match uint32) uint32 {
	return m.post(waiter{from, match, i})
}

func (m *Matcher) post(w waiter) uint32 {
	if m.many != nil && !m.many.empty() {
		return m.postInTable(w)
	}
	for k := range m.n {
		other := &m.few[k]
		switch {
		case other.entry&waitingMessage == 0:
		case w.entry&waitingWildcard == 0:
			if other.from == w.from && other.match == w.match {
				return m.takeFew(k)
			}
		case m.fits(&m.p.Ops[w.entry&waitingOp], &m.p.Ops[other.entry&waitingOp]):
			return m.takeFew(k)
		}
	}
	m.wait(w)
	return NoOp
}

// Arrive returns the waiting receive that matches message k. If there is none, the message waits and Arrive returns
// NoOp.
func (m *Matcher) Arrive(k uint32, send *Op) uint32 {
	return m.ArriveFrom(k, send.Rank, send.Match)
}

// ArriveFrom is Arrive for a message from a rank with the given Op.Match.
func (m *Matcher) ArriveFrom(k, from, match uint32) uint32 {
	w := waiter{from, match, k | waitingMessage}
	if m.many != nil && !m.many.empty() {
		return m.arriveInTable(w)
	}
	for i := range m.n {
		switch other := &m.few[i]; {
		case other.entry&waitingMessage != 0:
		case other.entry&waitingWildcard == 0:
			if other.from == w.from && other.match == w.match {
				return m.takeFew(i)
			}
		case m.fits(&m.p.Ops[other.entry&waitingOp], &m.p.Ops[k]):
			return m.takeFew(i)
		}
	}
	m.wait(w)
	return NoOp
}

// takeFew removes the waiter at index k and returns its op.
func (m *Matcher) takeFew(k uint32) uint32 {
	op := m.few[k].entry & waitingOp
	m.n--
	for ; k < m.n; k++ {
		m.few[k] = m.few[k+1]
	}
	return op
}

// wait appends a waiter. If the short list is full, it moves all waiters to a table.
func (m *Matcher) wait(w waiter) {
	if m.n < maxFew {
		m.few[m.n] = w
		m.n++
		return
	}
	if m.many == nil {
		m.many = &many{}
		if m.wildcards(w.entry) {
			m.many.wild = &wildcards{posted: NewList(), arrived: NewList(),
				around: make(map[uint32]around), stamp: make(map[uint32]uint32)}
		}
	}
	for _, w := range append(m.few[:], w) { // no two of them match, so all wait again
		if w.entry&waitingMessage != 0 {
			m.arriveInTable(w)
		} else {
			m.postInTable(w)
		}
	}
	m.n = 0
}

// wildcards reports whether the rank, on which the op of an entry waits, has wildcard receives.
func (m *Matcher) wildcards(entry uint32) bool {
	if m.p.folded != nil {
		return false
	}
	op := &m.p.Ops[entry&waitingOp]
	if entry&waitingMessage != 0 {
		return m.p.ranks[op.Peer].wildcards
	}
	return m.p.ranks[op.Rank].wildcards
}

func (m *Matcher) postInTable(w waiter) uint32 {
	t := m.many
	if w.entry&waitingWildcard != 0 {
		return m.postWildcard(w.entry & waitingOp)
	}
	c := t.at(w.from, w.match)
	if !t.holds(c, waitingMessage) {
		t.put(c, w.entry)
		return NoOp
	}
	k := t.take(c)
	if t.wild != nil {
		t.wild.leave(k)
	}
	return k
}

func (m *Matcher) postWildcard(i uint32) uint32 {
	t, op := m.many, &m.p.Ops[i]
	w := t.wild
	for k := w.arrived.Head; k != NoOp; k = w.around[k].next {
		if send := &m.p.Ops[k]; m.fits(op, send) {
			// The first match to arrive is the first of its channel, since all messages of a channel match the same
			// receives.
			t.take(t.at(send.Rank, send.Match))
			w.leave(k)
			return k
		}
	}
	w.posted.Put(m.p.Ops, i)
	w.stamp[i] = t.stamp()
	return NoOp
}

func (m *Matcher) arriveInTable(message waiter) uint32 {
	t, k := m.many, message.entry&waitingOp
	c := t.at(message.from, message.match)
	exact := t.holds(c, 0)
	if w := t.wild; w != nil {
		prev := uint32(NoOp)
		for i := w.posted.Head; i != NoOp; prev, i = i, m.p.Ops[i].Link() {
			if exact && w.stamp[i] > t.firstStamp(c) {
				break
			}
			if m.fits(&m.p.Ops[i], &m.p.Ops[k]) {
				w.posted.Remove(m.p.Ops, i, prev)
				delete(w.stamp, i)
				return i
			}
		}
	}
	if exact {
		return t.take(c)
	}
	t.put(c, k|waitingMessage)
	if t.wild != nil {
		t.wild.enter(k)
	}
	return NoOp
}

// fits reports whether a wildcard receive matches a message.
func (m *Matcher) fits(recv, send *Op) bool {
	if recv.Flags&AnySource == 0 && uint32(recv.Peer) != send.Rank {
		return false
	}
	if recv.Flags&AnyTag == 0 {
		return recv.Match == send.Match
	}
	return send.Flags&Internal == 0 && m.p.tags.comm(send.Match) == int32(recv.Match)
}

// Unmatched returns the waiting messages and receives, in the order in which they started to wait.
func (m *Matcher) Unmatched() (unexpected, posted []uint32) {
	add := func(entry uint32) {
		if entry&waitingMessage != 0 {
			unexpected = append(unexpected, entry&waitingOp)
		} else {
			posted = append(posted, entry&waitingOp)
		}
	}
	for _, w := range m.few[:m.n] {
		add(w.entry)
	}
	if m.many != nil {
		waiting := m.many.all()
		if w := m.many.wild; w != nil {
			for i := w.posted.Head; i != NoOp; i = m.p.Ops[i].Link() {
				waiting = append(waiting, node{entry: i, stamp: w.stamp[i]})
			}
		}
		slices.SortFunc(waiting, func(a, b node) int { return cmp.Compare(a.stamp, b.stamp) })
		for _, n := range waiting {
			add(n.entry)
		}
	}
	return unexpected, posted
}

// UnmatchedOf returns the waiting messages and receives of all matchers, by rank and in ascending order of ops, for an
// [Outcome]; nil if there are none.
func UnmatchedOf(matchers []Matcher) (unexpected, posted [][]uint32) {
	for rank := range matchers {
		messages, receives := matchers[rank].Unmatched()
		if len(messages)+len(receives) == 0 {
			continue
		}
		if unexpected == nil {
			unexpected, posted = make([][]uint32, len(matchers)), make([][]uint32, len(matchers))
		}
		messages, receives = matchers[rank].p.Numbers(messages), matchers[rank].p.Numbers(receives)
		slices.Sort(messages)
		slices.Sort(receives)
		unexpected[rank], posted[rank] = messages, receives
	}
	return unexpected, posted
}

// enter appends message k to arrived.
func (w *wildcards) enter(k uint32) {
	l := &w.arrived
	if l.Head == NoOp {
		w.around[k] = around{NoOp, NoOp}
		l.Head, l.tail = k, k
		return
	}
	last := w.around[l.tail]
	w.around[l.tail] = around{last.prev, k}
	w.around[k] = around{l.tail, NoOp}
	l.tail = k
}

// leave removes message k from arrived.
func (w *wildcards) leave(k uint32) {
	here := w.around[k]
	delete(w.around, k)
	if here.prev == NoOp {
		w.arrived.Head = here.next
	} else {
		w.around[here.prev] = around{w.around[here.prev].prev, here.next}
	}
	if here.next == NoOp {
		w.arrived.tail = here.prev
	} else {
		w.around[here.next] = around{here.prev, w.around[here.next].next}
	}
}

// channel is the messages from one rank with one tag and communicator. Either messages wait in it, or receives with
// that source and tag, never both.
type channel struct {
	from, match uint32
	first, last uint32 // nodes plus 1; first is 0 in an unused slot
}

// node is a waiting message or receive of a channel.
type node struct {
	entry uint32 // op number, with waitingMessage for a message
	stamp uint32 // a count that orders the starts of waiting
	next  uint32 // the next node of the channel, or of the free nodes, plus 1; 0: none
}

// channels is a hash table of the channels that are not empty, with open addressing and linear probing. The zero value
// is an empty table.
type channels struct {
	slots  []channel
	used   int
	nodes  []node
	free   uint32 // first free node plus 1; 0: none
	stamps uint32
}

// at returns the channel's slot: an unused one if the channel is empty. It is valid until the next put or take.
func (t *channels) at(from, match uint32) *channel {
	if 4*t.used >= 3*len(t.slots) {
		t.grow()
	}
	mask := uint32(len(t.slots) - 1)
	for i := hash(from, match) & mask; ; i = (i + 1) & mask {
		c := &t.slots[i]
		if c.first == 0 {
			c.from, c.match = from, match
			return c
		}
		if c.from == from && c.match == match {
			return c
		}
	}
}

// holds reports whether messages (kind waitingMessage) or receives (0) wait in a channel.
func (t *channels) holds(c *channel, kind uint32) bool {
	return c.first != 0 && t.nodes[c.first-1].entry&waitingMessage == kind
}

func (t *channels) firstStamp(c *channel) uint32 {
	return t.nodes[c.first-1].stamp
}

// stamp returns the next stamp.
func (t *channels) stamp() uint32 {
	t.stamps++
	return t.stamps
}

// put appends an entry to a channel.
func (t *channels) put(c *channel, entry uint32) {
	k := t.free
	if k == 0 {
		t.nodes = append(t.nodes, node{})
		k = uint32(len(t.nodes))
	}
	n := &t.nodes[k-1]
	t.free = n.next
	*n = node{entry: entry, stamp: t.stamp()}
	if c.first == 0 {
		c.first = k
		t.used++
	} else {
		t.nodes[c.last-1].next = k
	}
	c.last = k
}

// take removes the first entry of a channel and returns its op.
func (t *channels) take(c *channel) uint32 {
	k := c.first
	n := &t.nodes[k-1]
	op := n.entry & waitingOp
	c.first, n.next, t.free = n.next, t.free, k
	if c.first == 0 {
		t.remove(c)
	}
	return op
}

// remove closes the gap of a channel that became empty: later channels that can be found in it move there.
func (t *channels) remove(c *channel) {
	t.used--
	mask := uint32(len(t.slots) - 1)
	gap := hash(c.from, c.match) & mask
	for &t.slots[gap] != c {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.slots[i].first != 0; i = (i + 1) & mask {
		moved := &t.slots[i]
		if home := hash(moved.from, moved.match) & mask; (i-home)&mask >= (i-gap)&mask {
			t.slots[gap] = *moved
			moved.first = 0
			gap = i
		}
	}
}

func (t *channels) grow() {
	old := t.slots
	t.slots = make([]channel, max(32, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, c := range old {
		if c.first == 0 {
			continue
		}
		i := hash(c.from, c.match) & mask
		for t.slots[i].first != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = c
	}
}

// all returns the nodes of all channels.
func (t *channels) all() []node {
	var all []node
	for _, c := range t.slots {
		for k := c.first; k != 0; k = t.nodes[k-1].next {
			all = append(all, t.nodes[k-1])
		}
	}
	return all
}

// hash mixes the key of a channel into 32 bits with a 128-bit multiplication.
func hash(from, match uint32) uint32 {
	high, low := bits.Mul64((uint64(from)<<32|uint64(match))^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	return uint32(high ^ low)
}

// pairOrder restores the order of messages between two ranks if messages on different NICs can overtake each other.
type pairOrder struct {
	outgoing map[uint32]*pair // by destination rank
	incoming map[uint32]*pair // by source rank

	// The pairs of the latest message in each direction: most messages of a rank follow one to or from the same rank.
	to, from *pair
}

// pair is the state of the messages to a rank, or from one.
type pair struct {
	rank  uint32
	count uint32            // of messages to a rank: handed to a NIC; from one: announced in order
	early map[uint32]uint32 // messages that arrived early, by index; nil if there were none
}

func newPairOrder() *pairOrder {
	return &pairOrder{outgoing: make(map[uint32]*pair), incoming: make(map[uint32]*pair)}
}

// find returns the pair with a rank: the latest one, or that of the map, which it makes the latest.
func find(latest **pair, all map[uint32]*pair, rank uint32) *pair {
	if p := *latest; p != nil && p.rank == rank {
		return p
	}
	p := all[rank]
	if p == nil {
		p = &pair{rank: rank}
		all[rank] = p
	}
	*latest = p
	return p
}

// issue returns the index of the next message to a rank.
func (o *pairOrder) issue(to uint32) uint32 {
	p := find(&o.to, o.outgoing, to)
	p.count++
	return p.count - 1
}

// arrive returns m if it is the next message of its source rank. Otherwise it stores m and returns NoOp. number has the
// message indices.
func (o *pairOrder) arrive(from, m uint32, number []uint32) uint32 {
	p := find(&o.from, o.incoming, from)
	if number[m] != p.count {
		if p.early == nil {
			p.early = make(map[uint32]uint32)
		}
		p.early[number[m]] = m
		return NoOp
	}
	p.count++
	return m
}

// following returns the stored message that is next of a source rank, or NoOp.
func (o *pairOrder) following(from uint32) uint32 {
	p := find(&o.from, o.incoming, from)
	if len(p.early) == 0 {
		return NoOp
	}
	if m, here := p.early[p.count]; here {
		delete(p.early, p.count)
		p.count++
		return m
	}
	return NoOp
}
