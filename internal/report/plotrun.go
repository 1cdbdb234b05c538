package report

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"gonum.org/v1/plot/vg/draw"
)

// plottedRanks is the largest number of ranks with a bar each in a picture.
const plottedRanks = 64

// drawRanks draws the parts of the time of each rank, or their distributions over many ranks.
func drawRanks(s *source) *picture {
	root := s.root
	finish := root.get("finish_ps")
	if finish.len() == 0 {
		return nil
	}
	breakdown := root.get("breakdown")
	names := used(root.get("breakdown_total"), partsOf(root.get("breakdown_total")))
	of := func(name string, rank int) value {
		if name == "finish_ps" {
			return finish.at(rank)
		}
		return breakdown.at(rank).get(name)
	}
	if finish.len() > plottedRanks {
		return drawRankRanges(append([]string{"finish_ps"}, names...), finish.len(), of)
	}
	p := &panel{x: plotAxis{of: quantity{name: "rank"}, names: numbered(finish.len())},
		y: plotAxis{of: quantity{name: "time", unit: time}, stack: len(names) > 0}}
	out := &picture{panels: []*panel{p}}
	if len(names) == 0 {
		names, p.y.of.name = []string{"finish_ps"}, "finish"
	}
	base := make([]*big.Int, finish.len())
	for i := range base {
		base[i] = new(big.Int)
	}
	for _, name := range names {
		m := &barMarks{name: heading(name)}
		for i, part := range parts {
			if part.name == name {
				m.fill = i
			}
		}
		for rank := range base {
			size := of(name, rank)
			m.at, m.size = append(m.at, rank), append(m.size, exact(size))
			m.from = append(m.from, whole(base[rank]))
			base[rank] = new(big.Int).Add(base[rank], size.integer())
			m.to = append(m.to, whole(base[rank]))
		}
		p.marks = append(p.marks, m)
		if len(names) > 1 || name != "finish_ps" {
			out.keys = append(out.keys, fillKey(m.name, m.fill))
		}
	}
	return out
}

// whole returns a whole number.
func whole(n *big.Int) num {
	f, _ := new(big.Float).SetInt(n).Float64()
	return num{f, n.String()}
}

// numbered returns the names of n places.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	return names
}

// drawRankRanges draws the distribution of each part over all ranks.
func drawRankRanges(names []string, ranks int, of func(name string, rank int) value) *picture {
	m := &rangeMarks{name: "ranks"}
	p := &panel{x: plotAxis{of: quantity{name: fmt.Sprintf("time of %d ranks", ranks), unit: time}},
		y: plotAxis{of: quantity{name: "part"}, names: []string{}, down: true}, marks: []marks{m}}
	for i, name := range names {
		times := make([]*big.Int, ranks)
		for rank := range times {
			times[rank] = of(name, rank).integer()
		}
		all := percentilesOf(name, times)
		m.places = append(m.places, i)
		m.of = append(m.of, [5]num{whole(all["min_ps"].(*big.Int)), whole(all["p25_ps"].(*big.Int)),
			whole(all["p50_ps"].(*big.Int)), whole(all["p75_ps"].(*big.Int)), whole(all["max_ps"].(*big.Int))})
		p.y.names = append(p.y.names, heading(name))
	}
	return &picture{panels: []*panel{p}, keys: m.keys()}
}

// drawMatrix draws the bytes from rank to rank, as shares of all for a document that has them.
func drawMatrix(s *source) *picture {
	if load := s.root.get("load"); load.known {
		return drawShares(s, []value{load})
	}
	if s.of == ofMatrix {
		return drawShares(s, s.root.get("loads").all())
	}
	matrix := s.root.get("matrix")
	rows := matrix.get("bytes").all()
	edge := max(1, int(matrix.get("ranks_per_row").number()))
	m := &gridMarks{name: "bytes", of: quantity{name: "bytes", in: "bytes"}, edge: edge}
	for _, row := range rows {
		cells := make([]num, row.len())
		for k := range cells {
			cells[k] = exact(row.at(k))
		}
		m.cells = append(m.cells, cells)
	}
	bounds, level := levelsOf(rows)
	if level == nil {
		return nil
	}
	m.level = level
	p := &panel{x: rankAxis("to rank", len(rows), edge), y: rankAxis("from rank", len(rows), edge), marks: []marks{m},
		weight: 8}
	p.y.down = true
	out := &picture{panels: []*panel{p}}
	out.addLevels(quantity{name: "data", unit: size}, bounds)
	if edge > 1 {
		out.note = fmt.Sprintf("each row and column: %d ranks", edge)
	}
	return out
}

// rankAxis returns an axis of groups of ranks.
func rankAxis(name string, rows, edge int) plotAxis {
	names := make([]string, rows)
	for i := range names {
		names[i] = fmt.Sprint(i * edge)
	}
	return plotAxis{of: quantity{name: name}, names: names}
}

// scaleWeight is the width of the scale of a grid's colors; that of the grid is 8.
const scaleWeight = 1.5

// addLevels adds the scale of the colors of a grid.
func (p *picture) addLevels(of quantity, bounds [levels + 1]float64) {
	if bounds[levels] > bounds[0] {
		p.panels = append(p.panels, &panel{x: plotAxis{bare: true}, y: plotAxis{of: of, log: true, tight: true,
			stack: true}, marks: []marks{&levelMarks{bounds}}, weight: scaleWeight})
		return
	}
	p.keys = append(p.keys, plotKey{of.name + " " + of.unit.format(bounds[0]), func(c draw.Canvas, t *theme) {
		c.SetColor(t.levels[levels-1])
		c.Fill(c.Rectangle.Path())
	}})
}

// levelsOf returns the bounds of the colors of the positive numbers of a matrix, and a function that returns the color
// of a number. It is nil without such a number.
func levelsOf(rows []value) (bounds [levels + 1]float64, level func(x float64) int) {
	least, most := math.MaxFloat64, 0.0
	for _, row := range rows {
		for _, v := range row.all() {
			if x := v.number(); x > 0 {
				least, most = min(least, x), max(most, x)
			}
		}
	}
	if most <= 0 {
		return bounds, nil
	}
	first, length := math.Log(least), math.Log(most)-math.Log(least) // the quotient can overflow
	for i := range bounds {
		bounds[i] = max(least, min(most, math.Exp(first+length*float64(i)/levels)))
	}
	bounds[0] = least
	bounds[levels] = most
	return bounds, func(x float64) int {
		if most <= least {
			return levels - 1
		}
		return max(0, min(levels-1, int(levels*(math.Log(x)-first)/length)))
	}
}

// positive returns the points that a logarithmic axis can show.
func positive(points []lineMark, x, y bool) []lineMark {
	return slices.DeleteFunc(slices.Clone(points), func(p lineMark) bool {
		return x && p.x.of <= 0 || y && p.y.of <= 0
	})
}
