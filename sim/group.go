package sim

import (
	"math/bits"
	"sync"
	"sync/atomic"
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
	start, ran, finished *barrier
	dismissed            bool
}

func newCrew(groups []*group) *crew {
	c := &crew{groups: groups, start: newBarrier(len(groups)), ran: newBarrier(len(groups)),
		finished: newBarrier(len(groups))}
	for k := 1; k < len(groups); k++ {
		go func() {
			for {
				c.start.wait()
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
	c.start.wait()
	c.part(0)
}

func (c *crew) part(k int) {
	c.groups[k].run()
	c.ran.wait()
	c.groups[k].collectAll(k)
	c.finished.wait()
}

func (c *crew) dismiss() {
	c.dismissed = true
	c.start.wait()
}

// barrier lets a number of threads wait for each other, over and over. The waits are mostly short, so a thread first looks
// again and again whether the others have come; if that takes long, it sleeps, for the others may want its processor.
type barrier struct {
	threads int32
	waiting atomic.Int32
	round   atomic.Uint32
	mutex   sync.Mutex
	turned  sync.Cond // the round has changed
}

func newBarrier(threads int) *barrier {
	b := &barrier{threads: int32(threads)}
	b.turned.L = &b.mutex
	return b
}

// looks is how often a thread looks before it sleeps: some microseconds.
const looks = 5000

func (b *barrier) wait() {
	round := b.round.Load()
	if b.waiting.Add(1) == b.threads {
		b.waiting.Store(0)
		b.mutex.Lock()
		b.round.Add(1)
		b.mutex.Unlock()
		b.turned.Broadcast()
		return
	}
	for range looks {
		if b.round.Load() != round {
			return
		}
	}
	b.mutex.Lock()
	for b.round.Load() == round {
		b.turned.Wait()
	}
	b.mutex.Unlock()
}
