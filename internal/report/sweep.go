package report

import (
	"fmt"
	"slices"
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
	if most, _, _ := replicasOf((value{of: s.points}).all()); most > 1 {
		document["report"].(map[string]any)["replicas"] = most
	}
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
	{[]string{"saturation", "load"}, "load at saturation", plain, "flits per cycle and host"},
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
	p.aboutReplicas(points)
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
		if m.path[0] == "saturation" && len(names) > 0 && names[0] == "load" {
			continue // the horizontal axis of the others
		}
		if series, _ := seriesOf(points, names, m.path, -1); len(series) > maxLines {
			p.body.WriteString("<p>The figure has the first lines, the table all points.</p>\n")
		}
		p.figure(strings.ToUpper(m.name[:1])+m.heading()[1:], says, lines(points, names, &m), values)
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

// replicasOf returns the largest number of points with equal factors, whether all combinations of factors have as many,
// and whether the seeds of such points differ.
func replicasOf(points []value) (most int, equal, seeds bool) {
	type seeded struct{ factors, seed string }
	runs, seen := make(map[string]int), make(map[seeded]bool)
	equal, seeds = true, true
	for _, v := range points {
		if v.get("error").known {
			equal = false
			continue
		}
		text, _ := marshal(v.get("factors").of) // in the order of names; decoded JSON has no error
		factors := string(text)
		runs[factors]++
		one := seeded{factors, fmt.Sprint(v.get("seed").of)}
		seeds = seeds && !seen[one]
		seen[one] = true
		most = max(most, runs[factors])
	}
	for _, n := range runs {
		equal = equal && n == most
	}
	return most, equal, seeds
}

// aboutReplicas writes how many runs the points of figures have, if they are several.
func (p *page) aboutReplicas(points []value) {
	replicas := p.root.get("report", "replicas")
	if replicas.number() < 2 {
		return
	}
	_, equal, seeds := replicasOf(points)
	says := new(sentence).add("Each point is the mean of ")
	if !equal {
		says.add("up to ")
	}
	says.show(replicas, plain)
	if seeds {
		says.add(" seeds")
	} else {
		says.add(" runs")
	}
	says.add("; bars or bands are from the least to the greatest.")
	fmt.Fprintf(&p.body, "<p>%s</p>\n", says.html.String())
}

// placesOf returns the axis of the first factor and the places of its values. The value of searches for saturation has
// none if there are such loads: each series has its own place.
func placesOf(names, values []string, searched bool) (x scaleAxis, places map[string]num) {
	if searched {
		values = slices.DeleteFunc(slices.Clone(values), func(text string) bool { return text == "saturation" })
	}
	name := ""
	if len(names) > 0 {
		name = names[0]
	}
	a, places := factorAxis(name, values)
	a.of.in = factorUnitNames[name]
	x = scaleAxis{name: a.of.name, unit: a.of.unit, names: a.names, lineName: "saturation"}
	if a.of.in != "" && a.names == nil {
		x.name += " in " + a.of.in
	}
	zero := false
	for _, place := range places {
		x.extend(place.of)
		zero = zero || place.of <= 0
	}
	if a.names == nil && !zero {
		x.fit()
	}
	return x, places
}

// lines draws a measure over the first factor, a line for each combination of the others, with the mean of replicas.
func lines(points []value, names []string, m *measure) *drawing {
	all, values := seriesOf(points, names, m.path, -1)
	searched := slices.ContainsFunc(all, func(s *pointSeries) bool { return len(s.loads) > 0 })
	x, places := placesOf(names, values, searched)
	var drawn []series
	for _, one := range all[:min(len(all), maxLines)] {
		if searched && len(one.loads) > 0 {
			places["saturation"] = meanOf(num{}, one.loads).y
			x.lines = append(x.lines, places["saturation"].of)
		} else if searched {
			delete(places, "saturation")
		}
		s := series{name: one.name, dots: true}
		marks, replicas := one.line(places)
		for _, mark := range marks {
			s.xy = append(s.xy, [2]float64{mark.x.of, mark.y.of})
			between, note := [2]float64{mark.y.of, mark.y.of}, ""
			if mark.low != nil {
				between = [2]float64{mark.low.of, mark.high.of}
				note = fmt.Sprintf(" on average, from %s to %s", m.unit.format(mark.low.of),
					m.unit.format(mark.high.of))
			}
			if replicas > 1 {
				s.between, s.notes = append(s.between, between), append(s.notes, note)
			}
		}
		drawn = append(drawn, s)
	}
	return chart(x, scaleAxis{unit: m.unit}, drawn)
}
