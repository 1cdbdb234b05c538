package report

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// drawFCT draws the distribution of flow completion times of a result, or of several.
func drawFCT(s *source) *picture {
	results, names := []value{s.root}, []string{"flows"}
	if s.of == ofSeveral {
		results, names = s.root.get("results").all(), nil
		for i := range results {
			names = append(names, label(s.root.get("names").at(i).text()))
		}
	}
	var curves []value
	var have []string
	for i, root := range results {
		for _, v := range []value{root.get("fct_cdf"), root.get("report", "fct_cdf")} { // of the result, or derived
			if v.len() > 0 {
				curves, have = append(curves, v), append(have, names[i])
				break
			}
		}
	}
	return drawCurves(quantity{name: "flow completion time", unit: time}, "share of flows", curves, have)
}

// drawAccesses draws the distribution of the latencies of storage accesses, by kind.
func drawAccesses(s *source) *picture {
	var curves []value
	var names []string
	for _, g := range s.root.get("io_latency_cdf").all() {
		if g.get("size").of == nil && g.get("cdf").len() > 0 {
			curves, names = append(curves, g.get("cdf")), append(names, label(g.get("kind").text()))
		}
	}
	return drawCurves(quantity{name: "latency of storage accesses", unit: time}, "share of accesses", curves, names)
}

// drawCurves draws distribution functions. It returns nil without any.
func drawCurves(x quantity, y string, curves []value, names []string) *picture {
	if len(curves) == 0 {
		return nil
	}
	p := &panel{x: plotAxis{of: x}, y: plotAxis{of: quantity{name: y, unit: percent}}}
	out := &picture{panels: []*panel{p}}
	for i, curve := range curves {
		m := &lineMarks{name: names[i], style: i, step: true, bare: true}
		m.points = append(m.points, lineMark{x: exact(curve.at(0).at(0)), y: num{0, "0"}})
		for _, point := range curve.all() {
			m.points = append(m.points, lineMark{x: exact(point.at(0)), y: exact(point.at(1))})
		}
		p.marks = append(p.marks, m)
		if len(curves) > 1 {
			out.keys = append(out.keys, m.key())
		}
	}
	return out
}

// drawSlowdown draws percentiles of slowdowns by bins of sizes.
func drawSlowdown(s *source) *picture {
	bins := s.root.get("fct_bins")
	job, class, sizes := column(bins, "job"), column(bins, "class"), column(bins, "size")
	p := &panel{x: plotAxis{of: quantity{name: "size of the flow"}, names: []string{}},
		y: plotAxis{of: quantity{name: "slowdown"}}}
	out := &picture{panels: []*panel{p}}
	var all []*lineMarks
	var columns []int
	for i, percentile := range []string{"p50", "p95", "p99"} {
		all = append(all, &lineMarks{name: percentile, style: i})
		columns = append(columns, column(bins, "slowdown_"+percentile))
	}
	for _, row := range bins.get("rows").all() {
		if row.at(job).of != nil || row.at(class).of != nil || !row.at(columns[0]).isNumber() {
			continue
		}
		for i, at := range columns {
			all[i].points = append(all[i].points, lineMark{x: count(len(p.x.names)), y: exact(row.at(at))})
		}
		p.x.names = append(p.x.names, label(row.at(sizes).text()))
	}
	if len(p.x.names) == 0 {
		return nil
	}
	for _, m := range all {
		p.marks, out.keys = append(p.marks, m), append(out.keys, m.key())
	}
	return out
}

// drawQueues draws the largest samples of the queues of the fullest ports over time, with their ECN thresholds.
func drawQueues(s *source) *picture {
	queues := s.root.get("queues")
	ports := queues.get("ports").all()
	width := queues.get("interval_ps")
	if len(ports) == 0 || width.number() <= 0 {
		return nil
	}
	p := &panel{x: plotAxis{of: quantity{name: "time", unit: time}}, y: plotAxis{of: quantity{name: "data in the queue",
		unit: size}}}
	out := &picture{panels: []*panel{p}}
	thresholds := make(map[string]*ruleMarks)
	for i, port := range ports {
		m := &lineMarks{name: label(port.get("port").text()), style: i, step: true, bare: true}
		for k, v := range port.get("bytes").all() {
			start := new(big.Int).Mul(width.integer(), big.NewInt(int64(k)))
			m.points = append(m.points, lineMark{x: whole(start), y: exact(v)})
		}
		if len(m.points) > 0 {
			end := new(big.Int).Mul(width.integer(), big.NewInt(int64(len(m.points))))
			m.points = append(m.points, lineMark{x: whole(end), y: num{0, "0"}}) // empty from then on
			p.marks, out.keys = append(p.marks, m), append(out.keys, m.key())
		}
		for _, name := range []string{"ecn_min_bytes", "ecn_max_bytes"} {
			if v := port.get(name); v.isNumber() && thresholds[fmt.Sprint(v.of)] == nil {
				rule := &ruleMarks{name: heading(name), at: exact(v), level: true}
				thresholds[fmt.Sprint(v.of)] = rule
				p.marks = append(p.marks, rule)
				if len(thresholds) == 1 {
					out.keys = append(out.keys, rule.key("ECN thresholds"))
				}
			}
		}
	}
	if len(out.keys) == 0 {
		return nil
	}
	out.note = "largest sample in intervals of " + strings.ReplaceAll(time.format(width.number()), "\u00a0", " ")
	return out
}

// drawPath draws the time on the critical path by part and by name of the op.
func drawPath(s *source) *picture {
	path := s.root.get("critical_path")
	var names []string
	for _, name := range members(path) {
		if unitOf(name) == time && name != "length_ps" && path.get(name).number() > 0 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return path.get(b).integer().Cmp(path.get(a).integer()) })
	if len(names) == 0 {
		return nil
	}
	parts := newBars("part", quantity{name: "time", unit: time})
	for _, name := range names {
		parts.add(heading(name), path.get(name))
	}
	out := &picture{panels: []*panel{parts.panel}}
	if list := path.get("by_name").all(); len(list) > 0 {
		ops := newBars("op", quantity{name: "time", unit: time})
		for _, v := range list[:min(len(list), 12)] {
			ops.add(v.get("name").text(), v.get("time_ps"))
		}
		if n := len(list) - 12; n > 0 {
			out.addNote(fmt.Sprintf("the 12 names with most time, of %d", len(list)))
		}
		out.panels = append(out.panels, ops.panel)
	}
	return out
}

// lyingBars are a panel of bars with names.
type lyingBars struct {
	panel *panel
	bars  *barMarks
}

// newBars returns a panel without bars. kind is what the names are of.
func newBars(kind string, of quantity) *lyingBars {
	b := &lyingBars{panel: &panel{x: plotAxis{of: of}, y: plotAxis{of: quantity{name: kind}, names: []string{},
		down: true}}, bars: &barMarks{lying: true}}
	b.panel.marks = []marks{b.bars}
	return b
}

// add adds a bar below the others, with its number.
func (b *lyingBars) add(name string, v value) {
	n := exact(v)
	b.bars.at = append(b.bars.at, len(b.bars.at))
	b.bars.to, b.bars.size = append(b.bars.to, n), append(b.bars.size, n)
	b.bars.text = append(b.bars.text, strings.ReplaceAll(b.panel.x.of.unit.format(n.of), "\u00a0", " "))
	b.panel.y.names = append(b.panel.y.names, cmp.Or(label(name), "–"))
}

// drawJobs draws each job from its start to its finish.
func drawJobs(s *source) *picture {
	jobs := s.root.get("jobs").all()
	if len(jobs) == 0 {
		return nil
	}
	out := &picture{}
	if len(jobs) > plottedRanks {
		slices.SortStableFunc(jobs, func(a, b value) int {
			return b.get("finish_ps").integer().Cmp(a.get("finish_ps").integer())
		})
		out.addNote(fmt.Sprintf("the %d jobs that finish last, of %d", plottedRanks, len(jobs)))
		jobs = jobs[:plottedRanks]
	}
	b := newBars("job", quantity{name: "time", unit: time})
	for _, job := range jobs {
		b.add(job.get("name").text(), job.get("makespan_ps"))
		i := len(b.bars.to) - 1
		start := job.get("start_ps")
		b.bars.from = append(b.bars.from, exact(start))
		b.bars.to[i] = whole(new(big.Int).Add(start.integer(), job.get("makespan_ps").integer()))
		if slow := job.get("slowdown"); slow.isNumber() {
			b.bars.text[i] += ", slowdown " + digits(slow.number())
		}
	}
	out.panels = []*panel{b.panel}
	return out
}

// maxPorts is the largest number of rows and of columns of the picture of ports.
const maxPorts = 256

// drawPorts draws the utilization of ports by node, or of the network's heat map if it is large.
func drawPorts(s *source) *picture {
	m := &gridMarks{of: quantity{name: "utilization", unit: percent}, edge: 1}
	note := ""
	if heat := s.root.get("network", "ports"); heat.get("use").len() > 0 {
		note = heatRows(heat, m)
	} else {
		table, use := linksOf(s.root)
		if use < 0 {
			return nil
		}
		note = portRows(table, use, m)
	}
	columns, most := 0, 0.0
	for _, row := range m.cells {
		columns = max(columns, len(row))
		for _, n := range row {
			most = max(most, n.of)
		}
	}
	if most <= 0 {
		return nil
	}
	var bounds [levels + 1]float64
	for i := range bounds {
		bounds[i] = most * float64(i) / levels
	}
	m.level = func(x float64) int { return min(levels-1, int(levels*x/most)) }
	p := &panel{x: rankAxis("port", columns, 1), y: plotAxis{of: quantity{name: "node"}, names: m.rows, down: true},
		marks: []marks{m}, weight: 8}
	scale := &panel{x: plotAxis{bare: true}, y: plotAxis{of: m.of, stack: true, tight: true},
		marks: []marks{&levelMarks{bounds}}, weight: scaleWeight}
	return &picture{note: note, panels: []*panel{p, scale}}
}

// heatRows adds the rows of the network's heat map.
func heatRows(heat value, m *gridMarks) (note string) {
	for i, row := range heat.get("use").all() {
		cells := make([]num, row.len())
		for k := range cells {
			cells[k] = exact(row.at(k))
		}
		m.cells, m.rows = append(m.cells, cells), append(m.rows, label(heat.get("names").at(i).text()))
	}
	m.edge = max(1, int(heat.get("ports_per_column").number()))
	if n := heat.get("switches_per_row").number(); n > 1 || m.edge > 1 {
		note = fmt.Sprintf("largest of %g switches by %d ports", max(n, 1), m.edge)
	}
	return note
}

// portRows adds a row for each node with several ports, in the order of names, with its ports in the order of where
// they lead.
func portRows(table value, use int, m *gridMarks) (note string) {
	type port struct {
		to  string
		use value
	}
	nodes := make(map[string][]port)
	for _, row := range table.get("rows").all() {
		from, to, _ := strings.Cut(nameOfLink(table, row), "->")
		nodes[from] = append(nodes[from], port{to, row.at(use)})
	}
	var names []string
	single := 0
	for name, ports := range nodes {
		if len(ports) == 1 {
			single++
		} else {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		for name := range nodes {
			names = append(names, name)
		}
		single = 0
	}
	slices.SortFunc(names, natural)
	if single > 0 {
		note = fmt.Sprintf("without %d nodes with a single port", single)
	}
	for _, name := range names[:min(len(names), maxPorts)] {
		ports := nodes[name]
		slices.SortStableFunc(ports, func(a, b port) int { return natural(a.to, b.to) })
		var cells []num
		for _, p := range ports[:min(len(ports), maxPorts)] {
			cells = append(cells, exact(p.use))
		}
		m.cells, m.rows = append(m.cells, cells), append(m.rows, label(name))
	}
	if n := len(names) - maxPorts; n > 0 {
		note = strings.TrimPrefix(note+fmt.Sprintf("; the first %d of %d nodes", maxPorts, len(names)), "; ")
	}
	return note
}

// natural compares names by their texts and the numbers in them.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digitsOf(a), digitsOf(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// digitsOf returns the digits at the beginning of a text.
func digitsOf(s string) string {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	return s[:end]
}
