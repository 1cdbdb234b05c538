package report

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// random returns slices of a number of ranks with lengths of many magnitudes.
func random(ranks, n int) []Slice {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]Slice, n)
	for i := range all {
		start := r.Uint64N(1 << 40)
		all[i] = Slice{Kind: SliceKind(r.IntN(int(sliceKinds))), Number: int32(r.IntN(3)), Rank: uint32(r.IntN(ranks)),
			Op: uint32(i), Start: start, End: start + 1 + r.Uint64N(1<<r.IntN(34)), Peer: uint32(r.IntN(ranks)),
			Bytes: r.Uint64N(1 << 20)}
	}
	return all
}

func collect(ranks, limit int, all []Slice) *Timeline {
	t := NewTimeline(1000, ranks)
	t.limit = min(t.limit, limit)
	for _, s := range all {
		t.Add(s)
	}
	t.Finish(0, func(kind SliceKind, rank, op uint32) string { return "</script>"[:rank%9] })
	return t
}

// TestTimeline checks that merging keeps all ops and their time, that memory is bounded, and that the order of slices
// does not matter.
func TestTimeline(t *testing.T) {
	for ranks, limit := range map[int]int{1: 500, 7: mostSlices, 3000: 12} {
		all := random(ranks, 60_000)
		timeline := collect(ranks, limit, all)
		if n := len(timeline.lines); n > mostLines {
			t.Errorf("%d ranks: %d lines", ranks, n)
		}
		type place struct {
			line int
			kind SliceKind
		}
		want, found := map[place][2]uint64{}, map[place][2]uint64{}
		for _, s := range all {
			p := place{int(s.Rank) / timeline.edge, s.Kind}
			want[p] = [2]uint64{want[p][0] + 1, want[p][1] + s.End - s.Start}
		}
		aggregated := false
		for _, l := range timeline.lanes() {
			if len(l.all) > timeline.limit || len(l.pending) > 0 {
				t.Errorf("%d ranks: a lane with %d slices and %d pending, at most %d", ranks, len(l.all),
					len(l.pending), timeline.limit)
			}
			for _, m := range l.all {
				p := place{l.line, m.kind}
				found[p] = [2]uint64{found[p][0] + uint64(m.count), found[p][1] + m.busy}
				aggregated = aggregated || m.count > 1
				if m.count == 1 && (all[m.op].Start != m.start || all[m.op].End != m.end || all[m.op].Rank != m.rank) {
					t.Errorf("a single slice is %+v, not %+v", m, all[m.op])
				}
			}
		}
		if len(found) != len(want) {
			t.Errorf("%d ranks: %d sums, want %d", ranks, len(found), len(want))
		}
		for p, sum := range want {
			if found[p] != sum {
				t.Errorf("%d ranks: %+v has %v ops and ticks, want %v", ranks, p, found[p], sum)
			}
		}
		if aggregated == (ranks == 7) {
			t.Errorf("%d ranks: slices are merged: %v", ranks, aggregated)
		}
		slices.SortFunc(all, func(a, b Slice) int { return int(b.Start) - int(a.Start) })
		again := collect(ranks, limit, all)
		for _, budget := range []int{30_000, maxTimeline} {
			a, b := encodedOf(t, timeline, budget), encodedOf(t, again, budget)
			if !bytes.Equal(a, b) {
				t.Errorf("%d ranks: the order of slices changes the page", ranks)
			}
			if len(a) > budget*5/4+20*len(timeline.lanes()) {
				t.Errorf("%d ranks: %d bytes, want %d", ranks, len(a), budget)
			}
		}
		a, b := timeline.figureOf(timeline.arrange(), 50_000), again.figureOf(again.arrange(), 50_000)
		if a.marks.String() != b.marks.String() {
			t.Errorf("%d ranks: the order of slices changes the picture", ranks)
		}
	}
}

func encodedOf(t *testing.T, timeline *Timeline, budget int) []byte {
	t.Helper()
	b, err := json.Marshal(timeline.encode(budget))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodeLevel returns the columns of a level.
func decodeLevel(t *testing.T, l *encodedLevel, groups ...[2]int) (all columns) {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(l.Data)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for range g[1] {
			column := make([]int32, g[0])
			for i := range column {
				for k := range 4 {
					column[i] |= int32(plain[k*g[0]+i]) << (8 * k)
				}
			}
			all, plain = append(all, column), plain[4*g[0]:]
		}
	}
	if len(plain) > 0 {
		t.Fatalf("%d bytes after the columns", len(plain))
	}
	return all
}

// TestTimelineLevels decodes the levels of a page: finer ones have more slices, all have each op.
func TestTimelineLevels(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	const n = 400_000
	timeline := collect(2, mostSlices, random(2, n))
	timeline.AddStep(Step{Rank: 1, End: 5})
	timeline.AddStep(Step{Rank: 1, Start: 5, End: 9})
	timeline.AddStep(Step{Rank: 0, Start: 9, End: 1 << 40})
	e := timeline.encode(20 * maxTimeline)
	if len(e.Levels) != timelineLevels || e.Path.Slices != 2 || !e.exact {
		t.Fatalf("%d levels, %d stretches, exact: %v", len(e.Levels), e.Path.Slices, e.exact)
	}
	lanes := len(timeline.lanes())
	last := 0
	for k := range e.Levels {
		l := &e.Levels[k]
		all := decodeLevel(t, l, [2]int{lanes, 3}, [2]int{l.Merged, 4}, [2]int{l.Slices - l.Merged, 6})
		ops := l.Slices - l.Merged
		for _, count := range all[3+2] {
			ops += int(count)
		}
		most := 0
		for i := range lanes {
			most = max(most, int(all[1][i]+all[2][i]))
		}
		if limit := firstSlices << (2 * k); ops != n || l.Slices <= last || most > limit || k < 2 && most <= limit/4 {
			t.Errorf("level %d has %d ops in %d slices, at most %d per lane", k, ops, l.Slices, most)
		}
		last = l.Slices
	}
	few := random(2, 2000)
	small := collect(2, mostSlices, few).encode(maxTimeline)
	if len(small.Levels) != 1 || !small.exact || small.Levels[0].Slices != len(few) {
		t.Errorf("a short timeline has %d levels, exact: %v", len(small.Levels), small.exact)
	}
	all := decodeLevel(t, &small.Levels[0], [2]int{len(small.Lanes) / 3, 3}, [2]int{0, 4}, [2]int{len(few), 6})
	sum, want := 0, 0
	for i, v := range all[3+4+1] { // lengths of singles in ticks of the page
		sum += int(v)
		want += int(few[i].End>>small.Shift - few[i].Start>>small.Shift)
	}
	if sum != want {
		t.Errorf("%d ticks, want %d", sum, want)
	}
}

// TestTimelineWaits checks the longest waits and the collectives of a result.
func TestTimelineWaits(t *testing.T) {
	all := random(5, 20_000)
	timeline := NewTimeline(1000, 5)
	for i := range all {
		if all[i].Kind == CollectiveSlice {
			all[i].Kind = CalcSlice
		}
		timeline.Add(all[i])
	}
	for number := range int64(100) {
		for rank := range uint32(5) {
			at := uint64(number)*100 + uint64(rank)
			timeline.AddPart("<b>", number, rank, 7, at, at+2)
			timeline.AddPart("<b>", number, rank, 8, at+uint64(number), at+uint64(number)+2)
		}
	}
	timeline.Finish(1<<40, nil)
	waits := slices.DeleteFunc(all, func(s Slice) bool { return s.Kind != WaitSlice })
	slices.SortFunc(waits, longer)
	document, err := json.Marshal(timeline)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Slices uint64
		Kinds  []struct {
			Kind   string
			Slices uint64
			Time   big.Int `json:"time_ps"`
		}
		Waits []struct {
			Rank, Op uint32
			Time     uint64 `json:"time_ps"`
		}
		Collectives int
		Longest     []struct {
			Number     int64
			Start, End uint64
			Time       uint64 `json:"time_ps"`
		} `json:"longest_collectives"`
	}
	if err := json.Unmarshal(document, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Waits) != listedMost || found.Collectives != 100 || len(found.Longest) != listedMost ||
		found.Slices != uint64(20_000+500) {
		t.Fatalf("%d waits, %d collectives, %d slices", len(found.Waits), found.Collectives, found.Slices)
	}
	for i, w := range found.Waits {
		if s := waits[i]; w.Rank != s.Rank || w.Op != s.Op || w.Time != 1000*(s.End-s.Start) {
			t.Errorf("wait %d is %+v, want %+v", i, w, s)
		}
	}
	if got := found.Longest[0]; got.Number != 99 || got.Time != (99+2+4)*1000 {
		t.Errorf("the longest collective is %+v", got)
	}
	for _, k := range found.Kinds {
		if k.Kind == "collective" && (k.Slices != 500 || k.Time.Int64() != 5*1000*(99*100/2+2*100)) {
			t.Errorf("collectives: %d slices, %v ps", k.Slices, &k.Time)
		}
	}
}

// TestTimelinePage checks pages of hostile timelines.
func TestTimelinePage(t *testing.T) {
	extreme := NewTimeline(1000, 3)
	for i := range uint64(20_000) { // times beyond the range of int64, overlaps, many streams
		extreme.Add(Slice{Kind: WaitSlice, Rank: uint32(i % 3), Number: int32(i), Start: i, End: 1<<64 - 1 - i%7})
		extreme.Add(Slice{Kind: CalcSlice, Rank: 2, Number: -int32(i), Start: 1<<64 - 2 - i, End: 1<<64 - 1 - i})
	}
	extreme.Add(Slice{Start: 5, End: 4})
	extreme.Finish(0, func(SliceKind, uint32, uint32) string { return strings.Repeat("\u202e</script>\x00", 1000) })
	if n := len(extreme.lanes()); n > 3*maxLanes {
		t.Errorf("%d lanes", n)
	}
	empty := NewTimeline(1, 0)
	empty.Finish(0, nil)
	for name, timeline := range map[string]*Timeline{"extreme": extreme, "empty": empty,
		"many": collect(16384, mostSlices, random(16384, 50_000)), "few": collect(2, mostSlices, random(2, 100))} {
		section, err := json.Marshal(timeline)
		if err != nil {
			t.Fatal(err)
		}
		document := append(bytes.TrimSuffix(result("x", 3), []byte("}")), `,"timeline":`...)
		document = append(append(document, section...), '}')
		r, err := simulation(document, nil, timeline)
		if err != nil {
			t.Fatal(err)
		}
		var page, again bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		if r, err = simulation(document, nil, timeline); err != nil || r.WriteHTML(&again) != nil ||
			!bytes.Equal(page.Bytes(), again.Bytes()) {
			t.Errorf("%s: two pages differ: %v", name, err)
		}
		text := page.String()
		ends, pictures := 3, 1
		if name == "empty" {
			ends, pictures = 2, 0
		}
		if n := strings.Count(text, "</script>"); n != ends {
			t.Errorf("%s: %d ends of scripts, want %d", name, n, ends)
		}
		if n := strings.Count(text, `<g class="slices">`); n != pictures {
			t.Errorf("%s: %d pictures", name, n)
		}
		if len(text) > 5_000_000 || name != "many" && len(text) > 400_000 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
	}
}

// timelines returns results with timelines: of few lanes, and of many.
func timelines(t *testing.T) (all []*Report) {
	t.Helper()
	long := random(3000, 30_000)
	for i := range long {
		long[i].End += 1 << 38
	}
	few := collect(2, mostSlices, random(2, 100))
	few.AddStep(Step{Rank: 1, End: 1 << 39})
	few.AddStep(Step{Rank: 0, Start: 1 << 39, End: 1 << 40})
	for _, timeline := range []*Timeline{few, collect(3000, mostSlices, long)} {
		r, err := simulation(result("x", 3), nil, timeline)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestGantt checks that pictures of timelines have the slices and the critical path, and need a timeline.
func TestGantt(t *testing.T) {
	for i, r := range timelines(t) {
		var out bytes.Buffer
		data := new(PlotData)
		if err := r.Plot(&out, PlotFile{Kind: "gantt", Name: "x.svg"}, options(t), data); err != nil {
			t.Fatal(err)
		}
		path := 0
		for _, row := range data.rows {
			if row["series"] == "critical path" {
				path++
			}
		}
		if path != 4-4*i || len(data.rows) < 20 || out.Len() < 5000 || out.Len() > 3_000_000 {
			t.Errorf("%d rows, %d of the critical path, %d bytes", len(data.rows), path, out.Len())
		}
	}
	r, err := Simulation(result("x", 3))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Plot(io.Discard, PlotFile{Kind: "gantt", Name: "x.svg"}, options(t), nil); err == nil {
		t.Error("a picture without a timeline")
	}
}
