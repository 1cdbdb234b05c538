package dag

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// Disagreement describes the first difference between parts of a trace that state the same: a message and its receive,
// or the parts of the members in a collective. It is "" if there is none. It compares sums of hashes, in time that is
// small relative to that of reading the trace; [Validate] names the ops.
//
// A rank disagrees if the sources, tags and sizes of its receives are not those of the messages sent to it, and if a
// collective in which all members state the same size (allreduce, reduce, bcast, reduce-scatter) has several. Ranks
// with wildcards need as many receives as messages. Messages to and from ranks that do not exist are ignored.
func Disagreement(t *Trace) string {
	if what := messageDifference(t); what != "" {
		return what
	}
	return collectiveDifference(t)
}

// messageDifference compares the messages with the receives of the whole trace, which usually agree, and if they do
// not or have wildcards, those of each rank.
func messageDifference(t *Trace) string {
	start := func() *MessageEnds { return NewMessageEnds(len(t.Ranks)) }
	all := start()
	for _, part := range par.ForWith(len(t.Ranks), start, func(part *MessageEnds, rank int) {
		part.Add(rank, t.Ranks[rank])
	}) {
		all.total.add(&part.total)
	}
	if all.Agree() {
		return ""
	}
	all.ByRank()
	for rank, r := range t.Ranks {
		all.Add(rank, r)
	}
	return all.Disagreement()
}

// MessageEnds compares both ends of messages, as [Disagreement] does, of a trace that is read rank by rank.
type MessageEnds struct {
	ranks  int
	total  ends
	byRank []ends // of the destinations, once the total needs them
}

// NewMessageEnds returns the comparison for a trace of the given number of ranks.
func NewMessageEnds(ranks int) *MessageEnds { return &MessageEnds{ranks: ranks} }

// Add adds a rank, or some of its ops. Each op must be added once, in any order.
func (m *MessageEnds) Add(rank int, r *Rank) {
	for i, kind := range r.Kind {
		if kind != Send && kind != Recv {
			continue
		}
		peer, tag, comm, size := r.Peer.At(i), r.Tag.At(i), r.Comm.At(i), r.Bytes.At(i)
		if kind == Send {
			if inRange(peer, m.ranks) {
				e := m.to(int(peer))
				h := hashed(uint64(rank)<<32|uint64(uint32(peer)), uint64(tag), uint64(uint32(comm)))
				e.wild = e.wild || tag == AnyTag // GOAL has such sends
				e.count++
				e.matching += h
				e.sized += hashed(h, uint64(size), 0)
				e.bytes.add(size)
			}
			continue
		}
		e := m.to(rank)
		switch {
		case peer == AnySource || tag == AnyTag:
			e.wild = true
			e.count--
		case inRange(peer, m.ranks):
			h := hashed(uint64(uint32(peer))<<32|uint64(rank), uint64(tag), uint64(uint32(comm)))
			e.count--
			e.matching -= h
			e.sized -= hashed(h, uint64(size), 0)
			e.bytes.addSum(negated(size))
		}
	}
}

// to returns the sum that has the messages to a rank.
func (m *MessageEnds) to(destination int) *ends {
	if m.byRank == nil {
		return &m.total
	}
	return &m.byRank[destination]
}

// Agree reports whether the sums of the whole trace agree. If not, [MessageEnds.ByRank] and adding all ranks again
// report whether there is a disagreement, which traces with wildcards need not have.
func (m *MessageEnds) Agree() bool { return !m.total.wild && m.total.zero() }

// ByRank prepares for adding all ranks again, for [MessageEnds.Disagreement].
func (m *MessageEnds) ByRank() { m.byRank = make([]ends, m.ranks) }

// Disagreement describes the first rank whose receives differ from the messages to it, "" if there is none.
func (m *MessageEnds) Disagreement() string {
	differing, first := 0, -1
	for rank := range m.byRank {
		if !m.byRank[rank].zero() {
			if differing++; differing == 1 {
				first = rank
			}
		}
	}
	if differing == 0 {
		return ""
	}
	what := ""
	switch e := &m.byRank[first]; {
	case e.count > 0:
		what = fmt.Sprintf("rank %d lacks receives for %d of the messages that are sent to it", first, e.count)
	case e.count < 0:
		what = fmt.Sprintf("rank %d lacks messages for %d of its receives", first, -e.count)
	case e.matching != 0:
		what = fmt.Sprintf("the receives of rank %d have other sources or tags than the messages that are sent to it",
			first)
	case e.bytes != Total{}:
		bytes, how := e.bytes.Big(), "more"
		if bytes.Sign() < 0 {
			bytes, how = bytes.Neg(bytes), "less"
		}
		what = fmt.Sprintf("the messages to rank %d have %v bytes %s than its receives", first, bytes, how)
	default:
		what = fmt.Sprintf("the receives of rank %d have other sizes than the messages that are sent to it", first)
	}
	if differing > 1 {
		what += fmt.Sprintf(" (%d such ranks in all)", differing)
	}
	return what
}

// ends is a sum over the messages to ranks minus that over their receives.
type ends struct {
	count    int64
	matching uint64 // hashes of source, destination, tag and communicator
	sized    uint64 // the same, with the size
	bytes    Total
	wild     bool // some receive has a wildcard
}

func (e *ends) zero() bool {
	return e.count == 0 && (e.wild || e.matching == 0 && e.sized == 0)
}

// add adds the sums of other messages.
func (e *ends) add(other *ends) {
	e.count += other.count
	e.matching += other.matching
	e.sized += other.sized
	e.bytes.addSum(other.bytes)
	e.wild = e.wild || other.wild
}

// negated returns -v.
func negated(v int64) Total {
	if v == 0 {
		return Total{}
	}
	return Total{high: ^(v >> 63), low: -uint64(v)}
}

// hashed mixes three numbers.
func hashed(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xbf58476d1ce4e5b9)
	h := high ^ low ^ c*0x94d049bb133111eb
	high, low = bits.Mul64(h^0xd6e8feb86659fd93, a+0xa0761d6478bd642f)
	return high ^ low
}

// collectiveDifference compares the sizes of the collectives of each communicator, in the order of the members' ops.
func collectiveDifference(t *Trace) string {
	type sequence struct {
		rank int // the first member
		kind []Subkind
		size []int64
	}
	first := make(map[int32]*sequence)
	for rank, r := range t.Ranks {
		if !slices.Contains(r.Kind, Coll) {
			continue
		}
		counts := make(map[int32]int)
		for i, kind := range r.Kind {
			if kind != Coll {
				continue
			}
			subkind := r.Subkind.At(i)
			comm, size := r.Comm.At(i), r.Bytes.At(i)
			if subkind == Bcast { // members other than the root receive it
				size = max(size, r.RecvBytes.At(i))
			}
			s := first[comm]
			if s == nil {
				s = &sequence{rank: rank}
				first[comm] = s
			}
			k := counts[comm]
			counts[comm]++
			if s.rank == rank {
				s.kind, s.size = append(s.kind, subkind), append(s.size, size)
				continue
			}
			oneSize := subkind == Allreduce || subkind == Reduce || subkind == Bcast || subkind == ReduceScatter
			if oneSize && k < len(s.size) && s.kind[k] == subkind && s.size[k] != size {
				return fmt.Sprintf("rank %d has %d bytes in its %v, op %d, but rank %d has %d", rank, size, subkind, i,
					s.rank, s.size[k])
			}
		}
	}
	return ""
}
