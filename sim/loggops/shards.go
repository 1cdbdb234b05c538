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
// If all messages are eager and hosts have one stream, an event affects another host no earlier than after the time of
// a message, o + L. So the hosts are divided into shards. The shards run concurrently through a window of that length,
// each with its own queue, and then exchange messages.
//
// The remaining problem is the numbers that order events of equal time, since all hosts draw them from one counter.
// Within a window, a shard draws provisional numbers above all earlier ones. They order the shard's events exactly like
// the real numbers, since those are drawn in event order. After the window, each shard publishes its drawings: the
// events that drew numbers. Merged by time and number, the drawings give the order of all events and therefore the real
// numbers. These replace the provisional ones in all events that outlive the window: those at or after its end, which
// enter a queue only then, and those that wait at clocks.
type shards struct {
	of        []*shard
	lookahead uint64
	barrier   *sim.Barrier
	start     uint64 // start of the first window

	mostWindows int // replaces the constant of that name

	// proceed decides whether the shards continue. The first shard calls it periodically, with the numbers drawn in a
	// number of windows and the time taken.
	proceed func(drawn uint64, windows int, took time.Duration) bool
}

// shard is a range of hosts with the state to replay them on one thread.
type shard struct {
	loggopsim
	all         *shards
	index       int
	first, last uint32 // the shard has hosts first to last-1

	base  uint64       // first number drawn in the current window
	end   uint64       // end of the current window
	mine  *report      // report on the current window
	dirty []*clockLine // lines in which an event started to wait in the window

	// Double buffer: other shards read the report of a window while this shard may already run the next one.
	reports [2]report

	drawn [maxShards][]uint32 // by shard: real numbers of its drawings in the window
}

// report is the result of a window of one shard, for the other shards.
type report struct {
	drawings  []drawing
	sent      [maxShards][]event.Event // by shard, including itself: events at or after the end of the window
	stop      bool                     // this is the last window
	drawn     int                      // number of draws of the shard
	notBefore uint64                   // lower bound of the shard's next event
	failed    error
}

// drawing is an event that drew numbers.
type drawing struct {
	time   uint64
	number uint32 // number of the event
	drawn  uint32
}

// maxShards limits the threads, since the cost of mergeDrawings grows with their number.
const maxShards = 4

// divisible reports whether the replay can be divided into shards.
func (s *loggopsim) divisible() bool {
	return !s.windowed && s.lines != nil && s.matchers != nil && s.timeline == nil && s.p.Streams <= 1 &&
		s.p.Ranks() > 1 &&
		s.p.LargestMessage <= uint64(s.n.S) && s.n.o+s.n.L > 0
}

const (
	// roundEvents is the approximate number of events between two decisions on the number of threads. In between,
	// several threads run fewestWindows to mostWindows windows.
	roundEvents   = 1 << 16
	fewestWindows = 4
	mostWindows   = 512
	// minDrawn is the average number of draws per window below which one thread runs.
	minDrawn = 256
	// minSpeedup is the speedup from which several threads continue. Merging their logs takes much processor time.
	minSpeedup = 1.3
	// firstRounds is the number of rounds on one thread before the first trial of several: a few tenths of a second.
	firstRounds = 128
)

// replayOn replays on one thread or on several, whichever is faster according to the tuner. If its MinEvents is 0,
// several threads run from the start.
func (s *loggopsim) replayOn(threads int, tuner *sim.ThreadTuner) error {
	var all *shards
	for {
		rounds := tuner.SingleRounds()
		if all == nil && tuner.MinEvents == 0 {
			rounds = 0
		}
		for range rounds {
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
		sh := &shard{all: all, index: k, first: uint32(first[k]), last: uint32(first[k+1])}
		sh.loggopsim = loggopsim{reference: s.reference, ops: s.ops, folded: s.folded, starts: s.starts, shard: sh,
			lines: s.lines, matchers: s.matchers, queue: *event.NewWheel(s.grain)}
		sh.ready, sh.remote, sh.after = nil, nil, nil
		all.of = append(all.of, sh)
	}
	return all
}

// distribute moves all events of s to the shards.
func (a *shards) distribute(s *loggopsim) {
	a.start = s.queue.NotBefore()
	for _, sh := range a.of {
		sh.base = s.sequence
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
	op := s.ref(e.Payload() &^ isMessage)
	if e.Payload()&isMessage != 0 {
		host, _ := s.partner(op)
		return host
	}
	return op.host
}

// at returns the shard of a host.
func (a *shards) at(host uint32) int {
	k := 0
	for host >= a.of[k].last {
		k++
	}
	return k
}

// replay replays the events of s on the shards, to the end or until proceed stops it. Then s continues.
func (a *shards) replay(s *loggopsim, proceed func(drawn uint64, windows int, took time.Duration) bool) error {
	a.proceed = proceed
	a.distribute(s)
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
		for sh.queue.Len() > 0 {
			s.queue.Push(sh.queue.Pop())
		}
	}
	return nil
}

// replay runs one window after the other.
func (sh *shard) replay() {
	start, stop := sh.all.start, false
	began, before := time.Now(), sh.base
	windows := 0
	for half := 0; !stop && start != never; half = 1 - half {
		sh.run(start+sh.all.lookahead, &sh.reports[half])
		windows++
		check := windows == sh.all.mostWindows || windows >= fewestWindows && sh.base-before >= roundEvents
		if check && sh.index == 0 {
			now := time.Now()
			sh.mine.stop = !sh.all.proceed(sh.base-before, windows, now.Sub(began))
			began, before, windows = now, sh.base, 0
		}
		sh.all.barrier.Wait()
		start, stop = sh.exchange(half)
	}
}

// never is the time of the next event if there is none.
const never = math.MaxUint64

// run runs the shard's hosts through a window.
func (sh *shard) run(end uint64, mine *report) {
	sh.end, sh.mine = end, mine
	sh.sequence = sh.base
	mine.drawings, mine.notBefore, mine.stop = mine.drawings[:0], never, false
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
			mine.drawings = append(mine.drawings, drawing{e.Time, uint32(e.Key >> 32), uint32(sh.sequence - before)})
		}
	}
	mine.drawn = int(sh.sequence - sh.base)
	mine.notBefore = min(mine.notBefore, sh.queue.NotBefore())
}

// later stores an event at or after the end of the window.
func (sh *shard) later(e event.Event) {
	to := sh.index
	if e.Payload()&isMessage != 0 {
		to = sh.all.at(sh.place(e))
	}
	sh.mine.sent[to] = append(sh.mine.sent[to], e)
	sh.mine.notBefore = min(sh.mine.notBefore, e.Time)
}

// exchange reads the shards' reports of a window. It returns a lower bound of the next event, or never at the end, and
// whether to stop.
func (sh *shard) exchange(half int) (start uint64, stop bool) {
	start = never
	for _, other := range sh.all.of {
		r := &other.reports[half]
		start = min(start, r.notBefore)
		stop = stop || r.stop || r.failed != nil
	}
	next := sh.mergeDrawings(half)
	for _, line := range sh.dirty {
		line.renumber = false
		line.first = sh.real(line.first, sh.index)
		for i, key := range line.others {
			line.others[i] = sh.real(key, sh.index)
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

// real returns the key of an event of shard from with its real number.
func (sh *shard) real(key uint64, from int) uint64 {
	number := key >> 32
	if number < sh.base {
		return key
	}
	return uint64(sh.drawn[from][number-sh.base])<<32 | key&math.MaxUint32
}

// mergeDrawings computes the real numbers of all draws of a window, and returns the next number.
func (sh *shard) mergeDrawings(half int) uint64 {
	var queues [maxShards]drawingQueue
	n := len(sh.all.of)
	for k, other := range sh.all.of {
		r := &other.reports[half]
		sh.drawn[k] = slices.Grow(sh.drawn[k][:0], r.drawn)[:r.drawn]
		queues[k] = drawingQueue{drawings: r.drawings, base: sh.base, drawn: sh.drawn[k]}
		queues[k].turn()
	}
	next := uint32(sh.base)
	for {
		k, second := 0, -1 // the queues with the two earliest drawings
		for other := 1; other < n; other++ {
			switch {
			case queues[other].before(&queues[k]):
				k, second = other, k
			case second < 0 || queues[other].before(&queues[second]):
				second = other
			}
		}
		first := &queues[k]
		if first.time == never {
			return uint64(next)
		}
		for until := &queues[second]; ; {
			next = first.number(next)
			if first.turn(); !first.before(until) {
				break
			}
		}
	}
}

// drawingQueue is the remaining drawings of a shard.
type drawingQueue struct {
	drawings []drawing
	base     uint64
	drawn    []uint32 // real numbers of all draws of the shard in the window
	done     int      // number of known entries of drawn

	time uint64 // time of the first drawing; never if there is none
	real uint32 // real number of its event
}

// turn reads the first drawing. If its event was drawn in the same window, an earlier drawing has determined its
// number.
func (p *drawingQueue) turn() {
	if len(p.drawings) == 0 {
		p.time, p.real = never, math.MaxUint32
		return
	}
	p.time, p.real = p.drawings[0].time, p.drawings[0].number
	if uint64(p.real) >= p.base {
		p.real = p.drawn[uint64(p.real)-p.base]
	}
}

func (p *drawingQueue) before(q *drawingQueue) bool {
	return p.time < q.time || p.time == q.time && p.real < q.real
}

// number assigns numbers from next on to the draws of the first drawing, removes it, and returns the number after them.
func (p *drawingQueue) number(next uint32) uint32 {
	for range p.drawings[0].drawn {
		p.drawn[p.done] = next
		p.done++
		next++
	}
	p.drawings = p.drawings[1:]
	return next
}
