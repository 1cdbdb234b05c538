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
// If all messages are eager and hosts have one stream, no event affects another host before the time of a message, o +
// L, has passed. So the hosts are divided into shards. These run concurrently through a window of that length, each
// with its own queue, and then exchange messages.
//
// The remaining problem are the numbers that order events of equal time, which all hosts draw from one counter. Within
// a window, a shard draws provisional numbers above all earlier ones. They order its events among each other exactly as
// the real numbers would, since those are drawn in event order. After the window, each shard publishes notes on the
// events that drew numbers. Merged by time and number, the notes yield the order of all events and so the real numbers.
// These replace the provisional ones in everything that outlives the window: events at or after its end, which enter a
// queue only then, and events that wait at clocks.
type shards struct {
	of        []*shard
	lookahead uint64
	barrier   *sim.Barrier
	start     uint64 // of the first window

	mostWindows int // the constant of that name

	// goOn decides whether the shards continue. The first shard calls it now and then, with the numbers drawn in a
	// number of windows and the time taken.
	goOn func(drawn uint64, windows int, took time.Duration) bool
}

// shard is a range of hosts with the state to replay them on one thread.
type shard struct {
	loggopsim
	all         *shards
	index       int
	first, last uint32 // its hosts are first to last-1

	// Target of loggopsim's pointer, inline so that threads do not share cache lines that they write.
	own reference

	base  uint64   // the first number drawn in the current window
	end   uint64   // of the window
	mine  *report  // on the window
	dirty []uint32 // hosts where an event began to wait at a clock in the window

	// Double buffer: other shards read the report of a window while this shard may run the next.
	reports [2]report

	drawn [maxShards][]uint32 // by shard, the real numbers of those that it drew in the window
}

// report is the outcome of a window of one shard, for the others.
type report struct {
	notes     []note
	sent      [maxShards][]event.Event // by shard, itself included: events at or after the end of the window
	stop      bool                     // this was the last window
	drawn     int                      // numbers drawn by the shard
	notBefore uint64                   // lower bound of the shard's next event
	failed    error
}

// note records an event that drew numbers.
type note struct {
	time   uint64
	number uint32 // of the event
	drawn  uint32
}

// maxShards bounds the threads, since the cost of comparing notes grows with their number.
const maxShards = 4

// divisible reports whether the replay can be divided into shards.
func (s *loggopsim) divisible() bool {
	return s.waits != nil && s.matchers != nil && s.timeline == nil && s.p.Streams <= 1 && s.p.Ranks() > 1 &&
		s.p.LargestMessage <= uint64(s.n.S) && s.n.o+s.n.L > 0
}

const (
	// roundEvents is the approximate number of events between two decisions on the number of threads. Several threads
	// run at least fewestWindows and at most mostWindows in between.
	roundEvents   = 1 << 16
	fewestWindows = 4
	mostWindows   = 512
	// minDrawn is the average number of numbers drawn per window from which several threads are worth keeping.
	minDrawn = 256
)

// replayOn replays on one thread or several, whichever is faster.
func (s *loggopsim) replayOn(threads int) error {
	tuner := sim.ThreadTuner{MinEvents: minDrawn}
	var all *shards
	for {
		for range tuner.SingleRounds() {
			began, before := time.Now(), s.sequence
			for left := max(roundEvents, s.queue.Len()); left > 0; left -= checkEvents {
				if ended, err := s.handleSome(min(left, checkEvents)); ended || err != nil {
					return err
				}
			}
			tuner.Single(time.Since(began), int64(s.sequence-before))
		}
		if all == nil {
			all = s.divide(threads)
		}
		err := all.replay(s, func(drawn uint64, windows int, took time.Duration) bool {
			return sim.Interrupted(s.ctx) == nil && tuner.Parallel(took, int64(drawn), int64(windows))
		})
		if err != nil {
			return err
		}
	}
}

// divide divides the hosts into up to n shards with about equal numbers of ops.
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

// deal moves all events of s to the shards.
func (a *shards) deal(s *loggopsim) {
	a.start = s.queue.NotBefore()
	for _, sh := range a.of {
		sh.base, sh.stamps = s.sequence, s.stamps
		sh.progress = sim.Progress{Func: s.progress.Func}
		sh.messages, sh.bytes = 0, 0
		sh.queue.Rewind()
	}
	for s.queue.Len() > 0 {
		e := s.queue.Pop()
		a.of[a.at(s.place(e))].queue.Push(e)
	}
	s.queue.Rewind()
}

// place returns the host of an event.
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

// replay replays the events of s on the shards, to the end or until goOn stops it. s continues from there.
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

// never is the time of the next event if there is none.
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

// later keeps an event at or after the end of the window.
func (sh *shard) later(e event.Event) {
	to := sh.index
	if e.Payload()&isMessage != 0 {
		to = sh.all.at(sh.place(e))
	}
	sh.mine.sent[to] = append(sh.mine.sent[to], e)
	sh.mine.notBefore = min(sh.mine.notBefore, e.Time)
}

// exchange reads the shards' reports of a window. It returns a lower bound of the next event, never at the end, and
// whether to stop.
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

// compareNotes computes the real numbers of all that were drawn in a window, and returns the next number.
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
		k, second := 0, -1 // the piles with the two earliest notes
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

// pile is the remaining notes of a shard.
type pile struct {
	notes []note
	base  uint64
	drawn []uint32 // the real numbers of all that the shard drew in the window
	done  int      // how many of them are known

	time uint64 // of the first note; never if there is none
	real uint32 // the real number of its event
}

// turn reads the first note. If its event was drawn in the same window, an earlier note has determined its number.
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

// number assigns numbers from next on to those drawn by the first note's event, removes the note, and returns the
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
