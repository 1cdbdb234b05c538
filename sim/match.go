package sim

import (
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

// many is the state of a matcher with more than maxFew waiters.
type many struct {
	channels
	wild *wildcards // nil if the rank has no wildcard receives
}

// wildcards is the additional state for wildcard receives.
type wildcards struct {
	posted  List              // waiting wildcard receives in posting order
	arrived List              // all waiting messages in arrival order
	around  map[uint32]around // links arrived in both directions, since messages leave from any position
	stamp   map[uint32]uint32 // by waiting receive: a count that orders postings
	stamps  uint32
}

// around is a message's neighbors in wildcards.arrived.
type around struct{ prev, next uint32 }

// List is a first-in, first-out list of ops linked through Op.Link.
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
	ops[i].Link = NoOp
	if l.Head == NoOp {
		l.Head = i
	} else {
		ops[l.tail].Link = i
	}
	l.tail = i
}

// Remove removes op i. prev is its predecessor, or NoOp if i is the first.
func (l *List) Remove(ops []Op, i, prev uint32) {
	if prev == NoOp {
		l.Head = ops[i].Link
	} else {
		ops[prev].Link = ops[i].Link
	}
	if l.tail == i {
		l.tail = prev
	}
}

// Take removes and returns the first op. The list must not be empty.
func (l *List) Take(ops []Op) uint32 {
	i := l.Head
	l.Head = ops[i].Link
	return i
}

// NewMatcher returns a matcher for one rank of a program.
func NewMatcher(p *Program) Matcher {
	return Matcher{p: p}
}

// Post returns the waiting message that matches receive i. If there is none, the receive waits and Post returns NoOp.
func (m *Matcher) Post(i uint32, op *Op) uint32 {
	if m.many != nil {
		return m.postInTable(i, op)
	}
	w := waiter{uint32(op.Peer), op.Match, i}
	if op.Flags&(AnySource|AnyTag) != 0 {
		w.entry |= waitingWildcard
	}
	for k := range m.n {
		other := &m.few[k]
		switch {
		case other.entry&waitingMessage == 0:
		case w.entry&waitingWildcard == 0:
			if other.from == w.from && other.match == w.match {
				return m.takeFew(k)
			}
		case m.fits(op, &m.p.Ops[other.entry&waitingOp]):
			return m.takeFew(k)
		}
	}
	m.wait(w)
	return NoOp
}

// Arrive returns the waiting receive that matches message k. If there is none, the message waits and Arrive returns
// NoOp.
func (m *Matcher) Arrive(k uint32, send *Op) uint32 {
	if m.many != nil {
		return m.arriveInTable(k, send)
	}
	w := waiter{send.Rank, send.Match, k | waitingMessage}
	for i := range m.n {
		switch other := &m.few[i]; {
		case other.entry&waitingMessage != 0:
		case other.entry&waitingWildcard == 0:
			if other.from == w.from && other.match == w.match {
				return m.takeFew(i)
			}
		case m.fits(&m.p.Ops[other.entry&waitingOp], send):
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
	m.many = &many{}
	rank := m.p.Ops[w.entry&waitingOp].Rank
	if w.entry&waitingMessage != 0 {
		rank = uint32(m.p.Ops[w.entry&waitingOp].Peer)
	}
	if m.p.ranks[rank].wildcards {
		m.many.wild = &wildcards{posted: NewList(), arrived: NewList(),
			around: make(map[uint32]around), stamp: make(map[uint32]uint32)}
	}
	for _, w := range append(m.few[:], w) { // no two of them match, so all wait again
		i := w.entry & waitingOp
		if w.entry&waitingMessage != 0 {
			m.arriveInTable(i, &m.p.Ops[i])
		} else {
			m.postInTable(i, &m.p.Ops[i])
		}
	}
	m.n = 0
}

func (m *Matcher) postInTable(i uint32, op *Op) uint32 {
	if op.Flags&(AnySource|AnyTag) != 0 {
		return m.postWildcard(i, op)
	}
	c := m.many.at(uint32(op.Peer), op.Match)
	if c.waiting.Head == NoOp || !c.messages {
		c.messages = false
		c.waiting.Put(m.p.Ops, i)
		if m.many.wild != nil {
			m.many.wild.post(i)
		}
		return NoOp
	}
	k := c.waiting.Take(m.p.Ops)
	if m.many.wild != nil {
		m.many.wild.leave(k)
	}
	return k
}

func (m *Matcher) postWildcard(i uint32, op *Op) uint32 {
	w := m.many.wild
	for k := w.arrived.Head; k != NoOp; k = w.around[k].next {
		if send := &m.p.Ops[k]; m.fits(op, send) {
			// The first match to arrive is the first of its channel, since all messages of a channel match the same
			// receives.
			m.many.at(send.Rank, send.Match).waiting.Take(m.p.Ops)
			w.leave(k)
			return k
		}
	}
	w.posted.Put(m.p.Ops, i)
	w.post(i)
	return NoOp
}

func (m *Matcher) arriveInTable(k uint32, send *Op) uint32 {
	c := m.many.at(send.Rank, send.Match)
	exact := uint32(NoOp)
	if c.waiting.Head != NoOp && !c.messages {
		exact = c.waiting.Head
	}
	if w := m.many.wild; w != nil {
		prev := uint32(NoOp)
		for i := w.posted.Head; i != NoOp; prev, i = i, m.p.Ops[i].Link {
			if exact != NoOp && w.stamp[i] > w.stamp[exact] {
				break
			}
			if m.fits(&m.p.Ops[i], send) {
				w.posted.Remove(m.p.Ops, i, prev)
				delete(w.stamp, i)
				return i
			}
		}
		delete(w.stamp, exact)
	}
	if exact != NoOp {
		return c.waiting.Take(m.p.Ops)
	}
	c.messages = true
	c.waiting.Put(m.p.Ops, k)
	if m.many.wild != nil {
		m.many.wild.enter(k)
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

// Unmatched returns the waiting messages and receives, in ascending order of ops.
func (m *Matcher) Unmatched() (unexpected, posted []uint32) {
	add := func(l List) {
		for i := l.Head; i != NoOp; i = m.p.Ops[i].Link {
			if m.p.Ops[i].Flags&IsSend != 0 {
				unexpected = append(unexpected, i)
			} else {
				posted = append(posted, i)
			}
		}
	}
	for _, w := range m.few[:m.n] {
		if w.entry&waitingMessage != 0 {
			unexpected = append(unexpected, w.entry&waitingOp)
		} else {
			posted = append(posted, w.entry&waitingOp)
		}
	}
	if m.many != nil {
		for i := range m.many.slots {
			if c := &m.many.slots[i]; c.used {
				add(c.waiting)
			}
		}
		if m.many.wild != nil {
			add(m.many.wild.posted)
		}
	}
	slices.Sort(unexpected)
	slices.Sort(posted)
	return unexpected, posted
}

// UnmatchedOf returns the waiting messages and receives of all matchers, by rank, for an [Outcome].
func UnmatchedOf(matchers []Matcher) (unexpected, posted [][]uint32) {
	unexpected, posted = make([][]uint32, len(matchers)), make([][]uint32, len(matchers))
	for rank := range matchers {
		unexpected[rank], posted[rank] = matchers[rank].Unmatched()
	}
	return unexpected, posted
}

// post records the posting order of receive i.
func (w *wildcards) post(i uint32) {
	w.stamp[i] = w.stamps
	w.stamps++
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
	from, match    uint32
	used, messages bool
	waiting        List
}

// channels is a hash table of channels with open addressing. A channel is created on first use and never removed. The
// zero value is an empty table.
type channels struct {
	slots []channel
	used  int
}

// at returns a channel. The pointer is valid until the next call.
func (t *channels) at(from, match uint32) *channel {
	mask := uint32(len(t.slots) - 1)
	for i := hash(from, match) & mask; len(t.slots) > 0; i = (i + 1) & mask {
		c := &t.slots[i]
		if c.from == from && c.match == match && c.used {
			return c
		}
		if !c.used {
			if 4*t.used >= 3*len(t.slots) {
				break
			}
			t.used++
			*c = channel{from: from, match: match, used: true, waiting: NewList()}
			return c
		}
	}
	t.grow()
	return t.at(from, match)
}

func (t *channels) grow() {
	old := t.slots
	t.slots = make([]channel, max(4, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for _, c := range old {
		if !c.used {
			continue
		}
		i := hash(c.from, c.match) & mask
		for t.slots[i].used {
			i = (i + 1) & mask
		}
		t.slots[i] = c
	}
}

// hash mixes the key of a channel into 32 bits with a 128-bit multiplication.
func hash(from, match uint32) uint32 {
	high, low := bits.Mul64((uint64(from)<<32|uint64(match))^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	return uint32(high ^ low)
}

// pairOrder restores the order of messages between two ranks if messages on different NICs can overtake each other.
type pairOrder struct {
	issued   map[uint32]uint32 // by destination rank: number of messages handed to a NIC
	incoming map[uint32]*incoming
}

// incoming is the state of the messages from one rank.
type incoming struct {
	matched uint32            // number of messages announced in order
	early   map[uint32]uint32 // messages that arrived early, by index
}

func newPairOrder() *pairOrder {
	return &pairOrder{issued: make(map[uint32]uint32), incoming: make(map[uint32]*incoming)}
}

// issue returns the index of the next message to a rank.
func (o *pairOrder) issue(to uint32) uint32 {
	n := o.issued[to]
	o.issued[to] = n + 1
	return n
}

// arrive returns m if it is the next message of its source rank. Otherwise it stores m and returns NoOp. number has the
// message indices.
func (o *pairOrder) arrive(from, m uint32, number []uint32) uint32 {
	in := o.incoming[from]
	if in == nil {
		in = &incoming{early: make(map[uint32]uint32)}
		o.incoming[from] = in
	}
	if number[m] != in.matched {
		in.early[number[m]] = m
		return NoOp
	}
	in.matched++
	return m
}

// following returns the stored message that is next of a source rank, or NoOp.
func (o *pairOrder) following(from uint32) uint32 {
	in := o.incoming[from]
	if m, here := in.early[in.matched]; here {
		delete(in.early, in.matched)
		in.matched++
		return m
	}
	return NoOp
}
