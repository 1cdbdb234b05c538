package loggops

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/event"
)

// shards run the loggopsim replay on several threads, with the same result.
//
// Where all messages are eager, and hosts have one stream, no event has an effect at another host, or leads to an event
// there, before the time of a message, o + L, has passed. So the hosts are divided into shards, which run side by side
// through a window of that length, each with a queue of its own, and then exchange messages.
//
// What is left are the numbers that all hosts draw in common, which order events of equal time. Within a window a shard
// draws numbers of its own, above all that were drawn before. They order its events among each other just as the real
// numbers would, since those are drawn in the order in which events take place. After the window the shards compare
// notes: merged by time and number, these tell the order in which all events took place, and so the real numbers. They
// replace the shard's own in what outlives the window: events that are not before its end, which for that reason do not
// enter a queue until then, and what waits at clocks.
type shards struct {
	of        []*shard
	lookahead uint64
	barrier   *sim.Barrier
	start     uint64 // of the first window

	mostWindows int // see the constant

	// goOn is asked by the first shard now and then, after the given number of numbers were drawn in so many windows in so
	// much time, whether the shards are to go on.
	goOn func(drawn uint64, windows int, took time.Duration) bool
}

// shard is a run of hosts, and what one thread needs to replay them.
type shard struct {
	loggopsim
	all         *shards
	index       int
	first, last uint32 // its hosts are first to last-1

	// What loggopsim points to: in here, for what threads write to all the time must not share cache lines.
	own reference

	base  uint64   // the first number that is drawn in the window at hand
	end   uint64   // of the window
	mine  *report  // on the window
	dirty []uint32 // hosts where an event began to wait at a clock in the window

	// What the others read after a window, while this shard may be at the next, for which it uses the other.
	reports [2]report

	drawn [maxShards][]uint32 // by shard, the real numbers of those that it drew in the window
}

// report is what a shard tells the others of a window.
type report struct {
	notes     []note
	sent      [maxShards][]event.Event // to each shard, itself included: events that are not before the end of the window
	stop      bool                     // that was the last window
	drawn     int                      // how many numbers the shard drew
	notBefore uint64                   // the shard has nothing to do before
	failed    error
}

// note says that an event took place which drew numbers, and how many.
type note struct {
	time   uint64
	number uint32 // of the event
	drawn  uint32
}

// maxShards bounds the threads, for comparing notes takes each of them the longer the more there are.
const maxShards = 4

// divisible reports whether the replay can be divided into shards.
func (s *loggopsim) divisible() bool {
	return s.waits != nil && s.matchers != nil && s.timeline == nil && s.p.Streams <= 1 && s.p.Ranks() > 1 &&
		s.p.LargestMessage <= uint64(s.n.S) && s.n.o+s.n.L > 0
}

const (
	// roundEvents is about how many events are handled before it is looked at how fast that was; by several threads in no
	// fewer and no more windows than that.
	roundEvents   = 1 << 16
	fewestWindows = 4
	mostWindows   = 512
	// minDrawn is how many numbers the hosts must draw in a window on average for threads to be tried any longer.
	minDrawn = 256
)

// replayOn replays on one thread or several, whichever is faster.
func (s *loggopsim) replayOn(threads int) error {
	tuner := sim.ThreadTuner{MinEvents: minDrawn}
	var all *shards
	for {
		for range tuner.SingleRounds() {
			began, before := time.Now(), s.sequence
			for range max(roundEvents, s.queue.Len()) {
				if s.queue.Len() == 0 {
					return nil
				}
				if err := s.handle(s.queue.Pop()); err != nil {
					return err
				}
			}
			tuner.Single(time.Since(began), int64(s.sequence-before))
		}
		if all == nil {
			all = s.divide(threads)
		}
		err := all.replay(s, func(drawn uint64, windows int, took time.Duration) bool {
			return tuner.Parallel(took, int64(drawn), int64(windows))
		})
		if err != nil {
			return err
		}
	}
}

// divide divides the hosts into up to n shards with about as many ops each.
func (s *loggopsim) divide(n int) *shards {
	n = min(n, maxShards, s.p.Ranks())
	all := &shards{lookahead: s.n.o + s.n.L, barrier: sim.NewBarrier(n), mostWindows: mostWindows}
	first := s.p.Divide(n)
	for k := range n {
		sh := &shard{all: all, index: k, first: uint32(first[k]), last: uint32(first[k+1]), own: *s.reference}
		sh.own.ready, sh.own.remote = nil, nil
		sh.loggopsim = loggopsim{reference: &sh.own, shard: sh, waits: s.waits, matchers: s.matchers}
		all.of = append(all.of, sh)
	}
	return all
}

// deal hands the shards all events of s.
func (a *shards) deal(s *loggopsim) {
	a.start = s.queue.NotBefore()
	for _, sh := range a.of {
		sh.base, sh.stamps = s.sequence, s.stamps
		sh.progress = sim.Progress{Tell: s.progress.Tell}
		sh.messages, sh.bytes = 0, 0
		sh.queue.Rewind()
	}
	for s.queue.Len() > 0 {
		e := s.queue.Pop()
		a.of[a.at(s.place(e))].queue.Push(e)
	}
	s.queue.Rewind()
}

// place returns the host at which an event takes place.
func (s *loggopsim) place(e event.Event) uint32 {
	if what := e.Payload(); what&isMessage != 0 {
		return uint32(s.p.Ops[what&^isMessage].Peer)
	}
	return s.p.Ops[e.Payload()].Rank
}

// at returns the shard of a host.
func (a *shards) at(host uint32) int {
	k := 0
	for host >= a.of[k].last {
		k++
	}
	return k
}

// replay has the shards replay what s has, until goOn says that it is enough, or to the end. s goes on from there.
func (a *shards) replay(s *loggopsim, goOn func(drawn uint64, windows int, took time.Duration) bool) error {
	a.goOn = goOn
	a.deal(s)
	var threads sync.WaitGroup
	for _, sh := range a.of[1:] {
		threads.Go(sh.replay)
	}
	a.of[0].replay()
	threads.Wait()
	s.sequence = a.of[0].base
	for _, sh := range a.of {
		if err := cmp.Or(sh.reports[0].failed, sh.reports[1].failed); err != nil {
			return err
		}
		s.progress.Add(&sh.progress)
		s.messages += sh.messages
		s.bytes += sh.bytes
		s.stamps = max(s.stamps, sh.stamps)
		for sh.queue.Len() > 0 {
			s.queue.Push(sh.queue.Pop())
		}
	}
	return nil
}

// replay runs window after window.
func (sh *shard) replay() {
	start, stop := sh.all.start, false
	began, before := time.Now(), sh.base
	windows := 0
	for half := 0; !stop && start != never; half = 1 - half {
		sh.run(start+sh.all.lookahead, &sh.reports[half])
		windows++
		look := windows == sh.all.mostWindows || windows >= fewestWindows && sh.base-before >= roundEvents
		if look && sh.index == 0 {
			now := time.Now()
			sh.mine.stop = !sh.all.goOn(sh.base-before, windows, now.Sub(began))
			began, before, windows = now, sh.base, 0
		}
		sh.all.barrier.Wait()
		start, stop = sh.exchange(half)
	}
}

// never is the time of the next event where there is none.
const never = math.MaxUint64

// run runs the hosts of the shard through a window.
func (sh *shard) run(end uint64, mine *report) {
	sh.end, sh.mine = end, mine
	sh.sequence = sh.base
	mine.notes, mine.notBefore, mine.stop = mine.notes[:0], never, false
	for to := range mine.sent {
		mine.sent[to] = mine.sent[to][:0]
	}
	for {
		e, ok := sh.queue.PopBefore(end)
		if !ok {
			break
		}
		before := sh.sequence
		if mine.failed = sh.handle(e); mine.failed != nil {
			break
		}
		if sh.sequence != before {
			mine.notes = append(mine.notes, note{e.Time, uint32(e.Key >> 32), uint32(sh.sequence - before)})
		}
	}
	mine.drawn = int(sh.sequence - sh.base)
	mine.notBefore = min(mine.notBefore, sh.queue.NotBefore())
}

// later keeps an event that is not before the end of the window.
func (sh *shard) later(e event.Event) {
	to := sh.index
	if e.Payload()&isMessage != 0 {
		to = sh.all.at(sh.place(e))
	}
	sh.mine.sent[to] = append(sh.mine.sent[to], e)
	sh.mine.notBefore = min(sh.mine.notBefore, e.Time)
}

// exchange takes what the shards reported of a window. It returns a time before which there is nothing to do, never at the
// end, and whether to stop.
func (sh *shard) exchange(half int) (start uint64, stop bool) {
	start = never
	for _, other := range sh.all.of {
		r := &other.reports[half]
		start = min(start, r.notBefore)
		stop = stop || r.stop || r.failed != nil
	}
	next := sh.compareNotes(half)
	for _, host := range sh.dirty {
		for k := range sh.waits[host] {
			line := &sh.waits[host][k]
			if !line.renumber {
				continue
			}
			line.renumber = false
			for i, key := range line.keys {
				line.keys[i] = sh.real(key, sh.index)
			}
		}
	}
	sh.dirty = sh.dirty[:0]
	for from, other := range sh.all.of {
		for _, e := range other.reports[half].sent[sh.index] {
			e.Key = sh.real(e.Key, from)
			sh.queue.Push(e)
		}
	}
	sh.base = next
	return start, stop
}

// real returns the key of an event of a shard with its real number.
func (sh *shard) real(key uint64, from int) uint64 {
	number := key >> 32
	if number < sh.base {
		return key
	}
	return uint64(sh.drawn[from][number-sh.base])<<32 | key&math.MaxUint32
}

// compareNotes finds out the real numbers of all that were drawn in a window, and returns the next number.
func (sh *shard) compareNotes(half int) uint64 {
	var piles [maxShards]pile
	n := len(sh.all.of)
	for k, other := range sh.all.of {
		r := &other.reports[half]
		sh.drawn[k] = slices.Grow(sh.drawn[k][:0], r.drawn)[:r.drawn]
		piles[k] = pile{notes: r.notes, base: sh.base, drawn: sh.drawn[k]}
		piles[k].turn()
	}
	next := uint32(sh.base)
	for {
		k, second := 0, -1 // the piles with the earliest notes
		for other := 1; other < n; other++ {
			switch {
			case piles[other].before(&piles[k]):
				k, second = other, k
			case second < 0 || piles[other].before(&piles[second]):
				second = other
			}
		}
		first := &piles[k]
		if first.time == never {
			return uint64(next)
		}
		for until := &piles[second]; ; {
			next = first.number(next)
			if first.turn(); !first.before(until) {
				break
			}
		}
	}
}

// pile is the notes of a shard that are left to compare.
type pile struct {
	notes []note
	base  uint64
	drawn []uint32 // the real numbers of all that the shard drew in the window
	done  int      // how many of them are known

	time uint64 // of the first note; never if none is left
	real uint32 // and the real number of its event
}

// turn looks at the first note. Where its event was drawn in the same window, that was noted before, and so has its number.
func (p *pile) turn() {
	if len(p.notes) == 0 {
		p.time, p.real = never, math.MaxUint32
		return
	}
	p.time, p.real = p.notes[0].time, p.notes[0].number
	if uint64(p.real) >= p.base {
		p.real = p.drawn[uint64(p.real)-p.base]
	}
}

func (p *pile) before(q *pile) bool {
	return p.time < q.time || p.time == q.time && p.real < q.real
}

// number gives what was drawn by the first note's event its numbers, from next on, takes the note off, and returns the
// number after those.
func (p *pile) number(next uint32) uint32 {
	for range p.notes[0].drawn {
		p.drawn[p.done] = next
		p.done++
		next++
	}
	p.notes = p.notes[1:]
	return next
}
