package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// network writes the busiest ports or links, and the network with the utilization of its links.
func (p *page) network() {
	busy, network := p.root.get("report", "busiest"), p.root.get("network")
	dims := p.root.get("run", "topology", "dims")
	if !busy.known && !network.known && dims.len() == 0 {
		return
	}
	says := new(sentence)
	switch {
	case busy.known:
		p.busiest(busy, says)
	case network.known:
		p.sizeOf(network, says)
	default:
		says.add("The network has ").show(p.root.get("run", "topology", "hosts"), plain).add(" NPUs in ").
			show(p.root.get("report", "dimensions"), plain).add(" dimensions.")
	}
	p.section("network", "Network", says)
	defer p.endSection()
	if network.known {
		p.drawn(network, busy)
	}
	if dims.len() > 0 {
		p.figure("Rate of a link by dimension", says, single(dims.all(),
			func(v value) string { return v.get("shape").text() },
			"bits_s", rate), objectsOf(dims.all(), "Dimensions", members(dims.at(0))...))
	}
	if busy.known {
		use := useOf(busy)
		all := make([]bar, busy.get("rows").len())
		for i, v := range busy.get("rows").all() {
			name := clean(nameOfLink(busy, v))
			all[i] = bar{label: name, full: name, parts: []piece{{"f0", "utilization", v.at(use)}}}
		}
		p.figure("Utilization of the busiest", says, bars(all, percent), columnsOf(busy, "The busiest"))
	}
	for _, tiers := range []value{p.root.get("tiers"), p.root.get("backend_stats", "link_use")} {
		if tiers.get("rows").len() > 0 {
			p.folded("By tier", columnsOf(tiers, "Ports or links by tier"))
		}
	}
}

// members returns the names of the members of an object, in order.
func members(v value) (names []string) {
	object, _ := v.of.(map[string]any)
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// useOf returns the column of the utilization of a table of ports or links.
func useOf(busy value) int {
	return slices.IndexFunc(busy.get("columns").all(), func(c value) bool { return unitOf(c.text()) == percent })
}

// nameOfLink returns the name of a port or link of a table.
func nameOfLink(busy, row value) string {
	if column(busy, "from") == 0 {
		return row.at(0).text() + "->" + row.at(1).text()
	}
	return row.at(0).text()
}

func (p *page) busiest(busy value, says *sentence) {
	row := busy.get("rows").at(0)
	says.add("The busiest is "+clean(nameOfLink(busy, row))+", utilized to ").show(row.at(useOf(busy)), percent)
	if busy.get("all").known {
		says.add("; ").show(busy.get("used"), plain).add(" of ").show(busy.get("all"), plain).add(" carry traffic")
	}
	says.add(".")
}

func (p *page) sizeOf(network value, says *sentence) {
	says.add("The network has ").show(network.get("hosts"), plain).add(" hosts, ").show(network.get("switches"), plain).
		add(" switches and ").show(network.get("links"), plain).add(" links, utilized to at most ").
		show(network.get("max_use"), percent).add(".")
}

// drawn writes the figure of the network.
func (p *page) drawn(network, busy value) {
	says := new(sentence)
	p.sizeOf(network, says)
	links := network.get("drawn")
	if heat := network.get("ports"); links.get("rows").len() == 0 && heat.get("use").len() > 0 {
		says.add(" It has too many links to draw: each row is ")
		if heat.get("switches_per_row").number() > 1 {
			says.add("a group of ").show(heat.get("switches_per_row"), plain).add(" switches")
		} else {
			says.add("a switch")
		}
		if heat.get("ports_per_column").number() > 1 {
			says.add(", each column a group of ").show(heat.get("ports_per_column"), plain).add(" of its ports.")
		} else {
			says.add(", each column one of its ports.")
		}
		p.body.WriteString("<p>" + says.html.String() + "</p>\n")
		p.figure("Utilization by switch and port", says, heatOfPorts(heat, network.get("max_use").number()),
			columnsOf(busy, "The busiest"))
		return
	}
	if links.get("rows").len() == 0 || network.get("nodes", "rows").len() == 0 {
		return
	}
	rows := links.get("rows").all()
	caption := "Links"
	slices.SortStableFunc(rows, func(a, b value) int { return cmp.Compare(mostUse(b), mostUse(a)) })
	if len(rows) > listedLinks {
		caption, rows = fmt.Sprintf("The %d busiest links", listedLinks), rows[:listedLinks]
	}
	values := &table{caption: caption, headings: []string{"link", "rate"}}
	for _, name := range drawnColumns[4:] {
		values.headings = append(values.headings, heading(name))
	}
	for _, row := range rows {
		line := []string{show(row.at(0), plain)}
		for i, name := range drawnColumns[3:] {
			line = append(line, show(row.at(i+3), unitOf(name)))
		}
		values.rows = append(values.rows, line)
	}
	p.figure("Utilization of links: the larger of both directions", says, topology(network), values)
}

// drawnColumns are the columns of the links of the section "network".
var drawnColumns = []string{"link", "from", "to", "rate_bits_s", "bytes", "back_bytes", "use", "back_use"}

// listedLinks is the largest number of links in the table of the drawn network.
const listedLinks = 50

// mostUse returns the utilization of a drawn link, the larger of both directions.
func mostUse(row value) float64 { return max(row.at(6).number(), row.at(7).number()) }

// useLevels is the number of colors and widths of links with traffic.
const useLevels = 5

// plan is the drawing of a network.
type plan struct {
	drawing
	x, y     []float64 // by node
	switches int       // the first switch
	apart    float64   // smallest distance of switches
	near     float64   // smallest distance of nodes
	// Links past other nodes of their row or column are arcs.
	rows, columns bool
}

// topology draws a network.
func topology(network value) *drawing {
	nodes := network.get("nodes", "rows").all()
	d := &plan{switches: len(nodes)}
	layout := network.get("layout").text()
	left, wide, high := 20.0, 920.0, 640.0
	if layout == "rows" || layout == "levels" {
		left, wide = 150.0, 780.0
		rows := make(map[float64]bool)
		for _, v := range nodes {
			rows[v.at(3).number()] = true
		}
		high = min(900, 110*float64(max(1, len(rows)-1)))
	} else {
		left, wide = 160, 640
	}
	for i, v := range nodes {
		d.x = append(d.x, left+wide*unitShare(v.at(2)))
		d.y = append(d.y, 24+high*unitShare(v.at(3)))
		if v.at(1).text() == "switch" {
			d.switches = min(d.switches, i)
		}
	}
	d.height = int(slices.Max(d.y)) + 32
	d.rows, d.columns = layout != "groups", layout == "grid"
	d.apart, d.near = d.nearest(d.switches), d.nearest(0)
	d.links(network)
	d.nodes(nodes, layout)
	return &d.drawing
}

// unitShare returns a number from 0 to 1.
func unitShare(v value) float64 { return math.Max(0, math.Min(1, v.number())) }

// nearest returns the smallest distance between nodes from the given one on.
func (d *plan) nearest(from int) float64 {
	least := 200.0
	for i := from; i < len(d.x); i++ {
		for k := from; k < i; k++ {
			if dx := math.Abs(d.x[i] - d.x[k]); dx < least {
				least = min(least, math.Hypot(dx, d.y[i]-d.y[k]))
			}
		}
	}
	return least
}

// links draws the links, those with the most traffic above the others.
func (d *plan) links(network value) {
	most := network.get("max_use").number()
	var groups [useLevels + 1]strings.Builder
	for _, row := range network.get("drawn", "rows").all() {
		from, to := int(row.at(1).number()), int(row.at(2).number())
		if from < 0 || to < 0 || from >= len(d.x) || to >= len(d.x) {
			continue
		}
		level := 0
		if use := mostUse(row); use > 0 && most > 0 {
			level = 1 + min(useLevels-1, int(useLevels*use/most))
		}
		there, back := numberText(row.at(6), percent), numberText(row.at(7), percent)
		fmt.Fprintf(&groups[level], `<path d="%s"><title>%s: %s, %s back</title></path>`, d.path(from, to),
			escape(short(row.at(0).text(), 100)), there, back)
	}
	for level := range groups {
		if groups[level].Len() == 0 {
			continue
		}
		class, name := "use idle", "no traffic"
		if level > 0 {
			class = fmt.Sprintf("use u%d", level-1)
			name = percent.format(most*float64(level-1)/useLevels) + " to " +
				percent.format(most*float64(level)/useLevels)
		}
		d.keyOfLine(class, name)
		thin := ""
		if share := max(0.25, d.near/8); share < 1 {
			thin = fmt.Sprintf(` style="stroke-width:%.2g"`, share*(0.5+0.8*float64(level)))
		}
		fmt.Fprintf(&d.marks, `<g class="%s"%s>%s</g>`+"\n", class, thin, groups[level].String())
	}
}

// numberText returns a number as text.
func numberText(v value, u unit) string {
	text, _ := numberOf(v, u)
	return text
}

// path returns the path of a link: a line, or an arc if other nodes may be on the line.
func (d *plan) path(from, to int) string {
	x, y, dx, dy := d.x[from], d.y[from], d.x[to]-d.x[from], d.y[to]-d.y[from]
	length := math.Hypot(dx, dy)
	level := d.columns && math.Abs(dx) < 0.1 || d.rows && math.Abs(dy) < 0.1
	if from < d.switches || to < d.switches || !level || length < 1.4*d.apart {
		return fmt.Sprintf("M%s %sL%s %s", at(x), at(y), at(d.x[to]), at(d.y[to]))
	}
	bend := min(36, 0.2*length) / length
	return fmt.Sprintf("M%s %sQ%s %s %s %s", at(x), at(y), at(x+dx/2+bend*dy), at(y+dy/2-bend*dx), at(d.x[to]),
		at(d.y[to]))
}

// nodes draws hosts as dots and switches as squares, with names if there is room.
func (d *plan) nodes(nodes []value, layout string) {
	half := min(6, max(1.2, 0.3*d.apart))
	dot := min(4, max(0.8, 0.3*d.near))
	longest := 0
	for i, v := range nodes {
		name := escape(short(v.at(0).text(), 100))
		if i < d.switches {
			fmt.Fprintf(&d.marks, `<circle class="node host" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`,
				at(d.x[i]),
				at(d.y[i]), at(dot), name)
			continue
		}
		longest = max(longest, len([]rune(v.at(0).text())))
		fmt.Fprintf(&d.marks, `<rect class="node" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`,
			at(d.x[i]-half), at(d.y[i]-half), at(2*half), at(2*half), name)
	}
	d.marks.WriteString("\n")
	if layout == "rows" || layout == "levels" {
		d.rowNames(nodes, layout)
	}
	if d.apart >= 7*float64(longest)+4 {
		for i := d.switches; i < len(nodes); i++ {
			fmt.Fprintf(&d.marks, `<text class="halo" x="%s" y="%s" text-anchor="middle">%s</text>`, at(d.x[i]),
				at(d.y[i]-half-5), escape(nodes[i].at(0).text()))
		}
		d.marks.WriteString("\n")
	}
}

// rowNames writes the names of the first and the last node of each row.
func (d *plan) rowNames(nodes []value, layout string) {
	first := 0
	if layout == "levels" {
		first = d.switches
	}
	type ends struct{ first, last int }
	rows := make(map[float64]ends)
	var heights []float64
	for i := first; i < len(nodes); i++ {
		e, seen := rows[d.y[i]]
		if !seen {
			e = ends{i, i}
			heights = append(heights, d.y[i])
		}
		if d.x[i] < d.x[e.first] {
			e.first = i
		}
		if d.x[i] > d.x[e.last] {
			e.last = i
		}
		rows[d.y[i]] = e
	}
	for _, y := range heights {
		e := rows[y]
		name := short(clean(nodes[e.first].at(0).text()), 10)
		if e.first != e.last {
			name += " … " + short(clean(nodes[e.last].at(0).text()), 10)
		}
		fmt.Fprintf(&d.marks, `<text class="axis" x="8" y="%s">%s</text>`+"\n", at(y+4), escape(name))
	}
}

// heatOfPorts draws the utilization of ports by switch and port in colors.
func heatOfPorts(heat value, most float64) *drawing {
	d := &drawing{}
	rows, columns := heat.get("use").all(), 1
	for _, row := range rows {
		columns = max(columns, row.len())
	}
	const left, top = 150.0, 24.0
	wide, high := min(14, 760/float64(columns)), min(14, 600/float64(len(rows)))
	var paths [levels]strings.Builder
	for i, row := range rows {
		for k, v := range row.all() {
			if use := v.number(); use > 0 && most > 0 {
				level := min(levels-1, int(levels*use/most))
				fmt.Fprintf(&paths[level], "M%s %sh%sv%sh-%sz", at(left+wide*float64(k)), at(top+high*float64(i)),
					at(wide),
					at(high), at(wide))
			}
		}
	}
	fmt.Fprintf(&d.marks, `<rect class="axisline" x="%s" y="%s" width="%s" height="%s" style="fill:none"/>`, at(left),
		at(top), at(wide*float64(columns)), at(high*float64(len(rows))))
	for i := range paths {
		if paths[i].Len() > 0 {
			class := fmt.Sprintf("h%d", i)
			fmt.Fprintf(&d.marks, "<path class=\"%s\" d=\"%s\"/>\n", class, paths[i].String())
			d.key(class, percent.format(most*float64(i)/levels)+" to "+percent.format(most*float64(i+1)/levels))
		}
	}
	every := max(1, int(math.Ceil(14/high)))
	for i := 0; i < len(rows); i += every {
		fmt.Fprintf(&d.marks, `<text class="axis" x="%s" y="%s" text-anchor="end">%s</text>`+"\n", at(left-6),
			at(top+high*(float64(i)+0.5)+4), escape(short(heat.get("names").at(i).text(), 20)))
	}
	fmt.Fprintf(&d.marks, `<text x="%s" y="14">ports</text>`+"\n", at(left))
	d.height = int(top+high*float64(len(rows))) + 10
	return d
}
