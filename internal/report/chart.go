package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// scaleAxis is an axis of a chart: from 0, or logarithmic from its least number.
type scaleAxis struct {
	name        string
	unit        unit
	least, most float64
	log         bool
	names       []string  // of the whole numbers from 0, instead of numbers
	lines       []float64 // numbers marked by lines
	lineName    string    // before the number of such a line, or the text at each line of a horizontal axis
}

// fit makes the axis logarithmic if its positive numbers span more than a factor of 50.
func (a *scaleAxis) fit() {
	if a.log = a.least > 0 && a.most/a.least > 50; a.log {
		a.name += ", logarithmic"
	}
}

// place returns the place of a number on the axis, from 0 to 1.
func (a *scaleAxis) place(v float64) float64 {
	switch {
	case len(a.names) > 0:
		return (v + 0.5) / float64(len(a.names))
	case a.most <= 0:
		return 0
	case a.log:
		return math.Max(0, math.Min(1, math.Log(v/a.least)/math.Log(a.most/a.least)))
	}
	return math.Max(0, math.Min(1, v/a.most))
}

// ticks calls do with round numbers of the axis.
func (a *scaleAxis) ticks(do func(value float64, label string)) {
	switch {
	case len(a.names) > 0:
		every := (len(a.names) + 9) / 10
		for i := 0; i < len(a.names); i += every {
			do(float64(i), short(a.names[i], 14))
		}
	case a.log:
		first, last := math.Ceil(math.Log10(a.least)-1e-9), math.Floor(math.Log10(a.most)+1e-9)
		every := math.Ceil((last - first + 1) / 8)
		for k := first; k <= last; k += every {
			v := math.Pow(10, k)
			do(v, a.unit.format(v))
		}
	default:
		(axis{most: a.most, unit: a.unit}).ticks(do)
	}
}

// series is a line of a chart.
type series struct {
	name  string
	class string
	steps bool // the line is a distribution function: it rises at its points
	dots  bool
	xy    [][2]float64

	between [][2]float64 // the intervals of the points; nil: none
	notes   []string     // about the points; nil: none
}

// Margins of charts.
const (
	chartLeft, chartRight = 90.0, 920.0
	chartTop, chartBottom = 12.0, 290.0
)

// lineStyles is the number of styles of lines.
const lineStyles = 10

// lineClass returns the class of line i.
func lineClass(i int) string { return fmt.Sprintf("l%d", i%lineStyles) }

// extend extends the range of an axis to the number.
func (a *scaleAxis) extend(v float64) {
	if v > 0 && (a.least == 0 || v < a.least) {
		a.least = v
	}
	a.most = max(a.most, v)
}

// chart draws lines with numbers from both axes, whose ranges it finds.
func chart(x, y scaleAxis, all []series) *drawing {
	d := &drawing{}
	for _, s := range all {
		for _, p := range s.xy {
			x.extend(p[0])
			y.extend(p[1])
		}
		for _, p := range s.between {
			y.extend(p[1])
		}
	}
	for _, v := range y.lines {
		y.extend(v * 1.08) // with room for its label
	}
	if x.log && x.most <= x.least { // one number
		x.log = false
	}
	d.frame(&x, &y)
	d.thresholds(&y)
	d.rules(&x)
	last := math.Inf(1) // the place of the last label of a single point
	for i, s := range all {
		class := s.class
		if class == "" {
			class = lineClass(i)
		}
		d.line(&x, &y, &s, class)
		if s.name == "" {
			continue
		}
		d.keyOfLine(class, s.name)
		if s.dots && len(s.xy) == 1 {
			last = min(last-13, chartBottom-(chartBottom-chartTop)*y.place(s.xy[0][1])+4)
			across, anchor := chartLeft+8+(chartRight-chartLeft)*x.place(s.xy[0][0]), "start"
			if across > (chartLeft+chartRight)/2 {
				across, anchor = across-16, "end"
			}
			fmt.Fprintf(&d.marks, `<text x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", at(across), at(max(last, 11)),
				anchor, escape(short(s.name, 60)))
		}
	}
	return d
}

// frame draws the lines and labels of the axes of a chart.
func (d *drawing) frame(x, y *scaleAxis) {
	left := func(v float64) float64 { return chartLeft + (chartRight-chartLeft)*x.place(v) }
	top := func(v float64) float64 { return chartBottom - (chartBottom-chartTop)*y.place(v) }
	y.ticks(func(v float64, label string) {
		fmt.Fprintf(&d.marks, `<path class="grid" d="M%s %sH%s"/><text class="axis" x="%s" y="%s" text-anchor="end">%s`+
			"</text>\n", at(chartLeft), at(top(v)), at(chartRight), at(chartLeft-8), at(top(v)+4), escape(label))
	})
	x.ticks(func(v float64, label string) {
		fmt.Fprintf(&d.marks,
			`<path class="grid" d="M%s %sV%s"/><text class="axis" x="%s" y="%s" text-anchor="middle">`+
				"%s</text>\n", at(left(v)), at(chartTop), at(chartBottom), at(left(v)), at(chartBottom+18),
			escape(label))
	})
	fmt.Fprintf(&d.marks, `<path class="axisline" style="fill:none" d="M%s %sV%sH%s"/>`, at(chartLeft), at(chartTop),
		at(chartBottom), at(chartRight))
	fmt.Fprintf(&d.marks, `<text x="%s" y="%s" text-anchor="middle">%s</text>`, at((chartLeft+chartRight)/2),
		at(chartBottom+38), escape(x.name))
	if y.name != "" {
		fmt.Fprintf(&d.marks, `<text transform="translate(14 %s) rotate(-90)" text-anchor="middle">%s</text>`,
			at((chartTop+chartBottom)/2), escape(y.name))
	}
	d.marks.WriteString("\n")
	d.height = int(chartBottom) + 48
}

// thresholds draws the marked numbers of the vertical axis.
func (d *drawing) thresholds(y *scaleAxis) {
	slices.Sort(y.lines)
	last := math.Inf(1) // label
	for _, v := range y.lines {
		top := chartBottom - (chartBottom-chartTop)*y.place(v)
		fmt.Fprintf(&d.marks, `<path class="threshold" d="M%s %sH%s"/>`, at(chartLeft), at(top), at(chartRight))
		if last-top >= 14 {
			last = top
			fmt.Fprintf(&d.marks, `<text class="halo" x="%s" y="%s" text-anchor="end">%s</text>`+"\n", at(chartRight-4),
				at(max(top-4, 11)), escape(y.lineName+y.unit.format(v)))
		}
	}
}

// rules draws the marked numbers of the horizontal axis.
func (d *drawing) rules(x *scaleAxis) {
	for i, v := range x.lines {
		across, anchor := chartLeft+(chartRight-chartLeft)*x.place(v), "start"
		fmt.Fprintf(&d.marks, `<path class="threshold" d="M%s %sV%s"><title>%s %s</title></path>`, at(across),
			at(chartTop), at(chartBottom), escape(x.lineName), escape(x.unit.format(v)))
		if i > 0 {
			continue
		}
		if across > (chartLeft+chartRight)/2 {
			across, anchor = across-10, "end"
		}
		fmt.Fprintf(&d.marks, `<text class="halo" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", at(across+5),
			at(chartBottom-8), anchor, escape(x.lineName))
	}
}

// intervals draws the intervals of the points of a line: a bar each, or a band.
func (d *drawing) intervals(x, y *scaleAxis, s *series, class string) {
	left := func(v float64) string { return at(chartLeft + (chartRight-chartLeft)*x.place(v)) }
	top := func(v float64) string { return at(chartBottom - (chartBottom-chartTop)*y.place(v)) }
	var path, back strings.Builder
	for i, p := range s.between {
		if len(s.between) > mostBars {
			fmt.Fprintf(&path, "L%s %s", left(s.xy[i][0]), top(p[1]))
			last := len(s.between) - 1 - i
			fmt.Fprintf(&back, "L%s %s", left(s.xy[last][0]), top(s.between[last][0]))
		} else if p[0] < p[1] {
			fmt.Fprintf(&path, "M%s %sV%sm-4 0h8M%[1]s %[2]sm-4 0h8", left(s.xy[i][0]), top(p[0]), top(p[1]))
		}
	}
	switch {
	case back.Len() > 0:
		fmt.Fprintf(&d.marks, `<path class="dot %s band" d="M%s%sz"/>`, class, path.String()[1:], back.String())
	case path.Len() > 0:
		fmt.Fprintf(&d.marks, `<path class="line %s whisker" d="%s"/>`, class, path.String())
	}
}

// line draws a line, and its points if it has few of them.
func (d *drawing) line(x, y *scaleAxis, s *series, class string) {
	left := func(v float64) string { return at(chartLeft + (chartRight-chartLeft)*x.place(v)) }
	top := func(v float64) string { return at(chartBottom - (chartBottom-chartTop)*y.place(v)) }
	d.intervals(x, y, s, class)
	var path, dots strings.Builder
	lastAcross, lastDown := "", ""
	for i, p := range s.xy {
		across, down := left(p[0]), top(p[1])
		if down == lastDown && (across == lastAcross || s.steps && i+1 < len(s.xy)) {
			continue // of the same place or height
		}
		lastAcross, lastDown = across, down
		switch {
		case i == 0 && s.steps:
			fmt.Fprintf(&path, "M%s %sV%s", across, top(0), down)
		case i == 0:
			fmt.Fprintf(&path, "M%s %s", across, down)
		case s.steps:
			fmt.Fprintf(&path, "H%sV%s", across, down)
		default:
			fmt.Fprintf(&path, "L%s %s", across, down)
		}
		if s.dots {
			note := ""
			if s.notes != nil {
				note = s.notes[i]
			}
			fmt.Fprintf(&dots, `<circle class="dot %s" cx="%s" cy="%s" r="3.5"><title>%s: %s, %s%s</title></circle>`,
				class, across, down, escape(s.name), escape(nameOn(x, p[0])), escape(nameOn(y, p[1])), escape(note))
		}
	}
	if path.Len() > 0 {
		fmt.Fprintf(&d.marks, `<path class="line %s" d="%s"><title>%s</title></path>%s`+"\n", class, path.String(),
			escape(s.name), dots.String())
	}
}

// nameOn returns a number of an axis as text.
func nameOn(a *scaleAxis, v float64) string {
	if i := int(v); i >= 0 && i < len(a.names) {
		return a.names[i]
	}
	return a.unit.format(v)
}

// distributions draws distribution functions: lists of pairs of a number and a share.
func distributions(name string, u unit, curves []value, names []string) *drawing {
	x, y := scaleAxis{name: name, unit: u}, scaleAxis{name: "share", unit: percent, most: 1}
	var all []series
	zero := false
	for i, curve := range curves {
		if i == lineStyles {
			break
		}
		s := series{steps: true}
		if i < len(names) {
			s.name = names[i]
		}
		for _, p := range curve.all() {
			s.xy = append(s.xy, [2]float64{p.at(0).number(), p.at(1).number()})
			x.extend(p.at(0).number())
			zero = zero || p.at(0).number() <= 0
		}
		all = append(all, s)
	}
	if !zero {
		x.fit()
	}
	return chart(x, y, all)
}
