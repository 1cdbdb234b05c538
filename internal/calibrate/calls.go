package calibrate

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/fit"
)

// callTimes are what the calls of a recording show: times in calls by size, and which sizes wait.
type callTimes struct {
	send, nonBlocking series   // in calls of sends, the blocking ones of which end before their messages arrive
	late, waited      series   // in receives, and in waits for them, that begin long after their messages were sent
	sends             verdicts // whether sends wait for their messages
	receives          verdicts // whether receives that are posted long after their sends wait for bytes
}

// verdicts are the times in calls that waited for a message, and those that did not.
type verdicts struct{ waited, returned series }

// certainty is the number of calls that seem to wait, perhaps because others share their links, that count as much as
// one that does not wait.
const certainty = 9

// threshold returns the size from which calls wait, with which most calls agree; [math.MaxInt64] if none waits.
func (v *verdicts) threshold() int64 {
	sizes := slices.Collect(maps.Keys(v.waited))
	for bytes := range v.returned {
		sizes = append(sizes, bytes)
	}
	slices.Sort(sizes)
	best, least, wrong := int64(math.MaxInt64), 0, 0
	for _, times := range v.waited {
		wrong += len(times)
	}
	least = wrong
	for _, bytes := range slices.Backward(slices.Compact(sizes)) {
		if wrong += certainty*len(v.returned[bytes]) - len(v.waited[bytes]); wrong < least {
			best, least = bytes, wrong
		}
	}
	return best
}

// rows returns the times on both sides of the threshold, without those of calls on the wrong one.
func (v *verdicts) rows(test string) (rows []fit.Measurement) {
	from := v.threshold()
	for _, m := range v.returned.rows(test) {
		if m.Waits = -1; m.Bytes < from {
			rows = append(rows, m)
		}
	}
	for _, m := range v.waited.rows(test) {
		if m.Waits = 1; m.Bytes >= from {
			rows = append(rows, m)
		}
	}
	return rows
}

// observe collects the times in calls. took is the time of a message alone in the network, without overheads.
func (rec *recording) observe(took func(m *message) dag.Time) *callTimes {
	c := &callTimes{waited: series{}}
	for i := range rec.messages {
		m := &rec.messages[i]
		rec.observeSend(c, m, took(m))
	}
	for i := range rec.completions {
		w := &rec.completions[i]
		rec.observeWait(c, w, took)
		rec.observeReceives(c, w, took)
	}
	return c
}

// arrived returns the end of a call that received the message alone, and waited for it.
func (rec *recording) arrived(m *message, took dag.Time) (end dag.Time, ok bool) {
	if m.taking == noCompletion {
		return 0, false
	}
	c := &rec.completions[m.taking]
	if !c.whole || len(c.requests) != 1 || c.start > m.sent && c.end-c.start < took/2 {
		return 0, false
	}
	return c.end, true
}

// observeSend records the time in the call of a send, and whether the send waits for the end of its message. It does
// not if it ends before the receive is posted, or long before the receive ends.
func (rec *recording) observeSend(c *callTimes, m *message, took dag.Time) {
	end, single := m.left, true
	switch {
	case m.call == nonBlocking && m.alone:
		c.nonBlocking.add(m.bytes, m.left-m.sent)
		if m.sending == noCompletion {
			return
		}
		w := &rec.completions[m.sending]
		end, single = w.end, len(w.requests) == 1 && w.whole && w.end-w.start >= took/4
	case m.call != blocking || !m.alone:
		return
	}
	arrived, known := rec.arrived(m, took)
	switch {
	case m.posted > m.left && end < m.posted, known && arrived-end >= took/2:
		c.sends.returned.add(m.bytes, m.left-m.sent)
		if m.call == blocking {
			c.send.add(m.bytes, m.left-m.sent)
		}
	case single && end > m.posted && (m.posted > m.sent+took && end-m.posted >= took/2 ||
		known && max(arrived-end, end-arrived) <= took/5 && end-m.sent >= took/2):
		c.sends.waited.add(m.bytes, end-m.sent)
	}
}

// observeReceives records whether the receives of a call, which are of one size, wait for bytes although their messages
// were sent long before they were posted, and the time in a call that does not.
func (rec *recording) observeReceives(c *callTimes, w *completion, took func(m *message) dag.Time) {
	var bytes int64
	var longest, early, late dag.Time // ends if bytes leave with the send, and when the receive is posted
	receives := 0
	for _, q := range w.requests {
		m := &rec.messages[q.message]
		if !q.receive {
			continue
		}
		if receives++; receives > 1 && m.bytes != bytes {
			return
		}
		bytes = m.bytes
		t := took(m)
		longest = max(longest, t)
		left := m.left
		if m.call != nonBlocking && left > m.posted {
			left = m.sent // the send may have waited for the receive
		}
		early, late = max(early, left+t), max(late, max(left, m.posted)+t)
	}
	switch begun := max(early, w.start); {
	case !w.whole || receives == 0 || late < begun+longest/2:
	case w.end >= late-longest/5:
		c.receives.waited.add(bytes, w.end-w.start)
	default:
		c.receives.returned.add(bytes, w.end-w.start)
	}
}

// observeWait records the time in a wait for receives of one size that begins long after their messages have arrived.
func (rec *recording) observeWait(c *callTimes, w *completion, took func(m *message) dag.Time) {
	if !w.whole || len(w.requests) == 0 {
		return
	}
	bytes := rec.messages[w.requests[0].message].bytes
	posted, receives := true, 0
	for _, q := range w.requests {
		m := &rec.messages[q.message]
		switch {
		case m.left+2*took(m) > w.start:
			return
		case m.posted+2*took(m) > w.start && len(w.requests) > 1:
			return
		case !q.receive:
		case m.posted+2*took(m) > w.start:
			posted, receives = false, 1
		case m.bytes != bytes:
			return
		default:
			receives++
		}
	}
	switch {
	case receives == 0:
	case !posted:
		c.late.add(bytes, w.end-w.start)
	default:
		c.waited.add(bytes, (w.end-w.start)/dag.Time(receives))
	}
}

// rows returns the times in calls as measurements, and remarks about them. Sends that wait have no overhead. If the
// trace has no blocking sends, they take the time of non-blocking ones. A size that another size represents has no
// times in calls.
func (c *callTimes) rows(of map[int64]int64) (rows []fit.Measurement, remarks []string) {
	other := func(bytes int64, _ []dag.Time) bool { return of[bytes] != bytes }
	for _, s := range []series{c.send, c.nonBlocking, c.late, c.waited} {
		maps.DeleteFunc(s, other)
	}
	from := c.sends.threshold()
	maps.DeleteFunc(c.send, func(bytes int64, _ []dag.Time) bool { return bytes >= from })
	maps.DeleteFunc(c.waited, func(bytes int64, _ []dag.Time) bool { return bytes >= from })
	// A late receive of a size that waits has the time of the message.
	until := min(from, c.receives.threshold())
	for bytes, times := range c.late {
		if bytes < until {
			c.waited[bytes] = append(c.waited[bytes], times...)
		}
	}
	send := c.send
	if len(send) == 0 && len(c.nonBlocking) > 0 {
		send = maps.Clone(c.nonBlocking)
		maps.DeleteFunc(send, func(bytes int64, _ []dag.Time) bool { return bytes >= from })
		remarks = append(remarks, "os is not determined: the trace has no blocking sends that end before their "+
			"messages; ois is assumed")
	}
	for _, calls := range []struct {
		times      series
		test, name string
		from       int64
	}{{send, fit.SendCall, "os", from}, {c.nonBlocking, fit.IsendCall, "ois", math.MaxInt64},
		{c.waited, fit.WaitLate, "or", from}} {
		own := calls.times.rows(calls.test)
		if len(own) == 1 {
			if bytes, ok := farthest(of, own[0].Bytes, calls.from); ok {
				remarks = append(remarks, fmt.Sprintf("%s is that of %d bytes, the only size of such calls, for all "+
					"sizes", calls.name, own[0].Bytes))
				same := own[0]
				same.Bytes = bytes
				own = append(own, same)
			}
		}
		rows = append(rows, own...)
	}
	return slices.Concat(rows, c.sends.rows(fit.SendLate), c.receives.rows(fit.RecvLate)), remarks
}

// farthest returns the size with the largest ratio to another one, among those below a limit.
func farthest(of map[int64]int64, from, limit int64) (bytes int64, ok bool) {
	best := 1.0
	for _, b := range slices.Sorted(maps.Keys(of)) {
		large, small := float64(max(b, from, 1)), float64(max(min(b, from), 1))
		if ratio := large / small; b < limit && ratio > best {
			bytes, best, ok = b, ratio, true
		}
	}
	return bytes, ok
}
