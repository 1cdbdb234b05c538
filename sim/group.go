package sim

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/tracedag/tracedag/sim/event"
)

// group is some of the ranks of an engine, which one thread runs.
//
// Time is divided into windows, whose length is a power of two not above the network's lookahead. So what one rank does in
// a window another hears of in a later one.
type group struct {
	actor       Actor
	index       int      // of the group
	first, last int      // the ranks
	all         []*group // this one among them

	window uint     // log2 of the length of a window
	end    uint64   // of the window at hand
	due    calendar // the ranks by the window of their next event; void where next has another
	next   []uint64 // of each rank of the group, the time of its next event

	// Of a network without lookahead; then there is one group, and windows are moments, few of which have more than one
	// event.
	fabric *rank        // nil with lookahead
	wake   uint64       // when the network wants to be woken at the fabric
	turns  *event.Wheel // what due is else: the ranks by the time of their next event

	// What the other groups read after a window, while this one may be at the next, for which it uses the other half.
	reports [2]report
	half    int
}

// report is what a group tells the others of a window.
type report struct {
	sent   [][]letter // to each group, events for its ranks
	next   uint64     // a window before which the group has nothing to do; never if it has nothing more to do
	failed bool
}

// letter is an event for a rank of any group.
type letter struct {
	to    uint32
	event event.Event
}

// newGroup returns a group of ranks that go on from the start of a window.
//
// It takes over the memory of one that had the same ranks, if there was one.
func newGroup(e *Engine, old *group, index, groups, first, last int, window uint64) *group {
	g := &group{index: index, first: first, last: last, wake: never}
	if old != nil {
		g.next, g.reports = old.next, old.reports
	} else {
		g.next = make([]uint64, last-first)
		for half := range g.reports {
			g.reports[half].sent = make([][]letter, groups)
		}
	}
	g.actor = Actor{e: e, group: g}
	if lookahead := e.network.Lookahead(); lookahead > 0 {
		g.window = uint(bits.Len64(lookahead)) - 1
		g.due.init(last - first)
		g.due.base = window
	} else {
		g.fabric, g.turns = &e.ranks[e.Fabric()], event.NewWheel(turnsGrain)
	}
	for r := first; r < last; r++ {
		g.note(uint32(r), e.ranks[r].queue.Next())
	}
	return g
}

// turnsGrain makes the buckets of turns about a nanosecond long.
const turnsGrain = 10

// note puts the time of a rank's next event on record.
func (g *group) note(r uint32, t uint64) {
	g.next[int(r)-g.first] = t
	if t != never {
		g.schedule(r, t)
	}
}

// schedule has a rank run at time t, or in its window.
func (g *group) schedule(r uint32, t uint64) {
	if g.turns != nil {
		g.turns.Push(event.Event{Time: t, Key: uint64(r)})
		return
	}
	g.due.add(r-uint32(g.first), t>>g.window)
}

// nextDue returns a window before which no rank of the group has an event, never if none has any.
func (g *group) nextDue() uint64 {
	if g.turns != nil {
		return g.turns.NotBefore()
	}
	return g.due.next()
}

// post sends an event to a rank of any group, or to the fabric. It gets to a rank with collect, so that in the window at
// hand it makes no difference whether the rank has its turn before or after.
func (g *group) post(to uint32, ev event.Event) {
	if to == g.actor.e.Fabric() {
		g.fabric.queue.Push(ev)
		return
	}
	if len(g.all) == 1 && ev.Time >= g.end {
		g.deliver(to, ev)
		return
	}
	k := 0
	for int(to) >= g.all[k].last {
		k++
	}
	r := &g.reports[g.half]
	r.sent[k] = append(r.sent[k], letter{to, ev})
	r.next = min(r.next, ev.Time>>g.window)
}

// run runs all ranks of the group that have events in a window.
func (g *group) run(window uint64) {
	r := &g.reports[g.half]
	r.next = never
	for k := range r.sent {
		r.sent[k] = r.sent[k][:0]
	}
	g.end = (window + 1) << g.window
	if g.turns != nil {
		g.runMoment(window)
		r.next = min(r.next, g.fabricNext())
	} else {
		g.due.turnTo(window)
		g.due.take(func(k uint32) {
			if g.next[k]>>g.window == window {
				r := uint32(g.first) + k
				g.note(r, g.actor.run(r, g.end))
			}
		})
	}
	r.next = min(r.next, g.nextDue())
	r.failed = g.actor.err != nil
}

// runMoment runs the ranks that have events at a time; then the fabric, if none of them has more to do at that time.
func (g *group) runMoment(t uint64) {
	for {
		turn, ok := g.turns.PopBefore(t + 1)
		if !ok {
			break
		}
		if r := turn.Payload(); g.next[r] == t {
			g.note(r, g.actor.run(r, g.end))
		}
	}
	if g.reports[g.half].next > t && g.fabricNext() == t {
		g.runFabric()
	}
}

// fabricNext returns when the fabric has something to do next, never if it has not.
func (g *group) fabricNext() uint64 {
	return min(g.fabric.queue.Next(), g.wake)
}

// runFabric runs the fabric in the window at hand, which is one moment.
func (g *group) runFabric() {
	a := &g.actor
	a.run(a.e.Fabric(), g.end)
	if g.wake < g.end && a.err == nil {
		a.now, g.wake = g.wake, never
		a.totals.events++
		a.e.network.Event(a, WakeUp, 0)
	}
}

// until returns a time that nothing comes before which is scheduled; the fabric is running.
func (g *group) until() uint64 {
	return min(g.reports[g.half].next, g.nextDue(), g.fabricNext())
}

// deliver puts an event into the queue of a rank of the group.
func (g *group) deliver(to uint32, ev event.Event) {
	g.actor.e.ranks[to].queue.Push(ev)
	if ev.Time < g.next[int(to)-g.first] {
		g.note(to, ev.Time)
	}
}

// collect puts the events that all groups sent this one into the queues of its ranks, after all have run a window. It
// returns the next window, never if there is none or a group failed.
func (g *group) collect() (window uint64) {
	window = never
	failed := false
	for _, from := range g.all {
		r := &from.reports[g.half]
		window = min(window, r.next)
		failed = failed || r.failed
		for _, l := range r.sent[g.index] {
			g.deliver(l.to, l.event)
		}
	}
	g.half = 1 - g.half
	if failed {
		return never
	}
	return window
}

const (
	// epochEvents is about how many events are handled before it is looked at whether to use several threads or one; by
	// several threads in no fewer and no more windows than that.
	epochEvents   = 1 << 16
	fewestWindows = 4
	mostWindows   = 512
	// busy is how many events a window must have on average for threads to be tried.
	busy = 128
)

// runAll runs all ranks, one window after the other: in groups, on a thread each, while that is faster.
func (e *Engine) runAll() {
	groups := e.group(nil, 1, 0)
	window := groups[0].nextDue()
	var several []*group
	tuner := ThreadTuner{MinEvents: e.busy}
	for window != never {
		before, windows := e.totals.events, int64(0)
		for k := int64(0); k < tuner.SingleRounds() && window != never && (e.busy > 0 || e.threads == 1); k++ {
			began, ran := time.Now(), e.totals.events
			var n int64
			window, n = runAlone(groups[0], window)
			windows += n
			e.count(groups)
			tuner.Single(time.Since(began), e.totals.events-ran)
		}
		if window == never || e.threads == 1 || e.totals.events-before < int64(e.busy)*windows {
			continue
		}
		several = e.group(several, e.threads, window)
		window = e.runThreads(several, window, &tuner)
		groups = e.group(groups, 1, window)
	}
}

// runThreads runs groups on a thread each while that is faster than on one. It returns the next window.
func (e *Engine) runThreads(groups []*group, window uint64, tuner *ThreadTuner) (next uint64) {
	crew := newCrew(groups)
	defer crew.dismiss()
	for windows := int64(fewestWindows); window != never; {
		began, before := time.Now(), e.totals.events
		window = crew.run(window, windows)
		e.count(groups)
		events := e.totals.events - before
		if !tuner.Parallel(time.Since(began), events, windows) {
			break
		}
		windows = min(max(windows*epochEvents/max(events, 1), fewestWindows), mostWindows)
	}
	return window
}

// group divides the ranks into n groups with about as many ops each, which go on from a window. It takes
// over the memory of as many old ones, if there are any.
func (e *Engine) group(old []*group, n int, window uint64) []*group {
	n = max(1, min(n, e.p.Ranks()))
	groups := make([]*group, n)
	first := e.p.Divide(n)
	for k := range groups {
		var before *group
		if old != nil {
			before = old[k]
		}
		groups[k] = newGroup(e, before, k, n, first[k], first[k+1], window)
	}
	for _, g := range groups {
		g.all = groups
	}
	return groups
}

// count adds what groups have done since they were counted last, and tells the engine's user.
func (e *Engine) count(groups []*group) {
	before := e.totals.ops
	for _, g := range groups {
		e.totals.add(&g.actor.totals)
		g.actor.totals = counts{}
		e.err = cmp.Or(e.err, g.actor.err)
	}
	if e.progress != nil {
		e.progress(e.totals.ops - before)
	}
}

// runAlone runs a group that has all ranks for an epoch. It returns the next window, and how many were run.
func runAlone(g *group, window uint64) (next uint64, windows int64) {
	before := g.actor.totals.events
	for windows < mostWindows && window != never && g.actor.totals.events-before < epochEvents {
		g.run(window)
		window = g.collect()
		windows++
	}
	return window, windows
}

// crew is a thread for each group but the first, whose thread is the caller's.
type crew struct {
	groups              []*group
	start, ran, stopped *Barrier
	window              uint64
	windows             int64 // to run
	dismissed           bool
}

func newCrew(groups []*group) *crew {
	n := len(groups)
	c := &crew{groups: groups, start: NewBarrier(n), ran: NewBarrier(n), stopped: NewBarrier(n)}
	for _, g := range groups[1:] {
		go func() {
			for {
				c.start.Wait()
				if c.dismissed {
					return
				}
				c.part(g, c.window)
			}
		}()
	}
	return c
}

// run runs all groups for some windows, and returns the next.
func (c *crew) run(window uint64, windows int64) (next uint64) {
	c.window, c.windows = window, windows
	c.start.Wait()
	return c.part(c.groups[0], window)
}

// part is what the thread of a group does of that.
func (c *crew) part(g *group, window uint64) (next uint64) {
	for k := int64(0); k < c.windows && window != never; k++ {
		g.run(window)
		c.ran.Wait()
		window = g.collect()
	}
	c.stopped.Wait()
	return window
}

func (c *crew) dismiss() {
	c.dismissed = true
	c.start.Wait()
}
