package report

import (
	"fmt"
	"strings"
)

// arrivals writes the ops with a release time over time.
func (p *page) arrivals() {
	arrivals := p.root.get("arrivals")
	counts := arrivals.get("ops").all()
	if len(counts) == 0 {
		return
	}
	most, at := value{}, 0
	s := series{name: "ops", steps: true}
	values := &table{caption: "Ops by release time", headings: []string{"interval", "ops"}}
	width := arrivals.get("bin_ps").number()
	for i, v := range counts {
		if v.number() > most.number() {
			most, at = v, i
		}
		s.xy = append(s.xy, [2]float64{width * float64(i), v.number()})
		values.rows = append(values.rows, []string{fmt.Sprint(i), show(v, plain)})
	}
	s.xy = append(s.xy, [2]float64{width * float64(len(counts)), 0})
	says := new(sentence).add("Ops with a release time, in intervals of ").show(arrivals.get("bin_ps"), time).
		add(fmt.Sprintf("; most of them, in interval %d: ", at)).show(most, plain).add(".")
	p.section("arrivals", "Release times", says)
	s.name = ""
	p.figure("Ops released in each interval", says, chart(scaleAxis{name: "time", unit: time}, scaleAxis{name: "ops"},
		[]series{s}), values)
	p.endSection()
}

// dependencies writes the degrees of ops and the number of ops by level.
func (p *page) dependencies() {
	levels, degrees := p.root.get("levels"), p.root.get("degrees").all()
	if !levels.known && len(degrees) == 0 {
		return
	}
	says := new(sentence).add("The longest chain of dependencies has ").show(levels.get("depth"), plain).
		add(" ops; most ops, ").show(levels.get("widest"), plain).add(", are on level ").
		show(levels.get("widest_level"), plain).add(". The ops of all ranks count.")
	p.section("dependencies", "Dependencies", says)
	defer p.endSection()
	if ops := levels.get("ops").all(); len(ops) > 0 {
		each := max(1, levels.get("levels_each").number())
		s := series{steps: true}
		values := &table{caption: "Ops by level", headings: []string{"level", "ops"}}
		for i, v := range ops {
			level := 1 + each*float64(i)
			s.xy = append(s.xy, [2]float64{level, v.number()})
			values.rows = append(values.rows, []string{fmt.Sprintf("%.0f", level), show(v, plain)})
		}
		s.xy = append(s.xy, [2]float64{1 + each*float64(len(ops)), 0})
		p.figure("Ops by level: the number of ops in the longest chain that ends there", says,
			chart(scaleAxis{name: "level"}, scaleAxis{name: "ops"}, []series{s}), values)
	}
	if len(degrees) > 0 {
		least := new(sentence).show(degrees[0].get("ops"), plain).add(" ops have at most ").
			show(degrees[0].get("up_to_dependencies"), plain).add(" dependencies.")
		label := func(v value) string { return "to " + numberText(v.get("up_to_dependencies"), plain) }
		p.figure("Ops by number of dependencies", least, single(degrees, label, "ops", plain),
			objectsOf(degrees, "Ops by number of dependencies", "up_to_dependencies", "ops"))
	}
}

// graph writes the DAG of a small trace.
func (p *page) graph() {
	graph := p.root.get("dag")
	m := dagOf(graph)
	ops := graph.get("ops").all()
	if m == nil || len(ops) > listed {
		return
	}
	says := new(sentence).add("The DAG has a row for each rank; ops are from left to right by the longest chain "+
		"before ").
		add("them. The first is op ").show(ops[0].get("op"), plain).add(" of rank ").show(ops[0].get("rank"), plain).
		add(", ").show(ops[0].get("kind"), plain).add(".")
	if text := graph.get("unmatched"); text.text() != "" {
		says.add(" It lacks messages: ").show(text, plain).add(".")
	}
	p.section("dag", "DAG", says)
	p.figure("Ops and their dependencies", says, m.drawing(), objectsOf(ops, "Ops", "rank", "op", "kind", "name"))
	p.endSection()
}

// drawing draws the DAG for a page.
func (m *dagMarks) drawing() *drawing {
	d := &drawing{}
	most, lanes := 0, 1
	for _, o := range m.ops {
		most = max(most, o.level)
	}
	for _, n := range m.lanes {
		lanes = max(lanes, n)
	}
	apart, row := 840/float64(most+1), 30*float64(lanes)
	radius := max(2, min(10, 0.35*apart))
	at1 := func(i int) (x, y float64) {
		x, y = m.place(i)
		return 90 + apart*(x+0.5), 8 + row*(y+0.5)
	}
	for rank := range m.lanes {
		fmt.Fprintf(&d.marks, `<path class="grid" d="M90 %sH930"/><text class="axis" x="82" y="%s" text-anchor="end">`+
			"rank %d</text>\n", at(8+row*float64(rank+1)), at(8+row*(float64(rank)+0.5)+4), rank)
	}
	classes := [len(dagKinds)]string{"l6", "l1", "l2"}
	used := [len(dagKinds)]bool{}
	for _, e := range m.edges {
		x, y := at1(e.from)
		toX, toY := at1(e.to)
		used[e.kind] = true
		fmt.Fprintf(&d.marks, `<path class="line %s" style="stroke-width:1.3" d="M%s %sL%s %s"/>`, classes[e.kind],
			at(x), at(y), at(toX), at(toY))
	}
	for kind, is := range used {
		if is {
			d.keyOfLine(classes[kind], dagKinds[kind]+" (from left to right)")
		}
	}
	for i, o := range m.ops {
		x, y := at1(i)
		fmt.Fprintf(&d.marks,
			`<circle class="node" cx="%s" cy="%s" r="%s"><title>rank %d, op %d: %s %s</title></circle>`,
			at(x), at(y), at(radius), o.rank, o.op, escape(o.kind), escape(short(o.name, 100)))
		if radius >= 7 && o.kind != "" {
			fmt.Fprintf(&d.marks, `<text x="%s" y="%s" text-anchor="middle">%s</text>`, at(x), at(y+4),
				escape(string([]rune(o.kind)[:1])))
		}
	}
	d.marks.WriteString("\n")
	d.height = int(8+row*float64(len(m.lanes))) + 10
	return d
}

// measured writes the activity of ranks in the recorded times.
func (p *page) measured() {
	measured := p.root.get("measured")
	rows := measured.get("busy").all()
	if len(rows) == 0 {
		return
	}
	says := new(sentence).show(measured.get("ops"), plain).add(" ops have recorded times, from ").
		show(measured.get("from_ps"), time).add(" to ").show(measured.get("until_ps"), time).
		add("; in the mean, ops of a rank are active in ").show(measured.get("active_share"), percent).add(" of it.")
	if measured.get("ranks_per_row").number() > 1 {
		says.add(" Each row is the mean of ").show(measured.get("ranks_per_row"), plain).add(" ranks.")
	}
	p.section("measured", "Recorded times", says)
	values := &table{caption: "Recorded times", headings: []string{"value", "time"}}
	for _, name := range []string{"from_ps", "until_ps", "bin_ps"} {
		values.rows = append(values.rows, []string{escape(map[string]string{"from_ps": "first start",
			"until_ps": "last end", "bin_ps": "column"}[name]), show(measured.get(name), time)})
	}
	p.figure("Share of the time in which ops of a rank are active", says, heatOfTime(measured), values)
	p.endSection()
}

// heatOfTime draws the activity of ranks over time in colors.
func heatOfTime(measured value) *drawing {
	d := &drawing{}
	rows := measured.get("busy").all()
	const left, wide, top = 90.0, 830.0, 8.0
	high := max(4, min(18, 420/float64(len(rows))))
	var paths [levels]strings.Builder
	for i, row := range rows {
		all := row.all()
		cell := wide / float64(max(1, len(all)))
		for k := 0; k < len(all); {
			level := min(levels-1, int(levels*all[k].number()))
			end := k + 1
			for end < len(all) && min(levels-1, int(levels*all[end].number())) == level && all[end].number() > 0 ==
				(all[k].number() > 0) {
				end++
			}
			if all[k].number() > 0 && level >= 0 {
				fmt.Fprintf(&paths[level], "M%s %sh%sv%sh-%sz", at(left+cell*float64(k)), at(top+high*float64(i)),
					at(cell*float64(end-k)), at(high*0.9), at(cell*float64(end-k)))
			}
			k = end
		}
	}
	bottom := top + high*float64(len(rows))
	for i := range paths {
		if paths[i].Len() > 0 {
			class := fmt.Sprintf("h%d", i)
			fmt.Fprintf(&d.marks, "<path class=\"%s\" d=\"%s\"/>\n", class, paths[i].String())
			d.key(class, percent.format(float64(i)/levels)+" to "+percent.format(float64(i+1)/levels))
		}
	}
	fmt.Fprintf(&d.marks, `<rect class="axisline" x="%s" y="%s" width="%s" height="%s" style="fill:none"/>`, at(left),
		at(top), at(wide), at(high*float64(len(rows))))
	every := max(1, int(14/high+0.99))
	each := max(1, measured.get("ranks_per_row").number())
	for i := 0; i < len(rows); i += every {
		fmt.Fprintf(&d.marks, `<text class="axis" x="%s" y="%s" text-anchor="end">rank %s</text>`, at(left-6),
			at(top+high*(float64(i)+0.5)+4), digits(each*float64(i)))
	}
	length := measured.get("until_ps").number() - measured.get("from_ps").number()
	(&scaleAxis{unit: time, most: length}).ticks(func(v float64, label string) {
		x := left + wide*v/length
		fmt.Fprintf(&d.marks, `<path class="axisline" d="M%s %sv5"/><text class="axis" x="%s" y="%s" `+
			`text-anchor="middle">%s</text>`, at(x), at(bottom), at(x), at(bottom+18), escape(label))
	})
	fmt.Fprintf(&d.marks, `<text x="%s" y="%s" text-anchor="middle">time after the first start</text>`+"\n",
		at(left+wide/2), at(bottom+36))
	d.height = int(bottom) + 46
	return d
}

// findings writes the problems of the trace.
func (p *page) findings() {
	problems := p.root.get("problems")
	first := problems.get("first").all()
	if len(first) == 0 {
		return
	}
	says := new(sentence).add("The trace has ").show(problems.get("all"), plain).
		add(" problems that may keep it from completing, as tracecat --check lists them")
	if float64(len(first)) < problems.get("all").number() {
		says.add(fmt.Sprintf("; the first %d are here", len(first)))
	}
	says.add(".")
	p.section("problems", "Problems", says)
	t := objectsOf(first, "Problems", "class", "rank", "op", "message")
	for i, v := range first {
		for k, name := range []string{"rank", "op"} {
			if v.get(name).number() < 0 {
				t.rows[i][k+1] = "all"
			}
		}
	}
	p.folded("Problems", t)
	p.endSection()
}
