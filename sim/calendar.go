package sim

import (
	"math/bits"
	"sync"

	"github.com/tracedag/tracedag/sim/event"
)

// calendar records the ranks that have events in each window of time. The next windows are sets of ranks; later ones
// are in a Wheel. A rank may be in several windows.
type calendar struct {
	near   []rankSet // windows from base on, indexed by window number modulo len(near), a power of two
	filled []uint64  // one bit per non-empty element of near
	base   uint64    // the window of the last take
	far    *event.Wheel
}

// Bounds of the number of near windows, so that they fit into part of the cache.
const (
	fewestNear = 64
	mostNear   = 1024
	nearWords  = 1 << 13
)

// calendars are the windows of runs that have ended, all empty, for runs with as many ranks: a short run would else
// spend much of its time on their memory.
var calendars sync.Pool

// windows are the windows of a calendar.
type windows struct {
	ranks  int
	near   []rankSet
	filled []uint64
	far    *event.Wheel
}

func (c *calendar) init(ranks int) {
	if old, is := calendars.Get().(*windows); is && old.ranks == ranks {
		c.near, c.filled, c.far = old.near, old.filled, old.far
		return
	}
	c.far = new(event.Wheel)
	ranksWords, wordsWords := (ranks+63)/64, (ranks+4095)/4096
	n := mostNear
	for n > fewestNear && n*ranksWords > nearWords {
		n /= 2
	}
	c.near, c.filled = make([]rankSet, n), make([]uint64, n/64)
	words := make([]uint64, n*(ranksWords+wordsWords))
	for k := range c.near {
		c.near[k].ranks, words = cut(words, ranksWords)
		c.near[k].words, words = cut(words, wordsWords)
	}
}

// release passes the windows of an empty calendar on to other runs. The calendar is then of no further use.
func (c *calendar) release(ranks int) {
	if c.near != nil && c.far.Len() == 0 {
		c.far.Rewind()
		calendars.Put(&windows{ranks, c.near, c.filled, c.far})
		c.near, c.filled, c.far = nil, nil, nil
	}
}

func cut(words []uint64, n int) (front, rest []uint64) {
	return words[:n:n], words[n:]
}

// add adds a rank to a window, which must not precede the window of the last take.
func (c *calendar) add(rank uint32, window uint64) {
	if window-c.base >= uint64(len(c.near)) {
		c.far.Push(event.Event{Time: window, Key: uint64(rank)})
		return
	}
	c.addNear(rank, window)
}

func (c *calendar) addNear(rank uint32, window uint64) {
	slot := c.slot(window)
	c.near[slot].add(rank)
	c.filled[slot/64] |= 1 << (slot % 64)
}

// slot returns the index of a window in near.
func (c *calendar) slot(window uint64) uint64 {
	return window & uint64(len(c.near)-1)
}

// next returns a window before which no rank has an event, or never.
func (c *calendar) next() uint64 {
	return max(c.base, min(c.nextNear(), c.far.NotBefore()))
}

// nextNear returns the first non-empty near window, or never.
func (c *calendar) nextNear() uint64 {
	slot := c.slot(c.base)
	first := slot / 64
	if word := c.filled[first] >> (slot % 64); word != 0 {
		return c.base + uint64(bits.TrailingZeros64(word))
	}
	at := c.base - slot%64 // the window of the word's first bit
	for k := 1; k <= len(c.filled); k++ {
		at += 64
		word := c.filled[(first+uint64(k))%uint64(len(c.filled))]
		if k == len(c.filled) {
			word &= 1<<(slot%64) - 1 // wrapped around: only the bits that precede base in its word
		}
		if word != 0 {
			return at + uint64(bits.TrailingZeros64(word))
		}
	}
	return never
}

// turnTo makes window the first near one, for take. It must be at most the result of next.
func (c *calendar) turnTo(window uint64) {
	c.base = window
	for {
		e, ok := c.far.PopBefore(window + uint64(len(c.near)))
		if !ok {
			return
		}
		c.addNear(e.Payload(), e.Time)
	}
}

// take calls run for every rank in the window of turnTo, in ascending order. A rank that run adds to the same window
// stays in it.
func (c *calendar) take(run func(rank uint32)) {
	slot := c.slot(c.base)
	c.filled[slot/64] &^= 1 << (slot % 64)
	c.near[slot].drain(run)
}

// rankSet is a set of ranks: one bit per rank, and one bit per 64 of these bits.
type rankSet struct {
	ranks, words []uint64
}

func (s *rankSet) add(rank uint32) {
	s.ranks[rank/64] |= 1 << (rank % 64)
	s.words[rank/4096] |= 1 << (rank / 64 % 64)
}

// drain empties the set and calls f for each of its ranks. f may add ranks to the set.
func (s *rankSet) drain(f func(rank uint32)) {
	for i := range s.words {
		words := s.words[i]
		s.words[i] = 0
		for ; words != 0; words &= words - 1 {
			k := i*64 + bits.TrailingZeros64(words)
			ranks := s.ranks[k]
			s.ranks[k] = 0
			for ; ranks != 0; ranks &= ranks - 1 {
				f(uint32(k*64 + bits.TrailingZeros64(ranks)))
			}
		}
	}
}
