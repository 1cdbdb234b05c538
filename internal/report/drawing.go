package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	width  = 960 // of a drawing
	labels = 170 // width of the column of labels
	right  = 70  // margin on the right
)

// drawing is the inside of a figure's SVG.
type drawing struct {
	marks  strings.Builder
	height int
	keys   []key
}

// key is an entry of a legend.
type key struct {
	class, name string
	line        bool // of a line; otherwise of an area
}

// parts are the parts of the time of a rank, in the order of figures, with the class of their color.
var parts = []struct{ name, class string }{
	{"compute_ps", "f0"}, {"overlapped_ps", "f1"}, {"overhead_ps", "f2"}, {"exposed_comm_ps", "f3"},
	{"exposed_remote_mem_ps", "f4"}, {"exposed_local_mem_ps", "f5"}, {"exposed_storage_ps", "f6"}, {"wait_ps", "f7"},
	{"idle_ps", "f8"},
}

// patterns returns the hatchings of all figures: parts differ in more than their color.
func patterns() string {
	var b strings.Builder
	b.WriteString(`<svg class="defs" aria-hidden="true" focusable="false"><defs>`)
	for _, hatch := range []struct {
		id                int
		ground, line, way string
	}{
		{1, "--c1", "--paper", "M0 6L6 0"}, {4, "--c4", "--paper", "M0 0L6 6"}, {6, "--c6", "--paper", "M0 3H6"},
		{7, "--paper", "--c7", "M0 6L6 0"}, {8, "--paper", "--grid", "M3 0V6"},
	} {
		fmt.Fprintf(&b, `<pattern id="hatch%d" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" `+
			`height="6" style="fill:var(%s)"/><path d="%s" style="stroke:var(%s);stroke-width:1.5"/></pattern>`,
			hatch.id, hatch.ground, hatch.way, hatch.line)
	}
	b.WriteString("</defs></svg>\n")
	return b.String()
}

// legend returns the names of the colors as HTML.
func (d *drawing) legend() string {
	if len(d.keys) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<ul class="legend">`)
	for _, key := range d.keys {
		mark := fmt.Sprintf(`<rect class="%s" x=".5" y=".5" width="21" height="13" style="stroke:var(--line)"/>`,
			key.class)
		if key.line {
			mark = fmt.Sprintf(`<path class="line %s" d="M0 7H22"/>`, key.class)
		}
		fmt.Fprintf(&b, `<li><svg viewBox="0 0 22 14" aria-hidden="true">%s</svg>%s</li>`, mark,
			escape(short(key.name, 80)))
	}
	b.WriteString("</ul>\n")
	return b.String()
}

func (d *drawing) key(class, name string) {
	d.keys = append(d.keys, key{class: class, name: name})
}

func (d *drawing) keyOfLine(class, name string) {
	d.keys = append(d.keys, key{class: class, name: name, line: true})
}

// at formats a coordinate.
func at(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 1, 64), "0"), ".")
}

// axis is a linear horizontal axis from 0.
type axis struct {
	most float64
	unit unit
}

// x returns the coordinate of a number.
func (a axis) x(value float64) float64 {
	if a.most <= 0 {
		return labels
	}
	return labels + (width-labels-right)*math.Max(0, math.Min(1, value/a.most))
}

// ticks calls do with round numbers of the axis.
func (a axis) ticks(do func(value float64, label string)) {
	s := a.unit.scaleOf(a.most)
	most := a.most / s.value
	if most <= 0 || math.IsInf(most, 0) {
		return
	}
	step := roundStep(most)
	for k := 0; float64(k)*step <= most*(1+1e-9) && k < 20; k++ {
		label := digits(float64(k) * step)
		if s.name != "" {
			label += "\u00a0" + s.name
		}
		do(float64(k)*step*s.value, label)
	}
}

// roundStep returns a round distance of two to six ticks on an axis of a length.
func roundStep(length float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(length)))
	for _, part := range []float64{0.1, 0.2, 0.5} {
		if length/(step*part) <= 6 {
			return step * part
		}
	}
	return step
}

// draw draws the lines and labels of the axis from the top of the drawing to a height.
func (d *drawing) axis(a axis, bottom float64) {
	a.ticks(func(value float64, label string) {
		x := at(a.x(value))
		fmt.Fprintf(&d.marks, `<path class="grid" d="M%s 0V%s"/><text class="axis" x="%s" y="%s" text-anchor="middle">`+
			"%s</text>\n", x, at(bottom), x, at(bottom+16), escape(label))
	})
	d.height = int(bottom) + 24
}

// bar is a bar of a figure: stacked parts.
type bar struct {
	label string
	full  string // label of tooltips
	sort  string // number by which bars are sorted; "": none
	parts []piece
}

// piece is a part of a bar.
type piece struct {
	class, name string
	of          value
}

// bars draws horizontal bars of stacked parts, below each other.
func bars(all []bar, u unit) *drawing {
	d := &drawing{}
	high := 20.0
	switch n := len(all); {
	case n > 64:
		high = 6
	case n > 16:
		high = 13
	}
	a := axis{unit: u}
	for i := range all {
		sum := 0.0
		for _, p := range all[i].parts {
			sum += p.of.number()
		}
		a.most = max(a.most, sum)
	}
	d.axis(a, 4+high*float64(len(all)))
	d.marks.WriteString(`<g class="bars">` + "\n")
	every := max(1, int(math.Ceil(13/high)))
	for i := range all {
		b := &all[i]
		sort := ""
		if b.sort != "" {
			sort = fmt.Sprintf(` data-finish="%s"`, escape(b.sort))
		}
		fmt.Fprintf(&d.marks, `<g class="bar" transform="translate(0 %s)"%s>`, at(2+high*float64(i)), sort)
		if i%every == 0 {
			fmt.Fprintf(&d.marks, `<text x="%d" y="%s" text-anchor="end" style="stroke:none">%s</text>`, labels-8,
				at(high/2+4), escape(short(b.label, 26)))
		}
		from := 0.0
		for _, p := range b.parts {
			if p.of.number() <= 0 {
				continue
			}
			text, _ := numberOf(p.of, u)
			start, end := a.x(from), a.x(from+p.of.number())
			fmt.Fprintf(&d.marks, `<rect class="%s" x="%s" y="0" width="%s" height="%s"><title>%s: %s %s</title>`+
				"</rect>", p.class, at(start), at(max(end-start, 0.1)), at(high*0.85), escape(b.full), escape(p.name),
				escape(text))
			from += p.of.number()
		}
		if len(b.parts) == 1 {
			text, _ := numberOf(b.parts[0].of, u)
			if a.x(from) < width-right+1 {
				fmt.Fprintf(&d.marks, `<text x="%s" y="%s" style="stroke:none">%s</text>`, at(a.x(from)+5),
					at(high/2+4), escape(text))
			}
		}
		d.marks.WriteString("</g>\n")
	}
	d.marks.WriteString("</g>\n")
	return d
}

// ofRanks returns a figure of the parts of ranks. Each object has the members rank, finish_ps and those of the parts;
// finish returns the latter if it is elsewhere.
func ofRanks(ranks []value, names []string, finish func(i int) value) *drawing {
	all := make([]bar, len(ranks))
	used := make(map[string]bool)
	for i, v := range ranks {
		label := "rank " + fmt.Sprint(v.get("rank").of)
		all[i] = bar{label: label, full: label, sort: fmt.Sprint(finish(i).of)}
		for _, part := range parts {
			if of := v.get(part.name); of.known {
				all[i].parts = append(all[i].parts, piece{part.class, heading(part.name), of})
				used[part.name] = used[part.name] || of.number() > 0
			}
		}
		if len(names) == 0 {
			all[i].parts = []piece{{"f0", "finish", finish(i)}}
		}
	}
	d := bars(all, time)
	for _, part := range parts {
		if used[part.name] {
			d.key(part.class, heading(part.name))
		}
	}
	return d
}

// single returns bars of one part each.
func single(list []value, label func(v value) string, member string, u unit) *drawing {
	all := make([]bar, len(list))
	for i, v := range list {
		name := clean(label(v))
		all[i] = bar{label: name, full: short(name, 200), parts: []piece{{"f0", "", v.get(member)}}}
	}
	return bars(all, u)
}

// bands draws percentiles: a band from the minimum to the maximum, one of the middle half, and the median.
func bands(all []value) *drawing {
	d := &drawing{}
	a := axis{unit: time}
	for _, v := range all {
		a.most = max(a.most, v.get("max_ps").number())
	}
	const high = 24
	d.axis(a, float64(4+high*len(all)))
	for i, v := range all {
		y := 4 + high*i
		fmt.Fprintf(&d.marks, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labels-8, y+14,
			escape(heading(v.get("part").text())))
		band := func(class, from, to string, inset, thick int) {
			start, end := a.x(v.get(from).number()), a.x(v.get(to).number())
			fmt.Fprintf(&d.marks, `<rect class="%s" x="%s" y="%d" width="%s" height="%d"/>`, class, at(start), y+inset,
				at(max(end-start, 0.5)), thick)
		}
		band("wide", "min_ps", "max_ps", 5, 10)
		band("narrow", "p25_ps", "p75_ps", 2, 16)
		x := at(a.x(v.get("p50_ps").number()))
		fmt.Fprintf(&d.marks, `<path class="median" d="M%s %dv20"/>`+"\n", x, y)
	}
	d.key("wide", "minimum to maximum")
	d.key("narrow", "middle half; line: median")
	return d
}

// levels is the number of colors of a heat map.
const levels = 8

// cells are the numbers of a heat map, with what its rows and columns are: ranks, or groups of edge ranks by the first
// of them, or the objects of a list with names.
type cells struct {
	of    value // a list of rows
	noun  string
	edge  float64
	names value // unknown: ranks
}

// name returns the name of a row and column with at most n characters.
func (c *cells) name(i, n int) string {
	if c.names.known {
		return short(clean(c.names.at(i).get("name").text()), n)
	}
	return digits(float64(i) * c.edge)
}

// heat draws a matrix of numbers in colors on a logarithmic scale.
func heat(c cells, u unit) *drawing {
	d := &drawing{}
	rows := c.of.all()
	n := len(rows)
	bounds, level := levelsOf(rows)
	const left, top = 200.0, 40.0
	side, names := 560.0, ""
	from := top + side/2 // of the label of rows
	if c.names.known {
		from = top - 14 // names leave no room beside them
		side, names = min(side, max(240, 60*float64(n))), fmt.Sprintf(` data-names="%s"`, escape(c.names.pointer))
	}
	cell := side / float64(max(n, 1))
	var paths [levels]strings.Builder
	for i, row := range rows {
		all := row.all()
		for k := 0; k < len(all); {
			x := all[k].number()
			if x <= 0 {
				k++
				continue
			}
			end := k + 1
			for end < len(all) && all[end].number() > 0 && level(all[end].number()) == level(x) {
				end++
			}
			fmt.Fprintf(&paths[level(x)], "M%s %sh%sv%sh-%sz", at(left+cell*float64(k)), at(top+cell*float64(i)),
				at(cell*float64(end-k)), at(cell), at(cell*float64(end-k)))
			k = end
		}
	}
	fmt.Fprintf(&d.marks, `<rect class="axisline" x="%s" y="%s" width="%s" height="%s" style="fill:none" `+
		`data-cells="%s" data-rows="%d" data-edge="%s"%s/>`, at(left), at(top), at(side), at(side),
		escape(c.of.pointer),
		n, at(c.edge), names)
	for i := range paths {
		if paths[i].Len() > 0 {
			fmt.Fprintf(&d.marks, "<path class=\"h%d\" d=\"%s\"/>\n", i, paths[i].String())
			if name := u.format(bounds[i]); bounds[levels] > bounds[0] {
				d.key(fmt.Sprintf("h%d", i), name+" to "+u.format(bounds[i+1]))
			} else {
				d.key(fmt.Sprintf("h%d", i), name)
			}
		}
	}
	step := max(1, (n+7)/8)
	for i := 0; i < n; i += step {
		middle := cell * (float64(i) + 0.5)
		fmt.Fprintf(&d.marks, `<text class="axis" x="%s" y="%s" text-anchor="middle">%s</text>`, at(left+middle),
			at(top-6), escape(c.name(i, int(cell)*step/8)))
		fmt.Fprintf(&d.marks, `<text class="axis" x="%s" y="%s" text-anchor="end">%s</text>`, at(left-6),
			at(top+middle+4), escape(c.name(i, 18)))
	}
	fmt.Fprintf(&d.marks, `<text x="%s" y="12" text-anchor="middle">to %s</text><text x="%s" y="%s" `+
		"text-anchor=\"end\">from %s</text>\n", at(left+side/2), c.noun, at(left-50), at(from), c.noun)
	d.height = int(top+side) + 10
	return d
}
