package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// picture is what a kind of pictures shows of a result.
type picture struct {
	kind   string
	title  string // "" for that of the trace
	note   string // a line below the title
	panels []*panel
	across int // panels beside each other; 0: all
	keys   []plotKey
	graph  string // as text for Graphviz
}

// panel is a pair of axes and the marks between them.
type panel struct {
	title  string
	x, y   plotAxis
	marks  []marks
	weight float64  // of its width; 0: 1
	sameAs []*panel // panels with the same ranges
}

// quantity is what an axis or a column of numbers shows.
type quantity struct {
	name string
	unit unit
	in   string // unit of plain numbers, such as cycles
}

// column returns the heading of a column of numbers, with their unit.
func (q quantity) column() string {
	switch {
	case q.in != "":
		return q.name + " (" + q.in + ")"
	case q.unit == size:
		return q.name + " (bytes)"
	case q.unit == plain || q.unit == percent:
		return q.name
	}
	return q.name + " (" + scales[q.unit][0].name + ")"
}

// plotAxis is an axis of numbers, or of names at 0, 1, ...
type plotAxis struct {
	of    quantity
	names []string  // nil for numbers
	whole bool      // the numbers are whole, such as ranks
	stack bool      // the marks are stacked, so that the axis cannot be logarithmic
	down  bool      // the first is at the top
	bare  bool      // without line and labels
	tight bool      // no longer than the marks
	ticks []float64 // places of the ticks of numbers; nil: round numbers
	log   bool
	min   float64
	max   float64
}

// num is a number and its exact text.
type num struct {
	of   float64
	text string
}

// exact returns a number of a document.
func exact(v value) num {
	if !v.isNumber() {
		return num{}
	}
	return num{v.number(), fmt.Sprint(v.of)}
}

// count returns a whole number.
func count(n int) num { return num{float64(n), strconv.Itoa(n)} }

// rounded returns a number that has no exact text in a document.
func rounded(x float64) num {
	format := byte('f')
	if abs := math.Abs(x); x != 0 && (abs < 1e-4 || abs >= 1e15) {
		format = 'g'
	}
	return num{x, strconv.FormatFloat(x, format, -1, 64)}
}

// marks are marks between axes.
type marks interface {
	// extent calls add with the corners of all marks; NaN is any number.
	extent(add func(x, y float64))
	// plot draws the marks. at returns the place of a point.
	plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme)
	// list calls add for each mark, with its numbers in the columns of x and y.
	list(l *lister)
}

// lister lists the numbers of marks.
type lister struct {
	data  *PlotData
	kind  string
	panel *panel
}

// row adds a row: a series, and cells by heading.
func (l *lister) row(series string, cells ...plotCell) {
	row := map[string]string{"kind": l.kind, "series": series}
	for _, c := range cells {
		if c.text != "" {
			l.data.column(c.heading)
			row[c.heading] = c.text
		}
	}
	l.data.rows = append(l.data.rows, row)
}

// plotCell is a cell of the numbers of a picture.
type plotCell struct{ heading, text string }

// x returns the cell of a place on the horizontal axis.
func (p *panel) cellX(n num) plotCell { return p.x.cell(n) }
func (p *panel) cellY(n num) plotCell { return p.y.cell(n) }

func (a *plotAxis) cell(n num) plotCell {
	if a.names != nil {
		if i := int(n.of); i >= 0 && i < len(a.names) {
			return plotCell{a.of.column(), a.names[i]}
		}
	}
	return plotCell{a.of.column(), n.text}
}

// PlotData are the numbers of pictures.
type PlotData struct {
	columns []string
	rows    []map[string]string
}

func (d *PlotData) column(name string) {
	if !slices.Contains(d.columns, name) {
		d.columns = append(d.columns, name)
	}
}

// add adds the numbers of a picture.
func (d *PlotData) add(p *picture) {
	if d == nil {
		return
	}
	for _, panel := range p.panels {
		for _, m := range panel.marks {
			m.list(&lister{d, p.kind, panel})
		}
	}
}

// WriteCSV writes the numbers as CSV with LF line ends: a row per mark, with the kind of the picture, the series and
// the numbers in columns that name their unit.
func (d *PlotData) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	columns := append([]string{"kind", "series"}, d.columns...)
	if err := c.Write(columns); err != nil {
		return err
	}
	for _, row := range d.rows {
		cells := make([]string, len(columns))
		for i, name := range columns {
			cells[i] = row[name]
		}
		if err := c.Write(cells); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// setLog makes axes of numbers logarithmic. It returns an error if no panel has such an axis.
func (p *picture) setLog(axes string) error {
	for _, name := range strings.Split(axes, "") {
		found := false
		for _, panel := range p.panels {
			a := &panel.x
			if name == "y" {
				a = &panel.y
			}
			if a.names == nil && !a.stack && !a.bare {
				a.log, found = true, true
			}
		}
		if !found {
			return fmt.Errorf("the %s axis of %s cannot be logarithmic", name, p.kind)
		}
	}
	for _, panel := range p.panels {
		for _, m := range panel.marks {
			if line, is := m.(*lineMarks); is && (panel.x.log || panel.y.log) {
				n := len(line.points)
				if line.points = positive(line.points, panel.x.log, panel.y.log); len(line.points) < n {
					p.addNote(fmt.Sprintf("%d points at 0 omitted", n-len(line.points)))
				}
			}
		}
		for _, a := range []*plotAxis{&panel.x, &panel.y} {
			if a.log && !(panel.most(a) > 0) {
				return fmt.Errorf("%s: no %s is above 0", p.kind, a.of.name)
			}
		}
	}
	return nil
}

// most returns the largest number on an axis.
func (p *panel) most(a *plotAxis) float64 {
	most := 0.0
	for _, m := range p.marks {
		m.extent(func(x, y float64) {
			if a == &p.y {
				x = y
			}
			if x > most {
				most = x
			}
		})
	}
	return most
}

// setRanges sets the ranges of the axes so that they have all marks.
func (p *panel) setRanges() {
	for _, a := range []*plotAxis{&p.x, &p.y} {
		least, most := math.Inf(1), math.Inf(-1)
		for _, m := range append(p.others(), p.marks...) {
			m.extent(func(x, y float64) {
				v := x
				if a == &p.y {
					v = y
				}
				if !math.IsNaN(v) && (!a.log || v > 0) {
					least, most = min(least, v), max(most, v)
				}
			})
		}
		a.setRange(least, most)
	}
}

// others returns the marks of the panels with the same ranges.
func (p *panel) others() (all []marks) {
	for _, other := range p.sameAs {
		all = append(all, other.marks...)
	}
	return all
}

// setRange sets the range of an axis of numbers from least to most.
func (a *plotAxis) setRange(least, most float64) {
	switch {
	case a.names != nil:
		a.min, a.max = -0.5, float64(len(a.names))-0.5
	case !(least <= most): // no marks
		a.min, a.max = 0, 1
		if a.log {
			a.min = 0.1
		}
	case a.tight && most > least:
		a.min, a.max = least, most
	case a.log && least == most:
		a.min, a.max = least/2, most*2
	case a.log:
		margin := math.Exp((math.Log(most) - math.Log(least)) * 0.03)
		a.min, a.max = max(least/margin, math.SmallestNonzeroFloat64), min(most*margin, math.MaxFloat64)
	case a.whole || a.bare:
		a.min, a.max = least, most
		if least == most {
			a.min, a.max = least-0.5, most+0.5
		}
	default:
		a.min, a.max = min(least, 0), most
		if a.of.unit == percent && most > 0.25 && most <= 1 && a.min == 0 {
			a.max = 1
		} else {
			a.max = min(most+(most-a.min)*0.04, math.MaxFloat64)
		}
		if a.max <= a.min {
			a.max = a.min + 1
		}
	}
}

// label returns the label of the axis, with the unit of its ticks.
func (a *plotAxis) label() string {
	var notes []string
	if a.names == nil {
		s := a.scale()
		name := strings.TrimSpace(s.name + " " + a.of.in)
		if a.log {
			name = a.of.in
		}
		if name != "" {
			notes = append(notes, name)
		}
	}
	if a.log {
		notes = append(notes, "logarithmic")
	}
	if len(notes) == 0 {
		return a.of.name
	}
	return a.of.name + " (" + strings.Join(notes, ", ") + ")"
}

// scale returns the unit of the ticks of an axis that is not logarithmic.
func (a *plotAxis) scale() scale {
	if a.whole {
		return scale{"", 1}
	}
	return a.of.unit.scaleOf(max(math.Abs(a.min), math.Abs(a.max)))
}

// marked returns the ticks of the axis, with labels of at most length characters.
func (a *plotAxis) marked(most, length int) (ticks []plot.Tick) {
	switch {
	case a.bare:
		return nil
	case a.names != nil:
		step := roundCount((len(a.names) + most - 1) / max(most, 1))
		for i := 0; i < len(a.names); i += step {
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: short(label(a.names[i]), length)})
		}
		return ticks
	case a.log:
		return logTicks(a.min, a.max, a.of.unit)
	}
	s := a.scale()
	if a.ticks != nil {
		for _, v := range a.ticks {
			ticks = append(ticks, plot.Tick{Value: v, Label: digits(v / s.value)})
		}
		return ticks
	}
	low, high := a.min/s.value, a.max/s.value
	step := roundStep(high - low)
	if a.whole {
		step = max(1, math.Ceil(step))
	}
	for k := math.Ceil(low/step - 1e-9); k*step <= high*(1+1e-9) && len(ticks) < 20; k++ {
		ticks = append(ticks, plot.Tick{Value: k * step * s.value, Label: digits(roundTo(k*step, step))})
	}
	return ticks
}

// roundCount returns the smallest of 1, 2, 5, 10, 20, ... that is at least n.
func roundCount(n int) int {
	for by := 1; ; by *= 10 {
		for _, step := range []int{by, 2 * by, 5 * by} {
			if step >= n {
				return step
			}
		}
	}
}

// roundTo removes the error of a product with a step.
func roundTo(x, step float64) float64 {
	power := math.Pow10(int(math.Ceil(-math.Log10(step))) + 2)
	if math.IsInf(power, 0) || power < 1 {
		return x
	}
	return math.Round(x*power) / power
}

// logTicks returns ticks at powers of ten, and at their multiples by 2 and 5 in a range of less than two powers.
func logTicks(low, high float64, u unit) (ticks []plot.Tick) {
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	stride := math.Max(1, math.Ceil((last-first)/8))
	labelled := 0
	for e := first; e <= last; e++ {
		for d := 1.0; d <= 9; d++ {
			v := d * math.Pow(10, e)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			text := ""
			if d == 1 && math.Mod(e-first, stride) == 0 || last-first <= 2 && (d == 2 || d == 5) {
				text = strings.ReplaceAll(u.format(v), "\u00a0", " ")
				labelled++
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: text})
		}
	}
	if labelled > 1 {
		return ticks
	}
	for i := range ticks {
		ticks[i].Label = strings.ReplaceAll(u.format(ticks[i].Value), "\u00a0", " ")
	}
	if len(ticks) < 2 {
		for _, v := range []float64{low, high} {
			ticks = append(ticks, plot.Tick{Value: v, Label: strings.ReplaceAll(u.format(v), "\u00a0", " ")})
		}
	}
	return ticks
}

// scaleLog is the scale of a logarithmic axis.
type scaleLog struct{}

// Normalize returns the place of x between low and high.
func (scaleLog) Normalize(low, high, x float64) float64 {
	return (math.Log(x) - math.Log(low)) / (math.Log(high) - math.Log(low))
}

// lineMarks are points that a line joins.
type lineMarks struct {
	name   string
	style  int
	points []lineMark
	step   bool // the line goes to the right, then up
	bare   bool // without glyphs
	alone  bool // without line
	band   bool // the interval is a band instead of bars
}

// lineMark is a point and the bounds of the interval of its y, nil without one.
type lineMark struct {
	x, y      num
	low, high *num
}

func (m *lineMarks) extent(add func(x, y float64)) {
	for _, p := range m.points {
		add(p.x.of, p.y.of)
		if p.low != nil {
			add(p.x.of, p.low.of)
			add(p.x.of, p.high.of)
		}
	}
}

func (m *lineMarks) list(l *lister) {
	for _, p := range m.points {
		cells := []plotCell{l.panel.cellX(p.x), l.panel.cellY(p.y)}
		if p.low != nil {
			of := l.panel.y.of
			of.name += ", low"
			cells = append(cells, plotCell{of.column(), p.low.text})
			of.name = l.panel.y.of.name + ", high"
			cells = append(cells, plotCell{of.column(), p.high.text})
		}
		l.row(m.name, cells...)
	}
}

// barMarks are bars of a length at places: upright, or lying with the first at the top.
type barMarks struct {
	name  string
	fill  int // of the theme
	lying bool
	at    []int    // places
	from  []num    // nil: all 0
	to    []num    // where the bars end
	size  []num    // what the bars stand for
	wide  float64  // share of the place; 0: 0.8
	shift float64  // of the middle
	text  []string // beside the ends; nil: none
}

func (m *barMarks) bounds(i int) (from, to, low, high float64) {
	wide := cmp.Or(m.wide, 0.8)
	middle := float64(m.at[i]) + m.shift
	if m.from != nil {
		from = m.from[i].of
	}
	return from, m.to[i].of, middle - wide/2, middle + wide/2
}

func (m *barMarks) extent(add func(x, y float64)) {
	for i := range m.at {
		from, to, low, high := m.bounds(i)
		if m.lying {
			add(from, low)
			add(to, high)
		} else {
			add(low, from)
			add(high, to)
		}
	}
}

func (m *barMarks) list(l *lister) {
	for i, place := range m.at {
		along, over := &l.panel.x, &l.panel.y
		if m.lying {
			along, over = over, along
		}
		cells := []plotCell{along.cell(count(place))}
		floats := slices.ContainsFunc(m.from, func(n num) bool { return n.of != 0 })
		if floats && m.from[i].text != "" && !over.stack {
			of := over.of
			of.name += ", from"
			cells = append(cells, plotCell{of.column(), m.from[i].text})
		}
		l.row(m.name, append(cells, over.cell(m.size[i]))...)
	}
}

// rangeMarks are distributions at places: from the least to the most, the middle half and the median.
type rangeMarks struct {
	name   string
	places []int
	of     [][5]num // minimum, quartiles, maximum
}

// names of the numbers of rangeMarks.
var rangeNames = [5]string{"minimum", "25th percentile", "median", "75th percentile", "maximum"}

func (m *rangeMarks) extent(add func(x, y float64)) {
	for i, place := range m.places {
		add(m.of[i][0].of, float64(place)-0.3)
		add(m.of[i][4].of, float64(place)+0.3)
	}
}

func (m *rangeMarks) list(l *lister) {
	for i, place := range m.places {
		for k, n := range m.of[i] {
			l.row(rangeNames[k], l.panel.cellY(count(place)), l.panel.cellX(n))
		}
	}
}

// gridMarks are colored cells of a matrix: rows from the top, columns from the left.
type gridMarks struct {
	name    string
	of      quantity
	cells   [][]num // 0, or no text: no color
	level   func(x float64) int
	columns []string // names of columns; nil: numbers
	rows    []string
	edge    int       // ranks of a row
	shades  *shading  // colors instead of level, for square matrices; may be nil
	borders []float64 // places of lines between rows, and between columns
}

func (m *gridMarks) extent(add func(x, y float64)) {
	add(-0.5, -0.5)
	columns := 0
	for _, row := range m.cells {
		columns = max(columns, len(row))
	}
	add(float64(columns)-0.5, float64(len(m.cells))-0.5)
}

func (m *gridMarks) list(l *lister) {
	for i, row := range m.cells {
		for k, n := range row {
			if n.text != "" && n.text != "0" {
				x, y := plotCell{l.panel.x.of.column(), strconv.Itoa(k * m.edge)}, plotCell{l.panel.y.of.column(),
					strconv.Itoa(i * m.edge)}
				if m.columns != nil {
					x.text = m.columns[k]
				}
				if m.rows != nil {
					y.text = m.rows[i]
				}
				l.row(m.name, y, x, plotCell{m.of.column(), n.text})
			}
		}
	}
}

// ruleMarks are a line across the panel at a place.
type ruleMarks struct {
	name  string
	at    num
	level bool // at a height
}

func (m *ruleMarks) extent(add func(x, y float64)) {
	if m.level {
		add(math.NaN(), m.at.of)
	} else {
		add(m.at.of, math.NaN())
	}
}

func (m *ruleMarks) list(*lister) {}
