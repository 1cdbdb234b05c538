package sim

import (
	"math/bits"
)

// group is some of the ranks of an engine, which one thread runs.
//
// Time is divided into windows, whose length is a power of two not above the network's lookahead. So what one rank does in
// a window another hears of in a later one.
type group struct {
	actor       Actor
	first, last int      // the ranks
	all         []*group // this one among them

	window  uint     // log2 of the length of a window
	current uint64   // the window at hand
	due     calendar // the ranks by the window of their next event; void where next has another
	next    []uint64 // of each rank of the group, the time of its next event

	sent [][]letter // to each group, events for its ranks
}

// letter is an event for a rank of any group.
type letter struct {
	to    uint32
	event Event
}

func newGroup(e *Engine, groups, first, last int) *group {
	g := &group{first: first, last: last, next: make([]uint64, last-first), sent: make([][]letter, groups)}
	if lookahead := e.network.Lookahead(); lookahead > 1 {
		g.window = uint(bits.Len64(lookahead)) - 1
	}
	g.actor = Actor{e: e, group: g}
	g.due.init(last - first)
	for r := first; r < last; r++ {
		g.next[r-first] = never
		if r < e.p.Ranks() {
			g.actor.begin(uint32(r))
		}
		g.note(uint32(r), e.ranks[r].queue.Next())
	}
	return g
}

// post sends an event to a rank of any group. It arrives with collectAll.
func (g *group) post(to uint32, ev Event) {
	k := 0
	for int(to) >= g.all[k].last {
		k++
	}
	g.sent[k] = append(g.sent[k], letter{to, ev})
}

// collectAll puts the events that all groups sent this one, the k-th, into the queues of its ranks.
func (g *group) collectAll(k int) {
	for _, from := range g.all {
		for _, l := range from.sent[k] {
			g.actor.e.ranks[l.to].queue.Push(l.event)
			if l.event.Time < g.next[int(l.to)-g.first] {
				g.note(l.to, l.event.Time)
			}
		}
		from.sent[k] = from.sent[k][:0]
	}
}

// note puts the time of a rank's next event on record.
func (g *group) note(r uint32, t uint64) {
	g.next[int(r)-g.first] = t
	if t != never {
		g.due.add(r-uint32(g.first), t>>g.window)
	}
}

// turnTo makes the group ready for run of a window, the first of all groups, and returns about how many ranks that runs.
func (g *group) turnTo(window uint64) int {
	g.current = window
	return g.due.turnTo(window)
}

// run runs all ranks of the group that have events in the window that it turned to.
func (g *group) run() {
	window := g.current
	end := (window + 1) << g.window
	g.due.take(func(k uint32) {
		if g.next[k]>>g.window == window {
			r := uint32(g.first) + k
			g.note(r, g.actor.run(r, end))
		}
	})
}

// crowd is how many ranks there must be to run in a window for several threads to be worth their while.
const crowd = 2048

// runAll runs all groups, one window after the other, on one thread or where there is much to do on one for each group.
func runAll(groups []*group, crowd int) {
	var crew *crew
	if len(groups) > 1 {
		crew = newCrew(groups)
		defer crew.dismiss()
	}
	reported := int64(0)
	for turn := 1; ; turn++ {
		window := uint64(never)
		for _, g := range groups {
			if g.actor.err != nil {
				return
			}
			window = min(window, g.due.next())
		}
		if turn%progressTurns == 0 {
			reported = report(groups, reported)
		}
		if window == never {
			return
		}
		ranks := 0
		for _, g := range groups {
			ranks += g.turnTo(window)
		}
		if crew != nil && ranks >= crowd {
			crew.work()
			continue
		}
		for _, g := range groups {
			g.run()
		}
		for k, g := range groups {
			g.collectAll(k)
		}
	}
}

// progressTurns is how many windows pass between reports of progress.
const progressTurns = 1 << 10

// report tells the engine's user how many ops have run since the last report, and returns how many have in all.
func report(groups []*group, before int64) int64 {
	progress := groups[0].actor.e.progress
	if progress == nil {
		return before
	}
	now := int64(0)
	for _, g := range groups {
		now += g.actor.ops
	}
	progress(now - before)
	return now
}

// crew is a thread for each group but the first, whose thread is the caller's.
type crew struct {
	groups               []*group
	start, ran, finished *Barrier
	dismissed            bool
}

func newCrew(groups []*group) *crew {
	c := &crew{groups: groups, start: NewBarrier(len(groups)), ran: NewBarrier(len(groups)),
		finished: NewBarrier(len(groups))}
	for k := 1; k < len(groups); k++ {
		go func() {
			for {
				c.start.Wait()
				if c.dismissed {
					return
				}
				c.part(k)
			}
		}()
	}
	return c
}

// work has all groups run the window that they turned to, and take what they sent each other.
func (c *crew) work() {
	c.start.Wait()
	c.part(0)
}

func (c *crew) part(k int) {
	c.groups[k].run()
	c.ran.Wait()
	c.groups[k].collectAll(k)
	c.finished.Wait()
}

func (c *crew) dismiss() {
	c.dismissed = true
	c.start.Wait()
}
