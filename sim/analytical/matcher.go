package analytical

import "math/bits"

// matcher matches messages with receives: the k-th send of a key with the k-th receive of that key. Unmatched messages
// and receives wait in a hash table of keys.
type matcher struct {
	messages []message
	free     uint32 // free messages, linked through next
	posts    []post
	freePost uint32 // free posts, linked through next

	table []slot // open addressing; the length is a power of two, less than half is used
	used  int
}

// message is a message in the network, or one that has arrived and has no receive yet.
type message struct {
	size     uint64
	meets    event // event at the receiver on arrival; 0: no receive is posted yet
	from, to int32
	at       int32  // congestion-aware: current device
	sender   uint32 // the sender's op that ends on arrival; noOp: none
	next     uint32 // next waiting message of the same key; in the network, of a link's queue
	queued   uint32 // next message that waits for the same link
	sw       int8   // congestion-aware: dimension of the current switch, -1 for an NPU
	there    bool   // the message has arrived
	custom   bool   // sender is an op of a custom collective
	control  bool   // a message of the rendezvous protocol, not of the trace
}

// post is a receive without a message.
type post struct {
	meets event
	next  uint32
}

// key identifies the messages that match a receive.
type key struct {
	tag      uint64
	size     uint64
	context  uint32 // context of the tag
	from, to int32
}

// slot is a non-empty list of waiting messages or posts of a key. Messages and posts are numbered from 1.
type slot struct {
	key         key
	first, last uint32
	posts       bool
	used        bool
}

const noOp = ^uint32(0)

func newMatcher() *matcher {
	return &matcher{messages: make([]message, 1), posts: make([]post, 1), table: make([]slot, 1<<10)}
}

// newMessage returns the number of a new message.
func (m *matcher) newMessage() uint32 {
	if i := m.free; i != 0 {
		m.free = m.messages[i].next
		return i
	}
	m.messages = append(m.messages, message{})
	return uint32(len(m.messages) - 1)
}

// forget frees the memory of a message.
func (m *matcher) forget(i uint32) {
	m.messages[i].next = m.free
	m.free = i
}

// send adds a message. It matches the first waiting receive of its key, or waits.
func (m *matcher) send(k *key, i uint32) {
	s := m.find(k)
	if s.used && s.posts {
		p := s.first
		m.messages[i].meets = m.posts[p].meets
		s.first = m.posts[p].next
		m.posts[p].next, m.freePost = m.freePost, p
		if s.first == 0 {
			m.remove(s)
		}
		return
	}
	m.messages[i].next = 0
	if s.used {
		m.messages[s.last].next = i
		s.last = i
		return
	}
	m.insert(s, slot{key: *k, first: i, last: i, used: true})
}

// receive adds a receive that leads to ev. It returns the matching message, or 0 if it waits.
func (m *matcher) receive(k *key, ev event) uint32 {
	s := m.find(k)
	if s.used && !s.posts {
		i := s.first
		if s.first = m.messages[i].next; s.first == 0 {
			m.remove(s)
		}
		m.messages[i].meets = ev
		return i
	}
	p := m.freePost
	if p != 0 {
		m.freePost = m.posts[p].next
	} else {
		m.posts = append(m.posts, post{})
		p = uint32(len(m.posts) - 1)
	}
	m.posts[p] = post{meets: ev}
	if s.used {
		m.posts[s.last].next = p
		s.last = p
		return 0
	}
	m.insert(s, slot{key: *k, first: p, last: p, posts: true, used: true})
	return 0
}

func (k *key) hash() uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (k.tag ^ uint64(k.context)<<40) * a
	h = bits.RotateLeft64(h, 29) ^ (uint64(uint32(k.from))<<32 | uint64(uint32(k.to)))
	h *= b
	h = bits.RotateLeft64(h, 31) ^ k.size
	h *= a
	return h ^ h>>32
}

// find returns the slot of a key, or the free slot for it.
func (m *matcher) find(k *key) *slot {
	mask := uint64(len(m.table) - 1)
	for h := k.hash() & mask; ; h = (h + 1) & mask {
		if s := &m.table[h]; !s.used || s.key == *k {
			return s
		}
	}
}

func (m *matcher) insert(s *slot, content slot) {
	if m.used++; 2*m.used > len(m.table) {
		old := m.table
		m.table = make([]slot, 2*len(old))
		for i := range old {
			if old[i].used {
				*m.find(&old[i].key) = old[i]
			}
		}
		s = m.find(&content.key)
	}
	*s = content
}

// remove empties a slot, and moves later entries that find would otherwise miss.
func (m *matcher) remove(s *slot) {
	m.used--
	mask := uint64(len(m.table) - 1)
	hole := s.key.hash() & mask
	for &m.table[hole] != s {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; m.table[i].used; i = (i + 1) & mask {
		if home := m.table[i].key.hash() & mask; (i-home)&mask >= (i-hole)&mask {
			m.table[hole] = m.table[i]
			hole = i
		}
	}
	m.table[hole].used = false
}
