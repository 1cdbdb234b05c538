package sim

import "math/bits"

// calendar says which ranks are due in which window of time. The next 64 windows are sets of ranks; later ones wait in a
// Wheel. A rank may be due in several windows.
type calendar struct {
	near   [nearWindows]rankSet
	filled uint64 // a bit for each of near that is not empty, the window modulo nearWindows
	base   uint64 // the first of the windows of near: the one that was taken last
	far    Wheel
}

const nearWindows = 64

func (c *calendar) init(ranks int) {
	words := make([]uint64, nearWindows*((ranks+63)/64+(ranks+4095)/4096))
	for k := range c.near {
		c.near[k].ranks, words = cut(words, (ranks+63)/64)
		c.near[k].words, words = cut(words, (ranks+4095)/4096)
	}
}

func cut(words []uint64, n int) (front, rest []uint64) {
	return words[:n:n], words[n:]
}

// add makes a rank due in a window, which must not be before the one that was taken last.
func (c *calendar) add(rank uint32, window uint64) {
	if window-c.base >= nearWindows {
		c.far.Push(Event{Time: window, Key: uint64(rank)})
		return
	}
	c.addNear(rank, window)
}

func (c *calendar) addNear(rank uint32, window uint64) {
	slot := window % nearWindows
	c.near[slot].add(rank)
	c.filled |= 1 << slot
}

// next returns a window before which no rank is due, never if there is none at all.
func (c *calendar) next() uint64 {
	first := max(c.far.NotBefore(), c.base)
	if c.filled != 0 {
		near := uint64(bits.TrailingZeros64(bits.RotateLeft64(c.filled, -int(c.base%nearWindows))))
		first = min(first, c.base+near)
	}
	return first
}

// turnTo makes a window the first of near, for take. It must be the one that next returned, or before.
func (c *calendar) turnTo(window uint64) {
	c.base = window
	for {
		e, ok := c.far.PopBefore(window + nearWindows)
		if !ok {
			return
		}
		c.addNear(e.What(), e.Time)
	}
}

// take calls run for every rank that is due in the window that turnTo turned to, in ascending order. Ranks that run makes
// due in the same window stay due.
func (c *calendar) take(run func(rank uint32)) {
	slot := c.base % nearWindows
	c.filled &^= 1 << slot
	c.near[slot].drain(run)
}

// rankSet is a set of ranks: a bit for each, and a bit for each 64 of those.
type rankSet struct {
	ranks, words []uint64
}

func (s *rankSet) add(rank uint32) {
	s.ranks[rank/64] |= 1 << (rank % 64)
	s.words[rank/4096] |= 1 << (rank / 64 % 64)
}

// drain empties the set and calls f for all that was in it. f may add to the set.
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
