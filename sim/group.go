package sim

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// group is some of the ranks of an engine, which one thread runs.
type group struct {
	actor       Actor
	first, last int      // the ranks
	all         []*group // this one among them

	// Which rank is next, by the time of its next event. A rank may stand here more than once; only the entry that has
	// the time in next counts.
	queue  Queue
	next   []uint64 // of each rank of the group, the time of its next event
	active []uint32 // the ranks that run before the horizon at hand

	sent [][]letter // to each group, events for its ranks
}

// letter is an event for a rank of any group.
type letter struct {
	to    uint32
	event Event
}

func newGroup(e *Engine, _, groups, first, last int) *group {
	g := &group{first: first, last: last, next: make([]uint64, last-first), sent: make([][]letter, groups)}
	g.actor = Actor{e: e, group: g}
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
		g.queue.Push(Event{Time: t, Key: uint64(r)})
	}
}

// earliest returns the time of the next event of all ranks of the group.
func (g *group) earliest() uint64 {
	for g.queue.Len() > 0 {
		top := g.queue.Top()
		if g.next[int(top.What())-g.first] == top.Time {
			return top.Time
		}
		g.queue.Pop()
	}
	return never
}

// run runs all ranks of the group that have events before the horizon.
func (g *group) run(horizon uint64) {
	g.active = g.active[:0]
	for g.earliest() < horizon {
		r := g.queue.Pop().What()
		g.next[int(r)-g.first] = never
		g.active = append(g.active, r)
	}
	for _, r := range g.active {
		g.note(r, g.actor.run(r, horizon))
	}
}

// horizon returns up to when ranks can run that have no event before earliest.
func horizon(earliest, lookahead uint64) uint64 {
	// Without lookahead, ranks run the events of one moment and then hear from each other, until there are no more.
	return earliest + max(lookahead, 1)
}

// runAlone runs the only group.
func (g *group) runAlone() {
	lookahead := g.actor.e.network.Lookahead()
	for g.actor.err == nil {
		earliest := g.earliest()
		if earliest == never {
			return
		}
		g.run(horizon(earliest, lookahead))
		g.collect(g, 0)
	}
}

// runTogether runs several groups, each on a thread, in steps: all run up to the horizon, then all take the events that
// the others sent them and say when their next is.
func runTogether(groups []*group) {
	lookahead := groups[0].actor.e.network.Lookahead()
	ran, collected := newBarrier(len(groups)), newBarrier(len(groups))
	next := make([]struct {
		time   atomic.Uint64
		failed atomic.Bool
		_      [48]byte // no two groups in one cache line
	}, len(groups))
	for k, g := range groups {
		next[k].time.Store(g.earliest())
	}
	var threads sync.WaitGroup
	for k, g := range groups {
		threads.Go(func() {
			for {
				earliest, failed := uint64(math.MaxUint64), false
				for i := range next {
					earliest = min(earliest, next[i].time.Load())
					failed = failed || next[i].failed.Load()
				}
				if earliest == never || failed {
					return
				}
				g.run(horizon(earliest, lookahead))
				ran.wait()
				for _, from := range groups {
					g.collect(from, k)
				}
				next[k].time.Store(g.earliest())
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
