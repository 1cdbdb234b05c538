package report

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// LoadMatrix is the bytes from each node to each other as shares of all bytes. A row of a matrix of more than 512 nodes
// is the sum of as many consecutive nodes as are necessary for at most 512 rows.
type LoadMatrix struct {
	Name  string      `json:"name,omitempty"`
	Nodes int         `json:"nodes"`
	Edge  int         `json:"nodes_per_row"`
	Racks []int       `json:"racks,omitempty"` // first node of each rack
	Share [][]float64 `json:"share"`           // by source, then destination; set by Normalise
}

// MaxLoadMatrices is the largest number of matrices in a picture.
const MaxLoadMatrices = 16

// NewLoadMatrix returns a matrix without bytes.
func NewLoadMatrix(nodes int, racks []int) *LoadMatrix {
	m := &LoadMatrix{Nodes: nodes, Edge: (nodes + maxExact - 1) / maxExact, Racks: racks}
	m.Share = make([][]float64, (nodes+m.Edge-1)/m.Edge)
	for i := range m.Share {
		m.Share[i] = make([]float64, len(m.Share))
	}
	return m
}

// Add adds bytes, or another measure of load.
func (m *LoadMatrix) Add(src, dst int, load float64) {
	m.Share[src/m.Edge][dst/m.Edge] += load
}

// Normalise divides the matrix by its sum. It reports whether that is above 0.
func (m *LoadMatrix) Normalise() bool {
	total := 0.0
	for _, row := range m.Share {
		for _, x := range row {
			total += x
		}
	}
	for _, row := range m.Share {
		for i := range row {
			row[i] /= total
		}
	}
	return total > 0
}

// WriteLoads writes pictures of matrices beside each other, of the kind matrix.
func (o *Outputs) WriteLoads(all []*LoadMatrix) error {
	o.of = ofMatrix
	if err := o.Plots.check(o.of, "", nil); err != nil {
		return err
	}
	document, err := json.Marshal(map[string]any{"loads": all})
	if err != nil {
		return err
	}
	return o.write(&Report{document: document, of: ofMatrix})
}

// drawShares draws matrices of load.
func drawShares(s *source, all []value) *picture {
	out := &picture{}
	if len(all) > 1 {
		out.across = 2 * min(4, len(all))
	} else {
		out.title = all[0].get("name").text()
	}
	for _, load := range all {
		edge := max(1, int(load.get("nodes_per_row").number()))
		m := &gridMarks{name: "fraction of load", of: quantity{name: "fraction of load"}, edge: edge,
			shades: &shading{least: math.MaxFloat64, log: s.measure == "log"}}
		for _, row := range load.get("share").all() {
			cells := make([]num, row.len())
			for k := range cells {
				if cells[k] = exact(row.at(k)); cells[k].of > 0 {
					m.shades.least, m.shades.most = min(m.shades.least, cells[k].of), max(m.shades.most, cells[k].of)
				}
			}
			m.cells = append(m.cells, cells)
		}
		if m.shades.most == 0 {
			return nil
		}
		m.shades.settle()
		for _, first := range load.get("racks").all()[min(1, load.get("racks").len()):] {
			m.borders = append(m.borders, first.number()/float64(edge)-0.5)
		}
		p := &panel{x: rankAxis("destination", len(m.cells), edge), y: rankAxis("source", len(m.cells), edge),
			marks: []marks{m}, weight: 8}
		p.y.down = true
		wide := scaleWeight
		if edge > 1 {
			out.note = fmt.Sprintf("each row and column: %d nodes", edge)
		}
		if len(all) > 1 {
			p.title = fmt.Sprintf("%g nodes", load.get("nodes").number())
			if edge > 1 {
				p.title += fmt.Sprintf(", %d per row", edge)
			}
			out.note, wide = "", 4
		}
		scale := &panel{x: plotAxis{bare: true}, y: plotAxis{of: m.of, tight: true, stack: true, log: m.shades.log},
			marks: []marks{m.shades}, weight: wide}
		out.panels = append(out.panels, p, scale)
	}
	return out
}

// shading are the colors of positive numbers, from least to most.
type shading struct {
	least, most float64
	log         bool
}

// settle sets the ends of the scale.
func (s *shading) settle() {
	switch {
	case !s.log:
		s.least = 0
	case s.least == s.most:
		s.least = s.most / 10
	}
}

// shades is the number of colors of a shading.
const shades = 64

// shade returns the color of a number, 1..shades.
func (s *shading) shade(x float64) uint8 {
	part := x / s.most
	if s.log {
		part = math.Log(x/s.least) / math.Log(s.most/s.least)
	}
	return uint8(1 + max(0, min(shades-1, int(part*shades))))
}

// bound returns the lower end of the numbers of a shade.
func (s *shading) bound(shade int) float64 {
	part := float64(shade-1) / shades
	if s.log {
		return s.least * math.Exp(part*math.Log(s.most/s.least))
	}
	return part * s.most
}

// palette returns the ground and the colors.
func (s *shading) palette(t *theme) color.Palette {
	stops := t.levels[:]
	if !s.log { // from the ground
		stops = append([]color.Color{t.ground}, stops...)
	}
	all := color.Palette{t.ground}
	for i := range shades {
		at := (float64(i) + 1) / shades * float64(len(stops)-1)
		low := min(int(at), len(stops)-2)
		all = append(all, mix(stops[low+1], stops[low], at-float64(low)))
	}
	return all
}

func (s *shading) extent(add func(x, y float64)) {
	add(0, s.least)
	add(1, s.most)
}

func (s *shading) list(*lister) {}

// plot draws the scale.
func (s *shading) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	colors := s.palette(t)
	for i := 1; i <= shades; i++ {
		r := rectangle(at(0, s.bound(i)), at(1, s.bound(i+1)))
		if r.Max.Y = min(c.Max.Y, r.Max.Y+seam); r.Max.Y > r.Min.Y {
			c.SetColor(colors[i])
			c.Fill(r.Path())
		}
	}
}

// image draws the cells of a matrix as an image. Cells of a small matrix have several pixels, so that viewers do not
// blur them.
func (s *shading) image(c draw.Canvas, cells [][]num, t *theme) {
	each := (maxExact-1)/len(cells) + 1
	side := each * len(cells)
	img := image.NewPaletted(image.Rect(0, 0, side, side), s.palette(t))
	for i, row := range cells {
		line := img.Pix[i*each*img.Stride:][:img.Stride]
		for k, n := range row {
			if n.of > 0 {
				shade := s.shade(n.of)
				for x := range each {
					line[k*each+x] = shade
				}
			}
		}
		for y := 1; y < each; y++ {
			copy(img.Pix[(i*each+y)*img.Stride:], line)
		}
	}
	c.DrawImage(c.Rectangle, img)
}
