package timeline

import (
	"slices"
	"strconv"
)

// groupKind is the kind of a group of tracks.
type groupKind uint8

const (
	collectiveGroup groupKind = iota
	streamGroup               // busy intervals
	waitGroup                 // waits and collectives of a stream
	nicGroup
)

// group names tracks of a rank with the same name: slices that overlap are on different tracks.
type group struct {
	kind   groupKind
	number int32 // of the stream or NIC
}

// rankTracks are the tracks of a rank.
type rankTracks struct {
	pid    int
	next   int64 // tid of the next track that has no tid of its own
	groups map[group]*lanes
}

// ownTID is the lowest tid of tracks other than streams. Streams below have their number as tid.
const ownTID = 1 << 20

// lanes are the tracks of a group.
type lanes struct {
	first []*lane // at most filled lanes, which slices fill in order
	rest  []*lane // min-heap by end
}

// filled is the number of tracks of a group of which gaps are filled.
const filled = 16

// lane is a track and the times at which it is free.
type lane struct {
	track
	end  uint64 // of its last slice
	gaps []gap  // free intervals before, ascending; at most maxGaps, the latest ones
}

type gap struct{ from, to uint64 }

const maxGaps = 32

// lane returns a track of a group that is free in an interval. The track is new if its id is 0.
func (r *rankTracks) lane(g group, start, end, perNanosecond uint64) *lane {
	all := r.groups[g]
	if all == nil {
		if r.groups == nil {
			r.groups = make(map[group]*lanes)
		}
		all = &lanes{}
		r.groups[g] = all
	}
	for _, l := range all.first {
		if l.take(start, end, perNanosecond) {
			return l
		}
	}
	if len(all.first) == filled && len(all.rest) > 0 && all.rest[0].end <= start {
		l := all.rest[0]
		l.end = end
		all.sink()
		return l
	}
	l := &lane{track: r.newTrack(g, len(all.first)+len(all.rest))}
	if len(all.first) < filled {
		l.take(start, end, perNanosecond)
		all.first = append(all.first, l)
		return l
	}
	l.end = end
	all.rest = append(all.rest, l)
	all.rise()
	return l
}

// take occupies the lane in an interval if it is free.
//
// The end and the start of two slices may fall into the same nanosecond, the unit of Perfetto, which then closes and
// opens them in the order of the file. A slice that fills a gap must therefore end in an earlier nanosecond than the
// gap.
func (l *lane) take(start, end, perNanosecond uint64) bool {
	if start >= l.end {
		if start > l.end {
			if len(l.gaps) == maxGaps {
				l.gaps = slices.Delete(l.gaps, 0, 1)
			}
			l.gaps = append(l.gaps, gap{l.end, start})
		}
		l.end = end
		return true
	}
	for i := len(l.gaps) - 1; i >= 0; i-- {
		g := &l.gaps[i]
		if start < g.from {
			continue
		}
		if end > g.to || end/perNanosecond >= g.to/perNanosecond {
			return false
		}
		before := gap{g.from, start}
		if g.from = end; before.from < before.to {
			if len(l.gaps) == maxGaps {
				l.gaps[i] = before // the rest of the gap is lost
				return true
			}
			l.gaps = slices.Insert(l.gaps, i, before)
		}
		return true
	}
	return false
}

// sink restores the heap after its first lane ends later.
func (a *lanes) sink() {
	h, i := a.rest, 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].end < h[child].end {
			child++
		}
		if h[i].end <= h[child].end {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// rise restores the heap after a lane was appended.
func (a *lanes) rise() {
	h := a.rest
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent].end <= h[i].end {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// newTrack returns track n of a group.
func (r *rankTracks) newTrack(g group, n int) track {
	t := track{pid: r.pid, tid: ownTID + r.next}
	below := int32(min(n, 1<<8-1)) // tracks of a group
	number := min(uint32(g.number), 1<<20-1)
	stream := strconv.FormatInt(int64(g.number), 10)
	switch g.kind {
	case collectiveGroup:
		t.name, t.order = "collectives", below-1<<8
	case streamGroup:
		t.name, t.order = "stream "+stream, int32(number)<<9+below
		if n == 0 && number == uint32(g.number) {
			t.tid = int64(number)
			return t
		}
	case waitGroup:
		t.name, t.order = "stream "+stream+" communication", int32(number)<<9+1<<8+below
	case nicGroup:
		t.name, t.order = "NIC "+stream, 1<<30+int32(min(number, 1<<16-1))<<8+below
	}
	r.next++
	return t
}
