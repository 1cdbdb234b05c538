package report

import (
	"math/big"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ganttFills are the fills of the kinds of slices as of bars, ganttColors their colors; below 0: no hatching.
var (
	ganttFills = [sliceKinds]int{CalcSlice: 0, OverheadSlice: 2, NoiseSlice: 5, MemorySlice: 4, StorageSlice: 6,
		CommSlice: 3, WaitSlice: 7, CollectiveSlice: -1, MessageSlice: -1}
	ganttColors = [sliceKinds]int{CalcSlice: 0, OverheadSlice: 4, NoiseSlice: 5, MemorySlice: 3, StorageSlice: 2,
		CommSlice: 1, WaitSlice: 6, CollectiveSlice: 3, MessageSlice: 2}
)

// slices fills rectangles in the color of a kind of slices: hatched if there is room, otherwise as one path.
func (t *theme) slices(c draw.Canvas, all []vg.Rectangle, kind SliceKind) {
	var small vg.Path
	for _, r := range all {
		if size := r.Size(); ganttFills[kind] >= 0 && size.X >= 4 && size.Y >= 4 {
			t.fill(c, r, ganttFills[kind])
		} else {
			small = append(small, r.Path()...)
		}
	}
	of := t.fills[ganttColors[kind]]
	if kind == WaitSlice {
		of = mix(of, t.ground, 0.4)
	}
	c.SetColor(of)
	c.Fill(small)
}

// drawGantt draws the timeline of a run: a row per lane, rank or group of ranks, as in its page.
func drawGantt(s *source) *picture {
	t := s.timeline
	if t == nil || t.Empty() || t.end == 0 {
		return nil
	}
	r := t.arrange()
	m := &ganttMarks{t: t, rows: r}
	out := &picture{panels: []*panel{{x: plotAxis{of: quantity{name: "time", unit: time}, stack: true},
		y: plotAxis{of: quantity{name: "lane"}, names: r.labels, down: true}, marks: []marks{m}}}}
	if r.per > 0 {
		out.panels[0].y.of.name = "rank"
	}
	for k, n := range t.counts {
		if n > 0 {
			out.keys = append(out.keys, plotKey{sliceNames[k].name, func(c draw.Canvas, th *theme) {
				th.slices(c, []vg.Rectangle{c.Rectangle}, SliceKind(k))
			}})
		}
	}
	if len(t.steps) > 0 {
		out.keys = append(out.keys, plotKey{"critical path", func(c draw.Canvas, th *theme) {
			c.StrokeLine2(pathLine(th), c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
		}})
	}
	return out
}

func pathLine(t *theme) draw.LineStyle { return draw.LineStyle{Color: t.ink, Width: 0.6} }

// ganttMarks are the slices of a timeline, stacked in columns of one pixel of a page, and the critical path.
type ganttMarks struct {
	t    *Timeline
	rows *rows
}

// time returns the picoseconds at a column.
func (m *ganttMarks) time(column int) num {
	ps := m.t.ps(m.t.end)
	return whole(ps.Div(ps.Mul(ps, big.NewInt(int64(column))), big.NewInt(width-labels-right)))
}

// place returns the place of a pixel on the axis of rows.
func (m *ganttMarks) place(y int) float64 { return float64(y)/float64(m.rows.pitch) - 0.5 }

func (m *ganttMarks) extent(add func(x, y float64)) {
	add(0, m.place(0))
	add(m.time(width-labels-right).of, m.place(m.rows.pitch*len(m.rows.labels)))
}

func (m *ganttMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	var all [sliceKinds][]vg.Rectangle
	for i := range m.rows.bands {
		b := &m.rows.bands[i]
		unit := b.high / b.steps
		for _, s := range b.stack(m.t.end, 1) {
			low, up := b.y+b.high-s.low*unit, b.y+b.high-s.up*unit
			all[s.kind] = append(all[s.kind], rectangle(at(m.time(s.from).of, m.place(low)), at(m.time(s.to).of,
				m.place(up))))
		}
	}
	for k := range all {
		t.slices(c, all[k], SliceKind(k))
	}
	if points := m.t.turns(m.rows); len(points) > 1 {
		line := make([]vg.Point, len(points))
		for i, p := range points {
			line[i] = at(m.time(p[0]).of, m.place(p[1]))
		}
		c.StrokeLines(pathLine(t), line)
	}
}

func (m *ganttMarks) list(l *lister) {
	for i := range m.rows.bands {
		b := &m.rows.bands[i]
		row := m.rows.labels[b.y/m.rows.pitch]
		for _, s := range b.stack(m.t.end, 1) {
			l.row(sliceNames[s.kind].name, plotCell{l.panel.y.of.column(), row},
				plotCell{"from (ps)", m.time(s.from).text}, plotCell{"to (ps)", m.time(s.to).text},
				plotCell{"share", rounded(float64(s.up-s.low) / float64(b.steps)).text})
		}
	}
	for _, p := range m.t.turns(m.rows) {
		l.row("critical path", plotCell{l.panel.y.of.column(), m.rows.labels[p[1]/m.rows.pitch]},
			plotCell{"from (ps)", m.time(p[0]).text})
	}
}
