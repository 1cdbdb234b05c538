package sim

import (
	"cmp"
	"math/bits"
	"time"

	"github.com/tracedag/tracedag/sim/event"
)

// group is a range of an engine's ranks that one thread runs.
//
// Time is divided into windows. The length of a window is a power of two and at most the network's lookahead, so a rank
// affects other ranks only in later windows.
type group struct {
	actor       Actor
	uniform     *uniformRun // of the engine; nil: actor runs the ranks
	index       int         // index of this group in all
	first, last int         // range of ranks
	all         []*group    // all groups of the engine
	checked     int64       // with uniform: actor.totals.events at the last check of the context

	window uint     // log2 of the window length
	end    uint64   // end of the current window
	due    calendar // ranks by the window of their next event; entries that differ from next are invalid
	next   []uint64 // by rank of the group: time of its next event

	// For a network without lookahead. Then there is one group, and a window is a single time, mostly with one event.
	fabric *rank        // nil with lookahead
	wake   uint64       // next wake-up time of the network at the fabric
	turns  *event.Wheel // replaces due: ranks by the time of their next event

	// Double buffer: other groups read the report of a window while this group may already run the next one.
	reports [2]report
	half    int
}

// report is the result of a window of one group, for the other groups.
type report struct {
	sent   [][]letter // by group: events for its ranks
	next   uint64     // first window with events for this group; never if there are none
	failed bool
}

// letter is an event for a rank of any group.
type letter struct {
	to    uint32
	event event.Event
}

// newGroup returns a group of ranks that starts at a window. It reuses the memory of old, a group of the same ranks, if
// old is not nil.
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
	g.actor, g.uniform = newActor(e, g), e.uniform
	if lookahead := e.network.Lookahead(); lookahead > 0 {
		g.window = uint(bits.Len64(lookahead)) - 1
		g.due.init(last - first)
		g.due.base = window
	} else {
		g.fabric, g.turns = &e.ranks[e.Fabric()], event.NewWheel(turnsGrain)
	}
	for r := first; r < last; r++ {
		g.record(uint32(r), e.nextOf(r))
	}
	return g
}

// turnsGrain makes the buckets of turns about a nanosecond long.
const turnsGrain = 10

// record records the time of a rank's next event.
func (g *group) record(r uint32, t uint64) {
	g.next[int(r)-g.first] = t
	if t != never {
		g.schedule(r, t)
	}
}

// schedule makes a rank run at time t, or in the window of t.
func (g *group) schedule(r uint32, t uint64) {
	if g.turns != nil {
		g.turns.Push(event.Event{Time: t, Key: uint64(r)})
		return
	}
	g.due.add(r-uint32(g.first), t>>g.window)
}

// nextDue returns a window before which no rank of the group has an event, or never.
func (g *group) nextDue() uint64 {
	if g.turns != nil {
		return g.turns.NotBefore()
	}
	return g.due.next()
}

// post sends an event to a rank of any group, or to the fabric. Ranks receive it in collect, so the order of ranks
// within the current window has no effect.
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
		g.runInstant(window)
		r.next = min(r.next, g.fabricNext())
	} else if g.due.turnTo(window); g.uniform != nil {
		g.due.take(func(k uint32) {
			if g.next[k]>>g.window == window && !g.interrupted() {
				r := uint32(g.first) + k
				g.record(r, g.uniform.run(g, r, g.end))
			}
		})
	} else {
		g.due.take(func(k uint32) {
			if g.next[k]>>g.window == window {
				r := uint32(g.first) + k
				g.record(r, g.actor.run(r, g.end))
			}
		})
	}
	r.next = min(r.next, g.nextDue())
	r.failed = g.actor.err != nil
}

// interrupted reports whether the group has failed. It checks the context if it has run many events since it did so.
func (g *group) interrupted() bool {
	a := &g.actor
	if uint64(a.totals.events-g.checked) >= checkEvents { // also if they count from 0 again
		g.checked, a.err = a.totals.events, cmp.Or(a.err, Interrupted(a.e.ctx))
	}
	return a.err != nil
}

// runInstant runs the ranks that have events at time t, and then the fabric if no rank has more events at that time.
func (g *group) runInstant(t uint64) {
	for {
		turn, ok := g.turns.PopBefore(t + 1)
		if !ok {
			break
		}
		if r := turn.Payload(); g.next[r] == t {
			g.record(r, g.actor.run(r, g.end))
		}
	}
	if g.reports[g.half].next > t && g.fabricNext() == t {
		g.runFabric()
	}
}

// fabricNext returns the time of the next fabric event, or never.
func (g *group) fabricNext() uint64 {
	return min(g.fabric.queue.Next(), g.wake)
}

// runFabric runs the fabric in the current window, which is a single time.
func (g *group) runFabric() {
	a := &g.actor
	a.run(a.e.Fabric(), g.end)
	if g.wake < g.end && a.err == nil {
		a.now, g.wake = g.wake, never
		a.totals.events++
		a.e.network.Event(a, WakeUp, 0)
	}
}

// until returns a lower bound of all scheduled times, while the fabric runs.
func (g *group) until() uint64 {
	return min(g.reports[g.half].next, g.nextDue(), g.fabricNext())
}

// deliver adds an event to the queue of a rank of the group.
func (g *group) deliver(to uint32, ev event.Event) {
	if g.uniform != nil {
		g.uniform.ranks[to].arrivals.Push(ev)
	} else {
		g.actor.e.ranks[to].queue.Push(ev)
	}
	if ev.Time < g.next[int(to)-g.first] {
		g.record(to, ev.Time)
	}
}

// collect adds the events that all groups sent to this one to the queues of its ranks, after all groups have run a
// window. It returns the next window, or never if there is none or a group failed.
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
	// epochEvents is the approximate number of events between two decisions on the number of threads. In between,
	// several threads run fewestWindows to mostWindows windows.
	epochEvents   = 1 << 16
	fewestWindows = 4
	mostWindows   = 512
	// busy is the average number of events per window from which the engine tries several threads.
	busy = 128
	// minSpeedup is the speedup from which several threads continue.
	minSpeedup = 1.1
	// firstRounds is the number of rounds on one thread before the first trial of several.
	firstRounds = 8
)

// runAll runs all ranks window by window: on one thread, or with one group per thread while that is faster.
func (e *Engine) runAll() {
	groups := e.group(nil, 1, 0)
	window := groups[0].nextDue()
	var several []*group
	tuner := ThreadTuner{MinEvents: e.busy, MinSpeedup: minSpeedup, FirstRounds: firstRounds}
	for window != never && e.err == nil {
		before, windows := e.totals.events, int64(0)
		for k := int64(0); k < tuner.SingleRounds() && window != never && e.err == nil &&
			(e.busy > 0 || e.threads == 1); k++ {
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
	if window == never && e.err == nil {
		groups[0].due.release(e.p.Ranks())
	}
}

// runThreads runs one group per thread while that is faster than one thread. It returns the next window.
func (e *Engine) runThreads(groups []*group, window uint64, tuner *ThreadTuner) (next uint64) {
	crew := newCrew(groups)
	defer crew.dismiss()
	for windows := int64(fewestWindows); window != never && e.err == nil; {
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

// group divides the ranks into n groups with about equal numbers of ops, which start at a window. It reuses the memory
// of old, a slice of n groups, if old is not nil.
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

// count adds the groups' new totals to the engine's, checks the context and reports progress.
func (e *Engine) count(groups []*group) {
	before := e.totals.ops
	for _, g := range groups {
		e.totals.add(&g.actor.totals)
		g.actor.totals = counts{}
		e.err = cmp.Or(e.err, g.actor.err)
	}
	e.err = cmp.Or(e.err, Interrupted(e.ctx))
	if e.progress != nil {
		e.progress(e.totals.ops - before)
	}
}

// runAlone runs one group of all ranks for an epoch. It returns the next window and the number of windows run.
func runAlone(g *group, window uint64) (next uint64, windows int64) {
	before := g.actor.totals.events
	for windows < mostWindows && window != never && g.actor.totals.events-before < epochEvents {
		g.run(window)
		window = g.collect()
		windows++
	}
	return window, windows
}

// crew is one thread per group. The first group runs on the caller's thread.
type crew struct {
	groups              []*group
	start, ran, stopped *Barrier
	window              uint64
	windows             int64 // number of windows to run
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

// run runs all groups for a number of windows and returns the next window.
func (c *crew) run(window uint64, windows int64) (next uint64) {
	c.window, c.windows = window, windows
	c.start.Wait()
	return c.part(c.groups[0], window)
}

// part runs the windows of one group.
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
