package report

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// A timeline keeps at most keptSlices slices in memory, and per lane between fewest and most. It has at most mostLines
// lines: above, a line stands for several ranks. A line has at most maxLanes lanes of a group; the last one takes those
// beyond.
const (
	keptSlices = 1 << 19
	mostSlices = 1 << 16
	fewest     = 32
	mostLines  = 1024
	maxLanes   = 16
	keptWaits  = 200     // longest waits
	listedMost = 50      // longest waits and collectives in a result
	openColls  = 16      // collectives of a rank that can still grow
	knownColls = 1 << 16 // collectives whose extent over all ranks is known
)

// SliceKind is the kind of a slice of a timeline.
type SliceKind uint8

// Kinds of slices. Messages are on lanes of NICs, collectives on a lane of their own, the others on lanes of streams.
const (
	CalcSlice SliceKind = iota
	OverheadSlice
	NoiseSlice
	MemorySlice
	StorageSlice
	CommSlice // a send or collective without overheads
	WaitSlice
	CollectiveSlice
	MessageSlice
	sliceKinds
)

// sliceNames are the names of kinds in results and figures, and the classes of their colors.
var sliceNames = [sliceKinds]struct{ name, class string }{
	{"calc", "f0"}, {"overhead", "f2"}, {"noise", "f5"}, {"memory", "f4"}, {"storage", "f6"}, {"communication", "f3"},
	{"wait", "f7"}, {"collective", "f9"}, {"message", "f10"},
}

// laneGroup is a group of lanes of a line, in the order of figures.
type laneGroup uint8

const (
	collLane laneGroup = iota
	streamLane
	nicLane
)

func (k SliceKind) group() laneGroup {
	switch k {
	case CollectiveSlice:
		return collLane
	case MessageSlice:
		return nicLane
	}
	return streamLane
}

// Slice is an interval of a rank. Times are in ticks of the timeline.
type Slice struct {
	Kind       SliceKind
	Number     int32 // of the stream or NIC
	Rank, Op   uint32
	Start, End uint64
	Peer       uint32 // target rank of a message
	Bytes      uint64 // of a message
}

// merged is a piece of a lane: one slice, or several short ones of a kind that were merged.
type merged struct {
	start, end uint64
	busy       uint64 // sum of the lengths
	bytes      uint64
	count      uint32
	rank, op   uint32 // of a single slice
	peer       uint32
	kind       SliceKind
}

// Timeline collects the slices of a run in bounded memory. Its contents do not depend on the order of slices.
type Timeline struct {
	unit  int64 // picoseconds per tick
	ranks int
	edge  int // ranks of a line
	lines [][]*lane
	limit int // slices of a lane
	end   uint64

	counts [sliceKinds]uint64
	times  [sliceKinds]Sum
	waits  []Slice // min-heap of the longest ones
	open   [][]collective
	colls  map[int64]*extent
	steps  []Step
	label  func(kind SliceKind, rank, op uint32) string
}

// Step is a stretch of the critical path.
type Step struct {
	Rank       uint32
	Part       uint8
	Start, End uint64
}

// collective is the extent of a collective on a rank.
type collective struct {
	number     int64
	op         uint32
	start, end uint64
}

// extent is the extent of a collective over all ranks.
type extent struct {
	name       string
	number     int64
	start, end uint64
}

// NewTimeline returns a timeline without slices. A tick is unit picoseconds.
func NewTimeline(unit int64, ranks int) *Timeline {
	t := &Timeline{unit: unit, ranks: ranks, edge: max(1, (ranks+mostLines-1)/mostLines), colls: map[int64]*extent{}}
	t.lines = make([][]*lane, (ranks+t.edge-1)/t.edge)
	t.open = make([][]collective, ranks)
	t.limit = min(mostSlices, max(fewest, keptSlices/(3*max(1, len(t.lines)))))
	return t
}

// Add adds a slice. It ignores one that does not end after its start.
func (t *Timeline) Add(s Slice) {
	if s.End <= s.Start {
		return
	}
	t.counts[s.Kind]++
	t.times[s.Kind].Add(s.End - s.Start)
	t.end = max(t.end, s.End)
	if s.Kind == WaitSlice {
		t.wait(s)
	}
	l := t.lane(int(s.Rank)/t.edge, s.Kind.group(), s.Number)
	l.add(merged{start: s.Start, end: s.End, busy: s.End - s.Start, bytes: s.Bytes, count: 1, rank: s.Rank, op: s.Op,
		peer: s.Peer, kind: s.Kind})
}

// lane returns a lane of a line.
func (t *Timeline) lane(line int, group laneGroup, number int32) *lane {
	if t.edge > 1 {
		number = 0
	}
	of := 0
	for _, l := range t.lines[line] {
		if l.group != group {
			continue
		}
		if l.number == number || l.others {
			return l
		}
		of++
	}
	l := &lane{line: line, group: group, number: number, limit: t.limit, others: of == maxLanes-1}
	t.lines[line] = append(t.lines[line], l)
	return l
}

// AddPart adds an interval of an op to the collective with a number, to which the op belongs.
func (t *Timeline) AddPart(name string, number int64, rank, op uint32, start, end uint64) {
	if end < start {
		return
	}
	if c := t.colls[number]; c != nil {
		c.start, c.end = min(c.start, start), max(c.end, end)
	} else if len(t.colls) < knownColls {
		t.colls[number] = &extent{name, number, start, end}
	}
	all := t.open[rank]
	for i := len(all) - 1; i >= 0; i-- {
		if c := &all[i]; c.number == number {
			c.start, c.end = min(c.start, start), max(c.end, end)
			return
		}
	}
	if len(all) == openColls {
		t.close(rank, &all[0])
		all = slices.Delete(all, 0, 1)
	}
	t.open[rank] = append(all, collective{number, op, start, end})
}

func (t *Timeline) close(rank uint32, c *collective) {
	t.Add(Slice{Kind: CollectiveSlice, Rank: rank, Op: c.op, Start: c.start, End: c.end})
}

// AddStep adds a step at the end of the critical path. Steps of a part of a rank that follow each other are one.
func (t *Timeline) AddStep(s Step) {
	if n := len(t.steps); n > 0 {
		last := &t.steps[n-1]
		if s.Rank == last.Rank && (s.Part == last.Part && s.Start == last.End || s.Start == s.End) {
			last.End = s.End
			return
		}
	}
	t.steps = append(t.steps, s)
}

// Finish ends the timeline at a makespan. label returns the name of an op for people, "" if it has none; nil: none has.
func (t *Timeline) Finish(makespan uint64, label func(kind SliceKind, rank, op uint32) string) {
	for rank := range t.open {
		for i := range t.open[rank] {
			t.close(uint32(rank), &t.open[rank][i])
		}
	}
	t.open = nil
	t.end, t.label = max(t.end, makespan), label
	for _, lanes := range t.lines {
		slices.SortFunc(lanes, func(a, b *lane) int {
			return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.number, b.number))
		})
		for _, l := range lanes {
			l.compact()
			l.open = [sliceKinds]merged{}
		}
	}
}

// lanes returns all lanes, by line.
func (t *Timeline) lanes() (all []*lane) {
	for _, lanes := range t.lines {
		all = append(all, lanes...)
	}
	return all
}

// total returns the number of slices that were added.
func (t *Timeline) total() (n uint64) {
	for _, count := range t.counts {
		n += count
	}
	return n
}

// longer orders slices by length, the longest first, and then by place.
func longer(a, b Slice) int {
	return cmp.Or(cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(a.Start, b.Start),
		cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Op, b.Op))
}

// wait keeps a wait if it is one of the longest.
func (t *Timeline) wait(s Slice) {
	h := t.waits
	if len(h) < keptWaits {
		h = append(h, s)
		for i := len(h) - 1; i > 0 && longer(h[(i-1)/2], h[i]) < 0; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
		t.waits = h
		return
	}
	if longer(h[0], s) < 0 {
		return
	}
	h[0] = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && longer(h[child], h[child+1]) < 0 {
			child++
		}
		if longer(h[i], h[child]) > 0 {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// lane is a row of slices of a line. Slices of at least 1<<shift ticks are kept as they are; shorter ones that start in
// the same interval of that length are one slice per kind. The shift is the smallest for which the lane has at most
// limit slices.
type lane struct {
	line   int
	group  laneGroup
	number int32
	others bool // stands for all further lanes
	limit  int
	shift  uint

	open    [sliceKinds]merged // last short slices of each kind, not yet in pending
	pending []merged
	all     []merged // in the order of their starts
}

// short reports whether a slice is merged with its neighbours.
func (l *lane) short(m *merged) bool { return m.count > 1 || m.end-m.start < 1<<l.shift }

// join adds a short slice to another one.
func (m *merged) join(s *merged) {
	m.start, m.end = min(m.start, s.start), max(m.end, s.end)
	m.busy, m.bytes = sumOf(m.busy, s.busy), sumOf(m.bytes, s.bytes)
	m.count = uint32(min(uint64(m.count)+uint64(s.count), math.MaxUint32))
	m.rank, m.op, m.peer = 0, 0, 0
}

// sumOf returns a sum, at most the largest number.
func sumOf(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}

func (l *lane) add(m merged) {
	if l.short(&m) {
		last := &l.open[m.kind]
		if last.count > 0 && last.start>>l.shift == m.start>>l.shift {
			last.join(&m)
			return
		}
		m, *last = *last, m
		if m.count == 0 {
			return
		}
	}
	if len(l.pending) >= max(l.limit, 256) {
		l.compact()
	}
	l.pending = append(l.pending, m)
}

// compact merges all slices.
func (l *lane) compact() {
	for k := range l.open {
		if l.open[k].count > 0 {
			l.pending = append(l.pending, l.open[k])
			l.open[k].count = 0
		}
	}
	slices.SortFunc(l.pending, merged.compare)
	l.all = joined(l.all, l.pending)
	l.pending = l.pending[:0]
	for l.merge(); len(l.all) > l.limit && l.shift < 63; {
		l.shift++
		l.merge()
	}
}

func (m merged) compare(o merged) int {
	return cmp.Or(cmp.Compare(m.start, o.start), cmp.Compare(m.kind, o.kind), cmp.Compare(m.end, o.end),
		cmp.Compare(m.rank, o.rank), cmp.Compare(m.op, o.op), cmp.Compare(m.count, o.count),
		cmp.Compare(m.peer, o.peer))
}

// joined returns the slices of two lists in the order of their starts. It may change the first.
func joined(a, b []merged) []merged {
	i, k := len(a)-1, len(b)-1
	a = slices.Grow(a, len(b))[:len(a)+len(b)]
	for at := len(a) - 1; k >= 0; at-- {
		if i >= 0 && a[i].start > b[k].start {
			a[at] = a[i]
			i--
		} else {
			a[at] = b[k]
			k--
		}
	}
	return a
}

// merge merges the short slices.
func (l *lane) merge() {
	kept := l.all[:0]
	var last [sliceKinds]int // 1 + index of the last short slice of each kind
	for _, m := range l.all {
		if !l.short(&m) {
			kept = append(kept, m)
			continue
		}
		if i := last[m.kind] - 1; i >= 0 && kept[i].start>>l.shift == m.start>>l.shift {
			kept[i].join(&m)
			continue
		}
		kept = append(kept, m)
		last[m.kind] = len(kept)
	}
	l.all = kept
}

// coarser returns the lane with at most limit slices. If it merges slices, its shift is at least the given one.
func (l *lane) coarser(limit int, shift uint) *lane {
	c := &lane{line: l.line, group: l.group, number: l.number, others: l.others, limit: min(limit, l.limit),
		shift: l.shift, all: slices.Clone(l.all)}
	if len(c.all) > limit || slices.ContainsFunc(c.all, func(m merged) bool { return m.count > 1 }) {
		c.shift = max(c.shift, shift)
	}
	c.compact()
	slices.SortFunc(c.all, merged.compare)
	return c
}

// ps returns a time in picoseconds.
func (t *Timeline) ps(ticks uint64) *big.Int {
	n := new(big.Int).SetUint64(ticks)
	return n.Mul(n, big.NewInt(t.unit))
}

// waitJSON is a wait in a result.
type waitJSON struct {
	Rank  uint32   `json:"rank"`
	Op    uint32   `json:"op"`
	Name  string   `json:"name,omitempty"`
	Start *big.Int `json:"start_ps"`
	Time  *big.Int `json:"time_ps"`
}

// collJSON is a collective in a result.
type collJSON struct {
	Name   string   `json:"name"`
	Number int64    `json:"number"`
	Start  *big.Int `json:"start_ps"`
	End    *big.Int `json:"end_ps"`
	Time   *big.Int `json:"time_ps"`
}

// kindJSON is the sum of a kind of slices in a result.
type kindJSON struct {
	Kind   string   `json:"kind"`
	Slices uint64   `json:"slices"`
	Time   *big.Int `json:"time_ps"`
}

// Empty reports whether the timeline has no slices.
func (t *Timeline) Empty() bool { return t.total() == 0 }

// MarshalJSON returns the sums of each kind, the longest waits, and the collectives that take longest.
func (t *Timeline) MarshalJSON() ([]byte, error) {
	document := struct {
		Lanes       int        `json:"lanes"`
		Slices      uint64     `json:"slices"`
		Kinds       []kindJSON `json:"kinds"`
		Waits       []waitJSON `json:"waits,omitempty"`
		Known       int        `json:"collectives,omitempty"`
		Collectives []collJSON `json:"longest_collectives,omitempty"`
	}{Lanes: len(t.lanes()), Slices: t.total(), Known: len(t.colls)}
	for k, n := range t.counts {
		if n > 0 {
			sum := t.times[k].Big()
			document.Kinds = append(document.Kinds,
				kindJSON{sliceNames[k].name, n, sum.Mul(sum, big.NewInt(t.unit))})
		}
	}
	waits := slices.SortedFunc(slices.Values(t.waits), longer)
	for _, s := range waits[:min(len(waits), listedMost)] {
		document.Waits = append(document.Waits, waitJSON{s.Rank, s.Op, t.labelOf(WaitSlice, s.Rank, s.Op),
			t.ps(s.Start),
			t.ps(s.End - s.Start)})
	}
	colls := make([]*extent, 0, len(t.colls))
	for _, c := range t.colls {
		colls = append(colls, c)
	}
	slices.SortFunc(colls, func(a, b *extent) int {
		return cmp.Or(cmp.Compare(b.end-b.start, a.end-a.start), cmp.Compare(a.number, b.number))
	})
	for _, c := range colls[:min(len(colls), listedMost)] {
		document.Collectives = append(document.Collectives, collJSON{labelText(c.name), c.number,
			t.ps(c.start), t.ps(c.end), t.ps(c.end - c.start)})
	}
	return json.Marshal(document)
}

// longestLabel is the number of characters of a label.
const longestLabel = 80

func (t *Timeline) labelOf(kind SliceKind, rank, op uint32) string {
	if t.label == nil {
		return ""
	}
	return labelText(t.label(kind, rank, op))
}

// labelText returns a name of any length as a label.
func labelText(name string) string {
	return short(clean(name[:min(len(name), utf8.UTFMax*longestLabel)]), longestLabel)
}
