package sim

import "math/bits"

// calendar says which ranks are due in which window of time. The next 64 windows are sets of ranks; later ones wait in a
// Wheel. A rank may be due in several windows.
type calendar struct {
	near   [nearWindows]rankSet
	filled uint64 // a bit for each of near that is not empty, the window modulo nearWindows
	base   uint64 // the first of the windows of near
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

// add makes a rank due in a window, which must not be before the one that next returned last.
func (c *calendar) add(rank uint32, window uint64) {
	if window-c.base >= nearWindows {
		c.far.Push(Event{Time: window, Key: uint64(rank)})
		return
	}
	c.near[window%nearWindows].add(rank)
	c.filled |= 1 << (window % nearWindows)
}

// next returns the first window in which a rank is due, never if there is none.
func (c *calendar) next() uint64 {
	first := uint64(never)
	if c.filled != 0 {
		first = c.base + uint64(bits.TrailingZeros64(bits.RotateLeft64(c.filled, -int(c.base%nearWindows))))
	} else if first = c.far.Next(); first == never {
		return never
	}
	c.base = first
	for c.far.Len() > 0 && c.far.Next()-c.base < nearWindows {
		e := c.far.Pop()
		c.near[e.Time%nearWindows].add(e.What())
		c.filled |= 1 << (e.Time % nearWindows)
	}
	return first
}

// take calls run for every rank that is due in a window, one that next returned, in ascending order. Ranks that run makes
// due in the same window stay due.
func (c *calendar) take(window uint64, run func(rank uint32)) {
	c.filled &^= 1 << (window % nearWindows)
	c.near[window%nearWindows].drain(run)
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
