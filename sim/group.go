package sim

import (
	"math"
	"math/bits"
	"runtime"
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

	window uint     // log2 of the length of a window
	due    calendar // the ranks by the window of their next event; void where next has another
	next   []uint64 // of each rank of the group, the time of its next event

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

// post sends an event to a rank of any group. It arrives with collect.
func (g *group) post(to uint32, ev Event) {
	k := 0
	for int(to) >= g.all[k].last {
		k++
	}
	g.sent[k] = append(g.sent[k], letter{to, ev})
}

// collect puts the events that a group sent into the queues of this group's ranks.
func (g *group) collect(from *group, k int) {
	for _, l := range from.sent[k] {
		queue := &g.actor.e.ranks[l.to].queue
		queue.Push(l.event)
		if l.event.Time < g.next[int(l.to)-g.first] {
			g.note(l.to, l.event.Time)
		}
	}
	from.sent[k] = from.sent[k][:0]
}

// note puts the time of a rank's next event on record.
func (g *group) note(r uint32, t uint64) {
	g.next[int(r)-g.first] = t
	if t != never {
		g.due.add(r-uint32(g.first), t>>g.window)
	}
}

// earliest returns the first window in which a rank of the group may have an event.
func (g *group) earliest() uint64 {
	return g.due.next()
}

// run runs all ranks of the group that have events in a window, the first of all groups.
func (g *group) run(window uint64) {
	end := (window + 1) << g.window
	g.due.take(window, func(k uint32) {
		if g.next[k]>>g.window == window {
			r := uint32(g.first) + k
			g.note(r, g.actor.run(r, end))
		}
	})
}

// runAlone runs the only group.
func (g *group) runAlone() {
	for window := g.earliest(); window != never && g.actor.err == nil; window = g.earliest() {
		g.run(window)
		g.collect(g, 0)
	}
}

// runTogether runs several groups, each on a thread, in steps: all run one window, then all take the events that the
// others sent them and say when their next is.
func runTogether(groups []*group) {
	ran, collected := newBarrier(len(groups)), newBarrier(len(groups))
	next := make([]struct {
		window atomic.Uint64
		failed atomic.Bool
		_      [48]byte // no two groups in one cache line
	}, len(groups))
	for k, g := range groups {
		next[k].window.Store(g.earliest())
	}
	var threads sync.WaitGroup
	for k, g := range groups {
		threads.Go(func() {
			for {
				earliest, failed := uint64(math.MaxUint64), false
				for i := range next {
					earliest = min(earliest, next[i].window.Load())
					failed = failed || next[i].failed.Load()
				}
				if earliest == never || failed {
					return
				}
				g.run(earliest)
				ran.wait()
				for _, from := range groups {
					g.collect(from, k)
				}
				next[k].window.Store(g.earliest())
				next[k].failed.Store(g.actor.err != nil)
				collected.wait()
			}
		})
	}
	threads.Wait()
}

// barrier lets a number of threads wait for each other, over and over. The waits are short and very many, so a thread
// looks again and again for a while before it lets others have the processor.
type barrier struct {
	threads int32
	waiting atomic.Int32
	round   atomic.Uint32
}

func newBarrier(threads int) *barrier {
	return &barrier{threads: int32(threads)}
}

// looks is how often a thread looks before it gives the processor away.
const looks = 2000

func (b *barrier) wait() {
	round := b.round.Load()
	if b.waiting.Add(1) == b.threads {
		b.waiting.Store(0)
		b.round.Add(1)
		return
	}
	for n := 1; b.round.Load() == round; n++ {
		if n%looks == 0 {
			runtime.Gosched()
		}
	}
}
