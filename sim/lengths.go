// This file compares the lengths of receives with those of their messages.

package sim

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/tracedag/tracedag/internal/par"
)

// MessageEnd is a send or a receive of a trace, without wildcards.
type MessageEnd struct {
	From, To uint32 // ranks
	Comm     int32
	Op       uint32 // index within the rank
	Tag      int64
	Size     uint64 // bytes
	Send     bool
}

// WarnShortReceives warns through the environment if receives are shorter than their messages, an error in MPI (MPI
// 4.1, section 3.2.4). Replays transfer the bytes of the sends. each calls add for every end of a message between the
// given number of ranks, without the messages to ranks with wildcard receives.
func WarnShortReceives(e *Env, ranks int, each func(add func(m MessageEnd))) {
	if e == nil || e.Warn == nil {
		return
	}
	sum := uint64(0) // 0 if sends and receives have equal sizes, the usual case
	each(func(m MessageEnd) {
		h := lengthHash(m.From, m.To, uint64(m.Tag)^uint64(uint32(m.Comm))<<32, m.Size)
		if m.Send {
			sum += h
		} else {
			sum -= h
		}
	})
	if sum != 0 {
		warnShortReceives(e, ranks, each)
	}
}

// WarnShortReceives is the function of that name for a program. Call it before the first replay.
func (p *Program) WarnShortReceives(e *Env) {
	if e == nil || e.Warn == nil || p.lengths == 0 {
		return
	}
	wild := slices.ContainsFunc(p.ranks, func(f rankFacts) bool { return f.wildcards })
	warnShortReceives(e, p.Ranks(), func(add func(m MessageEnd)) {
		p.EachOp(func(op *Op, index uint32) { // an error occurs again in the replay
			if m, ok := p.messageEnd(op, index, wild); ok {
				add(m)
			}
		})
	})
}

// messageEnd returns an op with the given index within its rank as the end of a message. It returns false for other
// ops, for wildcards and, with wild, for messages to ranks with wildcard receives. The tag is that of the program,
// which includes the communicator.
func (p *Program) messageEnd(op *Op, index uint32, wild bool) (MessageEnd, bool) {
	m := MessageEnd{From: op.Rank, To: uint32(op.Peer), Op: index, Tag: int64(op.Match), Size: op.Size}
	switch op.Flags & (IsColl | AnySource | AnyTag) {
	case IsSend:
		m.Send = true
	case IsRecv:
		m.From, m.To = m.To, m.From
	default:
		return m, false
	}
	if wild && p.ranks[m.To].wildcards {
		return m, false
	}
	return m, true
}

// lengthHash returns a hash of the size of a message and of all that it is matched by.
func lengthHash(from, to uint32, match, size uint64) uint64 {
	return channelHash(from, to, match) * sizeHash(size)
}

// channelHash returns a hash of all that a message is matched by.
func channelHash(from, to uint32, match uint64) uint64 {
	return mix((uint64(from)<<32|uint64(to))^0x9e3779b97f4a7c15, match^0xbf58476d1ce4e5b9)
}

// sizeHash returns a hash of the size of a message.
func sizeHash(size uint64) uint64 {
	return mix(size^0xd6e8feb86659fd93, 0x94d049bb133111eb)
}

// mix returns a hash of two words.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// warnShortReceives is WarnShortReceives for ends that differ.
func warnShortReceives(e *Env, ranks int, each func(add func(m MessageEnd))) {
	const group = 1 << 20
	s := findShortReceives(ranks, group, each)
	if s.count == 0 {
		return
	}
	e.Warnf("rank %d op %d receives %d bytes of a message of %d bytes from rank %d, op %d (%d such receives): an "+
		"error in MPI, but the simulation transfers all bytes; use equal sizes in the trace", s.recv.To, s.recv.Op,
		s.recv.Size, s.send.Size, s.send.From, s.send.Op, s.count)
}

// shortReceives are receives that are shorter than their messages.
type shortReceives struct {
	count      int
	recv, send MessageEnd // the first one
}

// findShortReceives compares the messages of each receiver. It holds the ends of several receivers at a time, at most
// group or an eighth of all, or those of one.
func findShortReceives(ranks, group int, each func(add func(m MessageEnd))) shortReceives {
	ends := make([]int, ranks) // by receiver
	all := 0
	each(func(m MessageEnd) {
		ends[m.To]++
		all++
	})
	group = max(group, all/8)
	var result shortReceives
	var buffer []MessageEnd
	for from, to := 0, 0; from < ranks; from = to {
		start := []int{0} // by receiver of the group: of its ends in the buffer
		for n := 0; to < ranks && (n == 0 || n+ends[to] <= group); to++ {
			n += ends[to]
			start = append(start, n)
		}
		n := start[to-from]
		if n == 0 {
			continue
		}
		buffer = slices.Grow(buffer[:0], n)[:n]
		next := slices.Clone(start)
		each(func(m MessageEnd) {
			if k := int(m.To) - from; k >= 0 && k < to-from {
				buffer[next[k]] = m
				next[k]++
			}
		})
		found := make([]shortReceives, to-from)
		par.For(to-from, func(k int) { found[k] = shortReceivesOf(buffer[start[k]:start[k+1]]) })
		for _, f := range found {
			if result.count == 0 {
				result.recv, result.send = f.recv, f.send
			}
			result.count += f.count
		}
	}
	return result
}

// shortReceivesOf compares the messages of one receiver. Messages that are matched by equal tags are compared in the
// order of the trace, unless some order of them has no short receive: if, with sizes in descending order, no receive is
// shorter than the message at its position. Different numbers of both are skipped; the replay reports those that
// remain.
func shortReceivesOf(ends []MessageEnd) (result shortReceives) {
	channel := func(a, b *MessageEnd) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Tag, b.Tag))
	}
	slices.SortFunc(ends, func(a, b MessageEnd) int {
		if c := channel(&a, &b); c != 0 {
			return c
		}
		if a.Send != b.Send {
			if a.Send {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Op, b.Op)
	})
	bySize := func(a, b MessageEnd) int { return cmp.Compare(b.Size, a.Size) }
	for begin, end := 0, 0; begin < len(ends); begin = end {
		sends := 0
		for ; end < len(ends) && channel(&ends[begin], &ends[end]) == 0; end++ {
			if ends[end].Send {
				sends++
			}
		}
		send, recv := ends[begin:begin+sends], ends[begin+sends:end]
		var short shortReceives
		for k := 0; len(send) == len(recv) && k < sends; k++ {
			if recv[k].Size < send[k].Size {
				if short.count++; short.count == 1 {
					short.recv, short.send = recv[k], send[k]
				}
			}
		}
		if short.count == 0 {
			continue
		}
		slices.SortFunc(send, bySize)
		slices.SortFunc(recv, bySize)
		for k := range send {
			if recv[k].Size < send[k].Size {
				if result.count == 0 || short.recv.Op < result.recv.Op {
					result.recv, result.send = short.recv, short.send
				}
				result.count += short.count
				break
			}
		}
	}
	return result
}
