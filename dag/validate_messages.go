package dag

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// message is a send or a receive, from the viewpoint of its receiver.
type message struct {
	tag      int64
	comm     int32
	peer     int32 // source, or AnySource
	op       int32 // index on the peer for a send, on the receiver for a receive
	received bool  // a receive, not a send
}

// sameFlow reports whether the messages have the same communicator, source and tag.
func (m *message) sameFlow(o *message) bool {
	return m.comm == o.comm && m.peer == o.peer && m.tag == o.tag
}

func compareMessages(x, y message) int {
	return cmp.Or(cmp.Compare(x.comm, y.comm), cmp.Compare(x.peer, y.peer), cmp.Compare(x.tag, y.tag),
		cmp.Compare(x.op, y.op))
}

// checkMessages matches sends with receives, receiver by receiver, and reports the unmatched ones.
//
// A receive without wildcards matches only sends of its own source and tag, and it is never wrong to match such a
// pair: if a maximum matching gives the send to a wildcard, the two receives can be exchanged. So these pairs are
// matched first, and the remaining sends go to the wildcards (matchWildcards).
func (v *validation) checkMessages() {
	sends := v.collectSends()
	found := make([][]finding, len(v.trace.Ranks))
	scratch := func() *matcher {
		return &matcher{trace: v.trace, sends: sends, first: make([]int32, len(v.trace.Ranks))}
	}
	par.ForWith(len(found), scratch, func(m *matcher, i int) { found[i] = m.match(int32(i)) })
	v.findings = append(v.findings, slices.Concat(found...)...)
}

// sendsByReceiver lists the sends to existing ranks, for each receiver by sender and index.
type sendsByReceiver struct {
	first []int // sends to rank r are first[r]..first[r+1]
	from  []int32
	op    []int32
}

func (v *validation) collectSends() *sendsByReceiver {
	n := len(v.trace.Ranks)
	s := &sendsByReceiver{first: make([]int, n+2)}
	each := func(visit func(from, op, to int32)) {
		for from := range v.trace.Ranks {
			r := v.trace.Ranks[from]
			for i, kind := range r.Kind {
				if kind != Send {
					continue
				}
				if to := r.Peer.At(i); inRange(to, n) {
					visit(int32(from), int32(i), to)
				}
			}
		}
	}
	each(func(_, _, to int32) { s.first[to+2]++ })
	for i := 1; i < len(s.first); i++ {
		s.first[i] += s.first[i-1]
	}
	s.from, s.op = make([]int32, s.first[n+1]), make([]int32, s.first[n+1])
	each(func(from, op, to int32) { // moves first[to+1] from the start of the receiver's sends to their end
		s.from[s.first[to+1]], s.op[s.first[to+1]] = from, op
		s.first[to+1]++
	})
	s.first = s.first[:n+1]
	return s
}

// matcher matches the messages of one receiver at a time.
type matcher struct {
	trace *Trace
	sends *sendsByReceiver

	first []int32   // by source: start of its receives in byPeer; zero between receivers
	peers []int32   // sources of the receives without wildcards
	exact []message // receives without wildcards, by index
	byPeer,
	flow, // sends of one source
	leftover, // sends that no receive without wildcards matches
	wild []message // receives with a wildcard
}

// match returns the unmatched messages to rank id and its unmatched receives.
func (m *matcher) match(id int32) []finding {
	m.collectReceives(id)
	var unmatched []message
	m.leftover = m.leftover[:0]
	for at, end := m.sends.first[id], m.sends.first[id+1]; at < end; {
		from := m.sends.from[at]
		m.flow = m.flow[:0]
		for ; at < end && m.sends.from[at] == from; at++ {
			m.flow = append(m.flow, m.message(from, m.sends.op[at], from))
		}
		unmatched = m.matchFlow(m.flow, m.takeReceives(from), unmatched)
	}
	for _, peer := range m.peers { // receives from sources without sends
		unmatched = append(unmatched, m.takeReceives(peer)...)
	}
	unmatched = matchWildcards(m.leftover, m.wild, unmatched)
	findings := make([]finding, len(unmatched))
	for i, u := range unmatched {
		findings[i] = finding{rank: u.peer, op: u.op, rule: ruleUnmatchedSend}
		if u.received {
			findings[i] = finding{rank: id, op: u.op, rule: ruleUnmatchedReceive}
		}
	}
	return findings
}

// message returns op op of rank id as a message of the given peer.
func (m *matcher) message(id, op, peer int32) message {
	r := m.trace.Ranks[id]
	return message{tag: r.Tag.At(int(op)), comm: r.Comm.At(int(op)), peer: peer, op: op}
}

// collectReceives sorts the receives of rank id by source and separates those with wildcards.
func (m *matcher) collectReceives(id int32) {
	m.exact, m.wild, m.peers = m.exact[:0], m.wild[:0], m.peers[:0]
	r := m.trace.Ranks[id]
	for i, kind := range r.Kind {
		if kind != Recv {
			continue
		}
		receive := m.message(id, int32(i), r.Peer.At(i))
		receive.received = true
		switch {
		case receive.peer != AnySource && !inRange(receive.peer, len(m.first)):
		case receive.peer == AnySource || receive.tag == AnyTag:
			m.wild = append(m.wild, receive)
		default:
			m.exact = append(m.exact, receive)
			if m.first[receive.peer] == 0 {
				m.peers = append(m.peers, receive.peer)
			}
			m.first[receive.peer]++
		}
	}
	next := int32(0)
	for _, peer := range m.peers { // turns counts into starts; filling turns the starts into ends
		count := m.first[peer]
		m.first[peer] = next
		next += count
	}
	m.byPeer = append(m.byPeer[:0], m.exact...)
	for _, receive := range m.exact {
		m.byPeer[m.first[receive.peer]] = receive
		m.first[receive.peer]++
	}
}

// takeReceives returns the receives without wildcards from a source at the first call for it, and none at later
// calls.
func (m *matcher) takeReceives(source int32) []message {
	end := m.first[source]
	if end == 0 {
		return nil
	}
	m.first[source] = 0
	start := end
	for start > 0 && m.byPeer[start-1].peer == source {
		start--
	}
	return m.byPeer[start:end]
}

// matchFlow matches the sends of one source with the receives that name it. It puts unmatched sends into m.leftover,
// for the wildcards, and appends unmatched receives to unmatched.
func (m *matcher) matchFlow(sends, receives, unmatched []message) []message {
	if len(sends) == len(receives) {
		inOrder := true
		for i := range sends {
			if inOrder = sends[i].sameFlow(&receives[i]); !inOrder {
				break
			}
		}
		if inOrder {
			return unmatched
		}
	}
	slices.SortFunc(sends, compareMessages)
	slices.SortFunc(receives, compareMessages)
	for len(sends) > 0 && len(receives) > 0 {
		s, r := sends[0], receives[0]
		s.op, r.op, r.received = 0, 0, false
		switch order := compareMessages(s, r); {
		case order < 0:
			m.leftover = append(m.leftover, sends[0])
			sends = sends[1:]
		case order > 0:
			unmatched = append(unmatched, receives[0])
			receives = receives[1:]
		default:
			sends, receives = sends[1:], receives[1:]
		}
	}
	m.leftover = append(m.leftover, sends...)
	return append(unmatched, receives...)
}
