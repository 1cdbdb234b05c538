package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawTopology draws the network with the utilization of its links.
func drawTopology(s *source) *picture {
	network := s.root.get("network")
	links := network.get("drawn", "rows").all()
	if len(links) == 0 {
		return nil
	}
	m := &linkMarks{most: network.get("max_use").number(), apart: 1}
	layout := network.get("layout").text()
	m.rows, m.columns = layout != "groups", layout == "grid"
	for _, v := range network.get("nodes", "rows").all() {
		m.nodes = append(m.nodes, linkNode{unitShare(v.at(2)), 1 - unitShare(v.at(3)), v.at(1).text() == "switch"})
	}
	for i, a := range m.nodes {
		for _, b := range m.nodes[:i] {
			if distance := math.Hypot(a.x-b.x, a.y-b.y); a.isSwitch && b.isSwitch && distance > 1e-9 {
				m.apart = min(m.apart, distance)
			}
		}
	}
	for _, row := range links {
		from, to := int(row.at(1).number()), int(row.at(2).number())
		if from >= 0 && to >= 0 && from < len(m.nodes) && to < len(m.nodes) {
			m.links = append(m.links, row)
		}
	}
	out := &picture{note: "utilization of links: the larger of both directions"}
	place := plotAxis{of: quantity{name: "place"}, bare: true}
	out.panels = []*panel{{x: place, y: place, marks: []marks{m}}}
	used := make(map[int]bool)
	for _, row := range m.links {
		used[m.level(row)] = true
	}
	for level := range useLevels + 1 {
		if !used[level] {
			continue
		}
		name := "no traffic"
		if level > 0 {
			name = percent.format(m.most*float64(level-1)/useLevels) + " to " +
				percent.format(m.most*float64(level)/useLevels)
		}
		out.keys = append(out.keys, plotKey{name, func(c draw.Canvas, t *theme) {
			y := c.Center().Y
			c.StrokeLine2(linkStyle(level, t), c.Min.X, y, c.Max.X, y)
		}})
	}
	return out
}

// linkMarks are the nodes and links of a network.
type linkMarks struct {
	nodes []linkNode
	links []value // rows of the section "network"
	most  float64 // largest utilization
	apart float64 // smallest distance of switches
	// Links past other nodes of their row or column are arcs.
	rows, columns bool
}

type linkNode struct {
	x, y     float64
	isSwitch bool
}

// level returns 0 for a link without traffic, and otherwise the level of its utilization.
func (m *linkMarks) level(row value) int {
	use := mostUse(row)
	if use <= 0 || m.most <= 0 {
		return 0
	}
	return 1 + min(useLevels-1, int(useLevels*use/m.most))
}

// linkStyle returns the line of a level: the more traffic, the wider and the stronger.
func linkStyle(level int, t *theme) draw.LineStyle {
	if level == 0 {
		return draw.LineStyle{Color: mix(t.ink, t.ground, 0.45), Width: 0.4, Dashes: []vg.Length{2, 1.5}}
	}
	share := float64(level) / useLevels
	var of color.Color = mix(t.fills[0], t.ground, 0.4+0.6*share)
	if level == useLevels {
		of = mix(t.fills[0], t.ink, 0.6)
	}
	return draw.LineStyle{Color: of, Width: vg.Length(0.3 + 2*share)}
}

func (m *linkMarks) extent(add func(x, y float64)) {
	add(-0.02, -0.04)
	add(1.02, 1.04)
}

func (m *linkMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	for level := range useLevels + 1 {
		for _, row := range m.links {
			if m.level(row) == level {
				c.StrokeLines(linkStyle(level, t), m.path(row, at))
			}
		}
	}
	hosts, switches := vg.Length(1.4), vg.Length(2.6)
	if len(m.nodes) > 300 {
		hosts, switches = 0.6, 1.4
	}
	for _, n := range m.nodes {
		style := draw.GlyphStyle{Color: t.ink, Radius: hosts, Shape: draw.CircleGlyph{}}
		if n.isSwitch {
			style.Radius, style.Shape = switches, draw.BoxGlyph{}
		}
		c.DrawGlyphNoClip(style, at(n.x, n.y))
	}
}

// path returns the points of a link: of a line, or of an arc if other nodes may be on the line.
func (m *linkMarks) path(row value, at func(x, y float64) vg.Point) (points []vg.Point) {
	from, to := m.nodes[int(row.at(1).number())], m.nodes[int(row.at(2).number())]
	dx, dy := to.x-from.x, to.y-from.y
	const steps = 12
	bend := 0.0
	if level := m.columns && math.Abs(dx) < 1e-4 || m.rows && math.Abs(dy) < 1e-4; level && from.isSwitch &&
		to.isSwitch &&
		math.Hypot(dx, dy) > 1.4*m.apart {
		bend = min(0.05, 0.15*math.Hypot(dx, dy)) / math.Hypot(dx, dy)
	}
	for i := range steps + 1 {
		share := float64(i) / steps
		if bend == 0 && i > 0 && i < steps {
			continue
		}
		aside := 4 * bend * share * (1 - share)
		points = append(points, at(from.x+dx*share+dy*aside, from.y+dy*share-dx*aside))
	}
	return points
}

func (m *linkMarks) list(l *lister) {
	for _, row := range m.links {
		l.row("link", plotCell{"link", row.at(0).text()}, plotCell{"bytes", exact(row.at(4)).text},
			plotCell{"bytes back", exact(row.at(5)).text}, plotCell{"utilization", exact(row.at(6)).text},
			plotCell{"utilization back", exact(row.at(7)).text})
	}
}
