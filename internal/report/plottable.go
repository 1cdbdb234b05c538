package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Limits of a table of numbers that is drawn.
const (
	tableRows   = 10_000
	tableGroups = 200 // of bars
)

// tableOf are the numbers of a table: a row per group and series. Its headings are the names of the axes.
type tableOf struct {
	headings [3]string
	groups   places // in the order of their first rows
	series   places
	rows     []tableRow
	seen     map[[2]int]bool // group and series of each row
}

type tableRow struct {
	group, series int
	of            num
	low, high     *num // bounds of an interval; nil: none
}

// Table returns the report of a table of numbers in CSV: a line of headings, then the columns group, series, value, and
// optionally low and high, the bounds of an interval. An empty value has no mark. It has pictures of the kinds bars and
// lines, and no page.
func Table(r io.Reader) (*Report, error) {
	lines := csv.NewReader(r)
	lines.ReuseRecord = true
	head, err := lines.Read()
	if err != nil {
		return nil, fmt.Errorf("expected a line of headings: %w", err)
	}
	if len(head) != 3 && len(head) != 5 {
		return nil, fmt.Errorf("line 1: expected the columns group, series, value, and perhaps low and high, found %d "+
			"columns", len(head))
	}
	t := &tableOf{headings: [3]string{strings.Clone(head[0]), strings.Clone(head[1]), strings.Clone(head[2])},
		groups: places{of: make(map[string]int)}, series: places{of: make(map[string]int)},
		seen: make(map[[2]int]bool)}
	for {
		cells, err := lines.Read()
		if err == io.EOF {
			return &Report{document: []byte("{}"), of: ofTable, table: t}, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		if len(t.rows) == tableRows {
			return nil, fmt.Errorf("line %d: expected at most %d rows, found more", line, tableRows)
		}
		if err := t.add(cells); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// add adds a row.
func (t *tableOf) add(cells []string) error {
	if cells[2] == "" {
		return nil
	}
	row := tableRow{group: t.groups.index(cells[0]), series: t.series.index(cells[1])}
	at := [2]int{row.group, row.series}
	if t.seen[at] {
		return fmt.Errorf("expected one value of %q, %q, found a second", cells[0], cells[1])
	}
	t.seen[at] = true
	var err error
	if row.of, err = parseCell(cells[2]); err != nil {
		return err
	}
	if len(cells) == 5 && cells[3]+cells[4] != "" {
		low, err := parseCell(cells[3])
		if err != nil {
			return err
		}
		high, err := parseCell(cells[4])
		if err != nil {
			return err
		}
		if low.of > high.of {
			return fmt.Errorf("expected low at most high, found %s and %s", low.text, high.text)
		}
		row.low, row.high = &low, &high
	}
	t.rows = append(t.rows, row)
	return nil
}

// places are distinct names.
type places struct {
	names []string
	of    map[string]int // place of each name
}

// index returns the place of a name, which it adds if it is absent.
func (p *places) index(name string) int {
	i, found := p.of[name]
	if !found {
		i, name = len(p.names), strings.Clone(name)
		p.names, p.of[name] = append(p.names, name), i
	}
	return i
}

func parseCell(text string) (num, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.Abs(x) > 1e300 {
		return num{}, fmt.Errorf("expected a number, found %.60q", text)
	}
	return num{x, strings.Clone(text)}, nil
}

// drawBars draws the values as bars: a place per group, beside each other the series.
func drawBars(s *source) *picture {
	t := s.table
	if len(t.rows) == 0 || len(t.groups.names) > tableGroups || len(t.series.names) > maxSeries {
		return nil
	}
	axis := plotAxis{of: quantity{name: t.headings[0]}}
	for _, group := range t.groups.names {
		axis.names = append(axis.names, label(group))
	}
	p := &panel{x: axis, y: plotAxis{of: quantity{name: t.headings[2]}}}
	out := &picture{title: t.headings[2], panels: []*panel{p}}
	wide := 0.8 / float64(len(t.series.names))
	for i, name := range t.series.names {
		bars := &barMarks{name: label(name), fill: i, wide: wide,
			shift: (float64(i) - float64(len(t.series.names)-1)/2) * wide}
		over := &intervalMarks{bars: bars}
		for _, row := range t.rows {
			if row.series != i {
				continue
			}
			bars.at = append(bars.at, row.group)
			bars.to, bars.size = append(bars.to, row.of), append(bars.size, row.of)
			over.low, over.high = append(over.low, row.low), append(over.high, row.high)
		}
		p.marks = append(p.marks, bars, over)
		if len(t.series.names) > 1 {
			out.keys = append(out.keys, fillKey(bars.name, i))
		}
	}
	return out
}

// drawLines draws a line per series. Groups that are numbers are places on an axis of numbers.
func drawLines(s *source) *picture {
	t := s.table
	if len(t.rows) == 0 || len(t.series.names) > maxSeries {
		return nil
	}
	axis, at := factorAxis(t.headings[0], t.groups.names)
	p := &panel{x: axis, y: plotAxis{of: quantity{name: t.headings[2]}}}
	out := &picture{title: t.headings[2], panels: []*panel{p}}
	for i, name := range t.series.names {
		line := &lineMarks{name: label(name), style: i}
		for _, row := range t.rows {
			if row.series == i {
				line.points = append(line.points, lineMark{at[t.groups.names[row.group]], row.of, row.low, row.high})
			}
		}
		slices.SortStableFunc(line.points, func(a, b lineMark) int {
			switch {
			case a.x.of < b.x.of:
				return -1
			case a.x.of > b.x.of:
				return 1
			}
			return 0
		})
		line.band = len(line.points) > mostBars
		p.marks = append(p.marks, line)
		if len(t.series.names) > 1 {
			out.keys = append(out.keys, line.key())
		}
	}
	return out
}

// intervalMarks are the intervals of bars, nil where there is none.
type intervalMarks struct {
	bars      *barMarks
	low, high []*num
}

// each calls do with the place and the bounds of each interval.
func (m *intervalMarks) each(do func(i int, x float64, low, high num)) {
	for i, low := range m.low {
		if low != nil {
			do(i, float64(m.bars.at[i])+m.bars.shift, *low, *m.high[i])
		}
	}
}

func (m *intervalMarks) extent(add func(x, y float64)) {
	m.each(func(_ int, x float64, low, high num) {
		add(x, low.of)
		add(x, high.of)
	})
}

func (m *intervalMarks) plot(c draw.Canvas, at func(x, y float64) vg.Point, t *theme) {
	m.each(func(_ int, x float64, low, high num) {
		whisker(c, draw.LineStyle{Color: t.ink, Width: 0.9}, at(x, low.of), at(x, high.of))
	})
}

func (m *intervalMarks) list(l *lister) {
	m.each(func(i int, _ float64, low, high num) {
		of := l.panel.y.of
		of.name += ", low"
		cells := []plotCell{l.panel.cellX(count(m.bars.at[i])), {of.column(), low.text}}
		of.name = l.panel.y.of.name + ", high"
		l.row(m.bars.name, append(cells, plotCell{of.column(), high.text})...)
	})
}
