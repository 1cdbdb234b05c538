package report

// flows writes the flow completion times.
func (p *page) flows() {
	root := p.root
	fct := root.get("fct_ps")
	if !fct.known {
		return
	}
	says := new(sentence).add("Half of the flows complete within ").show(fct.get("p50"), time).add(", 99 % within ").
		show(fct.get("p99"), time)
	if slow := root.get("slowdown", "p99"); slow.known {
		says.add("; the slowdown of 99 % is at most ").show(slow, plain)
	}
	says.add(".")
	p.section("flows", "Flows", says)
	defer p.endSection()
	drawn := p.flowCurve("fct_ps", "fct_cdf", "Share of flows that complete within a time", "flow completion time",
		time)
	drawn = p.flowCurve("slowdown", "slowdown_cdf", "Share of flows up to a slowdown", "slowdown", plain) || drawn
	if !drawn {
		p.percentiles("Percentiles of flows", "fct_ps", "delivered_ps", "slowdown").write(&p.body)
	}
	p.slowdownBySize()
	if bins := root.get("fct_by_size"); bins.get("rows").len() > 0 {
		p.folded("By size", columnsOf(bins, "Flow completion times by size"))
	}
	p.counters()
}

// quantiles are the members of distributions of flows.
var quantiles = []string{"min", "mean", "p50", "p95", "p99", "p99.9", "max"}

// percentiles returns a table of distributions of the result.
func (p *page) percentiles(caption string, names ...string) *table {
	t := &table{caption: caption, headings: append([]string{"measure"}, quantiles...)}
	for _, name := range names {
		v := p.root.get(name)
		if !v.known {
			continue
		}
		label := map[string]string{"fct_ps": "FCT at sender", "delivered_ps": "delivery", "slowdown": "slowdown"}[name]
		line := []string{label}
		for _, q := range quantiles {
			line = append(line, show(v.get(q), unitOf(name)))
		}
		t.rows = append(t.rows, line)
	}
	return t
}

// curveOf returns a distribution function of the result, or the one that the report derives.
func (p *page) curveOf(name string) value {
	if v := p.root.get(name); v.known {
		return v
	}
	return p.root.get("report", name)
}

// flowCurve writes the figure of a distribution of flows. It reports whether the result has it.
func (p *page) flowCurve(name, curve, caption, axis string, u unit) bool {
	points := p.curveOf(curve)
	of := p.root.get(name)
	if points.len() < 2 {
		return false
	}
	says := new(sentence).add("Of the flows, half have a "+axis+" of at most ").show(of.get("p50"),
		u).add(", 99 % of ").
		show(of.get("p99"), u).add(", all of ").show(of.get("max"), u).add(".")
	names := []string{name}
	if name == "fct_ps" {
		names = append(names, "delivered_ps")
	}
	p.figure(caption, says, distributions(axis, u, []value{points}, nil),
		p.percentiles("Percentiles of flows", names...))
	return true
}

// slowdownBySize writes the percentiles of slowdowns by bins of sizes.
func (p *page) slowdownBySize() {
	bins := p.root.get("fct_bins")
	places := make(map[string]int)
	for i, c := range bins.get("columns").all() {
		places[c.text()] = i + 1
	}
	cell := func(row value, name string) value { return row.at(places[name] - 1) }
	members := []string{"slowdown_p50", "slowdown_p95", "slowdown_p99", "slowdown_p99.9"}
	x := scaleAxis{name: "size of the flow"}
	y := scaleAxis{name: "slowdown", unit: plain}
	all := make([]series, len(members))
	values := &table{caption: "Slowdowns by size of the flow", headings: []string{"size", "flows"}}
	for i, name := range members {
		all[i] = series{name: heading(name)[len("slowdown "):], dots: true}
		values.headings = append(values.headings, heading(name))
	}
	worst, ofWorst := value{}, value{}
	for _, row := range bins.get("rows").all() {
		if cell(row, "job").of != nil || cell(row, "class").of != nil || !cell(row, members[0]).isNumber() {
			continue
		}
		line := []string{show(cell(row, "size"), plain), show(cell(row, "flows"), plain)}
		for i, name := range members {
			v := cell(row, name)
			all[i].xy = append(all[i].xy, [2]float64{float64(len(x.names)), v.number()})
			line = append(line, show(v, plain))
		}
		if v := cell(row, "slowdown_p99"); !worst.known || v.number() > worst.number() {
			worst, ofWorst = v, cell(row, "size")
		}
		x.names = append(x.names, clean(cell(row, "size").text()))
		values.rows = append(values.rows, line)
	}
	if len(x.names) == 0 {
		return
	}
	says := new(sentence).add("The largest 99th percentile of the slowdown is ").show(worst, plain).
		add(", of flows of ").show(ofWorst, plain).add(".")
	p.figure("Slowdown by size of the flow", says, chart(x, y, all), values)
}

// counters writes the counters of the network.
func (p *page) counters() {
	counters := p.root.get("counters")
	if !counters.known {
		return
	}
	says := new(sentence).add("The switches drop ").show(counters.get("switch_drops"), plain).
		add(" packets, trim ").show(counters.get("switch_trims_arriving"), plain).add(" arriving and ").
		show(counters.get("switch_trims_tail"), plain).add(" queued ones, and mark ").
		show(counters.get("ecn_marks"), plain).add("; senders retransmit ").
		show(counters.get("retransmitted_packets"), plain).add(".")
	p.body.WriteString("<p>" + says.html.String() + "</p>\n")
	p.body.WriteString("<details class=\"short\"><summary>Counters</summary><dl>\n")
	p.list(counters)
	p.body.WriteString("</dl></details>\n")
}

// storage writes the latencies of storage accesses.
func (p *page) storage() {
	root := p.root
	io := root.get("io_latency")
	if !io.known {
		return
	}
	says := new(sentence).add("Storage accesses: ").show(io.get("count"), plain).add(", half of them within ").
		show(io.get("p50_ps"), time).add(", 99 % within ").show(io.get("p99_ps"), time).add(".")
	p.section("storage", "Storage", says)
	defer p.endSection()
	groups := root.get("io_latency_cdf").all()
	byKind, bySize := groups[:0:0], map[string][]value{}
	for _, g := range groups {
		if g.get("size").of == nil {
			byKind = append(byKind, g)
		} else {
			bySize[g.get("kind").text()] = append(bySize[g.get("kind").text()], g)
		}
	}
	draw := func(caption, key string, says *sentence, groups []value, values *table) {
		var curves []value
		var names []string
		for _, g := range groups {
			curves, names = append(curves, g.get("cdf")), append(names, clean(g.get(key).text()))
		}
		p.figure(caption, says, distributions("latency", time, curves, names), values)
	}
	if len(byKind) > 0 {
		draw("Share of accesses that end within a time, by kind", "kind", says, byKind,
			columnsOf(root.get("io_latency_by_kind"), "Latencies by kind"))
	}
	for _, kind := range []string{"read", "write"} {
		if list := bySize[kind]; len(list) > 0 {
			says := new(sentence).add("Latencies of ").show(list[0].get("kind"), plain).add(" accesses by ").
				add("size; those of ").show(list[0].get("size"), plain).add(" are ").
				show(list[0].get("count"), plain).add(".")
			all := columnsOf(root.get("io_latency_by_size"), "Latencies by kind and size")
			draw("Share of accesses that end within a time: "+kind+" by size", "size", says, list, all)
		}
	}
	p.body.WriteString("<dl>\n")
	p.list(io)
	p.body.WriteString("</dl>\n")
	for _, by := range []string{"host", "unit"} {
		if t := root.get("io_latency_by_" + by); t.get("rows").len() > 1 {
			p.folded("By "+by, columnsOf(t, "Latencies by "+by))
		}
	}
}
