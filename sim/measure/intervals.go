package measure

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// intervals is the union of intervals of which few are added out of order. It takes some 8 bytes per disjoint interval:
// those before the latest ones are coded.
type intervals struct {
	last   interval   // the latest; empty before the first
	recent []interval // those before it, disjoint and ascending
	old    *oldIntervals
}

type interval struct{ start, end uint64 }

// oldIntervals are the intervals before the recent ones.
type oldIntervals struct {
	chunks  [][]byte // disjoint and ascending, as code writes them
	size    int      // of the chunks
	end     uint64   // of the last coded interval
	late    []interval
	compact int // number of late intervals at which add unites them
}

// mostRecent is the largest number of recent intervals: reports of a run are nearly in order.
const mostRecent = 8

// add adds an interval. It ignores an interval that ends before it starts, which occurs with clocks that wrap around.
func (s *intervals) add(start, end uint64) {
	switch last := &s.last; {
	case start >= end:
	case start > last.end:
		if last.end > 0 {
			s.push()
		}
		*last = interval{start, end}
	case start >= last.start:
		last.end = max(last.end, end)
	default:
		s.insert(interval{start, end})
	}
}

// push makes the latest interval one of the recent ones.
func (s *intervals) push() {
	if len(s.recent) == mostRecent {
		if s.old == nil {
			s.old = new(oldIntervals)
		}
		const half = mostRecent / 2
		s.old.code(s.recent[:half])
		s.recent = append(s.recent[:0], s.recent[half:]...)
	}
	s.recent = append(s.recent, s.last)
}

// insert adds an interval that starts before the latest one.
func (s *intervals) insert(i interval) {
	if s.old != nil && i.start <= s.old.end {
		s.old.addLate(i)
		return
	}
	// It unites with the recent intervals from first to next that it touches, and with the latest one.
	first, next := len(s.recent), len(s.recent)
	for first > 0 && s.recent[first-1].end >= i.start {
		if first--; s.recent[first].start > i.end {
			next = first
		}
	}
	if first < next {
		i.start, i.end = min(i.start, s.recent[first].start), max(i.end, s.recent[next-1].end)
	}
	if i.end < s.last.start {
		if first == next && len(s.recent) == mostRecent {
			s.oldest(first, i)
			return
		}
		s.recent = slices.Replace(s.recent, first, next, i)
		return
	}
	s.recent = s.recent[:first]
	s.last = interval{min(i.start, s.last.start), max(i.end, s.last.end)}
}

// oldest inserts an interval at an index of the recent ones, which are as many as there may be: it codes the first.
func (s *intervals) oldest(at int, i interval) {
	if s.old == nil {
		s.old = new(oldIntervals)
	}
	if at == 0 {
		s.old.code([]interval{i})
		return
	}
	s.old.code(s.recent[:1])
	copy(s.recent, s.recent[1:at])
	s.recent[at-1] = i
}

// Sizes of chunks: a quarter of the earlier ones, so that few bytes are unused.
const (
	leastChunk    = 4*codedSize + spare
	largestChunk  = 1 << 16
	codedSize     = 1 + 2*8 // most bytes of an interval
	spare         = 8       // bytes after the last interval that may be written and read
	fewIntervals  = 64
	compactFactor = 2
)

// code appends at most mostRecent/2 intervals that follow all coded ones. An interval is a byte with two sizes in
// bytes, the distance from the end of the previous interval, and its length, without their leading zeros.
func (o *oldIntervals) code(all []interval) {
	n := len(o.chunks)
	if n == 0 || cap(o.chunks[n-1])-len(o.chunks[n-1]) < codedSize*len(all)+spare {
		size := min(max(o.size/4, leastChunk), largestChunk)
		o.chunks = append(o.chunks, make([]byte, 0, size))
		n++
		o.size += size
	}
	at := len(o.chunks[n-1])
	chunk := o.chunks[n-1][:cap(o.chunks[n-1])]
	for _, i := range all {
		distance, length := i.start-o.end, i.end-i.start
		first, second := (bits.Len64(distance)+7)/8, (bits.Len64(length)+7)/8
		chunk[at] = byte(first | second<<4)
		binary.LittleEndian.PutUint64(chunk[at+1:], distance)
		binary.LittleEndian.PutUint64(chunk[at+1+first:], length)
		at += 1 + first + second
		o.end = i.end
	}
	o.chunks[n-1] = chunk[:at]
}

// addLate adds an interval that starts before the end of the coded ones. Memory suffices for twice the number of
// disjoint late intervals, if they are many.
func (o *oldIntervals) addLate(i interval) {
	if len(o.late) >= max(o.compact, fewIntervals) {
		o.late = unite(o.late)
		o.compact = compactFactor * len(o.late)
	}
	o.late = append(o.late, i)
}

// unite sorts intervals and merges those that touch.
func unite(all []interval) []interval {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	united := all[:0]
	for _, i := range all {
		if n := len(united); n > 0 && i.start <= united[n-1].end {
			united[n-1].end = max(united[n-1].end, i.end)
		} else {
			united = append(united, i)
		}
	}
	return united
}

// cursor reads a union of intervals in order.
type cursor struct {
	chunks [][]byte
	chunk  []byte
	end    uint64 // of the last interval of the chunks
	recent []interval
	last   interval
	ahead  interval // next interval that is not late; empty: none
	late   []interval
}

func (s *intervals) read() cursor {
	c := cursor{recent: s.recent, last: s.last}
	if s.old != nil {
		s.old.late = unite(s.old.late)
		c.chunks, c.late = s.old.chunks, s.old.late
	}
	c.ahead = c.decode()
	return c
}

// decode returns the next interval that is not late, or an empty one.
func (c *cursor) decode() (i interval) {
	for len(c.chunk) == 0 && len(c.chunks) > 0 {
		c.chunk, c.chunks = c.chunks[0], c.chunks[1:]
	}
	switch {
	case len(c.chunk) > 0:
		coded := c.chunk[:codedSize+spare]
		first, second := int(coded[0]&15), int(coded[0]>>4)
		i.start = c.end + binary.LittleEndian.Uint64(coded[1:])&sizeMask(first)
		i.end = i.start + binary.LittleEndian.Uint64(coded[1+first:])&sizeMask(second)
		c.chunk, c.end = c.chunk[1+first+second:], i.end
	case len(c.recent) > 0:
		i, c.recent = c.recent[0], c.recent[1:]
	default:
		i, c.last = c.last, interval{}
	}
	return i
}

// sizeMask returns the lowest bytes of a word, 0 to 8 of them.
func sizeMask(bytes int) uint64 {
	return 1<<(8*bytes) - 1
}

// next returns the next interval of the union, or an empty one at the end. Intervals do not touch.
func (c *cursor) next() (i interval) {
	if len(c.late) > 0 && (c.ahead.end == 0 || c.late[0].start < c.ahead.start) {
		i, c.late = c.late[0], c.late[1:]
	} else {
		i, c.ahead = c.ahead, c.decode()
	}
	for i.end > 0 {
		switch {
		case c.ahead.end > 0 && c.ahead.start <= i.end:
			i.end, c.ahead = max(i.end, c.ahead.end), c.decode()
		case len(c.late) > 0 && c.late[0].start <= i.end:
			i.end, c.late = max(i.end, c.late[0].end), c.late[1:]
		default:
			return i
		}
	}
	return i
}

// beside returns the length of the union, and of its part outside the other union.
func (s *intervals) beside(other *intervals) (all, outside uint64) {
	own, covers := s.read(), other.read()
	cover := covers.next()
	for i := own.next(); i.end > 0; i = own.next() {
		all += i.end - i.start
		outside += i.end - i.start
		for cover.end > 0 && cover.start < i.end {
			if cover.end > i.start {
				outside -= min(cover.end, i.end) - max(cover.start, i.start)
			}
			if cover.end > i.end {
				break // it may cover the next one
			}
			cover = covers.next()
		}
	}
	return all, outside
}
