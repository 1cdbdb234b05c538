package sim

import (
	"math"
	"math/bits"
)

// nobody stands for an op that there is not.
const nobody = math.MaxUint32

// matcher pairs receives with messages by the rules of MPI (MPI 4.1, section 3.5): a receive takes the first message to
// arrive that fits, and a message meets the first receive to be posted that fits. Sources and tags that are given are
// found by a hash; wildcards cost a search of their rank's waiting receives or messages.
//
// A message with the any-tag of GOAL fits receives of any tag only. A receive of any tag takes no message of a lowered
// collective.
type matcher struct {
	p     *Program
	link  []uint32 // the next in the list of each receive and message that waits
	table channels
	wild  *wildcards // nil where the program has none
}

// wildcards is what a matcher keeps besides its channels for programs with wildcard receives.
type wildcards struct {
	posted  []list   // of each rank, its wildcard receives, as posted
	arrived []list   // of each rank, all its waiting messages, as they arrived
	next    []uint32 // links arrived, both ways, for messages leave it from anywhere
	prev    []uint32
	stamp   []uint32 // when a receive was posted, as a count
	stamps  uint32
}

// list is a list of ops linked through an array, first come first.
type list struct {
	head, tail uint32
}

func newLists(n int) []list {
	lists := make([]list, n)
	for i := range lists {
		lists[i] = list{nobody, nobody}
	}
	return lists
}

func (l *list) put(link []uint32, i uint32) {
	link[i] = nobody
	if l.head == nobody {
		l.head = i
	} else {
		link[l.tail] = i
	}
	l.tail = i
}

func (l *list) take(link []uint32) uint32 {
	i := l.head
	l.head = link[i]
	return i
}

func newMatcher(p *Program, link []uint32) matcher {
	m := matcher{p: p, link: link, table: newChannels()}
	for i := range p.Ops {
		if f := p.Ops[i].Flags; f&IsRecv != 0 && f&(AnySource|AnyTag) != 0 {
			n := p.NumOps()
			m.wild = &wildcards{posted: newLists(p.Ranks()), arrived: newLists(p.Ranks()),
				next: make([]uint32, n), prev: make([]uint32, n), stamp: make([]uint32, n)}
			break
		}
	}
	return m
}

// post makes receive i meet a message that waits, and returns that, or has it wait and returns nobody.
func (m *matcher) post(i uint32, op *Op) uint32 {
	if w := m.wild; w != nil {
		w.stamp[i] = w.stamps
		w.stamps++
		if op.Flags&(AnySource|AnyTag) != 0 {
			for k := w.arrived[op.Rank].head; k != nobody; k = w.next[k] {
				send := &m.p.Ops[k]
				if m.fits(op, send) {
					// Whatever fits and came first is first in its channel, for all of a channel fit alike.
					m.table.at(op.Rank, send.Rank, send.Match).waiting.take(m.link)
					w.leave(op.Rank, k)
					return k
				}
			}
			w.posted[op.Rank].put(m.link, i)
			return nobody
		}
	}
	c := m.table.at(op.Rank, uint32(op.Peer), op.Match)
	if c.waiting.head == nobody || !c.messages {
		c.messages = false
		c.waiting.put(m.link, i)
		return nobody
	}
	k := c.waiting.take(m.link)
	if m.wild != nil {
		m.wild.leave(op.Rank, k)
	}
	return k
}

// arrive makes message k meet a receive that waits, and returns that, or has it wait and returns nobody.
func (m *matcher) arrive(k uint32, send *Op) uint32 {
	rank := uint32(send.Peer)
	c := m.table.at(rank, send.Rank, send.Match)
	exact := uint32(nobody)
	if c.waiting.head != nobody && !c.messages {
		exact = c.waiting.head
	}
	if w := m.wild; w != nil {
		prev := uint32(nobody)
		for i := w.posted[rank].head; i != nobody; prev, i = i, m.link[i] {
			if exact != nobody && w.stamp[i] > w.stamp[exact] {
				break
			}
			if m.fits(&m.p.Ops[i], send) {
				w.unpost(rank, i, prev, m.link)
				return i
			}
		}
	}
	if exact != nobody {
		return c.waiting.take(m.link)
	}
	c.messages = true
	c.waiting.put(m.link, k)
	if m.wild != nil {
		m.wild.enter(rank, k)
	}
	return nobody
}

// fits reports whether a wildcard receive takes a message.
func (m *matcher) fits(recv, send *Op) bool {
	if recv.Flags&AnySource == 0 && uint32(recv.Peer) != send.Rank {
		return false
	}
	if recv.Flags&AnyTag == 0 {
		return recv.Match == send.Match
	}
	return send.Flags&Internal == 0 && m.p.tags.comm(send.Match) == int32(recv.Match)
}

// leftover returns what still waits: messages by the rank they were sent to, and receives by their rank, in the order of
// their ops.
func (m *matcher) leftover() (unexpected, posted [][]uint32) {
	unexpected, posted = make([][]uint32, m.p.Ranks()), make([][]uint32, m.p.Ranks())
	waits := NewSet(m.p.NumOps())
	mark := func(l list) {
		for i := l.head; i != nobody; i = m.link[i] {
			waits.Add(i)
		}
	}
	for i := range m.table.slots {
		if c := &m.table.slots[i]; c.used {
			mark(c.waiting)
		}
	}
	if m.wild != nil {
		for _, l := range m.wild.posted {
			mark(l)
		}
	}
	for i := range uint32(m.p.NumOps()) {
		if !waits.Has(i) {
			continue
		}
		if op := &m.p.Ops[i]; op.Flags&IsSend != 0 {
			unexpected[op.Peer] = append(unexpected[op.Peer], i)
		} else {
			posted[op.Rank] = append(posted[op.Rank], i)
		}
	}
	return unexpected, posted
}

func (w *wildcards) enter(rank, k uint32) {
	l := &w.arrived[rank]
	w.prev[k] = l.tail
	if l.head == nobody {
		w.prev[k] = nobody
	}
	l.put(w.next, k)
}

func (w *wildcards) leave(rank, k uint32) {
	l := &w.arrived[rank]
	before, after := w.prev[k], w.next[k]
	if before == nobody {
		l.head = after
	} else {
		w.next[before] = after
	}
	if after == nobody {
		l.tail = before
	} else {
		w.prev[after] = before
	}
}

// unpost takes receive i, which follows prev, out of its rank's wildcard receives.
func (w *wildcards) unpost(rank, i, prev uint32, link []uint32) {
	l := &w.posted[rank]
	if prev == nobody {
		l.head = link[i]
	} else {
		link[prev] = link[i]
	}
	if l.tail == i {
		l.tail = prev
	}
}

// channel is all messages of one tag and communicator from one rank to another. Either messages wait in it or receives
// that name source and tag, never both.
type channel struct {
	to, from, match uint32
	used, messages  bool
	waiting         list
}

// channels is a hash table of channels with open addressing. Channels are made when they are first asked for and stay.
type channels struct {
	slots []channel
	used  int
}

func newChannels() channels {
	return channels{slots: make([]channel, 1<<10)}
}

// at returns the channel; the pointer is good until the next call.
func (t *channels) at(to, from, match uint32) *channel {
	mask := uint32(len(t.slots) - 1)
	for i := hash(to, from, match) & mask; ; i = (i + 1) & mask {
		c := &t.slots[i]
		if c.to == to && c.from == from && c.match == match && c.used {
			return c
		}
		if !c.used {
			if 4*t.used >= 3*len(t.slots) {
				t.grow()
				return t.at(to, from, match)
			}
			t.used++
			*c = channel{to: to, from: from, match: match, used: true, waiting: list{nobody, nobody}}
			return c
		}
	}
}

func (t *channels) grow() {
	old := t.slots
	t.slots = make([]channel, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, c := range old {
		if !c.used {
			continue
		}
		i := hash(c.to, c.from, c.match) & mask
		for t.slots[i].used {
			i = (i + 1) & mask
		}
		t.slots[i] = c
	}
}

// hash mixes a channel's name into 32 bits by two multiplications to 128 bits.
func hash(to, from, match uint32) uint32 {
	high, low := bits.Mul64(uint64(to)<<32|uint64(from)^0x9e3779b97f4a7c15, uint64(match)^0xd1b54a32d192ed03)
	high, low = bits.Mul64(high^low, 0xa0761d6478bd642f)
	return uint32(high ^ low)
}

// pairOrder restores the order of the messages between two ranks where those of different NICs may overtake each other.
type pairOrder struct {
	pairs  map[uint64]*pair
	number []uint32 // of each message by its send, its place in the order of its pair
}

// pair is two ranks, one of which sends to the other.
type pair struct {
	issued, matched uint32   // messages so far
	early           []uint32 // messages that arrived before their turn
}

func newPairOrder(p *Program) *pairOrder {
	return &pairOrder{pairs: make(map[uint64]*pair), number: make([]uint32, p.NumOps())}
}

func (o *pairOrder) of(send *Op) *pair {
	key := uint64(send.Rank)<<32 | uint64(send.Peer)
	p := o.pairs[key]
	if p == nil {
		p = &pair{}
		o.pairs[key] = p
	}
	return p
}

// issue gives message m its place, as it is handed to a NIC.
func (o *pairOrder) issue(m uint32, send *Op) {
	p := o.of(send)
	o.number[m] = p.issued
	p.issued++
}

// arrive returns m if it is its turn, or keeps it and returns nobody.
func (o *pairOrder) arrive(m uint32, send *Op) uint32 {
	p := o.of(send)
	if o.number[m] != p.matched {
		p.early = append(p.early, m)
		return nobody
	}
	p.matched++
	return m
}

// following returns the kept message of the pair whose turn it now is, nobody if that has not arrived.
func (o *pairOrder) following(send *Op) uint32 {
	p := o.of(send)
	for k, m := range p.early {
		if o.number[m] == p.matched {
			p.early = append(p.early[:k], p.early[k+1:]...)
			p.matched++
			return m
		}
	}
	return nobody
}
