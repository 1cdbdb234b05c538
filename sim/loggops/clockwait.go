package loggops

import (
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// Kinds of waiting for a clock.
const (
	calcWaits    = 1 // for a stream
	sendWaits    = 2 // for a stream and the sending side of a NIC
	messageWaits = 3 // for a stream and the receiving side of a NIC
)

// opWaited and messageWaited are flags in Op.Flags: the op, or the message of a send, has waited for a clock.
const (
	opWaited      uint8 = 1 << 6
	messageWaited uint8 = 1 << 5
)

// clockWaits are the ops and messages of a host that wait for its clocks, with one line per kind, stream and NIC.
//
// In the reference, all waiting events return to the queue whenever the clock advances, each with its own number. Only
// the event with the lowest number can be next. Here the queue contains an event for that one only, and the others wait
// in line. After it has run, the next in line gets an event for the time when the clocks are free again, since the
// reference's earlier attempts would fail. This requires that clocks never go backwards.
type clockWaits []clockLine

// clockLine is a min-heap, by number, of the events that wait for the same clocks.
type clockLine struct {
	kind, nic uint8
	stream    uint16
	keys      []uint64 // keys of the events; see event.Event
	due       uint64   // time of the valid event of the first entry; its other events are invalid
	renumber  bool     // some events have provisional numbers of a shard; see shards
}

// line returns the line for a kind, stream and NIC.
func (w *clockWaits) line(kind uint8, stream uint16, nic uint8) *clockLine {
	lines := *w
	for k := range lines {
		if l := &lines[k]; l.kind == kind && l.stream == stream && l.nic == nic {
			return l
		}
	}
	*w = append(lines, clockLine{kind: kind, stream: stream, nic: nic})
	return &(*w)[len(lines)]
}

// turn decides whether the event of an op or message occurs now. The event needs clocks of host that are free from time
// free. If it must wait, turn queues it. It returns the line in which the event has waited, or nil; the caller must
// pass the line to wakeNext after the event has occurred.
func (s *loggopsim) turn(e event.Event, op *sim.Op, host uint32, kind uint8, free uint64) (*clockLine, bool) {
	waited := opWaited
	if kind == messageWaits {
		waited = messageWaited
	}
	if op.Flags&waited == 0 {
		if free <= e.Time {
			return nil, true
		}
		if s.waits == nil {
			s.push(event.Event{Time: free, Key: e.Key})
			return nil, false
		}
		op.Flags |= waited
		line := s.waits[host].line(kind, op.Stream, nicOf(kind, op))
		if s.shard != nil && !line.renumber {
			line.renumber = true
			s.shard.dirty = append(s.shard.dirty, host)
		}
		if line.push(e.Key) {
			s.wake(line, free)
		}
		return nil, false
	}
	line := s.waits[host].line(kind, op.Stream, nicOf(kind, op))
	if len(line.keys) == 0 || line.keys[0] != e.Key || line.due != e.Time {
		return nil, false // invalid: another event precedes it and will wake it, or it has occurred
	}
	if free > e.Time {
		s.wake(line, free)
		return nil, false
	}
	line.pop()
	return line, true
}

// nicOf returns the NIC of an event, 0 for calcs.
func nicOf(kind uint8, op *sim.Op) uint8 {
	if kind == calcWaits {
		return 0
	}
	return op.NIC
}

// wakeNext queues an event for the next in line, if any, at the current time t or when its clocks are free, whichever
// is later.
func (s *loggopsim) wakeNext(line *clockLine, t, free uint64) {
	if line != nil && len(line.keys) > 0 {
		s.wake(line, max(t, free))
	}
}

// wake queues an event for the first in line.
func (s *loggopsim) wake(line *clockLine, t uint64) {
	line.due = t
	s.push(event.Event{Time: t, Key: line.keys[0]})
}

// push adds an event and reports whether it is now the first.
func (l *clockLine) push(key uint64) bool {
	l.keys = append(l.keys, key)
	i := len(l.keys) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if l.keys[parent] < key {
			break
		}
		l.keys[i] = l.keys[parent]
		i = parent
	}
	l.keys[i] = key
	return i == 0
}

// pop removes the first event.
func (l *clockLine) pop() {
	last := len(l.keys) - 1
	key := l.keys[last]
	l.keys = l.keys[:last]
	if last == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && l.keys[child+1] < l.keys[child] {
			child++
		}
		if key < l.keys[child] {
			break
		}
		l.keys[i] = l.keys[child]
		i = child
	}
	l.keys[i] = key
}
