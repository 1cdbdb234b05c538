package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// drawTraceRanks draws the ops, bytes and computation of the ranks of a trace.
func drawTraceRanks(s *source) *picture {
	ranks := s.root.get("by_rank").all()
	if len(ranks) == 0 {
		return nil
	}
	out := &picture{}
	if all := int(s.root.get("stats", "ranks").number()); len(ranks) < all {
		out.addNote(fmt.Sprintf("the %d ranks with most bytes, of %d", len(ranks), all))
	}
	names := make([]string, len(ranks))
	for i, v := range ranks {
		names[i] = fmt.Sprint(v.get("rank").of)
	}
	for _, group := range []struct {
		of      quantity
		members []string
	}{
		{quantity{name: "ops"}, []string{"ops"}},
		{quantity{name: "data", unit: size}, []string{"sent_bytes", "received_bytes", "collective_bytes"}},
		{quantity{name: "computation", unit: time}, []string{"calc_ps"}},
	} {
		members := slices.DeleteFunc(group.members, func(name string) bool {
			return !slices.ContainsFunc(ranks, func(v value) bool { return v.get(name).number() > 0 })
		})
		p := &panel{x: plotAxis{of: quantity{name: "rank"}, names: names}, y: plotAxis{of: group.of}}
		for k, name := range members {
			m := &barMarks{name: heading(name), wide: 0.8 / float64(len(members))}
			m.shift = m.wide * (float64(k) - float64(len(members)-1)/2)
			if group.of.unit == size {
				m.fill = [...]int{0, 3, 4}[slices.Index(group.members, name)]
				out.keys = append(out.keys, fillKey(m.name, m.fill))
			}
			for i, v := range ranks {
				n := exact(v.get(name))
				m.at, m.to, m.size = append(m.at, i), append(m.to, n), append(m.size, n)
			}
			p.marks = append(p.marks, m)
		}
		if len(members) > 0 {
			out.panels = append(out.panels, p)
		}
	}
	if len(out.panels) == 0 {
		return nil
	}
	return out
}

// drawOps draws the ops by kind and subkind.
func drawOps(s *source) *picture {
	b := newBars("kind", quantity{name: "ops"})
	out := &picture{panels: []*panel{b.panel}}
	for i, name := range []string{"ops_by_kind", "ops_by_subkind"} {
		counts := s.root.get("stats", name)
		m := &barMarks{name: heading(name[len("ops_by_"):]), lying: true, fill: 3 * i}
		for _, kind := range countedOf(counts) {
			n := exact(counts.get(kind))
			m.at = append(m.at, len(b.panel.y.names))
			m.to, m.size = append(m.to, n), append(m.size, n)
			m.text = append(m.text, strings.ReplaceAll(plain.format(n.of), "\u00a0", " "))
			b.panel.y.names = append(b.panel.y.names, label(kind))
		}
		if len(m.at) > 0 {
			out.keys = append(out.keys, fillKey(m.name, m.fill))
			b.panel.marks = append(b.panel.marks, m)
		}
	}
	if len(out.keys) == 1 {
		out.keys = nil
	}
	b.panel.marks = b.panel.marks[1:] // without the empty list of bars
	if len(b.panel.marks) == 0 {
		return nil
	}
	return out
}

// drawSizes draws the messages and their bytes by size.
func drawSizes(s *source) *picture {
	bins := s.root.get("sizes").all()
	if len(bins) == 0 {
		return nil
	}
	names := make([]string, len(bins))
	for i, v := range bins {
		names[i] = strings.ReplaceAll(size.format(v.get("up_to_bytes").number()), "\u00a0", " ")
	}
	out := &picture{across: 2}
	for _, y := range []quantity{{name: "messages"}, {name: "bytes", unit: size}} {
		m := &barMarks{name: y.name, fill: 0, wide: 0.9}
		for i, v := range bins {
			n := exact(v.get(y.name))
			m.at, m.to, m.size = append(m.at, i), append(m.to, n), append(m.size, n)
		}
		if y.unit == size {
			y.name, m.fill = "data", 3
		}
		out.panels = append(out.panels, &panel{x: plotAxis{of: quantity{name: "size of messages, up to"}, names: names},
			y: plotAxis{of: y}, marks: []marks{m}})
	}
	return out
}

// drawArrivals draws the ops with a release time over time.
func drawArrivals(s *source) *picture {
	arrivals := s.root.get("arrivals")
	counts, width := arrivals.get("ops").all(), arrivals.get("bin_ps")
	if len(counts) == 0 || width.number() <= 0 {
		return nil
	}
	m := &lineMarks{name: "ops", step: true, bare: true}
	for i, v := range counts {
		m.points = append(m.points, lineMark{x: rounded(float64(i) * width.number()), y: exact(v)})
	}
	end := rounded(float64(len(counts)) * width.number())
	m.points = append(m.points, lineMark{x: end, y: exact(counts[len(counts)-1])})
	return &picture{panels: []*panel{{x: plotAxis{of: quantity{name: "release time", unit: time}}, y: plotAxis{
		of: quantity{name: "ops in " + strings.ReplaceAll(time.format(width.number()), "\u00a0", " ")}},
		marks: []marks{m}}}}
}

// countedOf returns the names of an object of counts, without those of 0, the largest first.
func countedOf(counts value) (names []string) {
	for _, name := range members(counts) {
		if counts.get(name).number() > 0 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return counts.get(b).integer().Cmp(counts.get(a).integer()) })
	return names
}

// dagOp is an op of the picture of a DAG.
type dagOp struct {
	rank, op   int
	kind, name string
	level      int
	lane       int // among the ops of its rank and level
}

// dagEdge leads from an op to one that depends on it.
type dagEdge struct {
	from, to int
	kind     int // of dagKinds
}

// dagKinds are the kinds of edges.
var dagKinds = [...]string{"dependency", "start dependency", "message"}

// drawDAG draws the ops of a small trace: a row for each rank, from left to right by the longest chain before the op.
func drawDAG(s *source) *picture {
	graph := s.root.get("dag")
	m := dagOf(graph)
	if m == nil {
		return nil
	}
	p := &panel{x: plotAxis{of: quantity{name: "longest chain before the op (ops)"}, whole: true},
		y: plotAxis{of: quantity{name: "rank"}, names: m.ranks(), down: true, stack: true}, marks: []marks{m}}
	p.x.stack = true
	out := &picture{panels: []*panel{p}, keys: m.keys(), graph: m.graphviz(s.title())}
	if text := graph.get("unmatched").text(); text != "" {
		out.addNote("without messages: " + text)
	}
	return out
}

// dagOf returns the ops and edges of a graph, nil without any.
func dagOf(graph value) *dagMarks {
	m := new(dagMarks)
	places := make(map[[2]int]int)
	for _, v := range graph.get("ops").all() {
		o := dagOp{rank: int(v.get("rank").number()), op: int(v.get("op").number()), kind: v.get("kind").text(),
			name: v.get("name").text()}
		places[[2]int{o.rank, o.op}] = len(m.ops)
		m.ops = append(m.ops, o)
	}
	if len(m.ops) == 0 {
		return nil
	}
	add := func(rank, op, toRank, toOp value, kind int) {
		from, known := places[[2]int{int(rank.number()), int(op.number())}]
		to, both := places[[2]int{int(toRank.number()), int(toOp.number())}]
		if known && both {
			m.edges = append(m.edges, dagEdge{from, to, kind})
		}
	}
	for _, v := range graph.get("ops").all() {
		for kind, name := range []string{"deps", "start_deps"} {
			for _, dep := range v.get(name).all() {
				add(v.get("rank"), dep, v.get("rank"), v.get("op"), kind)
			}
		}
	}
	for _, v := range graph.get("messages").all() {
		add(v.at(0), v.at(1), v.at(2), v.at(3), 2)
	}
	m.lay()
	return m
}

// dagMarks are the ops and edges of a DAG.
type dagMarks struct {
	ops   []dagOp
	edges []dagEdge
	lanes []int // of each rank: the largest number of its ops at a level
}

// ranks returns the names of the rows.
func (m *dagMarks) ranks() []string { return numbered(len(m.lanes)) }

// lay sets the levels of the ops. Those in or behind a cycle of messages have the level of the ops before them that are
// not.
func (m *dagMarks) lay() {
	before, next := make([]int, len(m.ops)), make([][]int, len(m.ops))
	for _, e := range m.edges {
		before[e.to]++
		next[e.from] = append(next[e.from], e.to)
	}
	var ready []int
	for i, n := range before {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		for _, k := range next[i] {
			m.ops[k].level = max(m.ops[k].level, m.ops[i].level+1)
			if before[k]--; before[k] == 0 {
				ready = append(ready, k)
			}
		}
	}
	used := make(map[[2]int]int)
	for i := range m.ops {
		o := &m.ops[i]
		for len(m.lanes) <= o.rank {
			m.lanes = append(m.lanes, 1)
		}
		at := [2]int{o.rank, o.level}
		o.lane = used[at]
		used[at]++
		m.lanes[o.rank] = max(m.lanes[o.rank], used[at])
	}
}

// place returns the place of an op between the axes.
func (m *dagMarks) place(i int) (x, y float64) {
	o := &m.ops[i]
	return float64(o.level), float64(o.rank) - 0.4 + 0.8*(float64(o.lane)+0.5)/float64(m.lanes[o.rank])
}

func (m *dagMarks) extent(add func(x, y float64)) {
	for i := range m.ops {
		x, y := m.place(i)
		add(x-0.5, y)
		add(x+0.5, y)
	}
}

func (m *dagMarks) list(l *lister) {
	for _, o := range m.ops {
		l.row(o.kind, plotCell{"rank", fmt.Sprint(o.rank)}, plotCell{"op", fmt.Sprint(o.op)}, plotCell{"name", o.name},
			l.panel.cellX(count(o.level)))
	}
	for _, e := range m.edges {
		from, to := &m.ops[e.from], &m.ops[e.to]
		l.row(dagKinds[e.kind], plotCell{"rank", fmt.Sprint(from.rank)}, plotCell{"op", fmt.Sprint(from.op)},
			plotCell{"to rank", fmt.Sprint(to.rank)}, plotCell{"to op", fmt.Sprint(to.op)})
	}
}

// kinds returns the kinds of the ops, in order.
func (m *dagMarks) kinds() (kinds []string) {
	for _, o := range m.ops {
		if !slices.Contains(kinds, o.kind) {
			kinds = append(kinds, o.kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// graphviz returns the DAG in the language of Graphviz, with a cluster for each rank.
func (m *dagMarks) graphviz(title string) string {
	var b strings.Builder
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(label(s)) + `"`
	}
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR\n  node [shape=box]\n", quote(cmp.Or(title, "trace")))
	for rank := range m.lanes {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=\"rank %d\"\n", rank, rank)
		for _, o := range m.ops {
			if o.rank == rank {
				name := strings.TrimSpace(fmt.Sprintf("%d %s %s", o.op, o.kind, o.name))
				fmt.Fprintf(&b, "    r%d_%d [label=%s]\n", rank, o.op, quote(name))
			}
		}
		b.WriteString("  }\n")
	}
	for _, e := range m.edges {
		from, to := &m.ops[e.from], &m.ops[e.to]
		style := [...]string{"", " [style=dashed]", " [color=\"#c44e00\", constraint=false]"}[e.kind]
		fmt.Fprintf(&b, "  r%d_%d -> r%d_%d%s\n", from.rank, from.op, to.rank, to.op, style)
	}
	b.WriteString("}\n")
	return b.String()
}
