package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines differ by color, dashes and glyphs.
var (
	lineDashes = [][]vg.Length{nil, {6, 2.5}, {2, 2}, {8, 2, 2, 2}, {11, 3}, {1.5, 4}, {4, 1.5, 1, 1.5}, {14, 2, 2, 2}}
	lineGlyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{},
		draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
)

const (
	glyphRadius = 2.6
	lineWidth   = 1.4
)

func (t *theme) line(style int) draw.LineStyle {
	return draw.LineStyle{Color: t.fills[style%8], Width: lineWidth, Dashes: lineDashes[style%len(lineDashes)]}
}

func (t *theme) glyph(style int) draw.GlyphStyle {
	shape := lineGlyphs[(style+style/8)%len(lineGlyphs)]
	return draw.GlyphStyle{Color: t.fills[style%8], Radius: glyphRadius, Shape: shape}
}

func (m *lineMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	var path, upper, lower []vg.Point
	for i, p := range m.points {
		to := at(p.x.of, p.y.of)
		if m.step && i > 0 {
			path = append(path, vg.Point{X: to.X, Y: path[len(path)-1].Y})
		}
		path = append(path, to)
		if p.low != nil {
			lower, upper = append(lower, at(p.x.of, p.low.of)), append(upper, at(p.x.of, p.high.of))
		}
	}
	if m.band && len(upper) > 1 {
		area := append([]vg.Point(nil), upper...)
		for i := len(lower) - 1; i >= 0; i-- {
			area = append(area, lower[i])
		}
		c.FillPolygon(mix(t.fills[m.style%8], t.ground, 0.25), area)
	} else {
		for i := range upper {
			whisker(c, draw.LineStyle{Color: t.fills[m.style%8], Width: 0.9}, lower[i], upper[i])
		}
	}
	if !m.alone && len(path) > 1 {
		c.StrokeLines(t.line(m.style), path)
	}
	if !m.bare || len(m.points) == 1 {
		for _, p := range m.points {
			c.DrawGlyphNoClip(t.glyph(m.style), at(p.x.of, p.y.of))
		}
	}
}

// whisker draws the bar of an interval.
func whisker(c draw.Canvas, s draw.LineStyle, low, high vg.Point) {
	const half = 2.5
	c.StrokeLine2(s, low.X, low.Y, high.X, high.Y)
	for _, p := range []vg.Point{low, high} {
		c.StrokeLine2(s, p.X-half, p.Y, p.X+half, p.Y)
	}
}

// mix returns a color between two.
func mix(a, b color.Color, share float64) color.Color {
	r, g, bl, _ := a.RGBA()
	r2, g2, bl2, _ := b.RGBA()
	part := func(x, y uint32) byte { return byte((float64(x>>8))*share + float64(y>>8)*(1-share) + 0.5) }
	return color.RGBA{part(r, r2), part(g, g2), part(bl, bl2), 255}
}

// key returns the entry of the legend.
func (m *lineMarks) key() plotKey {
	style, bare, alone := m.style, m.bare, m.alone
	return plotKey{m.name, func(c draw.Canvas, t *theme) {
		y := c.Center().Y
		if !alone {
			c.StrokeLine2(t.line(style), c.Min.X, y, c.Max.X, y)
		}
		if !bare {
			c.DrawGlyphNoClip(t.glyph(style), c.Center())
		}
	}}
}

func rectangle(a, b vg.Point) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: min(a.X, b.X), Y: min(a.Y, b.Y)}, Max: vg.Point{X: max(a.X, b.X),
		Y: max(a.Y, b.Y)}}
}

// maxThick is the largest thickness of lying bars.
const maxThick = 36

func (m *barMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	for i := range m.at {
		from, to, low, high := m.bounds(i)
		a, b := at(low, from), at(high, to)
		if m.lying {
			a, b = at(from, low), at(to, high)
		}
		r := rectangle(a, b)
		if thick := r.Size().Y; m.lying && thick > maxThick {
			r.Min.Y, r.Max.Y = r.Min.Y+(thick-maxThick)/2, r.Max.Y-(thick-maxThick)/2
		}
		if r.Max.X > r.Min.X && r.Max.Y > r.Min.Y {
			t.fill(c, r, m.fill)
		}
		if m.text != nil && m.lying {
			s := t.small
			s.YAlign = draw.YCenter
			x := r.Max.X + 3
			if wide := s.Width(m.text[i]); x+wide > c.Max.X { // inside the bar
				x = max(c.Min.X+1, r.Max.X-wide-3)
				s.Color = t.ground
			}
			c.FillText(s, vg.Point{X: x, Y: (r.Min.Y + r.Max.Y) / 2}, m.text[i])
		}
	}
}

// barFills are the colors of the fills of bars and their hatchings: none, rising, falling, level, or upright.
var barFills = [9]struct{ color, hatch int }{{0, 0}, {8, 1}, {4, 0}, {1, 0}, {3, 2}, {5, 0}, {2, 3}, {6, 1}, {6, 4}}

// fill fills a rectangle like the bars of pages: the last two on the ground, others on their color.
func (t *theme) fill(c draw.Canvas, r vg.Rectangle, kind int) {
	f := barFills[kind%len(barFills)]
	ground, lines := t.fills[f.color], t.ground
	if kind >= 7 {
		ground, lines = t.ground, t.fills[f.color]
	}
	c.SetColor(ground)
	c.Fill(r.Path())
	style := draw.LineStyle{Color: lines, Width: 0.7}
	const gap = 4
	size := r.Size()
	if f.hatch == 0 || size.X < 0.5 || size.Y < 0.5 {
		return
	}
	switch f.hatch {
	case 1, 2: // x - y, or x + y, is a multiple of gap
		low, high := r.Min.X-r.Max.Y, r.Max.X-r.Min.Y
		if f.hatch == 2 {
			low, high = r.Min.X+r.Min.Y, r.Max.X+r.Max.Y
		}
		for k := math.Ceil(float64(low) / gap); k*gap < float64(high); k++ {
			d := vg.Length(k * gap)
			if f.hatch == 1 {
				y0, y1 := max(r.Min.Y, r.Min.X-d), min(r.Max.Y, r.Max.X-d)
				c.StrokeLine2(style, y0+d, y0, y1+d, y1)
			} else {
				y0, y1 := max(r.Min.Y, d-r.Max.X), min(r.Max.Y, d-r.Min.X)
				c.StrokeLine2(style, d-y0, y0, d-y1, y1)
			}
		}
	case 3:
		for y := vg.Length(math.Ceil(float64(r.Min.Y)/gap) * gap); y < r.Max.Y; y += gap {
			c.StrokeLine2(style, r.Min.X, y, r.Max.X, y)
		}
	case 4:
		for x := vg.Length(math.Ceil(float64(r.Min.X)/gap) * gap); x < r.Max.X; x += gap {
			c.StrokeLine2(style, x, r.Min.Y, x, r.Max.Y)
		}
	}
	if kind >= 7 {
		c.StrokeLines(draw.LineStyle{Color: t.fills[f.color], Width: 0.5}, []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y},
			r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min})
	}
}

// fillKey returns the entry of the legend of bars.
func fillKey(name string, kind int) plotKey {
	return plotKey{name, func(c draw.Canvas, t *theme) { t.fill(c, c.Rectangle, kind) }}
}

func (m *rangeMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	for i, place := range m.places {
		of, y := m.of[i], float64(place)
		c.SetColor(mix(t.fills[0], t.ground, 0.35))
		c.Fill(rectangle(at(of[0].of, y-0.2), at(of[4].of, y+0.2)).Path())
		c.SetColor(mix(t.fills[0], t.ground, 0.8))
		c.Fill(rectangle(at(of[1].of, y-0.3), at(of[3].of, y+0.3)).Path())
		a, b := at(of[2].of, y-0.38), at(of[2].of, y+0.38)
		c.StrokeLine2(draw.LineStyle{Color: t.ink, Width: 1.6}, a.X, a.Y, b.X, b.Y)
	}
}

// keys returns the legend.
func (m *rangeMarks) keys() []plotKey {
	block := func(share, high float64) func(c draw.Canvas, t *theme) {
		return func(c draw.Canvas, t *theme) {
			r := c.Rectangle
			cut := r.Size().Y * vg.Length(1-high) / 2
			r.Min.Y, r.Max.Y = r.Min.Y+cut, r.Max.Y-cut
			c.SetColor(mix(t.fills[0], t.ground, share))
			c.Fill(r.Path())
		}
	}
	return []plotKey{{"minimum to maximum", block(0.35, 0.6)}, {"middle half", block(0.8, 1)},
		{"median", func(c draw.Canvas, t *theme) {
			x := c.Center().X
			c.StrokeLine2(draw.LineStyle{Color: t.ink, Width: 1.6}, x, c.Min.Y, x, c.Max.Y)
		}}}
}

func (m *gridMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	if m.shades != nil {
		m.shades.image(c, m.cells, t)
	} else {
		m.fill(c, at, t)
	}
	line := draw.LineStyle{Color: t.soft, Width: 0.5}
	for _, border := range m.borders {
		p := at(border, border)
		c.StrokeLine2(line, p.X, c.Min.Y, p.X, c.Max.Y)
		c.StrokeLine2(line, c.Min.X, p.Y, c.Max.X, p.Y)
	}
	c.StrokeLines(line, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}, c.Min})
}

// fill fills the cells with the colors of their levels.
func (m *gridMarks) fill(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	for i, row := range m.cells {
		for k := 0; k < len(row); {
			if row[k].of <= 0 {
				k++
				continue
			}
			end, level := k+1, m.level(row[k].of)
			for end < len(row) && row[end].of > 0 && m.level(row[end].of) == level {
				end++
			}
			y := float64(i)
			c.SetColor(t.levels[level])
			r := rectangle(at(float64(k)-0.5, y-0.5), at(float64(end)-0.5, y+0.5))
			r.Min.Y = max(c.Min.Y, r.Min.Y-seam)
			r.Max.X = min(c.Max.X, r.Max.X+seam)
			c.Fill(r.Path())
			k = end
		}
	}
}

// seam is the overlap of cells, so that the ground does not show between them.
const seam = 0.2

// levelMarks are the colors of a grid as a scale.
type levelMarks struct{ bounds [levels + 1]float64 }

func (m *levelMarks) extent(add func(x, y float64)) {
	add(0, m.bounds[0])
	add(1, m.bounds[levels])
}

func (m *levelMarks) list(*lister) {}

func (m *levelMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	for i, shade := range t.levels {
		c.SetColor(shade)
		c.Fill(rectangle(at(0, m.bounds[i]), at(1, m.bounds[i+1])).Path())
	}
}

func (m *ruleMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	p := at(m.at.of, m.at.of)
	a, b := vg.Point{X: p.X, Y: c.Min.Y}, vg.Point{X: p.X, Y: c.Max.Y}
	if m.level {
		a, b = vg.Point{X: c.Min.X, Y: p.Y}, vg.Point{X: c.Max.X, Y: p.Y}
	}
	c.StrokeLine2(t.rule(), a.X, a.Y, b.X, b.Y)
}

func (t *theme) rule() draw.LineStyle {
	return draw.LineStyle{Color: t.ink, Width: 0.9, Dashes: []vg.Length{1, 2}}
}

// key returns the entry of the legend.
func (m *ruleMarks) key(name string) plotKey {
	level := m.level
	return plotKey{name, func(c draw.Canvas, t *theme) {
		if level {
			c.StrokeLine2(t.rule(), c.Min.X, c.Center().Y, c.Max.X, c.Center().Y)
		} else {
			c.StrokeLine2(t.rule(), c.Center().X, c.Min.Y, c.Center().X, c.Max.Y)
		}
	}}
}

func (m *dagMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	kinds := m.kinds()
	wide := at(1, 0).X - at(0, 0).X
	high := c.Max.Y - c.Min.Y
	for _, lanes := range m.lanes {
		high = min(high, (at(0, 0).Y-at(0, 1).Y)*0.8/vg.Length(lanes))
	}
	half := vg.Point{X: min(wide*0.32, 30), Y: min(high*0.36, 9)}
	point := func(i int) vg.Point {
		x, y := m.place(i)
		return at(x, y)
	}
	for _, e := range m.edges {
		t.arrow(c, e.kind, point(e.from), point(e.to), half)
	}
	for i, o := range m.ops {
		p, style := point(i), slices.Index(kinds, o.kind)
		r := vg.Rectangle{Min: p.Sub(half), Max: p.Add(half)}
		c.SetColor(t.fills[style%8])
		c.Fill(r.Path())
		s := t.small
		s.Color, s.XAlign, s.YAlign = t.ground, draw.XCenter, draw.YCenter
		for _, text := range []string{fmt.Sprintf("%d %s", o.op, o.kind), fmt.Sprint(o.op)} {
			for s.Font.Size = t.small.Font.Size; s.Font.Size >= 4 && !(s.Width(text) < 2*half.X-1 &&
				s.Height(text) < 2*half.Y+2); {
				s.Font.Size *= 0.9
			}
			if s.Font.Size >= 4 {
				c.FillText(s, p, text)
				break
			}
		}
	}
}

// arrow draws an edge between two nodes of a half size.
func (t *theme) arrow(c draw.Canvas, kind int, from, to, half vg.Point) {
	s := draw.LineStyle{Color: t.soft, Width: 0.8}
	switch kind {
	case 1:
		s.Dashes = []vg.Length{3, 2}
	case 2:
		s.Color, s.Width = t.fills[1], 1
	}
	d := to.Sub(from)
	length := vg.Length(math.Hypot(float64(d.X), float64(d.Y)))
	if length == 0 {
		return
	}
	edge := func(d vg.Point) vg.Length { // share of d within a node
		share := vg.Length(math.Inf(1))
		if d.X != 0 {
			share = min(share, half.X/max(d.X, -d.X))
		}
		if d.Y != 0 {
			share = min(share, half.Y/max(d.Y, -d.Y))
		}
		return min(share, 0.5)
	}
	start, end := from.Add(d.Scale(edge(d))), to.Sub(d.Scale(edge(d)))
	c.StrokeLine2(s, start.X, start.Y, end.X, end.Y)
	u := d.Scale(1 / length)
	back := end.Sub(u.Scale(4))
	side := vg.Point{X: -u.Y * 2, Y: u.X * 2}
	c.FillPolygon(s.Color, []vg.Point{end, back.Add(side), back.Sub(side)})
}

// keys returns the legend.
func (m *dagMarks) keys() (keys []plotKey) {
	for i, kind := range m.kinds() {
		keys = append(keys, plotKey{kind, func(c draw.Canvas, t *theme) {
			c.SetColor(t.fills[i%8])
			c.Fill(c.Rectangle.Path())
		}})
	}
	for kind, name := range dagKinds {
		if slices.ContainsFunc(m.edges, func(e dagEdge) bool { return e.kind == kind }) {
			keys = append(keys, plotKey{name, func(c draw.Canvas, t *theme) {
				y := c.Center().Y
				t.arrow(c, kind, vg.Point{X: c.Min.X, Y: y}, vg.Point{X: c.Max.X, Y: y}, vg.Point{})
			}})
		}
	}
	return keys
}
