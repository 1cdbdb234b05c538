package report

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"math"
	"math/bits"
	"slices"
)

// A page has up to timelineLevels levels of a timeline, each with more slices than the one before. The first has at
// most firstSlices per lane, the next ones levelFactor times as many.
const (
	timelineLevels = 3
	firstSlices    = 4096
	levelFactor    = 4
	mostLabels     = 4096
	maxTimeline    = 2_500_000 // bytes of all levels in a page
	leastTimeline  = 30_000
)

// encoded is a timeline for the script of a page. Times are multiples of Tick picoseconds and less than 2^31.
type encoded struct {
	Tick   float64        `json:"tick"`
	Shift  int            `json:"shift"` // binary logarithm of ticks of the run per tick
	End    uint64         `json:"end"`
	Ranks  int            `json:"ranks"`
	Edge   int            `json:"edge"`  // ranks of a line
	Lines  int            `json:"lines"` // each with one rank or more
	Lanes  []int          `json:"lanes"` // line, group and number of each lane
	Kinds  []string       `json:"kinds"`
	Labels []string       `json:"labels"`
	Levels []encodedLevel `json:"levels"`
	Path   *encodedLevel  `json:"path,omitempty"`
	Waits  *encodedLevel  `json:"waits"`

	exact   bool // the last level has all slices
	numbers map[string]int
	room    int // bytes left for labels
}

// encodedLevel is a table of int32 columns: the columns one after the other, of each column the lowest bytes of all
// rows, then the next ones, compressed by raw deflate, in base64.
type encodedLevel struct {
	Slices int    `json:"slices"`
	Merged int    `json:"merged"` // of them, those that stand for several
	Data   string `json:"data"`
}

// columns collects the columns of a level.
type columns [][]int32

func (c columns) encode() string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression) // the level is valid
	var plane []byte
	for _, column := range c {
		for shift := 0; shift < 32; shift += 8 {
			plane = plane[:0]
			for _, v := range column {
				plane = append(plane, byte(uint32(v)>>shift))
			}
			w.Write(plane) // does not fail
		}
	}
	w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// zigzag returns a number as int32 whose high bytes are 0 if it is close to 0.
func zigzag(n int64) int32 { return int32(uint32(n<<1) ^ uint32(n>>63)) }

// encode returns the timeline in at most about budget bytes.
func (t *Timeline) encode(budget int) *encoded {
	shift := max(0, bits.Len64(t.end)-31)
	e := &encoded{Shift: shift, Tick: math.Ldexp(float64(t.unit), shift), End: t.end >> shift, Ranks: t.ranks,
		Edge:  t.edge,
		Lines: len(t.lines), Levels: []encodedLevel{}, Labels: []string{}, numbers: map[string]int{}, room: budget / 10}
	for _, k := range sliceNames {
		e.Kinds = append(e.Kinds, k.name)
	}
	lanes := t.lanes()
	for _, l := range lanes {
		e.Lanes = append(e.Lanes, l.line, int(l.group), int(l.number))
	}
	if budget -= 8 * len(lanes); len(t.steps) > 0 {
		e.Path = t.encodePath(shift, budget/6)
		budget -= len(e.Path.Data)
	}
	e.Waits = t.encodeWaits(e)
	budget -= len(e.Waits.Data)
	limit := firstSlices
	for range timelineLevels {
		level, exact, used := t.encodeLevel(e, lanes, limit)
		for len(e.Levels) == 0 && used > budget && limit > 1 {
			limit = max(1, min(limit/2, int(float64(limit)*0.9*float64(budget)/float64(used))))
			level, exact, used = t.encodeLevel(e, lanes, limit)
		}
		if used > budget {
			break
		}
		e.Levels, e.exact = append(e.Levels, level), exact
		if budget -= used; exact || limit < firstSlices || limit >= t.limit {
			break
		}
		limit *= levelFactor
	}
	return e
}

// encodeLevel encodes at most limit slices of each lane: for each lane the length of merged slices as 1 + its binary
// logarithm, their number and that of single slices; for each merged slice the distance of its interval from the one
// before, kind, ops and the time in which they are busy in percent of the interval; for each single slice the ticks
// since the start of the one before, length, kind, label, op, and the distance to the rank that receives a message or,
// in a line of several ranks, to the rank of the slice. It returns the bytes that the level takes with its labels.
func (t *Timeline) encodeLevel(e *encoded, lanes []*lane, limit int) (l encodedLevel, exact bool, used int) {
	of, several, single := make(columns, 3), make(columns, 4), make(columns, 6)
	names := len(e.Labels)
	for _, all := range lanes {
		c := all.coarser(limit, uint(e.Shift))
		merges := slices.ContainsFunc(c.all, func(m merged) bool { return m.count > 1 })
		before := [2]int{len(several[0]), len(single[0])}
		var last merged
		bin := int64(0)
		for i := range c.all {
			m := &c.all[i]
			if merges && c.short(m) {
				at := int64(m.start >> c.shift)
				several.add(int32(at-bin), int32(m.kind), int32(min(m.count, math.MaxInt32)),
					percentOf(m.busy, 1<<c.shift))
				bin = at
				continue
			}
			rank := int64(0)
			switch {
			case m.kind == MessageSlice:
				rank = int64(m.peer) - int64(m.rank)
			case t.edge > 1:
				rank = int64(m.rank) % int64(t.edge)
			}
			from := m.start >> e.Shift
			single.add(int32(from-last.start), int32(m.end>>e.Shift-from), int32(m.kind),
				int32(e.number(t.sliceLabel(m))), zigzag(int64(m.op)-int64(last.op)), zigzag(rank))
			last = merged{start: from, op: m.op}
		}
		length := int32(0)
		if merges {
			length = int32(c.shift) + 1
		}
		of.add(length, int32(len(several[0])-before[0]), int32(len(single[0])-before[1]))
	}
	l.Slices, l.Merged = len(several[0])+len(single[0]), len(several[0])
	l.Data = slices.Concat(of, several, single).encode()
	used = len(l.Data)
	for _, name := range e.Labels[names:] {
		used += len(name) + 3
	}
	return l, l.Merged == 0, used
}

// add adds a row.
func (c columns) add(row ...int32) {
	for k, v := range row {
		c[k] = append(c[k], v)
	}
}

// encodeWaits encodes the longest waits: rank, op, start, length and label.
func (t *Timeline) encodeWaits(e *encoded) *encodedLevel {
	all := make(columns, 5)
	for _, s := range slices.SortedFunc(slices.Values(t.waits), longer) {
		all.add(int32(s.Rank), int32(s.Op), int32(s.Start>>e.Shift), int32((s.End-s.Start)>>e.Shift),
			int32(e.number(t.labelOf(WaitSlice, s.Rank, s.Op))))
	}
	return &encodedLevel{Slices: len(all[0]), Data: all.encode()}
}

// sliceLabel returns the text of a slice: the name of its op or the size of its message.
func (t *Timeline) sliceLabel(m *merged) string {
	if m.kind == MessageSlice {
		return size.format(float64(m.bytes))
	}
	return t.labelOf(m.kind, m.rank, m.op)
}

// number returns the number of a label, from 1; 0 is none.
func (e *encoded) number(label string) int {
	if label == "" {
		return 0
	}
	n, known := e.numbers[label]
	if !known && len(e.Labels) < mostLabels && len(label) <= e.room {
		e.room -= len(label) + 3
		e.Labels = append(e.Labels, label)
		n = len(e.Labels)
		e.numbers[label] = n
	}
	return n
}

// percentOf returns a share in percent.
func percentOf(part, whole uint64) int32 {
	high, low := bits.Mul64(part, 100)
	if high >= whole {
		return math.MaxInt32
	}
	n, _ := bits.Div64(high, low, whole)
	return int32(min(n, math.MaxInt32))
}

// encodePath encodes the critical path as stretches on a line. Beyond the budget it omits the shortest ones.
func (t *Timeline) encodePath(shift, budget int) *encodedLevel {
	for least := uint64(0); ; least = max(2*least, 1<<shift) {
		all := make(columns, 3)
		rank, from := int64(0), int64(0)
		for i := range t.steps {
			s := &t.steps[i]
			if s.End-s.Start < least {
				continue
			}
			start := int64(s.Start >> shift)
			all.add(zigzag(int64(s.Rank)-rank), zigzag(start-from), int32(s.End>>shift-s.Start>>shift))
			rank, from = int64(s.Rank), start
		}
		if len(all[0]) > budget && least <= t.end {
			continue
		}
		l := &encodedLevel{Slices: len(all[0]), Data: all.encode()}
		if len(l.Data) <= budget || least > t.end {
			return l
		}
	}
}
