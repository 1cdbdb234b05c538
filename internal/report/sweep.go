package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A page of a sweep has at most listed points, without the lists of their results. A figure has at most maxLines lines.
const maxLines = 8

// Sweep collects the results of the points of a sweep, or of a load curve, for a page.
type Sweep struct {
	first  map[string]any // what all points have
	points []any
	more   int // points beyond the first ones
	failed int
}

// Add adds the JSON document of a point's result.
func (s *Sweep) Add(document []byte) error {
	if len(s.points) == listed {
		s.more++
		return nil
	}
	root, err := decode(document)
	if err != nil {
		return err
	}
	object := root.of.(map[string]any)
	if s.first == nil {
		s.first = map[string]any{"run": object["run"], "backend": object["backend"], "model": object["model"]}
	}
	if root.get("error").known {
		s.failed++
	}
	point := map[string]any{"factors": root.get("run", "factors").of, "seed": root.get("run", "seed").of}
	for name, v := range object {
		switch of := v.(type) {
		case map[string]any:
			if name == "run" || name == "params" || name == "backend_stats" {
				continue
			}
			numbers := make(map[string]any)
			for key, number := range of {
				if (value{of: number}).isNumber() && len(of) <= 50 {
					numbers[key] = number
				}
			}
			if len(numbers) > 0 {
				point[name] = numbers
			}
		case []any:
		default:
			point[name] = v
		}
	}
	s.points = append(s.points, point)
	return nil
}

// Report returns the report of all points.
func (s *Sweep) Report() (*Report, error) {
	document := map[string]any{"points": s.points, "report": map[string]any{"points": len(s.points) + s.more,
		"shown": len(s.points), "failed": s.failed}}
	for name, v := range s.first {
		if v != nil {
			document[name] = v
		}
	}
	text, err := marshal(document)
	if err != nil {
		return nil, err
	}
	return newReport(text, ofSweep, 0, nil, (*page).sweep)
}

// measure is a number of points that figures show.
type measure struct {
	path []string
	name string
	unit unit
	in   string // unit of plain numbers
}

// measures are the results of points that figures show.
var measures = []measure{
	{[]string{"makespan_ps"}, "makespan", time, ""}, {[]string{"fct_ps", "p99"}, "99th percentile of the FCT", time,
		""},
	{[]string{"slowdown", "p99"}, "99th percentile of the slowdown", plain, ""},
	{[]string{"packet_latency", "mean"}, "mean packet latency", plain, "cycles"},
	{[]string{"accepted_load"}, "accepted load", plain, "flits per cycle and host"},
}

// heading returns the name with the unit of plain numbers.
func (m *measure) heading() string {
	if m.in == "" {
		return m.name
	}
	return m.name + " in " + m.in
}

// sweep writes the page of a sweep.
func (p *page) sweep() {
	p.header()
	points, derived := p.root.get("points").all(), p.root.get("report")
	if len(points) == 0 {
		return
	}
	names := factorsOf(points)
	says := new(sentence).add("The sweep has ").show(derived.get("points"), plain).add(" points, of which ").
		show(derived.get("failed"), plain).add(" failed.")
	if derived.get("shown").number() < derived.get("points").number() {
		says.add(" The page has the first ").show(derived.get("shown"), plain).add(".")
	}
	p.section("sweep", "Sweep", says)
	defer p.endSection()
	var shownMeasures []int
	for i, m := range measures {
		if slices.ContainsFunc(points, func(v value) bool { return v.get(m.path...).isNumber() }) {
			shownMeasures = append(shownMeasures, i)
		}
	}
	for _, i := range shownMeasures {
		m := measures[i]
		values := &table{caption: "Points", headings: append(slices.Clone(names), "seed", m.heading())}
		least, most := value{}, value{}
		for _, v := range points {
			line := factorCells(v, names)
			of := v.get(m.path...)
			values.rows = append(values.rows, append(line, show(v.get("seed"), plain), show(of, m.unit)))
			if of.isNumber() && (!least.known || of.number() < least.number()) {
				least = of
			}
			if of.isNumber() && (!most.known || of.number() > most.number()) {
				most = of
			}
		}
		says := new(sentence).add("The "+m.heading()+" is from ").show(least, m.unit).add(" to ").show(most,
			m.unit).add(".")
		fmt.Fprintf(&p.body, "<p>%s</p>\n", says.html.String())
		p.figure(strings.ToUpper(m.name[:1])+m.heading()[1:], says, lines(points, names, m.path, m.unit), values)
	}
	for i, v := range points {
		if failed := v.get("error"); failed.known {
			fmt.Fprintf(&p.body, "<p>Point %d failed: %s</p>\n", i+1, show(failed, plain))
		}
	}
}

// factorCells returns the factors of a point as cells of a table.
func factorCells(v value, names []string) (cells []string) {
	for _, name := range names {
		cells = append(cells, show(v.get("factors", name), plain))
	}
	return cells
}

// factorsOf returns the names of the factors, the one with most values first.
func factorsOf(points []value) []string {
	count := make(map[string]map[string]bool)
	for _, v := range points {
		factors, _ := v.get("factors").of.(map[string]any)
		for name, of := range factors {
			if count[name] == nil {
				count[name] = make(map[string]bool)
			}
			count[name][fmt.Sprint(of)] = true
		}
	}
	names := make([]string, 0, len(count))
	for name := range count {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := len(count[b]) - len(count[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return names
}

// mark is a point of a line.
type mark struct {
	x  string // value of the factor of the horizontal axis
	of value
}

// lines draws a measure over the first factor, a line for each combination of the others.
func lines(points []value, names []string, path []string, u unit) *drawing {
	d := &drawing{}
	var labelsOf []string
	series := make(map[string][]mark)
	var places []string
	numeric, most := true, 0.0
	at1 := make(map[string]float64)
	for _, v := range points {
		x, label := "", make([]string, 0, len(names))
		for i, name := range names {
			if text := clean(fmt.Sprint(v.get("factors", name).of)); i == 0 {
				x = text
			} else {
				label = append(label, name+"="+text)
			}
		}
		if !slices.Contains(places, x) {
			places = append(places, x)
		}
		of := v.get(path...)
		if !of.isNumber() {
			continue
		}
		number, err := strconv.ParseFloat(x, 64)
		numeric = numeric && err == nil && number >= 0 && !math.IsInf(number, 0)
		at1[x] = number
		name := strings.Join(label, " ")
		if series[name] == nil {
			labelsOf = append(labelsOf, name)
		}
		series[name] = append(series[name], mark{x, of})
		most = max(most, of.number())
	}
	const left, end, bottom = 90.0, 720.0, 280.0
	largest := 0.0
	for _, x := range places {
		largest = max(largest, at1[x])
	}
	numeric = numeric && largest > 0
	place := func(x string) float64 {
		if numeric {
			return left + (end-left)*at1[x]/largest
		}
		return left + (end-left)*(float64(slices.Index(places, x))+0.5)/float64(len(places))
	}
	y := func(v float64) float64 { return bottom - (bottom-12)*max(0, v)/max(most, math.SmallestNonzeroFloat64) }
	(axis{most: most, unit: u}).ticks(func(v float64, label string) {
		fmt.Fprintf(&d.marks, `<path class="grid" d="M%s %sH%s"/><text class="axis" x="%s" y="%s" text-anchor="end">%s`+
			"</text>\n", at(left), at(y(v)), at(end), at(left-8), at(y(v)+4), escape(label))
	})
	last := -100.0
	for _, x := range places {
		if at1 := place(x); at1-last >= 60 {
			last = at1
			fmt.Fprintf(&d.marks, `<text class="axis" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", at(at1),
				at(bottom+18), escape(short(x, 12)))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(&d.marks, `<text x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", at((left+end)/2),
			at(bottom+38), escape(names[0]))
	}
	lowest := 0.0 // of the labels
	for i, name := range labelsOf[:min(len(labelsOf), maxLines)] {
		marks := series[name]
		if numeric {
			slices.SortStableFunc(marks, func(a, b mark) int {
				switch {
				case at1[a.x] < at1[b.x]:
					return -1
				case at1[a.x] > at1[b.x]:
					return 1
				}
				return 0
			})
		}
		fmt.Fprintf(&d.marks, `<path class="line l%d" d="`, i)
		for k, m := range marks {
			command := "L"
			if k == 0 {
				command = "M"
			}
			fmt.Fprintf(&d.marks, "%s%s %s", command, at(place(m.x)), at(y(m.of.number())))
		}
		d.marks.WriteString(`"/>`)
		for _, m := range marks {
			text, _ := numberOf(m.of, u)
			fmt.Fprintf(&d.marks, `<circle class="dot l%d" cx="%s" cy="%s" r="3.5"><title>%s %s: %s</title>`+
				"</circle>", i, at(place(m.x)), at(y(m.of.number())), escape(name), escape(m.x), escape(text))
		}
		if name != "" {
			top := 24 + 18*float64(i)
			lowest = top
			fmt.Fprintf(&d.marks, `<path class="line l%d" d="M%s %sh28"/><text x="%s" y="%s">%s</text>`, i, at(end+20),
				at(top-4), at(end+54), at(top), escape(short(name, 28)))
		}
		d.marks.WriteString("\n")
	}
	if n := len(labelsOf) - maxLines; n > 0 {
		fmt.Fprintf(&d.marks, `<text x="%s" y="%s">others: in the table</text>`+"\n", at(end+20), at(lowest+20))
	}
	d.height = int(bottom) + 48
	return d
}
