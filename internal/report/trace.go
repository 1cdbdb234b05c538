package report

import (
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/internal/shell"
)

// trace writes the page of a trace.
func (p *page) trace() {
	root, stats := p.root, p.root.get("stats")
	p.heads(root.get("title"), root.get("input"))
	p.title += " – tracecat"
	w := &p.head
	fmt.Fprintf(w, "<dl class=\"lead\">%s%s</dl>\n", row("ranks", shown(stats.get("ranks"), plain)),
		row("ops", shown(stats.get("ops"), plain)))
	if blocked := stats.get("blocked_ops"); blocked.number() > 0 {
		fmt.Fprintf(w, "<div class=\"box\"><h2>The trace cannot complete</h2><p>%s ops can never run; tracecat "+
			"--check lists the reasons.</p></div>\n", show(blocked, plain))
	}
	w.WriteString("<dl>\n" + row("trace", shown(root.get("input"), plain)) +
		row("format", shown(root.get("format"), plain)))
	for _, name := range []string{"nodes", "communicators", "jobs", "calc_ps", "flops", "sent_bytes", "received_bytes",
		"collective_bytes", "mem_bytes", "io_bytes", "last_release_ps", "deps", "start_deps", "streams", "nics"} {
		if v := stats.get(name); v.number() > 0 {
			w.WriteString(row(traceNames[name], show(v, unitOf(name))))
		}
	}
	depth := stats.get("depth")
	if depth.get("ops").known {
		w.WriteString(row("longest chain", show(depth.get("ops"), plain)+" ops on rank "+
			show(depth.get("rank"), plain)))
	}
	if path := stats.get("critical_path"); path.get("time_ps").known {
		w.WriteString(row("longest computation", show(path.get("time_ps"), time)+" on rank "+
			show(path.get("rank"), plain)))
	}
	w.WriteString("</dl>\n")
	p.counts()
	p.sizes()
	p.traffic()
	p.byRank()
	p.arrivals()
	p.dependencies()
	p.graph()
	p.measured()
	p.findings()
	p.comms()
	p.provenance()
}

// traceNames are the names of statistics for people.
var traceNames = map[string]string{
	"nodes": "nodes", "communicators": "communicators", "jobs": "jobs", "calc_ps": "computation", "flops": "flops",
	"sent_bytes": "sent", "received_bytes": "received", "collective_bytes": "in collectives", "mem_bytes": "memory",
	"io_bytes": "storage", "last_release_ps": "last release", "deps": "dependencies",
	"start_deps": "start dependencies",
	"streams":    "streams per rank, at most", "nics": "NICs per rank, at most",
}

// counts writes the ops by kind and subkind.
func (p *page) counts() {
	all := &table{caption: "Ops by kind and subkind", headings: []string{"kind", "ops"}}
	var drawn []bar
	for _, name := range []string{"ops_by_kind", "ops_by_subkind"} {
		counts := p.root.get("stats", name)
		for _, kind := range countedOf(counts) {
			class := "f0"
			if name == "ops_by_subkind" {
				class = "f3"
			}
			drawn = append(drawn, bar{label: kind, full: kind, parts: []piece{{class, "", counts.get(kind)}}})
			all.rows = append(all.rows, []string{escape(kind), show(counts.get(kind), plain)})
		}
	}
	if len(drawn) == 0 {
		return
	}
	first := drawn[0]
	says := new(sentence).add("Of ").show(p.root.get("stats", "ops"), plain).add(" ops, ").
		show(first.parts[0].of, plain).add(" are " + first.label + ".")
	p.section("ops", "Ops", says)
	picture := bars(drawn, plain)
	if len(drawn) > 0 && drawn[len(drawn)-1].parts[0].class == "f3" {
		picture.key("f0", "kind")
		picture.key("f3", "subkind")
	}
	p.figure("Ops by kind and subkind", says, picture, all)
	p.endSection()
}

// sizes writes the sizes of messages.
func (p *page) sizes() {
	m := p.root.get("stats", "messages")
	if m.get("count").number() <= 0 {
		return
	}
	says := new(sentence).add("The trace has ").show(m.get("count"), plain).add(" messages of ").
		show(m.get("min_bytes"), size).add(" to ").show(m.get("max_bytes"), size).add("; half of them have at most ").
		show(m.get("median_bytes"), size).add(".")
	p.section("sizes", "Message sizes", says)
	if bins := p.root.get("sizes").all(); len(bins) > 0 {
		p.figure("Messages by size; each bin ends at a power of two", says, single(bins, func(v value) string {
			text, _ := numberOf(v.get("up_to_bytes"), size)
			return "to " + text
		}, "messages", plain), objectsOf(bins, "Messages by size", "up_to_bytes", "messages", "bytes"))
	}
	p.endSection()
}

// byRank writes the ops and bytes of ranks.
func (p *page) byRank() {
	stats := p.root.get("stats")
	ops, sent, calc := stats.get("rank_ops"), stats.get("rank_sent_bytes"), stats.get("rank_calc_ps")
	if !ops.known {
		return
	}
	says := new(sentence).add("A rank has ").show(ops.get("min"), plain).add(" to ").show(ops.get("max"), plain).
		add(" ops, sends ").show(sent.get("min"), size).add(" to ").show(sent.get("max"), size).
		add(" and computes for ").show(calc.get("min"), time).add(" to ").show(calc.get("max"), time).add(".")
	p.section("ranks", "Ranks", says)
	defer p.endSection()
	ranks := p.root.get("by_rank").all()
	if len(ranks) == 0 {
		return
	}
	members := []string{"rank", "ops", "sent_bytes", "received_bytes", "collective_bytes", "calc_ps"}
	label := func(v value) string { return "rank " + fmt.Sprint(v.get("rank").of) }
	values := objectsOf(ranks, "Ops, bytes and computation by rank", members...)
	if len(ranks) < int(p.root.get("stats", "ranks").number()) {
		p.body.WriteString("<p>The figures have the ranks with most bytes of messages and collectives.</p>\n")
	}
	p.figure("Ops by rank", says, single(ranks, label, "ops", plain), values)
	for _, m := range []struct {
		name, caption string
		unit          unit
	}{{"sent_bytes", "Bytes sent by rank", size}, {"calc_ps", "Computation by rank", time}} {
		if !slices.ContainsFunc(ranks, func(v value) bool { return v.get(m.name).number() > 0 }) {
			continue
		}
		p.figure(m.caption, says, single(ranks, label, m.name, m.unit), objectsOf(ranks, m.caption, "rank", m.name))
	}
}

// comms writes the communicators.
func (p *page) comms() {
	comms := p.root.get("communicators").all()
	if len(comms) == 0 {
		return
	}
	says := new(sentence).add("The first communicator has ").show(comms[0].get("size"), plain).add(" ranks.")
	p.section("communicators", "Communicators", says)
	values := &table{caption: "Communicators", headings: []string{"number", "name", "ranks"}}
	for i, c := range comms {
		values.rows = append(values.rows, []string{fmt.Sprint(i), shown(c.get("name"), plain),
			show(c.get("size"), plain)})
	}
	p.folded("Communicators", values)
	p.endSection()
}

// provenance writes how the trace was made.
func (p *page) provenance() {
	list := p.root.get("provenance").all()
	if len(list) == 0 {
		return
	}
	p.section("provenance", "Provenance", nil)
	p.body.WriteString("<ol>\n")
	for _, v := range list {
		fmt.Fprintf(&p.body, "<li>%s %s", show(v.get("program"), plain), show(v.get("version"), plain))
		if seed := v.get("seed"); seed.isNumber() {
			fmt.Fprintf(&p.body, ", seed %s", show(seed, plain))
		}
		if words := v.get("command").all(); len(words) > 0 {
			p.body.WriteString("<pre>")
			for i, word := range words {
				if i > 0 {
					p.body.WriteByte(' ')
				}
				p.body.WriteString(escape(shell.Quote(word.text())))
			}
			p.body.WriteString("</pre>")
		}
		for _, in := range v.get("inputs").all() {
			fmt.Fprintf(&p.body, "<br>from %s", show(in.get("name"), plain))
		}
		p.body.WriteString("</li>\n")
	}
	p.body.WriteString("</ol>\n")
	p.endSection()
}
