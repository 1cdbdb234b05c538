package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	maxSeries = 16 // lines of a picture of a sweep
	maxPanels = 9
	mostBars  = 12 // of the intervals of the points of a line; with more, they are a band
)

// factorUnits are the endings of values of factors, with their unit and its value.
var factorUnits = []struct {
	ending string
	unit   unit
	value  float64
}{
	{"ps", time, 1}, {"ns", time, 1e3}, {"us", time, 1e6}, {"ms", time, 1e9},
	{"kB/s", rate, 8e3}, {"MB/s", rate, 8e6}, {"GB/s", rate, 8e9}, {"TB/s", rate, 8e12},
	{"Gbps", rate, 1e9}, {"Mbps", rate, 1e6}, {"kbps", rate, 1e3}, {"Tbps", rate, 1e12},
	{"KiB", size, 1 << 10}, {"MiB", size, 1 << 20}, {"GiB", size, 1 << 30}, {"TiB", size, 1 << 40},
	{"kB", size, 1e3}, {"MB", size, 1e6}, {"GB", size, 1e9}, {"TB", size, 1e12}, {"B", size, 1}, {"s", time, 1e12},
	{"%", percent, 0.01},
}

// factorNumber returns the number and the unit of a value of a factor.
func factorNumber(text string) (x float64, u unit, ok bool) {
	by := 1.0
	for _, f := range factorUnits {
		if rest, found := strings.CutSuffix(text, f.ending); found && rest != "" {
			text, u, by = rest, f.unit, f.value
			break
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	return x * by, u, err == nil && x >= 0 && !math.IsInf(x*by, 0)
}

// factorAxis returns the axis of a factor's values, and the places of the values: of numbers of one unit if all are.
func factorAxis(name string, values []string) (a plotAxis, places map[string]num) {
	places = make(map[string]num)
	a.of.name = name
	for i, text := range values {
		x, u, ok := factorNumber(text)
		if !ok || i > 0 && u != a.of.unit {
			a = plotAxis{of: quantity{name: name}}
			for k, text := range values {
				a.names, places[text] = append(a.names, text), count(k)
			}
			return a, places
		}
		a.of.unit, places[text] = u, rounded(x)
	}
	return a, places
}

// pointSeries are the values of a measure by factor: panels, lines and places.
type pointSeries struct {
	panel, name string
	values      map[string][]value // by place
	loads       []value            // at saturation, if places are loads
}

// seriesOf returns the values of a measure by factor, and the values of the first factor, whose places points have. The
// values of factor panel, if there is one, have a panel each; the other factors are part of names.
func seriesOf(points []value, names, path []string, panel int) (all []*pointSeries, places []string) {
	for _, v := range points {
		x, in, title := "", make([]string, 0, len(names)), ""
		for i, name := range names {
			text := label(factorText(v.get("factors", name)))
			switch {
			case i == 0:
				x = text
			case i == panel:
				title = name + " = " + text
			default:
				in = append(in, name+" = "+text)
			}
		}
		if !slices.Contains(places, x) {
			places = append(places, x)
		}
		if !v.get(path...).isNumber() {
			continue
		}
		name := strings.Join(in, ", ")
		at := slices.IndexFunc(all, func(p *pointSeries) bool { return p.panel == title && p.name == name })
		if at < 0 {
			at, all = len(all), append(all, &pointSeries{title, name, make(map[string][]value), nil})
		}
		all[at].values[x] = append(all[at].values[x], v.get(path...))
		if load := v.get("saturation", "load"); load.isNumber() && len(names) > 0 && names[0] == "load" {
			all[at].loads = append(all[at].loads, load)
		}
	}
	return all, places
}

// line returns the points of the series by place: the mean of replicas, with the interval from the least to the
// greatest. It omits values without a place.
func (p *pointSeries) line(places map[string]num) (points []lineMark, replicas int) {
	order := slices.SortedFunc(maps.Keys(p.values), func(a, b string) int {
		return cmp.Or(cmp.Compare(places[a].of, places[b].of), strings.Compare(a, b))
	})
	for _, text := range order {
		if _, known := places[text]; !known {
			continue
		}
		replicas = max(replicas, len(p.values[text]))
		points = append(points, meanOf(places[text], p.values[text]))
	}
	return points, replicas
}

// drawSweep draws a measure over the factor with most values. The next factor has a line for each value, the third a
// panel; further factors are part of the names of lines.
func drawSweep(s *source) *picture {
	points := s.root.get("points").all()
	if m, ok := s.measureIn(points); ok {
		return drawMeasure(s, points, m)
	}
	return nil
}

// measureIn returns the measure to draw: the selected one, or the first of measures, if a result has it.
func (s *source) measureIn(results []value) (m measure, ok bool) {
	choice := measures
	if s.measure != "" {
		choice = []measure{measureOf(s.measure)}
	}
	for _, m := range choice {
		if slices.ContainsFunc(results, func(v value) bool { return v.get(m.path...).isNumber() }) {
			return m, true
		}
	}
	return m, false
}

// drawResults draws a measure of each of several results.
func drawResults(s *source) *picture {
	results := s.root.get("results").all()
	m, ok := s.measureIn(results)
	if !ok {
		return nil
	}
	b := newBars("result", quantity{m.name, m.unit, m.in})
	for i, v := range results {
		if of := v.get(m.path...); of.isNumber() {
			b.add(s.root.get("names").at(i).text(), of)
		}
	}
	return &picture{title: "Comparison of results", panels: []*panel{b.panel}}
}

// measureOf returns the measure of a path of names such as fct_ps.p99.
func measureOf(path string) measure {
	m := measure{path: strings.Split(path, ".")}
	var words []string
	for _, name := range m.path {
		words = append(words, heading(name))
		if u := unitOf(name); u != plain {
			m.unit = u
		}
	}
	m.name = strings.Join(words, " ")
	return m
}

// drawMeasure draws a measure of points.
func drawMeasure(s *source, points []value, m measure) *picture {
	names := factorsOf(points)
	out := &picture{note: s.pointsNote()}
	all, values := seriesOf(points, names, m.path, 2)
	if len(all) == 0 {
		return nil
	}
	name := "point"
	if len(names) > 0 {
		name = names[0]
	}
	x, places := factorAxis(name, values)
	x.of.in = factorUnitNames[name]
	layPanels(out, all, x, places, m)
	return out
}

// factorUnitNames are the units of factors that are plain numbers.
var factorUnitNames = map[string]string{"load": "flits per cycle and host"}

// factorText returns the value of a factor as text.
func factorText(v value) string {
	if v.of == nil {
		return "–"
	}
	return fmt.Sprint(v.of)
}

// layPanels adds a panel for each value of the third factor and a line for each series to a picture.
func layPanels(out *picture, all []*pointSeries, x plotAxis, places map[string]num, m measure) {
	var titles, lines []string
	omitted, replicas := 0, 0
	for _, one := range all {
		if !slices.Contains(titles, one.panel) && len(titles) < maxPanels {
			titles = append(titles, one.panel)
			out.panels = append(out.panels, &panel{title: one.panel, x: x, y: plotAxis{of: quantity{m.name, m.unit,
				m.in}}})
		}
		if !slices.Contains(lines, one.name) && len(lines) < maxSeries {
			lines = append(lines, one.name)
		}
		at, style := slices.Index(titles, one.panel), slices.Index(lines, one.name)
		if at < 0 || style < 0 {
			omitted++
			continue
		}
		line := &lineMarks{name: cmp.Or(one.name, m.name), style: style}
		var runs int
		line.points, runs = one.line(places)
		replicas = max(replicas, runs)
		line.band = len(line.points) > mostBars
		out.panels[at].marks = append(out.panels[at].marks, line)
		if one.name != "" && len(out.keys) <= style {
			out.keys = append(out.keys, line.key())
		}
	}
	if len(out.panels) > 3 {
		out.across = int(math.Ceil(math.Sqrt(float64(len(out.panels)))))
	}
	if replicas > 1 {
		out.addNote(fmt.Sprintf("means of up to %d runs; bars from the least to the greatest", replicas))
	}
	if omitted > 0 {
		out.addNote(fmt.Sprintf("%d of %d series omitted", omitted, len(all)))
	}
	if len(out.panels) > 1 { // one range for all
		for _, p := range out.panels {
			p.sameAs = append(p.sameAs, out.panels...)
		}
	}
}

// meanOf returns the mean of values at a place, and if they are several, the interval from the least to the greatest.
func meanOf(x num, all []value) lineMark {
	if len(all) == 1 {
		return lineMark{x: x, y: exact(all[0])}
	}
	sum, least, most := 0.0, all[0], all[0]
	for _, v := range all {
		sum += v.number() / float64(len(all))
		if v.number() < least.number() {
			least = v
		}
		if v.number() > most.number() {
			most = v
		}
	}
	low, high := exact(least), exact(most)
	return lineMark{x: x, y: rounded(min(max(sum, low.of), high.of)), low: &low, high: &high}
}

// addNote adds a part of the line below the title.
func (p *picture) addNote(text string) {
	if p.note != "" {
		p.note += "; "
	}
	p.note += text
}

// pointsNote returns how many points failed or are beyond those of the document.
func (s *source) pointsNote() string {
	derived := s.root.get("report")
	var notes []string
	if n := derived.get("failed").number(); n > 0 {
		notes = append(notes, fmt.Sprintf("%g of %g points failed", n, derived.get("points").number()))
	}
	if all, have := derived.get("points").number(), derived.get("shown").number(); have < all {
		notes = append(notes, fmt.Sprintf("the first %g of %g points", have, all))
	}
	return strings.Join(notes, "; ")
}

// drawLatency draws the latency of packets over the offered load.
func drawLatency(s *source) *picture {
	return s.load(measure{[]string{"packet_latency", "mean"}, "mean packet latency", plain, "cycles"},
		[]string{"packet_latency_interval", "half_width"})
}

// drawLoad draws the latency of packets and the accepted load over the offered load.
func drawLoad(s *source) *picture {
	left := drawLatency(s)
	right := s.load(measure{[]string{"accepted_load"}, "accepted load", plain, "flits per cycle and host"}, nil)
	if left == nil || right == nil {
		return nil
	}
	left.panels = append(left.panels, right.panels...)
	return left
}

// saturated is the end of the names of series of searches for saturation.
const saturated = ", at zero load and saturation"

// zeroLoad returns the point at zero load of a search for saturation.
func zeroLoad(saturation value) (mark lineMark, ok bool) {
	x, y := saturation.get("zero_load"), saturation.get("zero_load_latency")
	if !x.isNumber() || !y.isNumber() {
		return mark, false
	}
	mark = lineMark{x: exact(x), y: exact(y)}
	mark.interval(saturation.get("zero_load_interval", "half_width"))
	return mark, true
}

// interval sets the interval of a positive number from its half width, if there is one.
func (m *lineMark) interval(half value) {
	if half.isNumber() {
		low, high := rounded(max(0, m.y.of-half.number())), rounded(m.y.of+half.number())
		m.low, m.high = &low, &high
	}
}

// load draws a measure over the offered load, with a line for each routing and the saturation marked.
func (s *source) load(m measure, half []string) *picture {
	points := slices.Clone(s.root.get("points").all())
	out := &picture{note: s.pointsNote()}
	p := &panel{x: plotAxis{of: quantity{name: "offered load", in: "flits per cycle and host"}},
		y: plotAxis{of: quantity{m.name, m.unit, m.in}}}
	var lines []*lineMarks
	var rules []*ruleMarks
	for _, v := range points {
		y := v.get(m.path...)
		if !y.isNumber() {
			continue
		}
		saturation := v.get("saturation")
		name := v.get("model").text()
		if saturation.known {
			name += saturated
		}
		at := slices.IndexFunc(lines, func(l *lineMarks) bool { return l.name == name })
		if at < 0 {
			at = len(lines)
			lines = append(lines, &lineMarks{name: name, style: at})
		}
		mark := lineMark{x: exact(v.get("traffic", "load")), y: exact(y)}
		if half != nil {
			mark.interval(v.get(half...))
		}
		lines[at].points = append(lines[at].points, mark)
		if saturation.known {
			rules = append(rules, &ruleMarks{name: name, at: mark.x})
			lines[at].alone = true
			if zero, ok := zeroLoad(saturation); ok && half != nil {
				lines[at].points = append(lines[at].points, zero)
			}
		}
	}
	if len(lines) == 0 {
		return nil
	}
	for _, l := range lines {
		slices.SortStableFunc(l.points, func(a, b lineMark) int { return cmp.Compare(a.x.of, b.x.of) })
		l.band = len(l.points) > mostBars
		p.marks = append(p.marks, l)
		if len(lines) > 1 {
			out.keys = append(out.keys, l.key())
		}
	}
	for _, rule := range rules {
		p.marks = append(p.marks, rule)
	}
	if len(rules) > 0 {
		out.keys = append(out.keys, rules[0].key("saturation"))
	}
	out.panels = []*panel{p}
	out.title = label(s.root.get("run", "settings", "synthetic").text())
	if routing := strings.TrimSuffix(lines[0].name, saturated); len(lines) == 1 && routing != "" {
		out.title = strings.TrimPrefix(out.title+", "+routing, ", ")
	}
	return out
}
