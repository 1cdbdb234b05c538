package loggops

import (
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// Kinds of waiting for a clock.
const (
	calcWaits    = iota // for a stream
	sendWaits           // for a stream and the sending side of a NIC
	messageWaits        // for a stream and the receiving side of a NIC
	waitKinds
)

// opWaited and messageWaited are flags in Op.Flags: the op, or the message of a send, has waited for a clock.
const (
	opWaited      uint8 = 1 << 6
	messageWaited uint8 = 1 << 5
)

// clockLines are the ops and messages that wait for clocks, with one line per kind, stream and NIC of every host.
//
// In the reference, all waiting events return to the queue whenever the clock advances, each with its own number. Only
// the event with the lowest number can be next. Here the queue contains an event for that one only, and the others wait
// in line. After it has run, the next in line gets an event for the time when the clocks are free again, since the
// reference's earlier attempts would fail. This requires that clocks never go backwards.
type clockLines []clockLine

// clockLine is the events that wait for the same clocks. The zero value is empty.
type clockLine struct {
	first    uint64   // lowest key; see event.Event
	due      uint64   // time of the valid event of first; its other events are invalid
	others   []uint64 // other keys, a min-heap
	waiting  uint32   // number of keys
	renumber bool     // some events have provisional numbers of a shard; see shards
}

// newClockLines returns the lines of all hosts, or nil if there are too many.
func newClockLines(p *sim.Program, c *hostClocks) clockLines {
	n := (len(c.times) - 2*c.nics*p.Ranks()) * c.nics * waitKinds
	if n > 1<<20+p.NumOps() {
		return nil
	}
	return make(clockLines, n)
}

// line returns the line for a kind of waiting and the clocks of an op, on a host.
func (s *loggopsim) line(kind int, host uint32, op *sim.Op) *clockLine {
	c := &s.clock
	stream := c.base(host) - 2*c.nics*int(host) + int(op.Stream) // among the streams of all hosts
	nic := 0
	if kind != calcWaits {
		nic = int(op.NIC)
	}
	return &s.lines[(stream*c.nics+nic)*waitKinds+kind]
}

// turn decides whether the event of an op or message occurs now. The event needs clocks of host that are free from time
// free. If it must wait, turn queues it. It returns the line in which the event has waited, or nil; the caller must
// pass the line to wakeNext after the event has occurred.
func (s *loggopsim) turn(e event.Event, op ref, host uint32, kind int, free uint64) (*clockLine, bool) {
	waited := opWaited
	if kind == messageWaits {
		waited = messageWaited
	}
	if *op.flags&waited == 0 {
		if free <= e.Time {
			return nil, true
		}
		if s.lines == nil {
			s.push(event.Event{Time: free, Key: e.Key})
			return nil, false
		}
		*op.flags |= waited
		s.join(s.line(kind, host, op.Op), e.Key, free)
		return nil, false
	}
	line := s.line(kind, host, op.Op)
	if line.waiting == 0 || line.first != e.Key || line.due != e.Time {
		return nil, false // invalid: another event precedes it and will wake it, or it has occurred
	}
	if free > e.Time {
		s.wake(line, free)
		return nil, false
	}
	line.pop()
	return line, true
}

// join adds an event to a line whose clocks are free from time free.
func (s *loggopsim) join(line *clockLine, key, free uint64) {
	if s.shard != nil && !line.renumber {
		line.renumber = true
		s.shard.dirty = append(s.shard.dirty, line)
	}
	if line.push(key) {
		s.wake(line, free)
	}
}

// drawInLine is draw for one of several ops of a kind that became ready together and need the same clocks: all of them
// wait in line from the start, since they can only occur one after the other.
func (s *loggopsim) drawInLine(t uint64, i uint32, op ref) {
	kind := calcWaits
	if op.Flags&sim.IsSend != 0 {
		kind = sendWaits
	}
	*op.flags |= opWaited
	s.join(s.line(kind, op.host, op.Op), s.sequence<<32|uint64(i), t)
	s.sequence++
}

// wakeNext queues an event for the next in line, if any, at the current time t or when its clocks are free, whichever
// is later.
func (s *loggopsim) wakeNext(line *clockLine, t, free uint64) {
	if line != nil && line.waiting > 0 {
		s.wake(line, max(t, free))
	}
}

// wake queues an event for the first in line.
func (s *loggopsim) wake(line *clockLine, t uint64) {
	line.due = t
	s.push(event.Event{Time: t, Key: line.first})
}

// push adds an event and reports whether it is now the first.
func (l *clockLine) push(key uint64) bool {
	l.waiting++
	if l.waiting == 1 {
		l.first = key
		return true
	}
	first := key < l.first
	if first {
		key, l.first = l.first, key
	}
	l.others = append(l.others, key)
	i := len(l.others) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if l.others[parent] < key {
			break
		}
		l.others[i] = l.others[parent]
		i = parent
	}
	l.others[i] = key
	return first
}

// pop removes the first event.
func (l *clockLine) pop() {
	l.waiting--
	last := len(l.others) - 1
	if last < 0 {
		return
	}
	l.first = l.others[0]
	key := l.others[last]
	l.others = l.others[:last]
	if last == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && l.others[child+1] < l.others[child] {
			child++
		}
		if key < l.others[child] {
			break
		}
		l.others[i] = l.others[child]
		i = child
	}
	l.others[i] = key
}
